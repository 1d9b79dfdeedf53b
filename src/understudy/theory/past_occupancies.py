"""The true occupancies of past policies, kept so that any uniform window's mixture costs O(HSA).

With E_j = Σ_{i<j} d_i, a window's sum is one difference, E_j − E_{j−N}, whatever N(k) does. The
latest E_j are kept in a ring, at least as many as the window is long. Where nothing ever leaves the
window a few are enough, since all it needs is E_0 = 0.

A ring is written before it is read: then it is written in place, where the other order has the
compiler copy the whole of it (measured: 30 times slower with 258 slots).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from understudy.core.types import Occupancy

Ring = Float[Array, "slots H S A"]  # E_j at place j mod slots


def keep(ring: Ring, total: Occupancy, j: Int[Array, ""]) -> Ring:
    """E_j is `total`."""
    return ring.at[j % len(ring)].set(total)


def sum_before(ring: Ring, j: Int[Array, ""]) -> Occupancy:
    """E_j = Σ_{i<j} d_i; j must be among the latest. E_0 need not be kept."""
    return jnp.where(j > 0, ring[j % len(ring)], 0)


def mixture(
    ring: Ring,
    total: Occupancy,
    beta: Float[Array, " lags"],
    N: Int[Array, ""],
    j: Int[Array, ""],
    *,
    uniform: bool,
) -> Occupancy:
    """Σ_{n=1}^{N} β_n d_{j−n} of the N latest of j policies; `total` is E_j, and kept already.

    Uniform weights cost O(HSA), others O(slots·HSA) by summation by parts.
    """
    if uniform:
        return (total - sum_before(ring, j - N)) * beta[0]
    m = jnp.arange(len(beta) + 1)  # E_{j−m} counts β_{m+1} − β_m
    counts = jnp.append(beta, 0.0) - jnp.insert(beta, 0, 0.0)
    counts = jnp.where(j - m > 0, counts, 0)
    at_place = jnp.zeros(len(ring)).at[(j - m) % len(ring)].set(counts)  # no ring is reordered
    return jnp.tensordot(at_place, ring, axes=1)
