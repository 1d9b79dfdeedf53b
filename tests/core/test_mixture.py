"""The averages of the iterates against explicit sums, and the policies that realise them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import SHAPES, dense, random_mdp, random_policy, seeds

from understudy.core import mdp as mdps
from understudy.core import mixture as mixtures

occupancy = jax.jit(mdps.occupancy)
extend = jax.jit(mixtures.extend)
policies = jax.jit(mixtures.policies)


def mixed(ds):
    """The mixture of policies with these occupancies, one after the other."""
    mixture = mixtures.empty(ds[0].shape)
    for k, d in enumerate(ds, 1):
        mixture = extend(mixture, jnp.asarray(d), jnp.int32(k))
    return mixture


@pytest.mark.parametrize("k", [1, 2, 3, 7, 40, 300])
def test_the_recent_average_has_weights_that_grow_as_the_cube(k):
    """w_j = j(j+1)(j+2), which add up to k(k+1)(k+2)(k+3)/4."""
    ds = np.random.default_rng(k).dirichlet(np.ones(6), size=(k, 2)).reshape(k, 2, 3, 2)
    j = np.arange(1, k + 1)
    weights = j * (j + 1.0) * (j + 2)
    assert weights.sum() == k * (k + 1) * (k + 2) * (k + 3) / 4
    mixture = mixed(ds)
    expected = np.einsum("k,khsa->hsa", weights / weights.sum(), ds)
    np.testing.assert_allclose(mixture.recent, expected, rtol=1e-12)
    np.testing.assert_allclose(mixture.mean, ds.mean(0), rtol=1e-12)
    even, recent = np.asarray(mixtures.averages(mixture))
    np.testing.assert_allclose(even, ds.mean(0), rtol=1e-12)
    np.testing.assert_allclose(recent, expected, rtol=1e-12)


def test_two_thirds_of_the_recent_average_are_of_the_latest_quarter():
    """1 − (3/4)⁴ = 0.68: a policy that is there from three quarters on is that much of it."""
    k, late = 400, np.arange(400) >= 300
    ds = np.stack([1.0 * ~late, 1.0 * late], axis=-1).reshape(k, 1, 1, 2)
    assert float(mixed(ds).recent[0, 0, 1]) == pytest.approx(1 - 0.75**4, abs=0.01)


def test_stages_that_were_not_sampled_equally_often_become_distributions():
    """Of three stages one was seen twice as often as the next, and one never."""
    ds = np.zeros((4, 3, 2, 2))
    ds[:2, 0, 1, 0] = 6
    ds[3, 1, 0] = [1, 2]
    both = np.asarray(mixtures.averages(mixed(ds)))
    np.testing.assert_allclose(both.sum((2, 3)), [[1, 1, 0], [1, 1, 0]])
    np.testing.assert_allclose(both[:, 1, 0], np.full((2, 2), [1 / 3, 2 / 3]))
    last = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(2), size=(3, 2)))
    found = np.asarray(mixtures.policies(mixed(ds), last))
    np.testing.assert_allclose(found[:, 2], np.asarray(last)[None, 2].repeat(2, 0))


def forward(mdp, pi):
    """d_h(s,a) in plain NumPy."""
    mass, d = np.asarray(mdp.nu), []
    for h, P in enumerate(dense(mdp)):
        d.append(mass[:, None] * pi[h])
        mass = np.einsum("sa,sat->t", d[-1], P)
    return np.stack(d)


@settings(max_examples=60)
@given(st.sampled_from(SHAPES), st.booleans(), seeds, st.integers(1, 9))
def test_the_policies_have_exactly_the_averages_as_their_occupancies(shape, staged, seed, k):
    mdp = random_mdp(*shape, staged=staged, seed=seed)
    iterates = [random_policy(mdp, seed + i, 0.3) for i in range(k)]
    ds = np.stack([occupancy(mdp, pi) for pi in iterates])
    mixture = mixed(ds)
    weights = np.arange(1, k + 1) * np.arange(2, k + 2) * np.arange(3.0, k + 3)
    expected = ds.mean(0), np.tensordot(weights / weights.sum(), ds, axes=1)
    for pi, d in zip(policies(mixture, iterates[-1]), expected, strict=True):
        np.testing.assert_allclose(pi.sum(-1), 1, atol=1e-9)
        np.testing.assert_allclose(occupancy(mdp, pi), d, rtol=0, atol=1e-13)
        np.testing.assert_allclose(forward(mdp, np.asarray(pi)), d, rtol=0, atol=1e-13)


def test_where_the_averages_never_go_the_last_iterate_acts():
    """Two of four states cannot be reached, and one only after the first stage."""
    P = np.zeros((4, 2, 4))
    P[0, 0, 0] = P[0, 1, 1] = P[1, :, 1] = P[2, :, 2] = P[3, :, 3] = 1
    mdp = mdps.from_arrays(P, horizon=3, nu=np.array([1.0, 0, 0, 0]))
    first, last = random_policy(mdp, 1, 2.0), random_policy(mdp, 2, 2.0)
    mixture = mixed([occupancy(mdp, pi) for pi in (first, last)])
    for pi in np.asarray(mixtures.policies(mixture, last)):
        np.testing.assert_array_equal(pi[:, 2:], last[:, 2:])
        np.testing.assert_array_equal(pi[0, 1], last[0, 1])
        assert (np.abs(pi[0, 0] - last[0, 0]) > 1e-3).all()  # elsewhere it is the mixture's own
        assert (np.abs(pi[1:, 1] - last[1:, 1]) > 1e-3).all()
