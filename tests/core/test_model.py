"""Optimistic evaluation against a dense recursion with dense counts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import random_mdp, random_policy, seeds

from understudy.core import mdp as mdps
from understudy.core import model as models
from understudy.core.occupancy import Points

evaluate = jax.jit(models.evaluate)


@pytest.mark.slow
@settings(max_examples=40)
@given(seeds, st.booleans(), st.integers(0, 60))
def test_counted_evaluation_is_the_papers_recursion(seed, shared, visits):
    H, S, A, C = 4, 5, 2, 3
    mdp = random_mdp(H, S, A, C, staged=not shared, seed=seed)
    rng = np.random.default_rng(seed)
    pi, mu = random_policy(mdp, seed), jnp.asarray(rng.random((H, S, A)))
    h, s, a, slot = (rng.integers(0, n, visits) for n in (H, S, A, C))
    points = Points(jnp.array(h), jnp.array(s), jnp.array(a))
    counts = models.observe(models.no_counts(mdp, shared=shared), points, jnp.array(slot))
    Q = evaluate(models.Counted(mdp, counts, jnp.float64(0.3)), pi, mu)

    n = np.zeros((H, S, A, S))
    for i in range(visits):
        to = int(mdp.succ[0 if shared else h[i], s[i], a[i], slot[i]])
        n[slice(None) if shared else h[i], s[i], a[i], to] += 1
    total = n.sum(-1)
    P = np.where(total[..., None] > 0, n / np.maximum(total, 1)[..., None], 1 / S)
    V, expected = np.zeros(S), np.zeros((H, S, A))
    for stage in reversed(range(H)):
        b = 0.3 / np.sqrt(np.maximum(total[stage], 1))
        expected[stage] = np.minimum(mu[stage] + b + P[stage] @ V, H - stage)
        V = (np.asarray(pi[stage]) * expected[stage]).sum(-1)
    np.testing.assert_allclose(Q, expected, atol=1e-12)


def test_known_evaluation_is_exact_where_the_cap_does_not_bind():
    mdp = random_mdp(4, 5, 2, 3, staged=True, seed=1)
    pi, mu = random_policy(mdp, 1), jnp.asarray(np.random.default_rng(1).random((4, 5, 2)))
    np.testing.assert_allclose(
        models.evaluate(models.Known(mdp), pi, mu), mdps.evaluate(mdp, pi, mu), atol=1e-12
    )


def test_the_theorys_bonus_is_optimistic():
    """P̂V + b ≥ PV for every (s, a) and the V that makes it hardest, in all of 300 samples of n
    transitions; δ = 0.05 allows 15."""
    S, n, H = 6, 40, 5
    rng = np.random.default_rng(0)
    b = models.theory_scale(H, S, 1, 1) / np.sqrt(n)
    failures = 0
    for _ in range(300):
        P = rng.dirichlet(np.ones(S))
        P_hat = rng.multinomial(n, P) / n
        V = H * (P > P_hat)
        failures += P_hat @ V + b < P @ V
    assert failures == 0
    assert models.theory_scale(H, S, 1, 1) == pytest.approx(
        5 * np.sqrt(4 * 6 * np.log(3 * 6 * 5 / 0.05))
    )
