"""The regret ledger: true regret, and its exact split into the terms of the theorem.

A run of K updates has the K pairs (π_k, μ_k), k = 0 … K−1: the policy that acts in iteration k+1,
and the reward whose gradient is then estimated. (The paper numbers them 1 … K.) With the gradients

    g_on = d_E − d_k          at the policy itself,
    g_mix = d_E − Σ_n β_n d_{k+1−n}   at the window's true mixture,
    ĝ = d̂_E − d̂_mix           as estimated from samples and demonstrations,

the reward regret splits exactly, for the maximiser μ* of Σ_k ⟨μ, g_on⟩ over the rewards allowed:

    Σ⟨μ*−μ_k, g_on⟩ = Σ⟨μ*−μ_k, ĝ⟩                     [optimisation]
                     + Σ⟨μ*−μ_k, g_on − g_mix⟩          [shift, by reusing old samples]
                     + Σ⟨μ*−μ_k, d̂_mix − d_mix⟩         [estimation, by sampling]
                     + Σ⟨μ*−μ_k, d_E − d̂_E⟩             [demonstrations, by having few]

Each is `⟨μ*, Σx⟩ − Σ⟨μ_k, x⟩`, so it accumulates online in O(HSA), and O(HSA) per policy of the
window for the true mixture. Where an episode crosses policies (fresh < H) the samples are not
drawn from the window's mixture; what that costs is booked under estimation.
"""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from understudy.core import mdp as mdps
from understudy.core.mdp import MDP
from understudy.core.occupancy import Points
from understudy.core.types import Occupancy, Policy, Reward
from understudy.core.updates import gather
from understudy.theory import past_occupancies as trails
from understudy.theory.past_occupancies import Trail


class Ledger(eqx.Module):
    """Sums over the pairs booked so far."""

    trail: Trail  # Σ d_k, and what the window needs of it
    shift: Occupancy | None  # Σ (d_mix − d_k); None where no policy is reused, and the two are one
    estimate: Occupancy | None  # Σ d̂_mix; None where gradients are exact
    mu: Reward  # Σ μ_k
    on_dot: Float[Array, ""]  # Σ ⟨μ_k, d_k⟩
    shift_dot: Float[Array, ""]
    estimate_dot: Float[Array, ""]
    tv: Float[Array, ""]  # largest TV(π_k ‖ π_{k−1})[s] over stages, states and k


class Regret(eqx.Module):
    """The ledger's account after k pairs. `ail ≤ policy + reward` (Lemma 3.2), by `slack`."""

    ail: Float[Array, "*marks"]  # sup_μ Σ L(π_k, μ), Def. 3.1
    policy: Float[Array, "*marks"]  # sup_π Σ J(π, μ_k) − J(π_k, μ_k)
    reward: Float[Array, "*marks"]  # sup_μ Σ L(π_k, μ) − L(π_k, μ_k)
    optimisation: Float[Array, "*marks"]
    shift: Float[Array, "*marks"]
    estimation: Float[Array, "*marks"]
    demonstrations: Float[Array, "*marks"]
    slack: Float[Array, "*marks"]
    tv: Float[Array, "*marks"]  # largest policy step so far
    drift: Float[Array, "*marks lags"]  # max_h ‖d_k − d_{k−n}‖₁ at the last pair, n = 1, 2, 4 …


def empty(mdp: MDP, mu: Reward, ring: int, *, reuses: bool, exact: bool) -> Ledger:
    """Nothing booked yet. `reuses`: the window holds more than the newest policy."""
    zero, none = jnp.zeros(()), jnp.zeros(mdp.shape)
    return Ledger(
        trail=trails.empty(mdp.shape, ring),
        shift=none if reuses else None,
        estimate=None if exact else none,
        mu=jnp.zeros_like(mu),
        on_dot=zero,
        shift_dot=zero,
        estimate_dot=zero,
        tv=zero,
    )


def follow(
    ledger: Ledger,
    d: Occupancy,
    beta: Float[Array, " lags"],
    N: Int[Array, ""],
    k: Int[Array, ""],
    *,
    uniform: bool,
) -> tuple[Ledger, Occupancy]:
    """Policy k had the occupancy d; also the window's true mixture Σ_n β_n d_{k+1−n}.

    For N = 1 the mixture is `d`, to the bit.
    """
    trail = trails.extend(ledger.trail, d, k)
    if ledger.shift is None:
        return dataclasses.replace(ledger, trail=trail), d
    rest = trails.past(trail, ledger.trail.total, beta, N, k, uniform=uniform)
    return dataclasses.replace(ledger, trail=trail), beta[0] * d + rest


def book(
    ledger: Ledger,
    mu: Reward,
    *,
    d: Occupancy,
    d_mix: Occupancy,
    estimate: Occupancy | tuple[Points, Float[Array, "*points"]] | None,
) -> Ledger:
    """Enter the pair (π_k, μ_k): its occupancy, its window's true mixture, and what the mixture was
    taken for: a model's occupancy, or points with their weights (None: it was taken as it is).

    Points are booked one by one, not as an array: that keeps the ledger's cost below that of the
    iteration itself.
    """
    ledger = dataclasses.replace(ledger, mu=ledger.mu + mu, on_dot=ledger.on_dot + jnp.sum(mu * d))
    if ledger.shift is not None:
        shift = d_mix - d
        ledger = dataclasses.replace(
            ledger,
            shift=ledger.shift + shift,
            shift_dot=ledger.shift_dot + jnp.sum(mu * shift),
        )
    if estimate is None or ledger.estimate is None:
        return ledger
    if isinstance(estimate, tuple):
        points, weights = estimate
        counted = d.shape[0] * weights  # as in `occupancy.estimate`
        taken = ledger.estimate.at[points.h, points.s, points.a].add(counted)
        stage = points.h if mu.shape[0] > 1 else 0
        dot = jnp.sum(counted * mu[stage, points.s, points.a])
    else:
        taken, dot = ledger.estimate + estimate, jnp.sum(mu * estimate)
    return dataclasses.replace(ledger, estimate=taken, estimate_dot=ledger.estimate_dot + dot)


def note_step(ledger: Ledger, before: Policy, after: Policy) -> Ledger:
    """Remember the largest TV(π_k ‖ π_{k−1})[s] over stages and states."""
    step = jnp.max(jnp.sum(jnp.abs(after - before), axis=-1)) / 2
    return dataclasses.replace(ledger, tv=jnp.maximum(ledger.tv, step))


def regret_of(
    ledger: Ledger,
    mdp: MDP,
    pairs: Int[Array, ""],
    *,
    shown: Occupancy,
    expert: Occupancy,
    best: Callable[[Reward], Reward],
) -> Regret:
    """The account of the pairs booked. `shown` is the d̂_E that was learned from, `expert` the true
    d_E; where the truth is not known they are the same, and the demonstrations' term is zero.
    `best(x)` is the reward of the largest ⟨r, x⟩, which makes μ*."""
    K, total = pairs, ledger.trail.total

    def against(star: Reward, x: Occupancy, dot: Array) -> Array:  # Σ⟨μ* − μ_k, x_k⟩
        return jnp.sum(star * gather(x, ledger.mu)) - dot

    on, on_dot = K * expert - total, jnp.sum(ledger.mu * expert) - ledger.on_dot
    shift = jnp.zeros_like(total) if ledger.shift is None else ledger.shift
    mix, mix_dot = total + shift, ledger.on_dot + ledger.shift_dot
    taken, taken_dot = ledger.estimate, ledger.estimate_dot
    if taken is None:
        taken, taken_dot = mix, mix_dot
    hat, hat_dot = K * shown - taken, jnp.sum(ledger.mu * shown) - taken_dot
    gain = gather(on, ledger.mu)
    star = best(gain)  # μ*
    ail = jnp.sum(star * gain)
    policy = mdps.optimum(mdp, ledger.mu)[1] - ledger.on_dot
    reward = against(star, on, on_dot)
    return Regret(
        ail=ail,
        policy=policy,
        reward=reward,
        optimisation=against(star, hat, hat_dot),
        shift=against(star, shift, ledger.shift_dot),
        estimation=against(star, taken - mix, taken_dot - mix_dot),
        demonstrations=against(star, K * (expert - shown), jnp.sum(ledger.mu * (expert - shown))),
        slack=policy + reward - ail,
        tv=ledger.tv,
        drift=_drift(ledger.trail, pairs),
    )


def ring_size(slots: int, sums: bool) -> int:
    """Occupancy sums to keep for a window of `slots` policies, and for drift up to that lag.

    `sums` says that the mixture is a plain mean of all policies, for which the total is enough;
    any other β needs each of them.
    """
    return 2 + (min(slots, 8) if sums else slots)


def lags(ring: int) -> list[int]:
    """The lags at which drift is measured: 1, 2, 4, … as far as the ring reaches."""
    return [2**i for i in range(ring.bit_length()) if 2**i + 2 <= ring]


def _drift(trail: Trail, pairs: Int[Array, ""]) -> Float[Array, " lags"]:
    """max_h ‖d_k − d_{k−n}‖₁ for the pair booked last; 0 where there is no policy k−n yet."""
    ring, n = trail.ring, np.array(lags(len(trail.ring)), dtype=np.int32)
    if not len(n):
        return jnp.zeros(0)

    def occupancies(lag: Int[np.ndarray, " lags"]) -> Float[Array, "lags H S A"]:
        """d_{k−lag} = E_{k+1−lag} − E_{k−lag}, all at once: a gather each compiles slowly."""
        upper, lower = pairs - lag, pairs - lag - 1
        below = jnp.where((lower > 0)[:, None, None, None], ring[lower % len(ring)], 0)
        return ring[upper % len(ring)] - below

    apart = jnp.abs(occupancies(np.zeros_like(n[:1])) - occupancies(n))
    return jnp.where(pairs - n - 1 >= 0, jnp.max(jnp.sum(apart, axis=(2, 3)), axis=1), 0.0)
