"""What makes an MDP, linear or not, and what is just not one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mdps import dense, random_mdp

from understudy.core import features, linear_mdp, vector_features
from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.core.linear_mdp import random_linear

HALVES = np.full((2, 1, 2), 0.5)
NU = np.array([1.0, 0.0])


def test_rows_that_sum_to_one_within_a_millionth_are_made_to():
    near = np.array([[[0.5, 0.5 + 9e-7]], [[1 - 9e-7, 0.0]]])
    mdp = mdps.from_arrays(near, horizon=2, nu=np.array([1 + 9e-7, 0]))
    np.testing.assert_allclose(mdp.prob.sum(-1), 1, rtol=0, atol=1e-15)
    assert float(mdp.nu.sum()) == pytest.approx(1, abs=1e-15)
    for off in (1.5e-6, -1.5e-6):
        far = near.copy()
        far[1, 0, 0] = 1 + off
        with pytest.raises(UserError, match=r"\(0, 1, 0\) must be non-negative and sum to one"):
            mdps.from_arrays(far, horizon=2, nu=NU)
        with pytest.raises(UserError, match="initial distribution must"):
            mdps.from_arrays(HALVES, horizon=2, nu=np.array([1 + off, 0]))


@pytest.mark.parametrize("shape", [(2, 2), (2,), (1, 1, 2, 1, 2), (2, 1, 1), (3, 2, 1, 1)])
def test_transitions_of_no_such_shape_are_refused(shape):
    with pytest.raises(UserError, match=r"P has shape|stages"):
        mdps.from_arrays(np.ones(shape) / shape[-1], horizon=3, nu=NU)


def test_successor_lists_are_as_wide_as_the_fullest_row():
    P = np.zeros((3, 1, 3))
    P[0, 0, 2] = P[2, 0, 0] = 1
    P[1, 0, [0, 2]] = 0.25, 0.75
    mdp = mdps.from_arrays(P, horizon=2, nu=np.eye(3)[0])
    assert mdp.succ.shape == (1, 3, 1, 2)
    np.testing.assert_array_equal(dense(mdp)[1], P)
    assert mdps.from_arrays(np.eye(3)[:, None], horizon=2, nu=np.eye(3)[0]).succ.shape[-1] == 1
    assert (mdp.states, mdp.actions, mdp.shape) == (3, 1, (2, 3, 1))


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"horizon": 0}, "horizon is 0"),
        ({"states": 0}, "number of states is 0"),
        ({"actions": 0}, "number of actions is 0"),
    ],
)
def test_sizes_are_whole_numbers_from_one(sizes, says):
    whole = {"states": 1, "actions": 1, "horizon": 1}
    one = mdps.from_function(lambda s, a: [(1.0, 0)], **whole, nu=np.ones(1))
    assert one.shape == (1, 1, 1)
    with pytest.raises(UserError, match=says):
        mdps.from_function(lambda s, a: [(1.0, 0)], **{**whole, **sizes}, nu=np.ones(1))


def test_a_row_without_outcomes_is_refused():
    with pytest.raises(UserError, match="State 1, action 0 has no outcome"):
        mdps.from_function(
            lambda s, a: [(1.0, 0)] if s == 0 else [], states=2, actions=1, horizon=1, nu=NU
        )


def test_rows_of_different_length_are_padded_with_nothing():
    """Three successors in one row, one in another; the padding repeats a successor with p = 0."""
    rows = {0: [(0.2, 2), (0.3, 1), (0.5, 0)], 1: [(1.0, 0)], 2: [(1.0, 2)]}
    mdp = mdps.from_function(
        lambda s, a: rows[s], states=3, actions=1, horizon=2, nu=np.array([0, 1.0, 0])
    )
    np.testing.assert_allclose(dense(mdp)[0, :, 0], [[0.5, 0.3, 0.2], [1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("outside", [-1, 2])
def test_the_states_are_counted_from_zero(outside):
    succ = np.array([[[[0, outside]], [[0, 1]]]])
    with pytest.raises(UserError, match="outside the 2 states"):
        mdps.build(succ, np.full((1, 2, 1, 2), 0.5), horizon=1, nu=NU)


@pytest.mark.parametrize("shape", [(1, 2, 1, 3), (2, 1, 2)])
def test_successors_and_probabilities_go_together(shape):
    succ = np.zeros(shape, int)
    with pytest.raises(UserError, match=r"must both be \(T, S, A, C\)"):
        mdps.build(succ, HALVES[None] if len(shape) == 4 else HALVES, horizon=1, nu=NU)


H, S, A = 3, 2, 2


@pytest.mark.parametrize("shape", [(S,), (S, A), (H, S, A), (1, S, A), (S, 1), (H, S, 1)])
def test_a_reward_of_states_of_actions_or_of_stages(shape):
    r = np.arange(np.prod(shape), dtype=float).reshape(shape)
    mdp = mdps.from_arrays(np.full((S, A, S), 0.5), horizon=H, nu=NU, reward=r)
    full = r[:, None] if shape == (S,) else r
    full = np.broadcast_to(full, (H, S, A))
    np.testing.assert_array_equal(np.broadcast_to(mdp.reward, (H, S, A)), full)
    bare = mdps.from_arrays(np.full((S, A, S), 0.5), horizon=H, nu=NU)
    np.testing.assert_array_equal(bare.reward, np.zeros((1, S, A)))


@pytest.mark.parametrize(
    "shape", [(H + 1, S, A), (2, S, A), (H, S + 1, A), (H, S, A + 1), (1, H, S, A), (S + 1,)]
)
def test_a_reward_of_no_such_shape_is_refused(shape):
    with pytest.raises(UserError, match="The reward has shape"):
        mdps.from_arrays(np.full((S, A, S), 0.5), horizon=H, nu=NU, reward=np.zeros(shape))


def test_what_is_equal_but_for_rounding_is_tied_whatever_its_size():
    """Values of a million that differ in the twelfth digit; and others that differ in the fifth."""
    one = mdps.from_arrays(np.ones((1, 3, 1)), horizon=1, nu=np.ones(1))
    close = np.array([[[1e6, 1e6 + 1e-6, 0.0]]])
    np.testing.assert_allclose(mdps.optimum(one, close)[0][0, 0], [0.5, 0.5, 0])
    np.testing.assert_allclose(mdps.optimum(one, -close - [0, 0, 2e6])[0][0, 0], [0.5, 0.5, 0])
    apart = np.array([[[1.0, 1.0 + 1e-5, 0.0]]])
    np.testing.assert_allclose(mdps.optimum(one, apart)[0][0, 0], [0, 1, 0])


# --- linear ones ---------------------------------------------------------------------------------


def linear(**change):
    """Two states, an action, ψ of two kernels, φ of two numbers."""
    given = {
        "succ": np.array([[[0, 1]], [[0, 1]]]),
        "psi": np.array([[[[1.0, 0.0], [0.0, 1.0]]], [[[0.5, 0.5], [0.5, 0.5]]]]),
        "theta": np.array([0.25, 0.75]),
        "phi": np.array([[[0.6, 0.8]], [[1.0, 0.0]]]),
        "horizon": 2,
        "nu": NU,
    }
    return linear_mdp.build(**{**given, **change})


def test_transitions_and_rewards_of_a_linear_mdp_by_hand():
    staged = np.array([[0.25, 0.75], [0.5, 0.5]])
    made = linear(theta=staged, mu=np.array([[1.0, 0.0], [0.0, 1.0]]))
    for h, theta in enumerate(staged):
        np.testing.assert_allclose(dense(made.mdp)[h, 0, 0], theta)
        np.testing.assert_allclose(dense(made.mdp)[h, 1, 0], [0.5, 0.5])
    np.testing.assert_allclose(made.mdp.reward[:, :, 0], [[0.6, 1.0], [0.8, 0.0]])
    assert linear().theta.shape == (1, 2)
    np.testing.assert_array_equal(linear().mdp.reward, 0)
    np.testing.assert_allclose(linear(mu=np.array([1.0, 0.0])).mdp.reward[0, :, 0], [0.6, 1])


@pytest.mark.parametrize("fits", [True, False])
def test_norms_are_held_to_within_a_billionth(fits):
    longer = 1 + (0.9e-9 if fits else 1.5e-9)
    cases = {
        "state 1, action 0 have norm": {"phi": np.array([[[0.6, 0.8]], [[longer, 0.0]]])},
        "μ have norm": {"mu": np.array([1.0, 1.0]) * (1 + (longer - 1) / np.sqrt(2))},
    }
    for says, change in cases.items():
        if fits:
            linear(**change)
            continue
        with pytest.raises(UserError, match=says):
            linear(**change)


@pytest.mark.parametrize("fits", [True, False])
def test_probabilities_by_features_are_held_to_within_a_millionth(fits):
    off = 0.9e-6 if fits else 1.5e-6
    for theta, says in (
        ([1 + off, -off], f"{-off:.4g} to successor 1 of state 0, action 0 at stage 1"),
        ([0.25, 0.75 + off], "successors of state 0, action 0 at stage 1 the probability"),
        ([0.25, 0.75 - off], "successors of state 0, action 0 at stage 1 the probability"),
    ):
        if fits:
            made = linear(theta=np.array(theta))
            assert float(made.mdp.prob.min()) >= 0
            continue
        with pytest.raises(UserError, match=says):
            linear(theta=np.array(theta))


def test_the_stage_and_place_of_what_is_no_probability_are_named():
    psi = np.array([[[[1.0, 0.0], [0.0, 1.0]]], [[[1.0, 0.0], [0.0, 1.0]]]])
    psi[1, 0] = [[0.0, 1.0], [1.0, 0.0]]
    theta = np.array([[0.5, 0.5], [1.25, -0.25]])
    with pytest.raises(UserError, match=r"-0.25 to successor 1 of state 0, action 0 at stage 2"):
        linear(psi=psi, theta=theta)
    with pytest.raises(UserError, match=r"state 0, action 0 at stage 2 the probability 1.125"):
        linear(psi=psi, theta=np.array([[0.5, 0.5], [0.5, 0.625]]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"theta": np.full((3, 2), 0.5)}, "θ have shape"),
        ({"theta": np.full((1, 1, 2), 0.5)}, "θ have shape"),
        ({"theta": np.full(3, 1 / 3)}, "θ have shape"),
        ({"phi": np.zeros((2, 1, 0))}, "φ have shape"),
        ({"phi": np.zeros((2, 1))}, "φ have shape"),
        ({"phi": np.zeros((2, 2, 2))}, "φ have shape"),
        ({"phi": features.one_hot((2, 2))}, r"φ are at \(2, 2\), not at \(2, 1\)"),
        ({"phi": np.full((2, 1, 2), np.inf)}, "φ have a value that is not finite"),
        ({"mu": np.zeros((3, 2))}, "μ have shape"),
    ],
)
def test_features_and_weights_of_no_such_shape_are_refused(change, says):
    with pytest.raises(UserError, match=says):
        linear(**change)


def test_features_may_be_lists_of_entries():
    made = linear(phi=features.one_hot((2, 1)), mu=np.array([1.0, -1.0]))
    assert made.d == 2
    np.testing.assert_allclose(made.mdp.reward[0, :, 0], [1, -1])
    np.testing.assert_array_equal(features.norms(made.phi), [[1], [1]])


def test_features_need_one_list_of_successors_for_all_stages():
    mdp = random_mdp(3, 4, 2, 2, staged=True, seed=0)
    with pytest.raises(UserError, match="successors differ between stages"):
        linear_mdp.one_hot(mdp)
    succ = np.repeat(np.asarray(mdp.succ[:1]), 3, 0)
    same = mdps.build(succ, np.asarray(mdp.prob), horizon=3, nu=np.asarray(mdp.nu))
    made = linear_mdp.one_hot(same)
    assert made.theta.shape == (3, 16)
    np.testing.assert_array_equal(features.dot(made.psi, made.theta), same.prob)


def test_a_random_linear_mdp_has_the_sizes_asked_for():
    """Up to four successors and as many kernels as features, unless it is said otherwise."""
    for S, C in ((3, 3), (9, 4)):
        made = random_linear(0, S=S, A=2, H=3, d=5)
        assert made.mdp.succ.shape == (3, S, 2, C)
        assert (made.d, made.p, made.mdp.horizon) == (5, 5, 3)
    made = random_linear(0, S=4, A=2, H=3, d=5, C=4, p=1)
    assert (made.mdp.succ.shape[-1], made.p) == (4, 1)
    assert float(made.mdp.nu[0]) == 1
    with pytest.raises(UserError, match="C = 5 successors of 4 states"):
        random_linear(0, S=4, A=2, H=3, d=5, C=5)
    with pytest.raises(UserError, match="d is 0; it must be at least 1"):
        random_linear(0, S=4, A=2, H=3, d=0)
    again = [np.asarray(random_linear(seed, S=4, A=2, H=3, d=5).mdp.reward) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(again[0], again[1])
    assert np.abs(again[0] - again[2]).max() > 0.1


# --- features of vectors -------------------------------------------------------------------------

ONES = np.ones((3, 1))


def test_features_of_vectors_are_held_to_their_shape_and_norm():
    def phi(value, shape=(3, 2, 1)):
        return vector_features.FeatureMap(lambda x: np.full(shape, value), 2, 1)(ONES)

    assert phi(1 + 0.9e-9).shape == (3, 2, 1)
    assert phi(-1.0).shape == (3, 2, 1)
    with pytest.raises(UserError, match="‖φ‖ ≤ 1"):
        phi(1 + 1.5e-9)
    with pytest.raises(UserError, match="‖φ‖ ≤ 1"):
        phi(np.nan)
    for shape in ((2, 2, 1), (3, 1, 1), (3, 2, 2), (3, 2)):
        with pytest.raises(UserError, match="they must have"):
            phi(0.0, shape)


@pytest.mark.parametrize(
    ("text", "dimensions", "size"),
    [
        ("fourier:1", 1, 2),
        ("fourier:7", 4, 4096),
        ("fourier:8", 4, None),
        ("fourier:0", 1, None),
        ("radial:1", 2, 1),
        ("radial:8", 4, 4096),
        ("radial:9", 4, None),
        ("radial:0", 1, None),
    ],
)
def test_a_basis_has_up_to_4096_functions(text, dimensions, size):
    low, high = np.full(dimensions, -1.0), np.full(dimensions, 3.0)
    if size is None:
        with pytest.raises(UserError, match="at most 4,096"):
            vector_features.parse(text, low, high, 2)
        return
    phi = vector_features.parse(text, low, high, 2)
    assert (phi.size, phi.actions) == (2 * size, 2)
    np.testing.assert_array_equal(phi(low[None])[0, 0, size:], 0)  # the other action's block


def test_bumps_are_as_wide_as_the_steps_between_them():
    """Three bumps over [0, 4], at 0, 2 and 4: one step to the side is one standard deviation."""
    phi = vector_features.parse("radial:3", np.zeros(1), np.full(1, 4.0), 1)
    for x in (0.0, 1.0, 2.0, 3.5, 9.0):  # the last is cut to 4
        bump = np.exp(-((min(x, 4.0) - np.array([0, 2, 4])) ** 2) / (2 * 2**2))
        np.testing.assert_allclose(phi(np.array([[x]]))[0, 0], bump / bump.sum())
    alone = vector_features.parse("radial:1", np.zeros(1), np.ones(1), 1)
    assert alone(np.array([[0.7]]))[0, 0, 0] == 1


def test_sizes_are_no_arrays_to_be_traced():
    """What decides shapes is static: the leaves of an MDP are its arrays alone."""
    made = random_linear(0, S=4, A=2, H=3, d=5)
    leaves = jax.tree.leaves(made)
    assert len(leaves) == 4 + 2 + 2 + 1
    assert all(isinstance(leaf, jnp.ndarray) for leaf in leaves)
