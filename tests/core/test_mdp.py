"""Finite-horizon maths against dense loops, dynamic programming and enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from random_mdps import dense, mdps_and_policies, random_mdp

from understudy.core import mdp as mdps
from understudy.core.errors import UserError

occupancy, value, evaluate = jax.jit(mdps.occupancy), jax.jit(mdps.value), jax.jit(mdps.evaluate)


def dense_values(P, pi, r):
    """Q by the textbook recursion on a dense P."""
    H, S, A, _ = P.shape
    V, Q = np.zeros(S), np.zeros((H, S, A))
    for h in reversed(range(H)):
        Q[h] = r[h] + P[h] @ V
        V = (pi[h] * Q[h]).sum(-1)
    return Q


@given(mdps_and_policies())
def test_evaluation_is_the_textbook_recursion(case):
    mdp, pi = case
    Q = dense_values(dense(mdp), np.asarray(pi), np.asarray(mdp.reward))
    np.testing.assert_allclose(evaluate(mdp, pi, mdp.reward), Q, rtol=0, atol=1e-12)


@given(mdps_and_policies())
def test_value_by_backup_is_occupancy_times_reward(case):
    mdp, pi = case
    d = occupancy(mdp, pi)
    np.testing.assert_allclose(
        value(mdp, pi, mdp.reward), jnp.sum(d * mdp.reward), rtol=0, atol=1e-12
    )


@given(mdps_and_policies())
def test_occupancies_sum_to_one_and_flow(case):
    mdp, pi = case
    d, P = np.asarray(occupancy(mdp, pi)), dense(mdp)
    np.testing.assert_allclose(d.sum((1, 2)), 1, atol=1e-12)
    assert (d >= 0).all()
    np.testing.assert_allclose(d[0].sum(-1), mdp.nu, atol=1e-12)
    for h in range(1, mdp.horizon):
        arriving = np.einsum("sa,sax->x", d[h - 1], P[h - 1])
        np.testing.assert_allclose(d[h].sum(-1), arriving, atol=1e-12)


def test_a_stationary_reward_counts_at_every_stage():
    mdp = random_mdp(3, 4, 2, 4, staged=False, seed=0)
    pi = mdps.uniform(mdp)
    r = mdp.reward[:1]
    np.testing.assert_allclose(
        mdps.value(mdp, pi, r), mdps.value(mdp, pi, jnp.repeat(r, 3, 0)), atol=1e-12
    )


def test_optimum_beats_every_deterministic_policy():
    mdp = random_mdp(2, 2, 2, 2, staged=True, seed=3)
    pi, best = mdps.optimum(mdp, mdp.reward)
    assert float(mdps.value(mdp, pi, mdp.reward)) == pytest.approx(float(best), abs=1e-12)
    values = [
        float(mdps.value(mdp, jnp.eye(2)[jnp.array(choice).reshape(2, 2)], mdp.reward))
        for choice in itertools.product(range(2), repeat=4)
    ]
    assert float(best) == pytest.approx(max(values), abs=1e-12)


def test_optimum_shares_ties_evenly():
    mdp = random_mdp(3, 4, 2, 4, staged=False, seed=0)
    pi, _ = mdps.optimum(mdp, jnp.zeros((1, 4, 2)))
    np.testing.assert_array_equal(pi, np.full((3, 4, 2), 0.5))


def test_arrays_functions_and_lists_give_one_mdp():
    built = random_mdp(3, 4, 2, 3, staged=True, seed=5)
    P, nu, r = dense(built), np.asarray(built.nu), np.asarray(built.reward)
    from_arrays = mdps.from_arrays(P, horizon=3, nu=nu, reward=r)
    from_function = mdps.from_function(
        lambda h, s, a: [(p, x) for x, p in enumerate(P[h, s, a]) if p],
        states=4,
        actions=2,
        horizon=3,
        nu=nu,
        reward=r,
        staged=True,
    )
    for other in (from_arrays, from_function):
        np.testing.assert_allclose(dense(other), P, atol=1e-15)
        np.testing.assert_array_equal(other.reward, r)


def test_a_function_may_repeat_successors_and_give_rewards():
    mdp = mdps.from_function(
        lambda s, a: [(0.25, 1, 4.0), (0.25, 1, 0.0), (0.5, 0, 2.0)],
        states=2,
        actions=1,
        horizon=2,
        nu=np.array([1.0, 0.0]),
    )
    np.testing.assert_allclose(dense(mdp)[0, 0, 0], [0.5, 0.5])
    assert float(mdp.reward[0, 0, 0]) == 2.0


GOOD = {"P": np.full((2, 1, 2), 0.5), "horizon": 3, "nu": np.array([1.0, 0.0])}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"P": np.full((2, 1, 2), 0.4)}, "sum to one.*sum 0.8"),
        ({"P": np.array([[[1.5, -0.5]], [[1.0, 0.0]]])}, r"\(0, 0, 0\).*non-negative"),
        ({"P": np.full((2, 1, 2), np.nan)}, "nan"),
        ({"P": np.full((2, 1, 3), 1 / 3)}, r"shape \(2, 1, 3\)"),
        ({"P": np.full((2, 2, 1, 2), 0.5)}, "2 stages, the horizon is 3"),
        ({"horizon": 0}, "horizon is 0"),
        ({"nu": np.array([0.5, 0.4])}, "initial distribution"),
        ({"nu": np.array([1.0])}, "initial distribution has shape"),
        ({"reward": np.array([np.nan, 0.0])}, "reward.*NaN"),
        ({"reward": np.zeros((5, 5))}, r"reward has shape \(5, 5\)"),
    ],
)
def test_bad_mdps_are_refused_by_name(change, names):
    with pytest.raises(UserError, match=names):
        mdps.from_arrays(**{**GOOD, **change})


def test_repeated_and_outside_successors_are_refused():
    halves = np.full((1, 2, 1, 2), 0.5)
    nu = np.array([1.0, 0.0])
    with pytest.raises(UserError, match="same successor twice"):
        mdps.build(np.zeros((1, 2, 1, 2), int), halves, horizon=1, nu=nu)
    with pytest.raises(UserError, match="outside the 2 states"):
        mdps.build(np.full((1, 2, 1, 2), 7), halves, horizon=1, nu=nu)
