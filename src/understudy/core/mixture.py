"""The policy that is handed out: one that realises an average of the iterates (Cor. 4.9).

The theorems bound Σ_k L(π_k, μ), so they speak of d̄ = (1/K) Σ_k d_k, which one policy realises,
and of no single iterate. A plain mean drags its first, random policies along, so a second one is
kept, whose weights grow as k³: two thirds of it come from the latest quarter of the policies. Of
these two and the last iterate the one with the least imitation gap sup_μ L(π, μ) is handed out.
The gap is in closed form, so nothing is guessed, and by the choice it is at most that of the plain
mean, Regret_AIL / K.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from understudy.core.occupancy import policy_of
from understudy.core.types import Occupancy, Policy

POWER = 3  # of the growing weights: 1 keeps too much of the beginning, 15 circles (tuning problems)


class Mixture(eqx.Module):
    """Averages of the occupancies of the policies so far."""

    mean: Occupancy  # (1/k) Σ_k d_k
    recent: Occupancy  # Σ_k w_k d_k with w_k ∝ k(k+1)…(k+POWER−1), about k^POWER


def empty(shape: tuple[int, int, int]) -> Mixture:
    """No policy yet."""
    return Mixture(jnp.zeros(shape), jnp.zeros(shape))


def extend(mixture: Mixture, d: Occupancy, k: Int[Array, ""]) -> Mixture:
    """The k-th policy, k = 1, 2, …, had the occupancy d."""
    share = (POWER + 1.0) / (k + 1.0 * POWER)  # of the newest; of whole numbers it were float32
    return Mixture(include(mixture.mean, d, k), mixture.recent + share * (d - mixture.recent))


def include(mean: Float[Array, "*table"], x: Float[Array, "*table"], k: Int[Array, ""]) -> Array:
    """The mean of k tables, x the newest. (A sum, which does as well, is compiled to a loop over
    the few actions at a time, which measured takes eight times as long.)"""
    return mean + (x - mean) / (k * 1.0)


def averages(mixture: Mixture) -> Float[Array, "2 H S A"]:
    """Both as occupancies: samples need not have visited every stage equally often."""
    both = jnp.stack([mixture.mean, mixture.recent])
    mass = jnp.sum(both, axis=(2, 3), keepdims=True)
    return both / jnp.where(mass > 0, mass, 1)


def policies(mixture: Mixture, last: Policy) -> Float[Array, "2 H S A"]:
    """The policies that realise the averages. Where an average never goes, the last iterate acts:
    with learned transitions that can happen, and it knows more than nothing."""
    both = averages(mixture)
    visited = jnp.sum(both, axis=-1, keepdims=True) > 0
    return jnp.where(visited, jax.vmap(policy_of)(both), last)
