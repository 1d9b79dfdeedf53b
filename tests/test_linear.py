"""The linear learner against plain NumPy, against the tabular learner, and against its bounds."""

import jax.numpy as jnp
import numpy as np
import pytest
from conftest import dense, random_mdp

from understudy import features
from understudy import mdp as mdps
from understudy.envs import linear_mdp
from understudy.envs.linear_mdp import random_linear
from understudy.errors import UserError
from understudy.occupancy import Points, estimate

SMALL = random_linear(3, S=6, A=3, H=4, d=5, C=3, p=2)


def test_features_are_what_their_lists_say():
    rng = np.random.default_rng(0)
    full = rng.normal(size=(4, 3, 5)) * rng.integers(0, 2, (4, 3, 5))
    phi, w, x = features.dense(full), rng.normal(size=5), rng.random((4, 3))
    np.testing.assert_allclose(features.vectors(phi), full)
    np.testing.assert_allclose(features.dot(phi, jnp.asarray(w)), full @ w)
    np.testing.assert_allclose(features.collect(phi, jnp.asarray(x)), np.einsum("sa,sad", x, full))
    np.testing.assert_allclose(features.norms(phi), np.linalg.norm(full, axis=-1))
    hot = features.one_hot((4, 3))
    np.testing.assert_array_equal(features.vectors(hot), np.eye(12).reshape(4, 3, 12))
    assert hot.value.size == 12  # and not 144


def test_estimated_features_are_the_estimated_occupancy_put_through():
    rng = np.random.default_rng(1)
    phi = features.dense(rng.normal(size=(6, 3, 5)))
    h, s, a = (jnp.asarray(rng.integers(0, n, 40), jnp.int32) for n in (4, 6, 3))
    weights = jnp.asarray(rng.dirichlet(np.ones(40)))
    d = np.asarray(estimate(Points(h, s, a), weights, (4, 6, 3)))
    found = features.estimate(phi, Points(h, s, a), weights, 4)
    np.testing.assert_allclose(found, np.einsum("hsa,sad->hd", d, features.vectors(phi)))


def test_random_linear_mdps_are_linear():
    """P and r against the definition, from the dense arrays."""
    lin = SMALL
    P, psi = dense(lin.mdp), np.asarray(features.vectors(lin.psi))
    succ = np.asarray(lin.mdp.succ[0])
    for h, s, a in np.ndindex(4, 6, 3):
        np.testing.assert_allclose(P[h, s, a, succ[s, a]], psi[s, a] @ lin.theta[h], atol=1e-12)
        assert P[h, s, a].sum() == pytest.approx(1)
    phi = np.asarray(features.vectors(lin.phi))
    mu = np.stack([np.linalg.lstsq(phi.reshape(-1, 5), r.ravel())[0] for r in lin.mdp.reward])
    np.testing.assert_allclose(np.einsum("sad,hd->hsa", phi, mu), lin.mdp.reward, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(mu, axis=-1), np.sqrt(5))
    assert np.linalg.norm(phi, axis=-1).max() == pytest.approx(1)


def test_a_finite_mdp_is_the_one_hot_case():
    mdp = random_mdp(5, 6, 3, 2, staged=False, seed=4)
    lin = linear_mdp.one_hot(mdp)
    assert (lin.d, lin.p) == (18, 36)
    prob = features.dot(lin.psi, lin.theta[0])
    np.testing.assert_array_equal(prob, mdp.prob[0])
    V = jnp.asarray(np.random.default_rng(0).normal(size=6))
    np.testing.assert_allclose(jnp.sum(prob * V[mdp.succ[0]], -1), mdps.expect(mdp, 0, V))


def bad(**change):
    rng = np.random.default_rng(0)
    given = {
        "succ": np.tile(np.arange(2), (3, 2, 1)),
        "psi": np.full((3, 2, 2, 2), 0.5),
        "theta": np.array([0.5, 0.5]),
        "phi": rng.random((3, 2, 4)) / 4,
        "horizon": 3,
        "nu": np.ones(3) / 3,
    }
    return linear_mdp.build(**{**given, **change})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, None),
        ({"phi": np.full((3, 2, 4), 0.6)}, "norm 1.2; the theory needs ‖φ‖ ≤ 1, so divide"),
        ({"theta": np.array([1.2, -0.2]), "psi": np.eye(2) * np.ones((3, 2, 1, 1))}, "negative"),
        ({"theta": np.array([0.4, 0.5])}, "the probability 0.9 in all; it must be one"),
        ({"phi": np.zeros((2, 3, 4))}, "φ have shape"),
        ({"psi": np.zeros((3, 2, 2))}, "ψ have shape"),
        ({"theta": np.zeros((2, 2))}, "θ have shape"),
        ({"theta": np.array([2.0, -1.0])}, "θ have norm 2.236"),
        ({"mu": np.full(4, 1.1)}, "μ have norm 2.2; the theory needs at most √d = 2"),
        ({"mu": np.zeros(3)}, "μ have shape"),
        ({"phi": np.full((3, 2, 4), np.nan)}, "not finite"),
        ({"succ": np.zeros((3, 2))}, "successors have shape"),
    ],
)
def test_what_is_not_a_linear_mdp_is_refused(change, says):
    if says is None:
        assert bad().d == 4
        return
    with pytest.raises(UserError, match=says.replace("(", r"\(")):
        bad(**change)
