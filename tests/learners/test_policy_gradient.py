"""The gradient players against automatic differentiation and sampling, and a replay's glimpses."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import SHAPES, random_mdp, seeds

from understudy.core import mdp as mdps
from understudy.core import updates
from understudy.core.errors import UserError
from understudy.core.occupancy import Points
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.learners import practice
from understudy.learners.config import Config
from understudy.learners.finite import imitate, plan
from understudy.learners.practice import Walkers

ROOM, SHOWN = empty_room(3), demonstrations(3)


@eqx.filter_jit
def both_gradients(mdp, logits):
    pi = jax.nn.softmax(logits)
    Q = mdps.evaluate(mdp, pi, mdp.reward)
    true = jax.grad(lambda x: mdps.value(mdp, jax.nn.softmax(x), mdp.reward))(logits)
    return updates.policy_gradient(mdps.occupancy(mdp, pi), pi, Q), true


@settings(max_examples=30)
@given(st.sampled_from(SHAPES[1:3]), st.booleans(), seeds)
def test_exact_gradient_is_the_derivative_of_the_value(shape, staged, seed):
    mdp = random_mdp(*shape, staged=staged, seed=seed)
    logits = jnp.asarray(np.random.default_rng(seed).normal(size=mdp.shape))
    ours, true = both_gradients(mdp, logits)
    np.testing.assert_allclose(ours, true, rtol=1e-9, atol=1e-13)


def sampled_gradients(mdp, pi, mu, Q, walkers, steps):
    """The sampled gradient of every lane on its own, after `steps` steps from `walkers`."""
    lanes = len(walkers.h)
    asked = Config(batch=lanes, interactions=lanes * mdp.horizon, window="1", marks=1)
    protocol = dataclasses.replace(plan(mdp, asked).protocol, steps=steps)
    points, _, _ = practice.practise(mdp, pi, walkers, protocol, key=jax.random.key(1))
    G = updates.returns_to_go(points, mu, Q, lanes=lanes).reshape(steps, lanes)
    by_lane = jax.tree.map(lambda x: x.reshape(steps, lanes), points)
    each = jax.vmap(lambda p, G: updates.reinforce(p, G, pi, Q), in_axes=1)(by_lane, G)
    np.testing.assert_allclose(  # all lanes together: their mean
        updates.reinforce(points, G.ravel(), pi, Q), each.mean(0), atol=1e-12
    )
    return np.asarray(each)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 3, 4, 6, 8])
def test_sampled_gradient_has_the_exact_one_as_its_mean(steps):
    """Whole trajectories (4 and 8 steps with H = 4), and segments that start at any stage."""
    mdp, lanes = random_mdp(4, 3, 3, 3, staged=True, seed=5), 40_000
    H, S, _ = mdp.shape
    rng = np.random.default_rng(0)
    mu = jnp.asarray(rng.random(mdp.shape))
    pi = jax.nn.softmax(jnp.asarray(rng.normal(size=mdp.shape)))
    Q, d = mdps.evaluate(mdp, pi, mu), mdps.occupancy(mdp, pi)
    h = np.zeros(lanes, int) if steps % H == 0 else np.repeat(np.arange(H), lanes // H)
    nu = np.asarray(d.sum(-1))
    s = np.concatenate([rng.choice(S, n, p=nu[i]) for i, n in enumerate(np.bincount(h))])
    walkers = Walkers(jnp.asarray(h, jnp.int32), jnp.asarray(s, jnp.int32))
    each = sampled_gradients(mdp, pi, mu, Q, walkers, steps)
    off = np.abs(each.mean(0) - updates.policy_gradient(d, pi, Q))
    error = each.std(0) / np.sqrt(lanes)
    assert (off <= 5 * error + 1e-12).all()
    assert (error > 0).all()  # every stage, state and action was seen


def test_returns_to_go_are_sampled_and_end_with_the_episode():
    """H = 3, two lanes, four steps: an episode's end, a new one, and Q for what is not seen."""
    h = jnp.array([1, 0, 2, 1, 0, 2, 1, 0], jnp.int32)  # lane 0: 1 2 0 1; lane 1: 0 1 2 0
    s = jnp.zeros(8, jnp.int32)
    mu, Q = jnp.array([1.0, 10.0, 100.0])[:, None, None], jnp.array([7.0, 70.0, 700.0])
    G = updates.returns_to_go(Points(h, s, s), mu, Q[:, None, None], lanes=2)
    np.testing.assert_allclose(G.reshape(4, 2).T, [[110, 100, 71, 70], [111, 110, 100, 7]])
    flat = updates.returns_to_go(Points(h, s, s), mu[:1], Q[:, None, None], lanes=2)
    np.testing.assert_allclose(flat.reshape(4, 2).T, [[2, 1, 71, 70], [3, 2, 1, 7]])


def test_a_gradient_step_leaves_the_largest_logit_at_zero():
    logits = jnp.zeros((1, 1, 3))
    after = updates.climb(logits, jnp.array([[[2.0, -1.0, 0.0]]]), jnp.float64(0.5))
    np.testing.assert_allclose(after[0, 0], [0, -1.5, -1.0])


PAPERS = {"steps": "paper", "visits": "sampled", "handed": "last"}
EQUAL = {**PAPERS, "window": "32", "points": 32}  # estimation budget


def test_the_exact_gradient_reaches_the_expert():
    config = Config(**EQUAL, player="gradient", interactions=3000, marks=3, ledger=False)
    result = imitate(ROOM, SHOWN, config, seeds=range(3))
    assert (result.returns[:, -1] >= 0.95 * result.expert_return).all()


def slow(change):
    return pytest.param(change, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "change",
    [
        EQUAL,
        slow({**PAPERS, "batch": 4, "window": "4", "interactions": 10_000}),
        slow({**EQUAL, "model": "learned"}),
        # A stationary reward gathers the gradient of H = 9 stages, so a ninth of the step.
        slow({**EQUAL, "reward": "stationary", "eta": 0.05 / 9}),
    ],
)
def test_sampled_gradients_move_far_towards_the_expert(change):
    config = Config(**{"player": "reinforce", "interactions": 5000, "marks": 1, **change})
    result = imitate(ROOM, SHOWN, config, seeds=range(3))
    gap = result.expert_return - result.returns
    assert (gap[:, -1] < gap[:, 0] / 2).all()


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"player": "gradient", "model": "learned"}, "--player gradient needs --model known"),
        ({"ascent": float("inf")}, "--ascent is inf"),
        ({"ascent": -0.5}, "--ascent is -0.5"),
    ],
)
def test_what_cannot_be_meant_is_refused(change, names):
    with pytest.raises(UserError, match=names):
        plan(ROOM, Config(**change))


@pytest.mark.parametrize("change", [{}, {"reward": "stationary", "ledger": False}])
def test_a_glimpse_shows_the_policys_visits_and_the_reward(change):
    config = Config(window="4", interactions=600, marks=5, replay=True, **change)
    done = []
    result = imitate(ROOM, SHOWN, config, seeds=[0, 1], progress=done.append)  # in pieces
    H, S, A = ROOM.shape
    assert result.glimpse is not None
    assert result.glimpse.visits.shape == result.glimpse.reward.shape == (2, 6, S, A)
    assert result.glimpse.visits.dtype == result.glimpse.reward.dtype == np.float32
    assert (result.regret is None) == (not config.ledger)
    for i, pi in enumerate(result.policy):
        visits = mdps.occupancy(ROOM, jnp.asarray(pi)).sum(0)
        np.testing.assert_allclose(result.glimpse.visits[i, -1], visits, atol=1e-6)
    np.testing.assert_allclose(result.glimpse.visits.sum((2, 3)), H, atol=1e-5)
    np.testing.assert_allclose(result.glimpse.reward[:, -1], result.reward.mean(1), atol=1e-6)
    assert (result.glimpse.reward[:, 0] == 0).all()  # the first mark is the start


def test_without_replay_there_is_no_glimpse():
    assert imitate(ROOM, SHOWN, Config(interactions=64, marks=1)).glimpse is None
