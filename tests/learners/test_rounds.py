"""The authors' iteration against plain NumPy, and what it may not be asked together with."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.core import draws
from understudy.core.errors import UserError
from understudy.envs import catalog
from understudy.learners import rounds
from understudy.learners.config import Config
from understudy.learners.finite import imitate, learner_of, plan, pose, together
from understudy.learners.linear import check_rewards

CONFIG = Config(
    rollouts=24,
    batch=2,
    window="4",
    points=5,
    rounds=3,
    steps="paper",
    visits="sampled",
    ledger=False,
    marks=4,
)
TASK = catalog.find("SlipperyRoom-3x3-seed5")


def test_every_set_of_those_held_is_as_likely():
    """Two of the four held out of six: six pairs, and none of the other two."""
    held = jnp.array([True, False, True, True, False, True])
    taken = np.asarray(draws.choose(held, 2, (3, 4_000), key=jax.random.key(0)))
    assert (taken.sum(0) == 2).all()
    pairs, counts = np.unique(taken.reshape(6, -1), axis=1, return_counts=True)
    assert pairs.shape[1] == 6
    assert not pairs[[1, 4]].any()
    assert np.abs(counts - 2_000).max() < 5 * np.sqrt(2_000 * 5 / 6)
    everything = draws.choose(held, 9, (2,), key=jax.random.key(1))
    np.testing.assert_array_equal(everything, np.stack([held, held], -1))


def test_an_iteration_is_that_of_plain_numpy():
    """Everything but the draws computed once more, from the definition in the docstring."""
    where, d_E = TASK.linear, None
    problem = pose(where, TASK.demonstrations, rewards="cube")
    p, d_E = plan(where, CONFIG), np.asarray(problem.expert)
    learner, key = learner_of(problem, p.protocol), jax.random.key(3)
    assert learner is rounds.LEARNER
    phi, mdp = np.asarray(where.phi.value), where.mdp
    succ, prob = np.asarray(mdp.succ[0]), np.asarray(mdp.prob[0])
    sigma, eta = float(p.settings.sigma), float(p.settings.eta)
    assert sigma == pytest.approx(10 * np.sqrt(2 * np.log(4) / (81 * 24)))  # K: episodes
    H, S, A = mdp.shape
    logits, mu, pi = np.zeros((H, S, A)), np.zeros((H, 8)), np.full((H, S, A), 1 / A)
    state = learner.init(problem, p.protocol, key=jax.random.fold_in(key, 0))
    seen = []
    for k in range(1, p.iterations + 1):
        before = state
        here = jax.random.fold_in(key, k)
        state, _ = learner.step(state, problem, p.settings, p.protocol, key=here)
        np.testing.assert_array_equal(before.pi.shape, pi.shape)
        points = jax.tree.map(
            lambda x, k=k: np.asarray(x)[(k - 1) % 4], state.window.segments.points
        )
        seen.append(
            list(zip(*(np.asarray(x) for x in (points.h, points.s, points.a)), strict=True))
        )
        assert [h for h, _, _ in seen[-1]] == [h for h in range(H) for _ in range(2)]
        held = [one for segment in seen[-4:] for one in segment]
        if len(held) < 5 * H:  # two of each stage, then four: it waits
            np.testing.assert_array_equal(state.mu, mu)
            np.testing.assert_array_equal(state.pi, pi)
            continue
        beta = jnp.full(4, 1 / min(k, 4)) * (jnp.arange(4) < k)
        weights, ready = rounds.draw(
            state.window, beta, state.k, p.settings, p.protocol, key=jax.random.split(here)[1]
        )
        assert ready
        reward = np.einsum("sad,hd->hsa", phi, mu)
        V, Q = np.zeros(S), np.zeros((H, S, A))
        for h in reversed(range(H)):
            Q[h] = reward[h] + (prob * V[succ]).sum(-1)
            V = (pi[h] * Q[h]).sum(-1)
        recalled = state.window.segments.points
        at = [np.asarray(x) for x in (recalled.h, recalled.s, recalled.a)]
        for w in np.asarray(weights):
            logits = logits + sigma * Q
            chosen = w > 0
            for h in range(H):
                of_stage = chosen & (at[0] == h)
                assert of_stage.sum() == 5
                mean = phi[at[1][of_stage], at[2][of_stage]].mean(0)
                shown = (d_E[h][..., None] * phi).sum((0, 1))
                mu[h] = np.clip(mu[h] + eta * (shown - mean), -1, 1)
        pi = np.exp(logits)
        pi /= pi.sum(-1, keepdims=True)
        np.testing.assert_allclose(state.mu, mu, atol=1e-12)
        np.testing.assert_allclose(state.pi, pi, atol=1e-12)
    assert np.abs(pi - 0.25).max() > 0.1


def test_alone_or_in_a_batch_it_learns_the_same():
    many = imitate(TASK.linear, TASK.demonstrations, CONFIG, rewards="cube", seeds=range(3))
    again = imitate(TASK.linear, TASK.demonstrations, CONFIG, rewards="cube", seeds=range(3))
    alone = imitate(TASK.linear, TASK.demonstrations, CONFIG, rewards="cube", seeds=[2])
    assert many.policy.tobytes() == again.policy.tobytes()
    np.testing.assert_allclose(alone.policy[0], many.policy[2], atol=1e-9)
    assert np.ptp(many.policy, axis=0).max() > 0


def test_a_window_that_holds_too_few_gives_them_all_beside_whom_it_may_run():
    """N = 2 with one episode each, five wanted: an update of all two, from the second episode on;
    the same alone and in a program that has room for eight policies."""
    few, many = (
        plan(TASK.linear, dataclasses.replace(CONFIG, batch=1, window=N)) for N in ("2", "8")
    )
    problem = pose(TASK.linear, TASK.demonstrations, rewards="cube")
    shared, (widened, _) = together([few, many])
    assert shared.slots == 8
    states = []
    for settings, protocol in ((few.settings, few.protocol), (widened, shared)):
        key = jax.random.key(1)
        state = rounds.LEARNER.init(problem, protocol, key=jax.random.fold_in(key, 0))
        for k in range(1, 6):
            before = state
            here = jax.random.fold_in(key, k)
            state, _ = rounds.step(state, problem, settings, protocol, key=here)
            assert bool(jnp.any(state.mu != before.mu)) == (k > 1)
        states.append(state)
    np.testing.assert_allclose(states[0].mu, states[1].mu, atol=1e-12)


def test_features_that_are_not_dense_give_the_same():
    """The room with its features as lists that need not be in order."""
    phi = TASK.linear.phi
    shuffled = dataclasses.replace(
        phi, index=phi.index[..., ::-1], value=phi.value[..., ::-1], full=False
    )
    lists = dataclasses.replace(TASK.linear, phi=shuffled)
    one = imitate(TASK.linear, TASK.demonstrations, CONFIG, rewards="cube")
    two = imitate(lists, TASK.demonstrations, CONFIG, rewards="cube")
    np.testing.assert_allclose(one.policy, two.policy, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"batch": None, "rollouts": None}, "whole episodes"),
        ({"batch": None}, "counts whole episodes"),
        ({"points": None}, "give --batch and --points"),
        ({"ledger": True}, "--no-ledger"),
        ({"steps": "anytime"}, "--steps paper"),
        ({"visits": "expected"}, "--visits sampled"),
        ({"model": "learned"}, "P known"),
        ({"rounds": 0}, "--rounds is 0"),
    ],
)
def test_what_it_cannot_be_asked_together_with(change, word):
    with pytest.raises(UserError, match=word):
        plan(TASK.linear, dataclasses.replace(CONFIG, **change))


def test_tables_have_no_rounds_and_long_features_no_ball():
    with pytest.raises(UserError, match="--features onehot"):
        plan(TASK.mdp, CONFIG)
    with pytest.raises(UserError, match="use the cube"):
        check_rewards(TASK.linear, "ball")
