"""Occupancies: back to a policy (Thm 4.8), mixtures (Cor. 4.9), and estimates from samples."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from understudy.core.errors import UserError
from understudy.core.mdp import MDP, arrive
from understudy.core.precision import double
from understudy.core.types import Occupancy, Policy


class Points(eqx.Module):
    """State-action points with the stage at which each was visited."""

    h: Int[Array, "*points"]
    s: Int[Array, "*points"]
    a: Int[Array, "*points"]


@double
def policy_of(d: Occupancy) -> Policy:
    """π_h(a|s) = d_h(s,a) / Σ_a d_h(s,a), uniform where s is never visited (Thm 4.8)."""
    visits = jnp.sum(d, axis=-1, keepdims=True)
    return jnp.where(visits > 0, d / jnp.where(visits > 0, visits, 1), 1 / d.shape[-1])


@double
def mix(occupancies: Float[Array, "N H S A"], beta: Float[Array, " N"]) -> Occupancy:
    """d_mix = Σ_n β_n d_n. `policy_of(d_mix)` is the one policy that realises it (Cor. 4.9)."""
    return jnp.tensordot(beta, occupancies, axes=1)


@double
def flow_gap(mdp: MDP, d: Occupancy) -> Float[Array, ""]:
    """How far d is from a feasible occupancy: the largest violation of ν and of the flow
    Σ_a d_h(s,a) = Σ_{s',a} P(s|s',a) d_{h−1}(s',a)."""
    arriving = [mdp.nu, *(arrive(mdp, h, d[h]) for h in range(mdp.horizon - 1))]
    return jnp.max(jnp.abs(jnp.sum(d, axis=-1) - jnp.stack(arriving)))


@double
def estimate(
    points: Points, weights: Float[Array, "*points"], shape: tuple[int, int, int]
) -> Occupancy:
    """d̂_h(s,a) = H · Σ_i w_i 1{(h_i, s_i, a_i) = (h, s, a)}, for weights that sum to one.

    Unbiased where stages are visited equally often, as whole trajectories do: B trajectories
    give each point the weight 1/(BH), so a visit counts 1/B. The rival, dividing each stage by
    its own count, is biased where a stage was not reached, and gave the same curves.
    """
    return jnp.zeros(shape).at[points.h, points.s, points.a].add(shape[0] * weights)


@double
def of_demonstrations(
    states: list[np.ndarray],
    actions: list[np.ndarray],
    terminated: list[bool],
    shape: tuple[int, int, int],
    sink: int | None = None,
) -> Occupancy:
    """d̂_E from demonstrations; `states[i]` has one more entry than `actions[i]`.

    Past a demonstration's end:
    - it *terminated*: it stays in its final state (or in the MDP's `sink`, if it has one), every
      action equally likely (none was shown, and none matters);
    - it was *cut off*: it says nothing of later stages. Each stage averages over the
      demonstrations that reach it, and a stage that none reaches is refused.
    """
    H, S, A = shape
    d = np.zeros(shape)
    reach = np.zeros(H)
    for i, (s, a) in enumerate(zip(states, actions, strict=True)):
        for name, values, size in (("state", s, S), ("action", a, A)):
            if len(values) and not (0 <= values.min() and values.max() < size):
                bad = values[(values < 0) | (values >= size)][0]
                raise UserError(
                    f"Demonstration {i} has {name} {bad}, outside 0 … {size - 1} of this "
                    f"environment; check that the demonstrations belong to it."
                )
        T = min(len(a), H)
        np.add.at(d, (np.arange(T), s[:T], a[:T]), 1.0)
        if terminated[i]:
            d[T:, s[-1] if sink is None else sink] += 1 / A
        reach[: H if terminated[i] else T] += 1
    if (reach == 0).any():
        short = int(np.argmax(reach == 0))
        raise UserError(
            f"No demonstration reaches stage {short + 1} of {H}; "
            f"use a horizon of at most {short}, or longer demonstrations."
        )
    return jnp.asarray(d / reach[:, None, None])
