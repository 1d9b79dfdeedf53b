"""Who practises and who is handed out, against lists and sums by hand."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.learners.deep import actor as actors
from understudy.learners.deep import as_method, discriminator, lead, learner
from understudy.learners.deep.actor_critic import Transitions
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.scaling import Scaling

KEY = jax.random.key(0)
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

    def __init__(self, judge, lanes, longest):
        self.judge, self.longest = judge, longest
        self.turns = [i % 2 == 1 for i in range(lanes)]
        self.ages = [0] * lanes
        self.leader, self.since, self.candidate = None, 0, 0  # policies by their iteration
        self.practice = []  # of candidates: the points of an iteration, the episodes ended there
        self.known = None  # the practice by which the leader took the lead
        self.earned = self.tried = 0.0

    def review(self, k, x, ended):
        """`x` and `ended` by step and lane; the average of now is policy k."""
        mine = [i for i, turn in enumerate(self.turns) if turn]
        if mine:
            points = [p for row in x for i, p in enumerate(row) if i in mine]
            self.practice.append((points, sum(int(row[i]) for row in ended for i in mine)))
        tried = False
        for i in range(len(self.turns)):
            self.ages[i] += 1
            if any(row[i] for row in ended) or self.ages[i] == self.longest:
                tried |= i in mine
                self.turns[i], self.ages[i] = not self.turns[i], 0
        if tried:
            self.tried = self.worth(self.practice)
            self.earned = -np.inf if self.known is None else self.worth(self.known)
            if self.tried > self.earned:
                self.leader, self.since, self.earned = self.candidate, k, self.tried
                self.known = list(self.practice)
            self.candidate = k
        return k if self.known is None else self.leader

    def worth(self, practice):
        """Of whole episodes of the latest iterations, or of these as one."""
        latest = practice[-self.longest :]
        ends = [i for i, (_, n) in enumerate(latest[:-1]) if n]
        if len(practice) > len(latest) and practice[-self.longest - 1][1]:
            ends.insert(0, -1)  # one ended just before
        if len(practice) > len(latest) and ends:
            latest = latest[ends[0] + 1 :]
        points, episodes = zip(*latest, strict=True)
        return gained(self.judge, np.concatenate(points)).sum() / max(sum(episodes), 1)


review = jax.jit(functools.partial(lead.review, reward="logit"))


def last(judge):
    return judge.net.layers[-1].w


@pytest.mark.parametrize("ends", [0.0, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_turns_and_trials_against_lists(judge, lanes, ends):
    """Eighty iterations; the discriminator changes its mind on the way, of old practice too."""
    rng = np.random.default_rng(lanes)
    longest = 6
    state = lead.first(policy(0), iterations=longest, fresh=STEPS * lanes, lanes=lanes, width=S + A)
    expected, leaders = ByHand(judge, lanes, longest), set()
    for k in range(1, 81):
        x = rng.normal(size=(STEPS, lanes, S + A)).astype(np.float32)
        ended = rng.uniform(size=(STEPS, lanes)) < ends
        if k % 15 == 0:
            judge = eqx.tree_at(last, judge, replace_fn=jnp.negative)
        expected.judge = judge
        handed = expected.review(k, x, ended)
        state = review(state, policy(k), x.reshape(-1, S + A), ended.reshape(-1), judge,
                       jnp.asarray(False), jnp.int32(k))  # fmt: skip
        assert same(state.actor, policy(handed))
        assert same(state.candidate, policy(expected.candidate))
        assert (state.turns.tolist(), int(state.since)) == (expected.turns, expected.since)
        told = [float(state.earned), float(state.tried)]
        assert told == pytest.approx([expected.earned, expected.tried], rel=1e-3, abs=1e-3)
        leaders.add(handed)
    assert len(leaders) > 2


def test_a_tie_leaves_the_lead_where_it_is(judge):
    """Where everything earns nothing, the first that was tried keeps it."""
    still = jax.tree.map(jnp.zeros_like, judge)
    state = lead.first(policy(0), iterations=4, fresh=2, lanes=2, width=S + A)
    for k in range(1, 6):
        state = lead.review(
            state, policy(k), jnp.ones((2, S + A), jnp.float32), jnp.ones(2, bool), still,
            jnp.asarray(False), jnp.int32(k), reward="logit",
        )  # fmt: skip
    assert same(state.actor, policy(0))
    assert int(state.since) == 1


def test_without_trials_the_average_of_now_is_handed_out():
    state = lead.first(policy(0), iterations=0, fresh=4, lanes=2, width=S + A)
    assert not state.turns.any()  # nobody is on trial
    state = lead.follow(state, policy(1), jnp.int32(7))
    assert same(state.actor, policy(1))
    assert int(state.since) == 7


def test_a_trial_is_of_whole_iterations():
    def trial(**options):
        return learner.resolve(DeepConfig(interactions=1_000, window="1", **options)).trial

    assert [trial(fresh=8, trial=n) for n in (0, 1, 8, 9, 80)] == [0, 1, 1, 2, 10]
    assert trial(fresh=8, envs=2, trial=80) == 10  # an episode takes as long in each lane
    assert trial(fresh=8, trial=10**9) == 125  # the whole run


def method_of(config):
    rng = np.random.default_rng(0)
    obs, action = (rng.normal(size=(4, n)).astype(np.float32) for n in (S, A))
    border = Scaling(*(np.ones(n, np.float32) for n in (S, S, A, A)), discrete=False)
    expert = Transitions(*map(jnp.asarray, (obs, action, obs)), jnp.zeros(4, bool))
    return as_method.imitation(expert, border, learner.resolve(config), learner, seed=0)


def test_the_newest_explores_the_candidate_does_not_and_the_lead_is_measured():
    method = method_of(dataclasses.replace(TINY, warm_start="none", envs=3))
    others = policy(1), policy(2), policy(3)
    where = lambda s: (s.agent.actor, s.lead.candidate, s.lead.actor)  # noqa: E731
    state = eqx.tree_at(where, method.state, others)
    obs = np.random.default_rng(1).normal(size=(3, S)).astype(np.float32)

    def played(turns, n):
        return method.act(dataclasses.replace(state, lead=dataclasses.replace(
            state.lead, turns=jnp.asarray(turns))), n)(obs)  # fmt: skip

    alone, mixed, again = (
        played(t, n) for t, n in [([False] * 3, 5), ([True, False, True], 5), ([False] * 3, 6)]
    )
    as_handed = np.asarray(policy(2).at(jnp.asarray(obs)).mode())
    np.testing.assert_allclose(mixed[[0, 2]], as_handed[[0, 2]], rtol=1e-6)
    np.testing.assert_array_equal(mixed[1], alone[1])
    assert (alone != again).all()  # noise
    assert same(method.actor(state), policy(3))


def test_a_clone_begins_as_everybody():
    """With buffers of its own for each, as a step gives them away."""
    settings = learner.resolve(TINY)
    state = learner.init(settings, S, A, discrete=False, key=KEY)
    clone = jax.tree.map(lambda x: x + 1, state.agent.actor)
    after = learner.begin_with(state, clone, settings)
    others = after.agent.actor, after.agent.anchor, after.average
    everybody = *others, after.lead.actor, after.lead.candidate
    assert all(same(actor, clone) for actor in everybody)
    places = [x.unsafe_buffer_pointer() for x in jax.tree.leaves((others, after.lead)) if x.size]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_what_a_run_tells_of_it(k):
    """Interactions after which the lead was taken, and what it and the latest trial earned. Every
    iteration ends an episode, so the second is the first candidate's."""
    config = dataclasses.replace(TINY, fresh=4, trial=4, policy_steps=1, reward_steps=1, batch=4,
                                 points=4)  # fmt: skip
    settings = learner.resolve(config)
    state = learner.init(settings, S, A, discrete=False, key=KEY)
    rng = np.random.default_rng(k)
    for _ in range(k):
        obs, action = (jnp.asarray(rng.normal(size=(4, n)), jnp.float32) for n in (S, A))
        points = Transitions(obs, action, obs, jnp.zeros(4, bool))
        last = jnp.array([False, False, False, True])
        state, info = learner.step(state, points, points, settings=settings, ended=last)
    assert int(info.lead_since) == 4 * int(state.lead.since)
    assert float(info.lead_earned) == float(state.lead.earned)
    assert float(info.earned) == float(state.lead.tried)
    assert (int(state.lead.since) >= 2) == (k >= 2)
    assert state.lead.turns.tolist() == [k % 2 == 1]
