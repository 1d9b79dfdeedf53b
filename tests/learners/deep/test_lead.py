"""Who is handed out, against sums by hand."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.core import window as windows
from understudy.learners.deep import actor as actors
from understudy.learners.deep import actor_critic, as_method, discriminator, lead, learner
from understudy.learners.deep.actor_critic import Transitions
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.scaling import Scaling

KEY = jax.random.key(0)
CONFIG = DeepConfig(reward="logit")
S, A, FRESH, SLOTS, TRIAL = 3, 2, 4, 10, 2
CLONE, NOW = 1, 2


def policy(seed):
    return actors.actor(S, A, (4,), discrete=False, key=jax.random.key(seed))


def same(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.fixture(scope="module")
def judge():
    made = discriminator.discriminator(S + A, (8, 8), spectral=False, key=KEY)
    return jax.tree.map(lambda x: 3 * x, made)


def practice(seed, K):
    """What K policies practised, and the window that keeps the last ten of it."""
    rng = np.random.default_rng(seed)
    obs = rng.normal(size=(K, FRESH, S)).astype(np.float32)
    action = rng.uniform(-1, 1, (K, FRESH, A)).astype(np.float32)
    window = windows.empty(actor_critic.blank(S, A, FRESH), SLOTS)
    for i, (s, a) in enumerate(zip(obs, action, strict=True)):
        points = Transitions(*map(jnp.asarray, (s, a, s)), jnp.zeros(FRESH, bool))
        window = windows.append(window, points, jnp.int32(i))
    return obs, action, window


def gained(judge, obs, action):
    """Learned reward of each segment."""
    x = np.concatenate([obs, action], axis=-1).astype(np.float64)
    *hidden, (w, b) = [(np.asarray(layer.w), np.asarray(layer.b)) for layer in judge.net.layers]
    for v, c in hidden:
        x = np.maximum(x @ v + c, 0)
    return (x @ w + b)[..., 0].sum(axis=1)


def reviewed(judge, k, *, led=2, ends=None, trial=TRIAL, seed=0):
    """After iteration k: the lead is known by the trial that ended with iteration `led`, and `ends`
    of segment i saw an episode end; if not said, one each. Also each segment's gain."""
    obs, action, window = practice(seed, k)
    ends = np.ones(k, int) if ends is None else np.array(ends)
    kept = jnp.zeros(SLOTS, jnp.int32)
    for i in range(k - 1):
        kept = kept.at[i % SLOTS].set(int(ends[i]))
    before = dataclasses.replace(
        lead.first(policy(CLONE), SLOTS), ended=jnp.int32(led), episodes=kept
    )
    after = lead.review(
        before, policy(NOW), window, jnp.int32(int(ends[-1])), judge, jnp.asarray(False),
        jnp.int32(k), trial=trial, config=CONFIG,
    )  # fmt: skip
    return after, gained(judge, obs, action)


def who(state):
    return next(seed for seed in (CLONE, NOW) if same(state.actor, policy(seed)))


SEEDS = range(10)


def test_practice_that_has_earned_more_an_episode_takes_the_lead(judge):
    """The lead's trial, segments 0 and 1, ended three episodes, the latest, 4 and 5, two."""
    outcomes = set()
    for seed in SEEDS:
        after, r = reviewed(judge, 6, ends=[1, 2, 1, 1, 1, 1], seed=seed)
        theirs, ours = r[:2].sum() / 3, r[4:6].sum() / 2
        wins = ours > theirs
        outcomes.add(wins)
        assert who(after) == (NOW if wins else CLONE)
        assert int(after.ended) == (6 if wins else 2)
        told = [float(after.earned), float(after.newest)]
        assert told == pytest.approx([max(ours, theirs), ours])
    assert outcomes == {True, False}


def test_a_tie_leaves_the_lead_where_it_is(judge):
    still = jax.tree.map(jnp.zeros_like, judge)  # everything earns nothing
    assert who(reviewed(still, 6)[0]) == CLONE


def test_in_mid_episode_nobody_is_judged_unless_it_has_no_end(judge):
    for seed in SEEDS:
        after, _ = reviewed(judge, 7, ends=[1, 1, 1, 1, 0, 0, 0], seed=seed)
        assert (who(after), int(after.ended), float(after.newest)) == (CLONE, 2, 0)
        after, _ = reviewed(judge, 8, ends=[1, 1, 1, 1, 0, 0, 1, 0], seed=seed)
        assert (who(after), int(after.ended), float(after.newest)) == (CLONE, 2, 0)
        after, r = reviewed(judge, 8, ends=[1, 1, 1, 1, 0, 0, 0, 0], seed=seed)
        as_one = r[6:8].sum()
        assert float(after.newest) == pytest.approx(as_one, rel=1e-5)  # in single precision


def test_nobody_is_judged_before_a_first_trial(judge):
    """Until then the newest is handed out; then it has the lead, whatever it earned."""
    for seed in SEEDS:
        after, _ = reviewed(judge, 1, led=0, seed=seed)
        assert (who(after), int(after.ended)) == (NOW, 0)
        after, r = reviewed(judge, 2, led=0, seed=seed)
        assert (who(after), int(after.ended)) == (NOW, 2)
        assert float(after.earned) == pytest.approx(r.mean())


def test_where_the_window_has_turned_over_its_slots(judge):
    """Twelve segments in ten slots: 0 and 1 are gone, and with them whether an episode ended just
    before 2. So of the lead's trial only the episode of segment 3 is known to be whole."""
    for seed in SEEDS:
        after, r = reviewed(judge, 12, led=4, seed=seed)
        assert float(after.earned) == pytest.approx(max(r[3], r[10:].mean()))


@pytest.mark.parametrize(
    ("ends", "whole"),
    [
        ([0, 0, 0, 0, 1, 0, 0, 0, 1], slice(5, 9)),  # the episode before began too early
        ([0, 0, 1, 0, 0, 0, 0, 0, 1], slice(3, 9)),  # it began with the trial
        ([0, 1, 0, 0, 0, 0, 0, 0, 1], slice(3, 9)),  # before it: all there is, as one
        ([0, 0, 0, 2, 0, 1, 0, 0, 1], slice(4, 9)),
    ],
)
def test_an_episode_that_began_before_the_trial_does_not_count(judge, ends, whole):
    """Or a policy whose episodes are a little shorter would seem to earn much less in each."""
    after, r = reviewed(judge, 9, ends=ends, trial=6)
    assert float(after.newest) == pytest.approx(r[whole].sum() / max(1, sum(ends[whole])))


def test_a_trial_that_is_forgotten_speaks_for_nobody(judge):
    for seed in SEEDS:
        after, r = reviewed(judge, 12, led=3, seed=seed)
        assert (who(after), int(after.ended)) == (NOW, 12)
        assert float(after.earned) == pytest.approx(r[10:].mean())


def test_without_trials_the_average_of_now_is_handed_out():
    state = lead.follow(lead.first(policy(CLONE), SLOTS), policy(NOW), jnp.int32(7))
    assert (who(state), int(state.ended)) == (NOW, 7)


def test_trials_are_whole_iterations_and_no_longer_than_the_replay():
    def trial(**options):
        return learner.resolve(DeepConfig(interactions=1_000, window="1", **options)).trial

    assert [trial(fresh=8, trial=n) for n in (0, 1, 8, 9, 80)] == [0, 1, 1, 2, 10]
    assert trial(fresh=8, envs=2, trial=80) == 5
    assert trial(fresh=8, replay=40, trial=80) == 5


def test_the_newest_practises_and_the_lead_is_measured(monkeypatch):
    plays = []
    monkeypatch.setattr(
        as_method.acting, "sampling", lambda actor, key, n: lambda obs: plays.append(actor)
    )
    config = DeepConfig(interactions=64, hidden=4, discriminator_hidden=4, warm_start="none")
    obs, action, _ = practice(0, 1)
    border = Scaling(*(np.ones(n, np.float32) for n in (S, S, A, A)), discrete=False)
    expert = Transitions(*map(jnp.asarray, (obs[0], action[0], obs[0])), jnp.zeros(FRESH, bool))
    method = as_method.imitation(expert, border, learner.resolve(config), learner, seed=0)
    others = policy(NOW), policy(CLONE)
    state = eqx.tree_at(lambda s: (s.agent.actor, s.lead.actor), method.state, others)
    method.act(state, 0)(obs)
    assert same(plays[0], policy(NOW))
    assert same(method.actor(state), policy(CLONE))


def test_a_clone_begins_as_everybody():
    """With buffers of its own for each, as a step gives them away."""
    config = DeepConfig(interactions=64, hidden=4, discriminator_hidden=4)
    settings = learner.resolve(config)
    state = learner.init(settings, S, A, discrete=False, key=KEY)
    clone = jax.tree.map(lambda x: x + 1, state.agent.actor)
    after = learner.begin_with(state, clone, settings)
    everybody = after.agent.actor, after.agent.anchor, after.average, after.lead.actor
    assert all(same(actor, clone) for actor in everybody)
    places = [x.unsafe_buffer_pointer() for x in jax.tree.leaves((everybody, after.lead))]
    assert len(set(places)) == len(places) - len(jax.tree.leaves(after.lead.actor))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_what_a_run_tells_of_it(k):
    """The end of the lead's trial in interactions, and what it and the latest practice earned."""
    config = DeepConfig(interactions=64, hidden=4, discriminator_hidden=4, fresh=4, trial=8,
                        policy_steps=1, reward_steps=1, batch=4, points=4)  # fmt: skip
    settings = learner.resolve(config)
    state = learner.init(settings, S, A, discrete=False, key=KEY)
    for i in range(k):
        obs, action, _ = practice(i, 1)
        points = Transitions(*map(jnp.asarray, (obs[0], action[0], obs[0])), jnp.zeros(FRESH, bool))
        state, info = learner.step(state, points, points, settings=settings, ended=jnp.int32(1))
    assert int(info.lead_since) == 4 * int(state.lead.ended)
    assert float(info.lead_earned) == float(state.lead.earned)
    assert float(info.earned) == float(state.lead.newest)
    assert int(state.lead.episodes.sum()) == k
    assert (int(state.lead.ended) >= 2) == (k >= 2)
