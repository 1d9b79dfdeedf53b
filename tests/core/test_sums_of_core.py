"""Small sums of the core, each beside a plain loop or a number worked out by hand."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.core import linear_mdp, memory, updates
from understudy.core.errors import UserError
from understudy.core.occupancy import Points

H, S, A = 3, 4, 2


def given(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def some_points(n=7):
    rng = np.random.default_rng(5)
    return tuple(rng.integers(size, size=n) for size in (H, S, A))


def test_reinforce_point_by_point():
    h, s, a = some_points()
    pi = np.random.default_rng(1).dirichlet(np.ones(A), size=(H, S))
    Q, G = given(H, S, A, seed=2), given(7, seed=3)
    expected = np.zeros((H, S, A))
    for i in range(7):
        V = sum(pi[h[i], s[i], b] * Q[h[i], s[i], b] for b in range(A))
        for b in range(A):
            score = float(b == a[i]) - pi[h[i], s[i], b]
            expected[h[i], s[i], b] += H / 7 * (G[i] - V) * score
    points = Points(*map(jnp.asarray, (h, s, a)))
    got = updates.reinforce(points, jnp.asarray(G), jnp.asarray(pi), jnp.asarray(Q))
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize("stages", [1, H])
def test_returns_to_go_walker_by_walker(stages):
    """Two walkers of four steps: one ends an episode in between, the other is cut off."""
    h = np.array([[1, 0], [2, 1], [0, 2], [1, 0]])
    rng = np.random.default_rng(4)
    s, a = rng.integers(S, size=(4, 2)), rng.integers(A, size=(4, 2))
    mu, Q = given(stages, S, A, seed=5), given(H, S, A, seed=6)
    reward = np.broadcast_to(mu, (H, S, A))
    expected = np.zeros((4, 2))
    for lane in range(2):
        ahead = None
        for t in reversed(range(4)):
            at = h[t, lane], s[t, lane], a[t, lane]
            if ahead is None:
                expected[t, lane] = Q[at]
            else:
                expected[t, lane] = reward[at] + (0 if h[t, lane] == H - 1 else ahead)
            ahead = expected[t, lane]
    points = Points(*(jnp.asarray(x.ravel()) for x in (h, s, a)))
    got = updates.returns_to_go(points, jnp.asarray(mu), jnp.asarray(Q), lanes=2)
    np.testing.assert_allclose(got, expected.ravel(), atol=1e-12)


def test_the_steps_of_the_theory_in_numbers():
    """H = 3, A = 2, S = 4, d = 16, K = 100."""
    log2 = 0.6931471805599453
    assert updates.theory_steps(3, 4, 2, 100) == pytest.approx(
        (math.sqrt(2 * log2 / 900), math.sqrt(8 / 100))
    )
    assert updates.linear_steps(3, 2, 16, 100) == pytest.approx(
        (math.sqrt(2 * log2 / (9 * 4 * 100)), 0.4)
    )
    assert updates.paper_steps(3, 100) == pytest.approx((10 * math.sqrt(4 * log2 / 900), 0.5))


def test_the_best_of_a_ball_has_its_radius_and_its_direction():
    gain = np.array([[3.0, 4.0], [0.0, 0.0]])
    expected = [[math.sqrt(2) * 0.6, math.sqrt(2) * 0.8], [0, 0]]
    np.testing.assert_allclose(updates.best_in_ball(jnp.asarray(gain)), expected)


def test_bytes_are_counted_as_they_are_kept():
    """Two observations of 5 and an action of 3 numbers, 4 bytes each, and a mark."""
    assert memory.transitions(10, 5, 3) == 10 * (4 * 13 + 1)
    # 3→4→2: 16 + 10 weights, four times (gradient, two moments), and a batch of 6 in 4 places.
    assert memory.weights((3, 4, 2)) == 26
    assert memory.networks(3, 2, (4,), 6) == 4 * (4 * 26 + 6 * 4)


@pytest.mark.parametrize(
    ("psi", "says"),
    [
        ([1.5, -0.5], "probability -0.5 to successor 1 of state 0, action 0 at stage 1"),
        ([0.5, 0.4], "probability 0.9 in all"),
    ],
)
def test_features_that_give_no_probabilities_are_refused(psi, says):
    """One state of two successors, ψ of one number, θ = 1."""
    succ = np.array([[[0, 0]]])
    with pytest.raises(UserError, match=says):
        linear_mdp.build(
            succ, np.array(psi).reshape(1, 1, 2, 1), np.ones(1), np.ones((1, 1, 1)), horizon=1,
            nu=np.ones(1),
        )  # fmt: skip
