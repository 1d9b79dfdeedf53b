"""Both players against numerical optimisers and the definitions."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import seeds
from scipy.optimize import minimize

from understudy.core import updates


def mirrored(pi: np.ndarray, Q: np.ndarray, sigma: float) -> np.ndarray:
    logits = jnp.log(jnp.asarray(pi))[None, None]
    return np.asarray(
        updates.policy(updates.mirror(logits, jnp.asarray(Q)[None, None], jnp.float64(sigma)))
    )[0, 0]


@settings(max_examples=40)
@given(seeds, st.floats(0.01, 3.0))
def test_mirror_step_is_the_optimum_of_the_kl_prox(seed, sigma):
    """Eq. 3: argmax_p ⟨Q, p⟩ − KL(p‖π)/σ, by a general optimiser on the simplex."""
    rng = np.random.default_rng(seed)
    pi, Q = rng.dirichlet(np.ones(4)), rng.uniform(0, 5, 4)

    def loss(p):
        return -(Q @ p - (p * np.log(np.maximum(p, 1e-300) / pi)).sum() / sigma)

    found = minimize(
        loss,
        np.full(4, 0.25),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    ours = mirrored(pi, Q, sigma)
    assert loss(ours) <= found.fun + 1e-8
    np.testing.assert_allclose(ours, found.x, atol=2e-3)


@given(seeds, st.floats(0, 5))
def test_mirror_step_is_the_closed_form(seed, sigma):
    rng = np.random.default_rng(seed)
    pi, Q = rng.dirichlet(np.ones(5)), rng.uniform(0, 9, 5)
    expected = pi * np.exp(sigma * Q)
    np.testing.assert_allclose(mirrored(pi, Q, sigma), expected / expected.sum(), atol=1e-12)


def test_mirror_step_comes_back_from_far():
    """Probabilities below the smallest float are kept, in log space."""
    logits = jnp.zeros((1, 1, 2))
    away, back = jnp.array([[[0.0, 1.0]]]), jnp.array([[[1.0, 0.0]]])
    for Q in (away, back):
        logits = updates.mirror(logits, Q, jnp.float64(5000.0))
    np.testing.assert_allclose(updates.policy(logits)[0, 0], [0.5, 0.5])


arrays = st.lists(st.floats(-5, 5), min_size=6, max_size=6)


@given(arrays, arrays)
def test_projection_is_idempotent_and_non_expansive(x, y):
    x, y = (jnp.asarray(v).reshape(1, 3, 2) for v in (x, y))
    px, py = updates.project_box(x), updates.project_box(y)
    np.testing.assert_array_equal(updates.project_box(px), px)
    assert ((px >= 0) & (px <= 1)).all()
    assert jnp.linalg.norm(px - py) <= jnp.linalg.norm(x - y) + 1e-12


@given(arrays)
def test_projection_is_the_nearest_point(x):
    corners = np.random.default_rng(0).random((200, 6))  # other points of the box
    px = np.asarray(updates.project_box(jnp.asarray(x).reshape(1, 3, 2))).ravel()
    assert np.linalg.norm(px - x) <= np.linalg.norm(corners - x, axis=1).min() + 1e-12


def test_ascent_goes_where_the_expert_is_and_a_stationary_reward_sums_stages():
    gradient = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2, 2)))
    staged = updates.ascend(jnp.full((3, 2, 2), 0.5), gradient, jnp.float64(0.01))
    np.testing.assert_allclose(staged, 0.5 + 0.01 * gradient)
    flat = updates.ascend(jnp.full((1, 2, 2), 0.5), gradient, jnp.float64(0.01))
    np.testing.assert_allclose(flat[0], 0.5 + 0.01 * gradient.sum(0))


def test_step_sizes_are_the_papers():
    assert updates.theory_steps(9, 9, 5, 500) == pytest.approx(
        (np.sqrt(2 * np.log(5) / (81 * 500)), np.sqrt(45 / 500))
    )
    assert updates.paper_steps(9, 10_000) == pytest.approx((0.018501, 0.05), rel=1e-4)
