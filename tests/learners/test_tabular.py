"""The learner against the plain NumPy loop, and its promises on batches and repetition."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import plain
import pytest
from random_mdps import random_mdp

from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.learners import tabular
from understudy.learners.config import Config
from understudy.learners.finite import expert_occupancy, imitate, plan, stack
from understudy.learners.seeds import keys_of
from understudy.learners.tabular import Problem

ROOM, SHOWN = empty_room(3), demonstrations(3)
# The paper's learner: equal estimation budget, constant steps, actions as taken, the last policy.
PAPERS = {"points": 32, "steps": "paper", "visits": "sampled", "handed": "last"}


def draws_of(key, points, fresh):
    """The very uniforms that the learner draws, for the plain loop to use."""

    def draws(k):
        practising, recalling = jax.random.split(jax.random.fold_in(key, k))
        acting = jax.random.uniform(practising, (fresh, 3, 1))
        return np.asarray(acting[:, 0, 0]), np.asarray(jax.random.uniform(recalling, (points,)))

    return draws


@pytest.mark.parametrize("N", [1, 4, 128])
def test_the_learner_is_the_plain_loop(N):
    """N = 1 is the on-policy algorithm; the loop has no ring, no weights and no JAX."""
    interactions = 32 * 60 if N == 1 else 400
    config = Config(window=str(N), interactions=interactions, marks=1, **PAPERS)
    p = plan(ROOM, config)
    assert p.protocol.fresh == max(1, 32 // N)
    result = imitate(ROOM, SHOWN, config, seeds=[7])
    pi, mu = plain.learn(
        np.asarray(ROOM.succ[0, :, :, 0]),
        np.asarray(expert_occupancy(ROOM, SHOWN)),
        start=0,
        N=N,
        m=32,
        fresh=p.protocol.fresh,
        sigma=float(p.settings.sigma),
        eta=float(p.settings.eta),
        iterations=p.iterations,
        draws=draws_of(jax.random.key(7), 32, p.protocol.fresh),
    )
    np.testing.assert_allclose(result.policy[0], pi, atol=1e-10)
    np.testing.assert_allclose(result.last_policy[0], pi, atol=1e-10)
    np.testing.assert_allclose(result.reward[0], mu, atol=1e-10)
    assert np.abs(pi - 0.2).max() > 0.1  # it did learn something
    value = plain.value(pi, np.asarray(ROOM.succ[0, :, :, 0]), np.asarray(ROOM.reward[0, :, 0]), 0)
    assert result.returns[0, -1] == pytest.approx(value, abs=1e-10)
    assert result.last_returns[0, -1] == result.returns[0, -1]


@pytest.mark.parametrize("change", [{"gradients": "sampled"}, {**PAPERS, "window": "32"}])
def test_same_seed_same_bits_and_alone_or_in_a_batch_the_same_curves(change):
    config = Config(interactions=2000, marks=10, **change)
    batch = imitate(ROOM, SHOWN, config, seeds=range(5))
    again = imitate(ROOM, SHOWN, config, seeds=range(5))
    assert batch.returns.tobytes() == again.returns.tobytes()
    assert batch.policy.tobytes() == again.policy.tobytes()
    alone = imitate(ROOM, SHOWN, config, seeds=[3])
    np.testing.assert_allclose(alone.returns[0], batch.returns[3], atol=1e-5)
    assert np.ptp(batch.policy, axis=0).max() > 0  # the seeds do differ


def test_a_run_in_pieces_is_the_same_run():
    config, done = Config(interactions=500, marks=7), []
    whole = imitate(ROOM, SHOWN, config, seeds=[0])
    pieces = imitate(ROOM, SHOWN, config, seeds=[0], progress=done.append)
    np.testing.assert_allclose(pieces.returns, whole.returns, atol=1e-12)
    assert done[-1] == 500
    assert done == sorted(done)


def test_practice_follows_the_policy_and_the_transitions():
    """Many lanes at once: visit frequencies against the exact occupancy."""
    mdp = random_mdp(4, 5, 3, 3, staged=True, seed=2)
    d_E = mdps.occupancy(mdp, mdps.uniform(mdp))
    config = Config(batch=20_000, interactions=80_000, visits="sampled", eta=0.0, marks=1)
    p = plan(mdp, config)
    key = jax.random.key(0)
    problem = Problem(mdp, d_E)
    state = tabular.init(problem, p.protocol, key=key)
    _, info = tabular.step(state, problem, p.settings, p.protocol, key=key)
    np.testing.assert_allclose(info.d_mix, d_E, atol=5 * np.sqrt(0.25 / 20_000))
    np.testing.assert_allclose(info.d_mix.sum((1, 2)), 1)


def test_episodes_cross_iterations():
    """Seven fresh interactions with H = 9: the walker goes on where it was."""
    config = Config(fresh=7, interactions=7 * 9, window="all", points=0, marks=1)
    p = plan(ROOM, config)
    problem = Problem(ROOM, expert_occupancy(ROOM, SHOWN))
    run = tabular.run(
        problem, jax.tree.map(lambda x: x[None], p.settings), p.protocol, p.marks, keys=keys_of([0])
    )
    points = jax.tree.map(lambda x: np.asarray(x[0]).ravel(), run.state.window.segments.points)
    np.testing.assert_array_equal(points.h, np.tile(np.arange(9), 7))
    assert (points.s[points.h == 0] == 0).all()
    onward = np.asarray(ROOM.succ)[0, points.s, points.a, 0]
    inside = points.h[1:] > 0
    np.testing.assert_array_equal(points.s[1:][inside], onward[:-1][inside])


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"gradients": "sampled"},
        {"gradients": "sampled", "rewarder": "leader"},
        {"gradients": "sampled", "steps": "adaptive"},
        {"model": "learned", "steps": "adaptive"},
        {"batch": 2, "window": "3", "handed": "last"},
        {"window": "2*k^0.4", "visits": "sampled"},
        {"window": "all", "points": 0, "fresh": 3},
        {"reward": "stationary"},
        {"model": "learned", "counts": "stage"},
        {"steps": "theory"},
        {"beta": (0.5, 0.3, 0.2), "window": "3"},
        {**PAPERS, "window": "32"},
    ],
)
def test_every_setting_runs_and_moves_towards_the_expert(change):
    result = imitate(ROOM, SHOWN, Config(**{"interactions": 3000, "marks": 2, **change}))
    assert np.isfinite(result.returns).all()
    assert result.returns[0, -1] > result.returns[0, 0]


@pytest.mark.slow
def test_learned_transitions_reach_the_expert():
    for n in (3, 5):
        config = Config(model="learned", interactions=20_000, marks=1)
        result = imitate(empty_room(n), demonstrations(n), config, seeds=range(3))
        assert (result.returns[:, -1] >= 0.97 * result.expert_return).all()


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"window": "0"}, "at least 1 policy"),
        ({"interactions": 0}, "--interactions is 0"),
        ({"interactions": 3, "points": 32}, "less than one iteration of 32"),
        ({"sigma": float("nan")}, "--sigma is nan"),
        ({"bonus": -1.0}, "--bonus is -1"),
        ({"beta": (0.0, 0.0)}, "--beta"),
        ({"fresh": 2, "batch": 2}, "exclude each other"),
        ({"points": -1}, "--points is -1"),
        ({"interactions": 3_000_000_000}, "--interactions is 3000000000"),
        ({"window": "2", "beta": (1.0,)}, "1 weights for a window of 2"),
        ({"window": "adaptive"}, "The window is 'adaptive'"),
        ({"window": "4", "rewarder": "leader"}, "the leader weighs everything alike"),
    ],
)
def test_bad_settings_are_refused_by_name(change, names):
    with pytest.raises(UserError, match=names):
        plan(ROOM, Config(**change))


def test_shared_counts_need_a_stationary_mdp():
    mdp = random_mdp(3, 4, 2, 4, staged=True, seed=0)
    with pytest.raises(UserError, match="differ between stages"):
        plan(mdp, Config(model="learned"))


def test_bad_experts_are_refused():
    with pytest.raises(UserError, match="shape"):
        expert_occupancy(ROOM, np.zeros((1, 9, 5)))
    with pytest.raises(UserError, match="sum to one"):
        expert_occupancy(ROOM, np.full((9, 9, 5), np.nan))
    np.testing.assert_allclose(jnp.sum(expert_occupancy(ROOM, None) * ROOM.reward), 4.6)


@pytest.mark.parametrize(
    ("change", "fresh"),
    [
        ({}, 1),
        ({"window": "8"}, 1),
        ({"points": 32}, 32),
        ({"points": 32, "window": "8"}, 4),
        ({"points": 32, "window": "128"}, 1),
        ({"points": 32, "window": "2*k^0.4"}, 1),
        ({"fresh": 5, "points": 32}, 5),
        ({"batch": 2}, 18),
    ],
)
def test_an_update_has_one_fresh_interaction_unless_points_are_owed(change, fresh):
    protocol = plan(ROOM, Config(interactions=900, **change)).protocol
    assert (protocol.fresh, protocol.points) == (fresh, change.get("points"))


@pytest.mark.slow
def test_sampled_returns_estimate_the_exact_ones_and_leave_the_run_alone():
    config = Config(interactions=400, window="4", points=32, marks=5, ledger=False)
    room, shown = empty_room(3), demonstrations(3)
    exact = imitate(room, shown, config, seeds=[0, 1])
    many = imitate(room, shown, dataclasses.replace(config, episodes=4_000), seeds=[0, 1])
    few = imitate(room, shown, dataclasses.replace(config, episodes=5), seeds=[0, 1])
    np.testing.assert_allclose(many.returns, exact.returns, atol=5 * 1.5 / np.sqrt(4_000))
    assert np.array_equal(many.policy, exact.policy)
    assert np.array_equal(few.policy, exact.policy)
    assert not np.array_equal(few.returns[0], few.returns[1])
    assert np.abs(few.returns - exact.returns).max() > 0.02


def test_a_run_in_pieces_compiles_once():
    """The state that a run starts from has the types of the state that it goes on from."""
    room = empty_room(3)
    problem = Problem(room, expert_occupancy(room, demonstrations(3)))
    planned, keys = plan(room, Config(interactions=20, window="2")), keys_of([0, 1])
    first = tabular.start(problem, planned.protocol, keys=keys)
    settings, marks = stack(planned.settings, 2), jnp.array([1], jnp.int32)
    then = tabular.advance(first, problem, settings, planned.protocol, marks, keys=keys).state
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(then), strict=True):
        assert (a.aval, a.weak_type) == (b.aval, b.weak_type)
