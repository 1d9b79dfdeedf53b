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

In larger problems an update is memory traffic, and so is what a ledger costs. It keeps no table
that the mixture handed out has already, nor one that is the same as another.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from understudy.core import mdp as mdps
from understudy.core.mdp import MDP, at
from understudy.core.mixture import include
from understudy.core.types import Occupancy, Policy, Reward
from understudy.core.updates import gather
from understudy.theory import past_occupancies
from understudy.theory.past_occupancies import Ring


class Ledger(eqx.Module):
    """Means and sums over the pairs booked so far. (Tables as means: see `mixture.include`.)"""

    d: Occupancy | None  # mean d_k; None where the mixture handed out keeps the same
    d_mix: Occupancy | None  # None where no policy is reused, and it is the mean d_k
    d_hat: Occupancy | None  # mean d̂_mix; None where gradients are exact
    mu: Reward  # mean μ_k
    ring: Ring  # Σ d of the policies before each of the latest
    on_dot: Float[Array, ""]  # Σ ⟨μ_k, d_k⟩
    mix_dot: Float[Array, ""]
    hat_dot: Float[Array, ""]
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


def empty(mdp: MDP, mu: Reward, ring: int, *, shares: bool, reuses: bool, exact: bool) -> Ledger:
    """Nothing booked yet. `shares`: someone else keeps the mean d_k; `reuses`: the window holds
    more than the newest policy."""
    zero, none = jnp.zeros(()), jnp.zeros(mdp.shape)
    return Ledger(
        d=None if shares else none,
        d_mix=none if reuses else None,
        d_hat=None if exact else none,
        mu=jnp.zeros_like(mu),
        ring=jnp.zeros((ring, *mdp.shape)),
        on_dot=zero,
        mix_dot=zero,
        hat_dot=zero,
        tv=zero,
    )


def book(
    ledger: Ledger,
    mu: Reward,
    d: Occupancy,
    worth: Float[Array, ""],
    estimate: Occupancy | None,
    *,
    mean: Occupancy | None,
    beta: Float[Array, " lags"],
    N: Int[Array, ""],
    k: Int[Array, ""],
    uniform: bool,
) -> tuple[Ledger, Occupancy]:
    """Enter the k-th pair, k = 1, 2, …: its reward, its policy's occupancy d and what that is
    worth, ⟨μ, d⟩, and what the window's mixture was taken for (None: as it is). Also that mixture,
    Σ_n β_n d_{k−n}; where nothing is reused it is `d`, to the bit. `mean` is that of d with this
    one, where someone else keeps it.
    """
    new: dict[str, Any] = {"mu": include(ledger.mu, mu, k), "on_dot": ledger.on_dot + worth}
    if ledger.d is not None:
        mean = new["d"] = include(ledger.d, d, k)
    assert mean is not None
    ring = new["ring"] = past_occupancies.keep(ledger.ring, k * mean, k)
    d_mix, met = d, {}
    if ledger.d_mix is not None:
        d_mix = past_occupancies.mixture(ring, k * mean, beta, N, k, uniform=uniform)
        new["d_mix"], met["mix_dot"] = include(ledger.d_mix, d_mix, k), d_mix
    if estimate is not None and ledger.d_hat is not None:
        new["d_hat"], met["hat_dot"] = include(ledger.d_hat, estimate, k), estimate
    for name, dot in _dots(mu, met).items():
        new[name] = getattr(ledger, name) + dot
    return dataclasses.replace(ledger, **new), d_mix


def _dots(mu: Reward, met: dict[str, Occupancy]) -> dict[str, Float[Array, ""]]:
    """⟨μ, x⟩ of each table x, a stage at a time, as in `note_step`."""

    def stage(h: Array, so_far: dict[str, Array]) -> dict[str, Array]:
        return {name: so_far[name] + at(mu, h) * x[h] for name, x in met.items()}

    stages = max((len(x) for x in met.values()), default=0)
    nothing = {name: jnp.zeros_like(x[0]) for name, x in met.items()}
    return jax.tree.map(jnp.sum, jax.lax.fori_loop(0, stages, stage, nothing))


def note_step(ledger: Ledger, before: Policy, after: Policy) -> Ledger:
    """Remember the largest TV(π_k ‖ π_{k−1})[s] over stages and states."""

    def stage(h: Array, most: Float[Array, " S"]) -> Float[Array, " S"]:
        return jnp.maximum(most, jnp.sum(jnp.abs(after[h] - before[h]), axis=-1) / 2)

    # A stage at a time: the compiled sum over the few actions of a whole table takes four times as
    # long.
    most = jax.lax.fori_loop(0, len(after), stage, jnp.zeros(after.shape[1]))
    return dataclasses.replace(ledger, tv=jnp.maximum(ledger.tv, jnp.max(most)))


def regret_of(
    ledger: Ledger,
    mdp: MDP,
    pairs: Int[Array, ""],
    *,
    mean: Occupancy | None,
    shown: Occupancy,
    expert: Occupancy,
    best: Callable[[Reward], Reward],
) -> Regret:
    """The account of the pairs booked. `mean` is that of d_k where someone else keeps it. `shown`
    is the d̂_E that was learned from, `expert` the true d_E; where the truth is not known they are
    the same, and the demonstrations' term is zero. `best(x)` is the reward of the largest ⟨r, x⟩,
    which makes μ*."""
    K, d = pairs, mean if ledger.d is None else ledger.d
    assert d is not None
    mu_sum, d_sum = K * ledger.mu, K * d

    def against(star: Reward, x: Occupancy, dot: Array) -> Array:  # Σ⟨μ* − μ_k, x_k⟩
        return jnp.sum(star * gather(x, mu_sum)) - dot

    on, on_dot = K * expert - d_sum, jnp.sum(mu_sum * expert) - ledger.on_dot
    mix, mix_dot = d_sum, ledger.on_dot
    if ledger.d_mix is not None:
        mix, mix_dot = K * ledger.d_mix, ledger.mix_dot
    taken, taken_dot = mix, mix_dot
    if ledger.d_hat is not None:
        taken, taken_dot = K * ledger.d_hat, ledger.hat_dot
    hat, hat_dot = K * shown - taken, jnp.sum(mu_sum * shown) - taken_dot
    gain = gather(on, mu_sum)
    star = best(gain)  # μ*
    ail = jnp.sum(star * gain)
    policy = mdps.optimum(mdp, mu_sum)[1] - ledger.on_dot
    reward = against(star, on, on_dot)
    return Regret(
        ail=ail,
        policy=policy,
        reward=reward,
        optimisation=against(star, hat, hat_dot),
        shift=against(star, mix - d_sum, mix_dot - ledger.on_dot),
        estimation=against(star, taken - mix, taken_dot - mix_dot),
        demonstrations=against(star, K * (expert - shown), jnp.sum(mu_sum * (expert - shown))),
        slack=policy + reward - ail,
        tv=ledger.tv,
        drift=_drift(ledger.ring, pairs),
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


def _drift(ring: Ring, pairs: Int[Array, ""]) -> Float[Array, " lags"]:
    """max_h ‖d_k − d_{k−n}‖₁ for the pair booked last; 0 where there is no policy k−n yet."""
    n = np.array(lags(len(ring)), dtype=np.int32)
    if not len(n):
        return jnp.zeros(0)

    def occupancies(lag: Int[np.ndarray, " lags"]) -> Float[Array, "lags H S A"]:
        """d_{k−lag} = E_{k+1−lag} − E_{k−lag}, all at once: a gather each compiles slowly."""
        upper, lower = pairs - lag, pairs - lag - 1
        below = jnp.where((lower > 0)[:, None, None, None], ring[lower % len(ring)], 0)
        return ring[upper % len(ring)] - below

    apart = jnp.abs(occupancies(np.zeros_like(n[:1])) - occupancies(n))
    return jnp.where(pairs - n - 1 >= 0, jnp.max(jnp.sum(apart, axis=(2, 3)), axis=1), 0.0)
