"""What the learner believes of the transitions: the truth, or counts with an optimistic bonus."""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from understudy.core import mdp as mdps
from understudy.core.mdp import MDP, at
from understudy.core.occupancy import Points
from understudy.core.types import Occupancy, Policy, Reward, Values

# n_h(s,a,s'), by the place of s' in the MDP's successor row. That is P̂ to the letter, since a
# successor never seen has count zero; the row only spares an H×S×A×S table.
Counts = Int[Array, "M S A C"]


class Model(eqx.Module):
    """An answer to (P̂_h V)(s,a) and b_h(s,a)."""

    @abc.abstractmethod
    def expect(self, h: int | Array, V: Float[Array, " S"]) -> Float[Array, "S A"]:
        """(P̂_h V)(s,a)."""

    @abc.abstractmethod
    def bonus(self, h: int | Array) -> Float[Array, "S A"]:
        """b_h(s,a)."""


class Known(Model):
    """P̂ = P and b = 0: the paper's MiniGrid runs."""

    mdp: MDP

    def expect(self, h: int | Array, V: Float[Array, " S"]) -> Float[Array, "S A"]:
        return mdps.expect(self.mdp, h, V)

    def bonus(self, h: int | Array) -> Float[Array, "S A"]:
        return jnp.zeros((self.mdp.states, self.mdp.actions))


class Counted(Model):
    """P̂_h(s'|s,a) = n_h(s,a,s') / n_h(s,a), uniform over states where n_h(s,a) = 0 (§4.1)."""

    mdp: MDP
    counts: Counts
    scale: Float[Array, ""]  # of the bonus; see `theory_scale`

    def expect(self, h: int | Array, V: Float[Array, " S"]) -> Float[Array, "S A"]:
        n = at(self.counts, h)
        total = jnp.sum(n, axis=-1)
        mean = jnp.sum(n * V[at(self.mdp.succ, h)], axis=-1) / jnp.maximum(total, 1)
        return jnp.where(total > 0, mean, jnp.mean(V))

    def bonus(self, h: int | Array) -> Float[Array, "S A"]:
        return self.scale / jnp.sqrt(jnp.maximum(jnp.sum(at(self.counts, h), axis=-1), 1))


def no_counts(mdp: MDP, *, shared: bool) -> Counts:
    """n = 0, with one stage where counts are shared, H where kept apart as in the theory."""
    return jnp.zeros((1 if shared else mdp.horizon, *mdp.succ.shape[1:]), jnp.int32)


def observe(counts: Counts, points: Points, slot: Int[Array, " points"]) -> Counts:
    """Count transitions; `slot` is the place of s' in the successor row of (h, s, a)."""
    stage = jnp.zeros_like(points.h) if counts.shape[0] == 1 else points.h
    return counts.at[stage, points.s, points.a, slot].add(1)


def theory_scale(H: int, S: int, A: int, K: int, delta: float = 0.05) -> float:
    """The scale of b_h(s,a) = scale / √(n_h(s,a) ∨ 1) under which P̂ is optimistic with
    probability 1−δ: H √(4 S log(3 S A H K / δ)).

    From ‖P̂ − P‖₁ ≤ √(2 (S log 2 + log(SAHK/δ)) / n) (Weissman et al. 2003, a union over the
    SAHK counts that a run can see) and values at most H; 2(S log 2 + log x) ≤ 4 S log(3x).
    Shani et al. use the same form. It is far too careful in practice: with it a 3×3 room is
    explored uniformly for any budget a user would have, hence a settable multiple of it.
    """
    return H * math.sqrt(4 * S * math.log(3 * S * A * H * K / delta))


def evaluate(
    model: Model,
    pi: Policy,
    mu: Reward,
    span: tuple[float | Array, float | Array] = (0.0, 1.0),
) -> Values:
    """Q̂_h = min(μ_h + b_h + P̂_h V̂_{h+1}, H−h+1), V̂_h = ⟨π_h, Q̂_h⟩, from h = H to 1 (§4.1).

    `span` holds the reward of one stage; values are kept within what H−h+1 stages can give.
    """
    H, (low, high) = pi.shape[0], span

    def backup(V: Array, h: Array) -> tuple[Array, Array]:
        Q = at(mu, h) + model.bonus(h) + model.expect(h, V)
        Q = jnp.clip(Q, low * (H - h), high * (H - h))  # h counts from zero here
        return jnp.sum(pi[h] * Q, axis=-1), Q

    return jax.lax.scan(backup, jnp.zeros(pi.shape[1]), jnp.arange(H), reverse=True)[1]


def occupancy(model: Counted, pi: Policy) -> Occupancy:
    """d^π under P̂: by the counts where there are some, and to any state alike where there are
    none."""
    mdp, S = model.mdp, pi.shape[1]

    def flow(mass: Array, h: Array) -> tuple[Array, Array]:
        d = mass[:, None] * pi[h]
        n = at(model.counts, h)
        total = jnp.sum(n, axis=-1)
        seen = (d / jnp.maximum(total, 1))[..., None] * n
        arrived = jnp.zeros(S).at[at(mdp.succ, h)].add(seen)
        return arrived + jnp.sum(jnp.where(total > 0, 0, d)) / S, d

    return jax.lax.scan(flow, mdp.nu, jnp.arange(mdp.horizon))[1]
