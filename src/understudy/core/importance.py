"""Importance-corrected recall, for comparison: what the paper avoids, because of its variance.

Old samples are reweighted so that each segment alone estimates the *current* policy's occupancy.
The shift is gone; the price is the variance of the ratios. Whole trajectories only.

- `path`: the product of π_k/π_j along the trajectory up to the point (per-decision ratios);
- `marginal`: d_k(s,a)/d_j(s,a) at the point's stage, with true occupancies, which a learner would
  not have: the best that marginalised importance sampling could do.
"""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.core import mdp as mdps
from understudy.core.mdp import MDP
from understudy.core.occupancy import Points
from understudy.core.types import Occupancy, Policy

Correction = Literal["none", "path", "marginal"]


def path_log(pi: Policy, points: Points, steps: int) -> Float[Array, "*segments fresh"]:
    """Σ_{i≤h} log π_i(a_i|s_i) of each point's trajectory; points are stored step by step."""
    logs = jnp.log(jnp.maximum(pi[points.h, points.s, points.a], 1e-300))
    by_step = logs.reshape(*logs.shape[:-1], steps, -1)
    return jnp.cumsum(by_step, axis=-2).reshape(logs.shape)


def marginal_log(d: Occupancy, points: Points) -> Float[Array, "*segments fresh"]:
    """log d_h(s,a) of each point."""
    return jnp.log(jnp.maximum(d[points.h, points.s, points.a], 1e-300))


def path_second_moment(mdp: MDP, old: Policy, new: Policy) -> Occupancy:
    """E_old[w² 1{(s,a) at h}] of the path ratio w, for each point: what it varies by.

    Along a path, P π_old w² = P π_new²/π_old: the occupancy's recursion with that in place of π.
    For π_new = π_old it is the occupancy.
    """
    squared = new**2 / jnp.maximum(old, 1e-300)

    def flow(mass: Array, h: Array) -> tuple[Array, Array]:
        at_h = mass[:, None] * squared[h]
        return mdps.arrive(mdp, h, at_h), at_h

    return jax.lax.scan(flow, mdp.nu, jnp.arange(mdp.horizon))[1]


def marginal_second_moment(mdp: MDP, old: Policy, new: Policy) -> Occupancy:
    """E_old[w² 1{(s,a) at h}] = d_new²/d_old of the marginal ratio."""
    d_old, d_new = mdps.occupancy(mdp, old), mdps.occupancy(mdp, new)
    return d_new**2 / jnp.maximum(d_old, 1e-300)
