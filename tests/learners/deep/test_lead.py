"""Who practises and who is handed out, against lists and sums by hand."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.learners.deep import acting, as_method, discriminator, lead, learner, turns
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

    def __init__(self, judge, lanes, longest, every):
        self.judge, self.longest, self.every = judge, longest, every
        self.episodes, self.ages = [0] * lanes, [0] * lanes
        self.player = [self.due(i, "clone") for i in range(lanes)]
        # Of each: the points of an iteration, and the episodes ended there.
        self.practice = {"clone": [], "average": []}
        self.leads, self.since, self.told = "clone", 0, (0.0, 0.0)
        self.heard = False

    def due(self, lane, who):
        return "newest" if (self.episodes[lane] + 1 + lane) % self.every else who

    def review(self, k, x, ended):
        """`x` and `ended` by step and lane."""
        for who, practice in self.practice.items():
            mine = [i for i, player in enumerate(self.player) if player == who]
            if mine:
                points = [p for row in x for i, p in enumerate(row) if i in mine]
                practice.append((points, sum(int(row[i]) for row in ended for i in mine)))
        auditioned, heard = False, self.heard  # as it was before this iteration
        kept = {who: of[-self.longest - 1 :] for who, of in self.practice.items()}
        times = {who: sum(n for _, n in of) for who, of in kept.items()}
        enough = len(self.practice["clone"]) >= self.longest or times["clone"] >= LATEST
        self.heard = enough or times["clone"] > times["average"]
        for i, player in enumerate(self.player):
            self.ages[i] += 1
            if any(row[i] for row in ended) or self.ages[i] == self.longest:
                auditioned |= player == "average"
                self.episodes[i] += 1
                self.player[i], self.ages[i] = self.due(i, "average" if heard else "clone"), 0
        if auditioned:
            clone = self.worth("clone") if self.practice["clone"] else -np.inf
            average = self.worth("average")
            better = "average" if average > clone else "clone"
            self.since = self.since if better == self.leads else k
            self.leads, self.told = better, (clone if np.isfinite(clone) else 0.0, average)

    def worth(self, who):
        """Of whole episodes of the latest iterations, or of these as one."""
        practice = self.practice[who]
        latest = practice[-self.longest :]
        ends = [i for i, (_, n) in enumerate(latest[:-1]) if n]
        if len(practice) > len(latest) and practice[-self.longest - 1][1]:
            ends.insert(0, -1)  # one ended just before
        if len(practice) > len(latest) and ends:
            latest = latest[ends[0] + 1 :]
        for i in range(len(latest) - 1, -1, -1):  # back from the end
            if sum(n for _, n in latest[i + 1 :]) >= LATEST:
                latest = latest[i + 1 :]
                break
        points, episodes = zip(*latest, strict=True)
        return gained(self.judge, np.concatenate(points)).sum() / max(sum(episodes), 1)


def last(judge):
    return judge.net.layers[-1].w


def beginning(lanes, longest, every):
    return (
        turns.first(lanes, every=every),
        lead.first(policy(0), iterations=longest, fresh=STEPS * lanes, width=S + A, alone=False),
    )


@functools.partial(jax.jit, static_argnames=("every", "longest"))
def reviewed(taken, state, x, ended, judge, k, *, every, longest):
    after, over = turns.after(
        taken, ended, every=every, longest=longest, heard=lead.heard(state, latest=LATEST)
    )
    flat = x.reshape(-1, S + A), ended.reshape(-1)
    return after, lead.review(state, taken, over, *flat, judge, jnp.asarray(False), k,
                              reward="logit", latest=LATEST)  # fmt: skip


@pytest.mark.parametrize("ends", [0.0, 0.02, 0.1, 0.5])
@pytest.mark.parametrize(("lanes", "every"), [(1, 1), (1, 3), (2, 2), (3, 2)])
def test_turns_and_trials_against_lists(judge, lanes, every, ends):
    """Ninety iterations; the discriminator changes its mind on the way, of old practice too."""
    rng = np.random.default_rng(lanes)
    longest = 6
    taken, state = beginning(lanes, longest, every)
    expected, decisions = ByHand(judge, lanes, longest, every), set()
    names = {"newest": Player.NEWEST, "clone": Player.CLONE, "average": Player.AVERAGE}
    for k in range(1, 91):
        x = rng.normal(size=(STEPS, lanes, S + A)).astype(np.float32)
        ended = rng.uniform(size=(STEPS, lanes)) < ends
        if k % 15 == 0:
            judge = eqx.tree_at(last, judge, replace_fn=jnp.negative)
        expected.judge = judge
        expected.review(k, x, ended)
        taken, state = reviewed(taken, state, x, ended, judge, jnp.int32(k),
                                every=every, longest=longest)  # fmt: skip
        assert taken.player.tolist() == [names[player] for player in expected.player]
        assert taken.episodes.tolist() == expected.episodes
        assert bool(state.average) == (expected.leads == "average")
        assert int(state.since) == expected.since
        told = [float(state.clone_earned), float(state.earned)]
        assert told == pytest.approx(expected.told, rel=1e-3, abs=1e-3)
        decisions.add(expected.since)
        handed = lead.handed(state, policy(1))
        assert same(handed, policy(int(expected.leads == "average")))
    assert len(decisions) > 1


def test_a_tie_is_the_clones(judge):
    """Where everything earns nothing."""
    still = jax.tree.map(jnp.zeros_like, judge)
    taken, state = beginning(2, 4, 1)
    for k in range(1, 9):
        taken, state = reviewed(
            taken, state, np.ones((STEPS, 2, S + A), np.float32), np.ones((STEPS, 2), bool),
            still, jnp.int32(k), every=1, longest=4,
        )  # fmt: skip
    assert (int(state.known.count), int(state.trial.count)) == (2, 6)  # both were heard
    assert not state.average
    assert int(state.since) == 0


def test_an_average_beside_a_clone_that_nobody_heard_is_handed_out(judge):
    taken, state = beginning(1, 4, 1)
    taken = dataclasses.replace(taken, player=jnp.full(1, Player.AVERAGE))
    x, ended = np.ones((STEPS, 1, S + A), np.float32), np.ones((STEPS, 1), bool)
    taken, state = reviewed(taken, state, x, ended, judge, jnp.int32(1), every=1, longest=4)
    assert state.average
    assert (int(state.since), float(state.clone_earned)) == (1, 0)


def test_without_a_clone_or_a_trial_the_average_stands_alone():
    for changes in ({"warm_start": "none"}, {"trial": 0}, {"audition": 0}):
        settings = learner.resolve(dataclasses.replace(TINY, envs=2, **changes))
        state = learner.init(settings, S, A, discrete=False, key=KEY)
        assert (settings.trial, settings.audition) == (0, 0)
        assert not state.turns.player.any()  # no auditions
        other = jax.tree.map(lambda x: x + 1, state.average)
        assert same(lead.handed(state.lead, other), other)
    settings = learner.resolve(dataclasses.replace(TINY, audition=5))
    state = learner.init(settings, S, A, discrete=False, key=KEY)
    assert settings.audition == 5
    other = jax.tree.map(lambda x: x + 1, state.average)
    assert same(lead.handed(state.lead, other), state.agent.actor)


def test_a_trial_is_of_whole_iterations():
    def trial(**options):
        return learner.resolve(DeepConfig(interactions=1_000, window="1", **options)).trial

    assert [trial(fresh=8, trial=n) for n in (0, 1, 8, 9, 80)] == [0, 1, 1, 2, 10]
    assert trial(fresh=8, envs=2, trial=80) == 10  # an episode takes as long in each lane
    assert trial(fresh=8, trial=10**9) == 125  # the whole run


def test_boldness_is_spread_evenly_however_few_episodes_there_are():
    lanes = 4
    taken = turns.first(lanes, every=0)
    drawn = np.stack([
        turns.boldness(dataclasses.replace(taken, episodes=jnp.full(lanes, n, jnp.int32)))
        for n in range(89)
    ])  # fmt: skip
    assert drawn.min() >= 0 > drawn.max() - 1
    for count in (5, 8, 13, 89):
        for lane in drawn[:count].T:
            gaps = np.diff(np.sort(lane), append=1 + lane.min())
            assert gaps.max() < 2.7 / count  # by chance some would be much wider
    assert len(np.unique(drawn.round(5))) == drawn.size
    mixed = dataclasses.replace(taken, episodes=jnp.array([7, 0, 80, 7], jnp.int32))
    np.testing.assert_array_equal(turns.boldness(mixed), drawn[[7, 0, 80, 7], range(lanes)])


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
    return method.act(dataclasses.replace(state, turns=taken), n)(OBS)


def test_the_newest_explores_and_auditions_are_as_handed_out():
    method = method_of(dataclasses.replace(TINY, warm_start="none", envs=3, noise=0.0))
    where = lambda s: (s.agent.actor, s.lead.clone, s.average)  # noqa: E731
    state = eqx.tree_at(where, method.state, (policy(1), policy(2), policy(3)))
    alone, again = (playing(method, state, [0, 0, 0], n) for n in (5, 6))
    mixed = playing(method, state, [Player.CLONE, Player.NEWEST, Player.AVERAGE])
    for row, seed in ((0, 2), (2, 3)):
        mode = np.asarray(policy(seed).at(jnp.asarray(OBS)).mode())
        np.testing.assert_allclose(mixed[row], mode[row], rtol=1e-6)
    np.testing.assert_array_equal(mixed[1], alone[1])
    assert (alone != again).all()  # its own spread
    assert same(method.actor(state), policy(3))


def bold_key():
    """Of the noise of a run of seed 0."""
    return jax.random.fold_in(jax.random.split(jax.random.key(0), 3)[2], 0)


LONG = dataclasses.replace(
    TINY, warm_start="none", envs=3, interactions=240_000, replay=24, final_rate=0.1
)


def test_noise_is_the_newests_alone_and_as_large_as_its_episodes_share():
    """Many draws in each of three episodes, beside the same without noise."""
    calm, bold = (method_of(dataclasses.replace(LONG, noise=noise)) for noise in (0.0, 0.1))
    episodes = jnp.array([4, 9, 2], jnp.int32)
    state = eqx.tree_at(lambda s: s.turns.episodes, calm.state, episodes)
    clone = eqx.tree_at(lambda s: s.turns.player, state, jnp.full(3, Player.CLONE))
    np.testing.assert_array_equal(calm.act(clone, 7)(OBS), bold.act(clone, 7)(OBS))
    drawn = [np.stack([of.act(state, n)(OBS) for n in range(1_000)]) for of in (calm, bold)]
    inside = (np.abs(drawn[1]) < 1) & (np.abs(drawn[0]) < 0.6)
    off = np.where(inside, drawn[1] - drawn[0], np.nan)
    spread = np.nanstd(off, axis=(0, 2))
    shares = np.asarray(turns.boldness(state.turns))
    assert np.ptp(shares) > 0.2
    np.testing.assert_allclose(spread, 0.1 * shares, rtol=0.12)
    # Half-way through the run it has fallen by half of what it falls, with the actor's rate.
    half = bold.act(state, 120_000)(OBS) - calm.act(state, 120_000)(OBS)
    full = acting.straying(lambda obs: calm.act(state, 120_000)(obs), bold_key(), 120_000,
                           (0.055 * shares).astype(np.float32))(OBS)  # fmt: skip
    np.testing.assert_allclose(calm.act(state, 120_000)(OBS) + half, full, atol=1e-6)
    np.testing.assert_array_equal(bold.act(state, 3)(OBS), bold.act(state, 3)(OBS))


def test_actions_stay_in_their_range_and_a_choice_from_a_list_has_no_noise():
    wild = method_of(dataclasses.replace(TINY, warm_start="none", envs=3, noise=50.0))
    acted = wild.act(wild.state, 0)(OBS)
    assert np.abs(acted).max() == 1
    assert acted.dtype == np.float32
    listed = method_of(dataclasses.replace(TINY, warm_start="none", envs=3, noise=50.0), True)
    acted = listed.act(listed.state, 0)(OBS)
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
    """Every iteration ends an episode, and every episode is an audition; whose is next is decided
    by what was heard an iteration ago."""
    config = dataclasses.replace(TINY, fresh=4, trial=4, audition=1, policy_steps=1,
                                 reward_steps=1, batch=4, points=4)  # fmt: skip
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
    assert state.turns.player.tolist() == [Player.CLONE if k == 1 else Player.AVERAGE]
    assert (int(state.lead.known.count), int(state.lead.trial.count)) == (min(k, 2), max(k - 2, 0))
