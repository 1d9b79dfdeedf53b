"""Who practises and who is handed out, against lists and sums by hand."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.core import window as windows
from understudy.learners.deep import (
    acting,
    actor_critic,
    as_method,
    discriminator,
    lead,
    learner,
    turns,
)
from understudy.learners.deep import actor as actors
from understudy.learners.deep.actor_critic import Transitions
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.scaling import Scaling
from understudy.learners.deep.turns import Player

KEY = jax.random.key(0)
LATEST = 2
S, A, STEPS = 3, 2, 4  # an iteration has four steps of each lane
TINY = DeepConfig(interactions=64, hidden=4, discriminator_hidden=4)


@functools.cache
def policy(seed):
    return actors.actor(S, A, (4,), discrete=False, key=jax.random.key(seed))


def same(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.fixture(scope="module")
def judge():
    made = discriminator.discriminator(S + A, (8, 8), spectral=False, key=KEY)
    return jax.tree.map(lambda x: 3 * x, made)


def gained(judge, x):
    """Learned reward of each point: the logit."""
    x = np.asarray(x, np.float64)
    *hidden, (w, b) = [(np.asarray(layer.w), np.asarray(layer.b)) for layer in judge.net.layers]
    for v, c in hidden:
        x = np.maximum(x @ v + c, 0)
    return (x @ w + b)[..., 0]


class ByHand:
    """The same in lists: a lane after another, a step after another."""

    def __init__(self, judge, lanes, every, kept):
        self.judge, self.every, self.kept = judge, every, kept
        self.episodes, self.now, self.steps = [0] * lanes, [[] for _ in range(lanes)], 0
        self.begun = [0] * lanes
        self.next = "clone"
        self.player = [self.due(i) for i in range(lanes)]
        # Of each: the points of an audition, and the step that it began with.
        self.heard = {"clone": [], "average": []}
        self.leads, self.since, self.told = "clone", 0, (0.0, 0.0)

    def due(self, lane):
        return "newest" if (self.episodes[lane] + 1 + lane) % self.every else self.next

    def review(self, k, x, ended):
        """`x` and `ended` by step and lane; who played at each step."""
        auditioned, played = False, []
        for row, over in zip(x, ended, strict=True):
            played.append(list(self.player))
            for i, point in enumerate(row):
                self.now[i].append(point)
                if over[i]:
                    if self.player[i] != "newest":
                        self.heard[self.player[i]].append((self.now[i], self.begun[i]))
                        auditioned |= self.player[i] == "average"
                    self.episodes[i] += 1
                    self.now[i], self.begun[i] = [], self.steps + 1
                    self.player[i] = self.due(i)
            self.steps += 1
        if auditioned:
            clone, average = self.worth("clone"), self.worth("average")
            sure = bool(clone) and all(a > b for a in clone for b in average)
            better = "clone" if sure or not average else "average"
            self.since = self.since if better == self.leads else k
            means = (np.mean(x) if x else 0.0 for x in (clone, average))
            self.leads, self.told = better, tuple(means)
        times = {who: len(heard) for who, heard in self.heard.items()}
        enough = times["clone"] > times["average"] or times["clone"] >= LATEST
        self.next = "average" if enough else "clone"
        return played

    def worth(self, who):
        """Of the latest auditions, those that are kept whole."""
        latest = self.heard[who][-LATEST:]
        whole = [points for points, begun in latest if begun >= self.steps - STEPS * self.kept]
        return [gained(self.judge, np.stack(points)).sum() for points in whole]


def last(judge):
    return judge.net.layers[-1].w


class Learned:
    """Turns and lead of a run that keeps so many iterations of what was practised."""

    def __init__(self, lanes, every, kept):
        self.lanes, self.every = lanes, every
        self.turns = turns.first(lanes, every=every)
        self.lead = lead.first(policy(0), latest=LATEST, alone=False)
        self.window = windows.empty(actor_critic.blank(S, A, STEPS * lanes), kept)

    def review(self, k, x, ended, judge):
        arrays = self.turns, self.lead, self.window, judge
        self.turns, self.lead, self.window, played = _reviewed(
            *arrays, x, ended, jnp.int32(k), lanes=self.lanes, every=self.every
        )
        return played


@functools.partial(jax.jit, static_argnames=("lanes", "every"))
def _reviewed(taken, state, window, judge, x, ended, k, *, lanes, every):
    obs, action = jnp.split(x.reshape(-1, S + A), [S], axis=-1)
    none = jnp.zeros(len(obs), bool)
    window = windows.append(window, Transitions(obs, action, obs, none), label=k - 1)
    by = lead.Judging(window, judge, jnp.asarray(False), lanes, "logit", False, 3, 0.0, 1.0)
    player, begun = turns.during(taken, ended, k, every=every)
    state = lead.review(state, player, begun, ended, k, by)
    return turns.after(taken, ended, k, lead.next_heard(state), every=every), state, window, player


NAMES = {"newest": Player.NEWEST, "clone": Player.CLONE, "average": Player.AVERAGE}


@pytest.mark.parametrize("kept", [7, 90])
@pytest.mark.parametrize("ends", [0.02, 0.1, 0.5])
@pytest.mark.parametrize(("lanes", "every"), [(1, 1), (1, 3), (2, 2), (3, 2)])
def test_turns_and_auditions_against_lists(judge, lanes, every, ends, kept):
    """Ninety iterations; the discriminator changes its mind on the way, of old practice too, and a
    short replay lets go of auditions."""
    rng = np.random.default_rng(lanes)
    found = Learned(lanes, every, kept)
    expected, decisions = ByHand(judge, lanes, every, kept), set()
    for k in range(1, 91):
        x = rng.normal(size=(STEPS, lanes, S + A)).astype(np.float32)
        ended = rng.uniform(size=(STEPS, lanes)) < ends
        if k % 15 == 0:
            judge = eqx.tree_at(last, judge, replace_fn=jnp.negative)
        expected.judge = judge
        played = expected.review(k, x, ended)
        got = found.review(k, x, ended, judge)
        assert got.tolist() == [[NAMES[who] for who in row] for row in played]
        assert found.turns.player.tolist() == [NAMES[who] for who in expected.player]
        assert found.turns.episodes.tolist() == expected.episodes
        assert found.turns.begun.tolist() == expected.begun
        assert bool(found.lead.average) == (expected.leads == "average")
        assert int(found.lead.since) == expected.since
        told = [float(found.lead.clone_earned), float(found.lead.earned)]
        assert told == pytest.approx(expected.told, rel=1e-3, abs=1e-3)
        decisions.add(expected.since)
        handed = lead.handed(found.lead, policy(1))
        assert same(handed, policy(int(expected.leads == "average")))
    assert len(decisions) > 1 or ends == 0.02  # too few episodes


def test_a_tie_is_the_averages(judge):
    """Where everything earns nothing."""
    still = jax.tree.map(jnp.zeros_like, judge)
    found = Learned(2, 1, 8)
    for k in range(1, 9):
        found.review(k, np.ones((STEPS, 2, S + A), np.float32), np.ones((STEPS, 2), bool), still)
    # All that begins within the first iteration is the clone's.
    assert (int(found.lead.of_clone.count), int(found.lead.of_average.count)) == (10, 54)
    assert found.lead.average
    assert int(found.lead.since) == 2  # when it was first heard


def test_an_average_beside_a_clone_that_nobody_heard_is_handed_out(judge):
    found = Learned(1, 1, 4)
    found.turns = dataclasses.replace(
        found.turns,
        player=jnp.full(1, Player.AVERAGE, jnp.int32),
        next=jnp.asarray(int(Player.AVERAGE), jnp.int32),
    )
    found.review(1, np.ones((STEPS, 1, S + A), np.float32), np.ones((STEPS, 1), bool), judge)
    assert found.lead.average
    assert (int(found.lead.since), float(found.lead.clone_earned)) == (1, 0)


def test_without_a_clone_or_auditions_the_average_stands_alone():
    for changes in ({"warm_start": "none"}, {"audition": 0}):
        settings = learner.resolve(dataclasses.replace(TINY, envs=2, **changes))
        state = learner.init(settings, S, A, discrete=False, key=KEY)
        assert settings.audition == 0
        assert not state.turns.player.any()  # no auditions
        other = jax.tree.map(lambda x: x + 1, state.average)
        assert same(lead.handed(state.lead, other), other)
    settings = learner.resolve(dataclasses.replace(TINY, audition=5))
    state = learner.init(settings, S, A, discrete=False, key=KEY)
    assert settings.audition == 5
    other = jax.tree.map(lambda x: x + 1, state.average)
    assert same(lead.handed(state.lead, other), state.agent.actor)


def test_boldness_is_spread_evenly_however_few_episodes_there_are():
    lanes = 4
    drawn = np.stack([turns.boldness(np.full(lanes, n)) for n in range(89)])
    assert drawn.min() >= 0 > drawn.max() - 1
    for count in (5, 8, 13, 89):
        for lane in drawn[:count].T:
            gaps = np.diff(np.sort(lane), append=1 + lane.min())
            assert gaps.max() < 2.7 / count  # by chance some would be much wider
    assert len(np.unique(drawn.round(5))) == drawn.size
    mixed = turns.boldness(np.array([7, 0, 80, 7]))
    np.testing.assert_array_equal(mixed, drawn[[7, 0, 80, 7], range(lanes)])


def method_of(config, discrete=False):
    rng = np.random.default_rng(0)
    obs, action = (rng.normal(size=(4, n)).astype(np.float32) for n in (S, A))
    scale = (np.ones(n, np.float32) for n in (S, S))
    low, high = np.zeros(A, np.float32), np.ones(A, np.float32)
    border = Scaling(*scale, low, high, discrete=discrete)
    expert = Transitions(*map(jnp.asarray, (obs, action, obs)), jnp.zeros(4, bool))
    return as_method.imitation(expert, border, learner.resolve(config), learner, seed=0)


OBS = np.random.default_rng(1).normal(size=(3, S)).astype(np.float32)


def playing(method, state, players, n=5):
    taken = dataclasses.replace(state.turns, player=jnp.asarray(players, jnp.int32))
    return method.act(dataclasses.replace(state, turns=taken), n)(OBS, np.zeros(3, int))


def test_the_newest_explores_and_auditions_are_as_handed_out():
    method = method_of(dataclasses.replace(LONG, noise=0.0))
    where = lambda s: (s.agent.actor, s.lead.clone, s.average)  # noqa: E731
    state = eqx.tree_at(where, method.state, (policy(1), policy(2), policy(3)))
    alone, again = (playing(method, state, [0, 0, 0], n) for n in (5, 6))
    mixed = playing(method, state, [Player.CLONE, Player.NEWEST, Player.AVERAGE])
    for row, seed in ((0, 2), (2, 3)):
        mode = np.asarray(policy(seed).at(jnp.asarray(OBS)).mode())
        np.testing.assert_allclose(mixed[row], mode[row], rtol=1e-6)
    np.testing.assert_array_equal(mixed[1], alone[1])
    assert (alone != again).all()  # its own spread
    assert same(method.actor(state), policy(2))  # until the average was heard


def bold_key():
    """Of the noise of a run of seed 0."""
    return jax.random.fold_in(jax.random.split(jax.random.key(0), 3)[2], 0)


LONG = dataclasses.replace(
    TINY, envs=3, interactions=240_000, replay=24, final_rate=0.1, clone_least=1, clone_most=1
)


def test_noise_is_the_newests_alone_and_as_large_as_its_episodes_share():
    """Many draws in each of three episodes, beside the same without noise."""
    calm, bold = (method_of(dataclasses.replace(LONG, noise=noise)) for noise in (0.0, 0.1))
    now = np.array([4, 9, 2])
    state = eqx.tree_at(lambda s: s.turns.episodes, calm.state, jnp.asarray(now, jnp.int32))
    clone = eqx.tree_at(lambda s: s.turns.player, state, jnp.full(3, Player.CLONE))
    np.testing.assert_array_equal(calm.act(clone, 7)(OBS, now), bold.act(clone, 7)(OBS, now))
    drawn = [np.stack([of.act(state, n)(OBS, now) for n in range(1_000)]) for of in (calm, bold)]
    inside = (np.abs(drawn[1]) < 1) & (np.abs(drawn[0]) < 0.6)
    off = np.where(inside, drawn[1] - drawn[0], np.nan)
    spread = np.nanstd(off, axis=(0, 2))
    shares = turns.boldness(now)
    assert np.ptp(shares) > 0.2
    np.testing.assert_allclose(spread, 0.1 * shares, rtol=0.12)
    # Half-way through the run it has fallen by half of what it falls, with the actor's rate.
    quiet = calm.act(state, 120_000)(OBS, now)
    full = acting.straying(lambda obs: quiet, bold_key(), 120_000)(OBS, 0.055 * shares)
    np.testing.assert_allclose(bold.act(state, 120_000)(OBS, now), full, atol=1e-6)
    np.testing.assert_array_equal(bold.act(state, 3)(OBS, now), bold.act(state, 3)(OBS, now))


def test_an_episode_that_begins_within_an_iteration_is_of_who_is_next():
    """Its first step already, and with the noise of its own share."""
    method = method_of(dataclasses.replace(LONG, audition=2, noise=0.0))
    where = lambda s: (s.agent.actor, s.lead.clone, s.average)  # noqa: E731
    state = eqx.tree_at(where, method.state, (policy(1), policy(2), policy(3)))
    assert state.turns.player.tolist() == [Player.NEWEST, Player.CLONE, Player.NEWEST]
    modes = {n: np.asarray(policy(n).at(jnp.asarray(OBS)).mode()) for n in (2, 3)}
    acted = method.act(state, 5)(OBS, np.array([1, 1, 0]))
    np.testing.assert_allclose(acted[0], modes[2][0], rtol=1e-6)  # its second is an audition
    assert (acted[1] != modes[2][1]).all()
    heard = eqx.tree_at(lambda s: s.turns.next, state, jnp.asarray(int(Player.AVERAGE)))
    acted = method.act(heard, 5)(OBS, np.array([1, 0, 1]))
    np.testing.assert_allclose(acted[0], modes[3][0], rtol=1e-6)
    np.testing.assert_allclose(acted[1], modes[2][1], rtol=1e-6)  # under way: the clone's still
    np.testing.assert_allclose(acted[2], modes[3][2], rtol=1e-6)


def test_actions_stay_in_their_range_and_a_choice_from_a_list_has_no_noise():
    wild = method_of(dataclasses.replace(TINY, warm_start="none", envs=3, noise=50.0))
    acted = wild.act(wild.state, 0)(OBS, np.zeros(3, int))
    assert np.abs(acted).max() == 1
    assert acted.dtype == np.float32
    listed = method_of(dataclasses.replace(TINY, warm_start="none", envs=3, noise=50.0), True)
    acted = listed.act(listed.state, 0)(OBS, np.zeros(3, int))
    assert sorted(np.unique(acted)) == [0, 1]
    assert (acted.sum(axis=1) == 1).all()


def test_a_clone_begins_as_everybody():
    """With buffers of its own for each, as a step gives them away."""
    settings = learner.resolve(TINY)
    state = learner.init(settings, S, A, discrete=False, key=KEY)
    clone = jax.tree.map(lambda x: x + 1, state.agent.actor)
    after = learner.begin_with(state, clone, settings)
    others = after.agent.actor, after.agent.anchor, after.average
    assert all(same(actor, clone) for actor in (*others, after.lead.clone))
    kept = others, after.lead, after.turns
    places = [x.unsafe_buffer_pointer() for x in jax.tree.leaves(kept) if x.size]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_what_a_run_tells_of_it(k):
    """Every iteration ends an episode, and every episode is an audition."""
    config = dataclasses.replace(TINY, fresh=4, audition=1, policy_steps=1, reward_steps=1,
                                 batch=4, points=4)  # fmt: skip
    settings = learner.resolve(config)
    state = learner.init(settings, S, A, discrete=False, key=KEY)
    rng = np.random.default_rng(k)
    for _ in range(k):
        obs, action = (jnp.asarray(rng.normal(size=(4, n)), jnp.float32) for n in (S, A))
        points = Transitions(obs, action, obs, jnp.zeros(4, bool))
        ended = jnp.array([False, False, False, True])
        state, info = learner.step(state, points, points, settings=settings, ended=ended)
    assert bool(info.lead) == bool(state.lead.average)
    assert int(info.lead_since) == 4 * int(state.lead.since)
    assert float(info.clone_earned) == float(state.lead.clone_earned)
    assert float(info.earned) == float(state.lead.earned)
    assert (float(info.earned) != 0) == (k > 2)
    # An episode that begins with an iteration's end is of who was next before it: the clone's
    # after one of its own, and the clone's again once the average was heard as often.
    assert state.turns.player.tolist() == [Player.CLONE if k in (1, 5) else Player.AVERAGE]
    counts = state.lead.of_clone.count, state.lead.of_average.count
    assert tuple(map(int, counts)) == (min(k, 2), max(k - 2, 0))
