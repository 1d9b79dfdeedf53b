"""The true occupancies of past policies, kept so that any uniform window's mixture costs O(HSA).

With E_j = Σ_{i<j} d_i, a window's sum is one difference, E_j − E_{j+1−N}, whatever N(k) does.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from understudy.core.types import Occupancy


class Trail(eqx.Module):
    """E_j for the latest j, at least as many as the window is long. Where nothing ever leaves the
    window a few are enough, since all it needs is E_0 = 0."""

    total: Occupancy  # the latest E_j, beside the ring so that the ring is read only once
    ring: Float[Array, "slots H S A"]  # E_j at place j mod slots

    def sum_before(self, j: Int[Array, ""]) -> Occupancy:
        """E_j = Σ_{i<j} d_i; j must be among the latest."""
        return self.ring[j % self.ring.shape[0]]


def empty(shape: tuple[int, int, int], slots: int) -> Trail:
    return Trail(jnp.zeros(shape), jnp.zeros((slots, *shape)))


def extend(trail: Trail, d: Occupancy, j: Int[Array, ""]) -> Trail:
    """Policy j had the occupancy d."""
    total = trail.total + d
    return Trail(total, trail.ring.at[(j + 1) % trail.ring.shape[0]].set(total))


def past(
    trail: Trail,
    before: Occupancy,
    beta: Float[Array, " lags"],
    N: Int[Array, ""],
    j: Int[Array, ""],
    *,
    uniform: bool,
) -> Occupancy:
    """Σ_{n=2}^{N} β_n d_{j+1−n}: the mixture without its newest member, policy j. `before` is E_j.

    Exactly zero for N = 1. Uniform weights cost O(HSA), others O(slots·HSA) by summation by parts.
    The trail has policy j already: a ring that is read only after it is written is written in
    place, where the other order has the compiler copy the whole of it (measured: 30 times slower
    with 258 slots).
    """
    slots = trail.ring.shape[0]
    if uniform:
        leaving = j + 1 - N
        left = jnp.where(leaving > 0, trail.sum_before(leaving), 0)
        return (before - left) * beta[0]
    m = jnp.arange(1, len(beta) + 1)  # E_{j+1−m} counts β_{m+1} − β_m (m ≥ 2), or β_2 (m = 1)
    coefficient = jnp.append(beta[1:], 0.0) - jnp.where(m >= 2, beta, 0)
    coefficient = jnp.where(j + 1 - m > 0, coefficient, 0)
    return jnp.tensordot(coefficient, trail.ring[(j + 1 - m) % slots], axes=1)
