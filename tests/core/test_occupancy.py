"""Thm 4.8, Cor. 4.9, and estimates from points and demonstrations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_mdps import mdps_and_policies, random_mdp, random_policy

from understudy.core import mdp as mdps
from understudy.core import occupancy as occupancies
from understudy.core.errors import UserError
from understudy.core.occupancy import Points

occupancy = jax.jit(mdps.occupancy)


@given(mdps_and_policies())
def test_policy_to_occupancy_and_back(case):
    mdp, pi = case
    d = occupancy(mdp, pi)
    back = occupancies.policy_of(d)
    visited = np.asarray(d.sum(-1)) > 1e-12
    np.testing.assert_allclose(np.asarray(back)[visited], np.asarray(pi)[visited], atol=1e-9)
    np.testing.assert_allclose(occupancy(mdp, back), d, atol=1e-12)


@given(mdps_and_policies(policies=3), st.integers(0, 1000))
def test_one_policy_realises_a_mixture(case, seed):
    mdp, *policies = case
    beta = jnp.asarray(np.random.default_rng(seed).dirichlet(np.ones(3)))
    mixed = occupancies.mix(jnp.stack([occupancy(mdp, pi) for pi in policies]), beta)
    assert float(occupancies.flow_gap(mdp, mixed)) < 1e-12  # D is convex
    np.testing.assert_allclose(occupancy(mdp, occupancies.policy_of(mixed)), mixed, atol=1e-12)


def test_flow_gap_sees_an_infeasible_occupancy():
    mdp = random_mdp(3, 4, 2, 4, staged=False, seed=0)
    d = occupancy(mdp, random_policy(mdp, 0))
    assert float(occupancies.flow_gap(mdp, d[::-1])) > 1e-3


def test_states_never_visited_get_a_uniform_policy():
    d = jnp.zeros((1, 2, 2)).at[0, 0, 1].set(1.0)
    np.testing.assert_array_equal(occupancies.policy_of(d), [[[0, 1], [0.5, 0.5]]])


def test_estimate_counts_each_trajectory_once_per_stage():
    h, s, a = np.tile([0, 1], 4), np.array([0, 1, 0, 1, 0, 2, 1, 2]), np.zeros(8, int)
    points = Points(jnp.array(h), jnp.array(s), jnp.array(a))
    d = occupancies.estimate(points, jnp.full(8, 1 / 8), (2, 3, 1))
    np.testing.assert_allclose(d[:, :, 0], [[0.75, 0.25, 0], [0, 0.5, 0.5]])


def test_demonstrations_past_their_end():
    long = (np.array([0, 1, 2, 2]), np.array([1, 0, 0]), False)
    cut = (np.array([0, 2]), np.array([0]), False)
    ended = (np.array([0, 1]), np.array([1]), True)

    def of(*demos):
        return np.asarray(
            occupancies.of_demonstrations(*map(list, zip(*demos, strict=True)), (3, 3, 2))
        )

    # A demonstration that terminated stays in its last state, whatever the action.
    np.testing.assert_allclose(of(ended)[1:, 1], 0.5)
    # One that was cut off is silent about later stages.
    np.testing.assert_allclose(of(long, cut)[1:], of(long)[1:])
    np.testing.assert_allclose(of(long, cut)[0, 0], [0.5, 0.5])
    np.testing.assert_allclose(of(long, cut, ended).sum((1, 2)), 1)
    with pytest.raises(UserError, match="No demonstration reaches stage 2 of 3"):
        of(cut)


@pytest.mark.parametrize(
    ("states", "actions", "names"),
    [([0, 9], [0], "state 9, outside 0 … 2"), ([0, 1], [-1], "action -1, outside 0 … 1")],
)
def test_demonstrations_outside_the_space_are_refused(states, actions, names):
    with pytest.raises(UserError, match=names):
        occupancies.of_demonstrations([np.array(states)], [np.array(actions)], [True], (3, 3, 2))
