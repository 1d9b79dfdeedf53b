"""Value-targeted ridge regression of θ_h, and the elliptical bonus (the paper's appendix).

A transition (s, a, s') says of a value V: V(s') is xᵀθ_h plus noise, with x = ∫ψ(s,a,·)V. So θ_h is
regressed on values, and what is not known of PV is κ‖x‖_{Λ⁻¹}. Λ⁻¹ is kept up to date by rank-one
steps, O(p²) a transition.

Values are divided by `reach`, the largest that a value can be: λ = 1 then means the same whatever
the horizon and the rewards are.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from understudy.core.features import Features
from understudy.core.linear_mdp import LinearMDP
from understudy.core.mdp import at
from understudy.core.model import Model
from understudy.core.occupancy import Points

RIDGE = 1.0  # λ
MOST = 4096  # features: Λ⁻¹ has as many rows, and as many columns


class Regression(eqx.Module):
    """Λ_h⁻¹ and Σ x y. One stage (M = 1) where the transitions are the same at all of them."""

    inverse: Float[Array, "M p p"]  # Λ⁻¹, Λ = λI + Σ x xᵀ
    moment: Float[Array, "M p"]  # Σ x y

    @property
    def theta(self) -> Float[Array, "M p"]:
        """θ̂ = Λ⁻¹ Σ x y."""
        return jnp.einsum("mpq,mq->mp", self.inverse, self.moment)


def nothing(linear: LinearMDP, *, shared: bool) -> Regression:
    """Before the first transition."""
    stages, p = 1 if shared else linear.mdp.horizon, linear.p
    eye = jnp.eye(p) / RIDGE
    return Regression(jnp.broadcast_to(eye, (stages, p, p)), jnp.zeros((stages, p)))


def add(inverse: Float[Array, "p p"], x: Float[Array, " p"]) -> Float[Array, "p p"]:
    """(Λ + x xᵀ)⁻¹ by Sherman and Morrison."""
    u = inverse @ x
    return inverse - jnp.outer(u, u) / (1 + x @ u)


def observe(
    regression: Regression,
    linear: LinearMDP,
    points: Points,
    slot: Int[Array, " points"],
    V: Float[Array, "H S"],
    reach: float | Array,
) -> Regression:
    """Regress V_{h+1} at new transitions. V must not have seen them: it is that of the iteration
    before, so that the noise has mean zero whatever was learned since.

    `slot` is the place of s' in the successor row of (h, s, a).
    """
    V = jnp.concatenate([V[1:], jnp.zeros_like(V[:1])]) / reach  # V_{h+1}, zero after the last
    succ = linear.mdp.succ[0]  # ψ has one list for all stages
    shared = regression.inverse.shape[0] == 1

    def take(so_far: Regression, here: tuple[Array, ...]) -> tuple[Regression, None]:
        h, s, a, c = here
        ahead = V[h][succ[s, a]]
        x = jnp.zeros(linear.p)
        x = x.at[linear.psi.index[s, a]].add(ahead[:, None] * linear.psi.value[s, a])
        m = 0 if shared else h
        inverse = so_far.inverse.at[m].set(add(so_far.inverse[m], x))
        return Regression(inverse, so_far.moment.at[m].add(ahead[c] * x)), None

    return jax.lax.scan(take, regression, (points.h, points.s, points.a, slot))[0]


class Regressed(Model):
    """(P̂_h V)(s,a) = xᵀθ̂_h + κ‖x‖_{Λ⁻¹}. The bonus depends on V, so it is part of it."""

    linear: LinearMDP
    theta: Float[Array, "M p"]
    inverse: Float[Array, "M p p"]
    scale: Float[Array, ""]  # κ, of values divided by `reach`; see `theory_scale`

    def expect(self, h: int | Array, V: Float[Array, " S"]) -> Float[Array, "S A"]:
        psi, ahead = self.linear.psi, V[self.linear.mdp.succ[0]]
        x = (ahead[..., None] * psi.value).reshape(*ahead.shape[:2], -1)  # ∫ψV, by its entries
        index = psi.index.reshape(x.shape)
        theta, inverse = at(self.theta, h), at(self.inverse, h)
        between = inverse[index[..., :, None], index[..., None, :]]
        width = jnp.einsum("sai,saij,saj->sa", x, between, x)
        return jnp.sum(x * theta[index], axis=-1) + self.scale * jnp.sqrt(jnp.maximum(width, 0))

    def bonus(self, h: int | Array) -> Float[Array, "S A"]:
        return jnp.zeros(self.linear.mdp.shape[1:])


def largest(psi: Features) -> float:
    """L² = max_{s,a} Σ_i (Σ_c |ψ_i(s,a,c)|)², so that ‖∫ψV‖² ≤ L² for values within [−1, 1]. It is
    at most p where each ψ_i is a transition kernel, and C where ψ is one-hot."""
    index, value = np.asarray(psi.index), np.abs(np.asarray(psi.value))
    rows = math.prod(index.shape[:2])
    key = np.arange(rows)[:, None] * psi.size + index.reshape(rows, -1)
    places, entry = np.unique(key, return_inverse=True)
    reach = np.bincount(entry.ravel(), weights=value.ravel())  # Σ_c |ψ_i(s,a,c)|
    return float(np.bincount(places // psi.size, weights=reach**2, minlength=rows).max())


def theory_scale(p: int, H: int, n: int, L2: float, delta: float = 0.05) -> float:
    """The κ under which xᵀθ̂ + κ‖x‖_{Λ⁻¹} is optimistic for every x with probability 1−δ, from n
    transitions a stage: √(p log(1 + n L²/p) + 2 log(H/δ)) + √p.

    Abbasi-Yadkori et al. (2011, Thm 2), a union over stages: noise of values within [−1, 1] is
    1-sub-Gaussian, ‖θ‖ ≤ √p, ‖x‖ ≤ L (see `largest`), λ = 1.
    """
    return math.sqrt(p * math.log(1 + n * L2 / p) + 2 * math.log(H / delta)) + math.sqrt(p)
