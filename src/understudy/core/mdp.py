"""Finite-horizon MDPs as sparse successor lists: backup, evaluation, occupancy, optimum.

P_h(s'|s,a) is kept as `succ[h,s,a,c]` and `prob[h,s,a,c]`, c = 1…C, never as a dense H×S×A×S
array: memory and time are linear in H·S·A·C. A stationary MDP keeps one stage (T = 1).

All of it is in float64; see `precision`.
"""

from collections.abc import Callable, Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.core.errors import UserError
from understudy.core.precision import double
from understudy.core.types import Occupancy, Policy, Reward, Successors, Transitions, Values

PROBABILITY_TOLERANCE = 1e-6  # a row that sums to one within this is renormalised, else refused


class MDP(eqx.Module):
    """{S, A, H, P, ν, r}. `reward` is the task's own; the learner never sees it."""

    succ: Successors
    """The states that can follow (h, s, a); a stage alone, if all are alike."""
    prob: Transitions
    """How probable each of them is."""
    nu: Float[Array, " S"]
    """ν, where episodes begin."""
    reward: Reward
    """r, at each (h, s, a)."""
    horizon: int = eqx.field(static=True)
    """H, steps per episode."""
    sink: int | None = eqx.field(static=True, default=None)
    """Where ended episodes go, if anywhere."""

    @property
    def states(self) -> int:
        """S."""
        return self.succ.shape[1]

    @property
    def actions(self) -> int:
        """A."""
        return self.succ.shape[2]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        return self.horizon, self.states, self.actions


def at(x: Array, h: int | Array) -> Array:
    """Stage h of something stage-indexed, or the only stage of something stationary."""
    return x[0] if x.shape[0] == 1 else x[h]


def expect(mdp: MDP, h: int | Array, V: Float[Array, " S"]) -> Float[Array, "S A"]:
    """(P_h V)(s,a) = Σ_{s'} P_h(s'|s,a) V(s')."""
    return jnp.sum(at(mdp.prob, h) * V[at(mdp.succ, h)], axis=-1)


@double
def evaluate(mdp: MDP, pi: Policy | np.ndarray, reward: Reward | np.ndarray) -> Values:
    """Q^π under `reward`, backwards from stage H."""
    pi, reward = jnp.asarray(pi), jnp.asarray(reward)

    def backup(V: Array, h: Array) -> tuple[Array, Array]:
        Q = at(reward, h) + expect(mdp, h, V)
        return jnp.sum(pi[h] * Q, axis=-1), Q

    return jax.lax.scan(backup, jnp.zeros(mdp.states), jnp.arange(mdp.horizon), reverse=True)[1]


@double
def value(mdp: MDP, pi: Policy | np.ndarray, reward: Reward | np.ndarray) -> Float[Array, ""]:
    """J(π, r) = E_{s₁~ν} V₁(s₁)."""
    pi = jnp.asarray(pi)
    return jnp.sum(mdp.nu[:, None] * pi[0] * evaluate(mdp, pi, reward)[0])


def arrive(mdp: MDP, h: int | Array, d: Float[Array, "S A"]) -> Float[Array, " S"]:
    """ν_{h+1}(s') = Σ_{s,a} P_h(s'|s,a) d_h(s,a)."""
    return jnp.zeros(mdp.states).at[at(mdp.succ, h)].add(d[:, :, None] * at(mdp.prob, h))


@double
def occupancy(mdp: MDP, pi: Policy | np.ndarray) -> Occupancy:
    """d_h(s,a) = ν_h(s) π_h(a|s), forwards from ν."""
    pi = jnp.asarray(pi)

    def flow(nu: Array, h: Array) -> tuple[Array, Array]:
        d = nu[:, None] * pi[h]
        return arrive(mdp, h, d), d

    return jax.lax.scan(flow, mdp.nu, jnp.arange(mdp.horizon))[1]


@double
def meet(mdp: MDP, pi: Policy, reward: Reward) -> tuple[Occupancy, Float[Array, ""]]:
    """The occupancy d, and on the way what it is worth, ⟨reward, d⟩: of a large table, each stage
    is multiplied while it is at hand."""

    def flow(so_far: tuple[Array, Array], h: Array) -> tuple[tuple[Array, Array], Array]:
        nu, worth = so_far
        d = nu[:, None] * pi[h]
        return (arrive(mdp, h, d), worth + at(reward, h) * d), d

    (_, worth), d = jax.lax.scan(flow, (mdp.nu, jnp.zeros_like(pi[0])), jnp.arange(mdp.horizon))
    return d, jnp.sum(worth)


@double
def optimum(mdp: MDP, reward: Reward | np.ndarray) -> tuple[Policy, Float[Array, ""]]:
    """An optimal policy and its value. Ties are shared evenly: where no action is better than
    another (an absorbing state, say), an expert that favours one would teach an accident."""
    reward = jnp.asarray(reward)

    def backup(V: Array, h: Array) -> tuple[Array, Array]:
        Q = at(reward, h) + expect(mdp, h, V)
        best = jnp.max(Q, axis=-1, keepdims=True)
        tied = Q >= best - 1e-9 * (1 + jnp.abs(best))
        return best[:, 0], tied / jnp.sum(tied, axis=-1, keepdims=True)

    V, pi = jax.lax.scan(backup, jnp.zeros(mdp.states), jnp.arange(mdp.horizon), reverse=True)
    return pi, mdp.nu @ V


@double
def uniform(mdp: MDP) -> Policy:
    """π⁰: every action equally likely, the maximum-entropy start of mirror descent."""
    return jnp.full(mdp.shape, 1 / mdp.actions, dtype=float)


# --- building one, with checks -------------------------------------------------------------

Outcomes = Iterable[tuple[float, int] | tuple[float, int, float]]  # (p, s') or (p, s', r)


@double
def from_arrays(
    P: np.ndarray, *, horizon: int, nu: np.ndarray, reward: np.ndarray | None = None
) -> MDP:
    """From dense arrays: P is (S, A, S) or (H, S, A, S); reward (S,), (S, A) or (H, S, A)."""
    P = np.asarray(P, dtype=float)
    if P.ndim not in (3, 4) or P.shape[-1] != P.shape[-3]:
        raise UserError(f"P has shape {P.shape}; give (S, A, S) or (H, S, A, S).")
    P = P[None] if P.ndim == 3 else P
    width = max(1, int((P != 0).sum(-1).max()))
    succ = np.argsort(P == 0, axis=-1, kind="stable")[..., :width]  # non-zeros first
    return build(succ, np.take_along_axis(P, succ, -1), horizon=horizon, nu=nu, reward=reward)


@double
def from_function(
    outcomes: Callable[[int, int], Outcomes] | Callable[[int, int, int], Outcomes],
    *,
    states: int,
    actions: int,
    horizon: int,
    nu: np.ndarray,
    reward: np.ndarray | None = None,
    staged: bool = False,
) -> MDP:
    """From `outcomes(s, a)` (or `outcomes(h, s, a)` if `staged`), which lists (p, s') or
    (p, s', r). Repeated successors are merged; r, where given, is averaged into reward."""
    _check_sizes(horizon, states, actions)
    stages = range(horizon) if staged else range(1)
    shape = (len(stages), states, actions)
    table: dict[tuple[int, ...], dict[int, float]] = {}
    r = np.zeros(shape)
    for t, s, a in np.ndindex(shape):
        row: dict[int, float] = {}
        for p, to, *gain in outcomes(*((t, s, a) if staged else (s, a))):
            row[int(to)] = row.get(int(to), 0.0) + p
            r[t, s, a] += p * sum(gain)
        if not row:
            raise UserError(f"State {s}, action {a} has no outcome; list at least one (p, s').")
        table[t, s, a] = row
    width = max(len(row) for row in table.values())
    succ = np.zeros((*shape, width), dtype=np.int64)
    prob = np.zeros(succ.shape)
    for index, row in table.items():
        succ[index] = [*row, *[next(iter(row))] * (width - len(row))]  # padded with p = 0
        prob[index][: len(row)] = list(row.values())
    return build(succ, prob, horizon=horizon, nu=nu, reward=r if reward is None else reward)


@double
def build(
    succ: np.ndarray,
    prob: np.ndarray,
    *,
    horizon: int,
    nu: np.ndarray,
    reward: np.ndarray | None = None,
) -> MDP:
    """From successor lists, checked. Within a row the successors with p > 0 must differ: the
    learner counts transitions by their place in the row."""
    succ, prob, nu = np.asarray(succ), np.asarray(prob, float), np.asarray(nu, float)
    if succ.ndim != 4 or succ.shape != prob.shape:
        raise UserError(
            f"Successors {succ.shape} and probabilities {prob.shape} must both be (T, S, A, C)."
        )
    T, S, A, _ = succ.shape
    _check_sizes(horizon, S, A)
    if T not in (1, horizon):
        raise UserError(f"Transitions have {T} stages, the horizon is {horizon}; give 1 or H.")
    if succ.min() < 0 or succ.max() >= S:
        raise UserError(f"A successor lies outside the {S} states: {succ.min()} … {succ.max()}.")
    listed = np.sort(np.where(prob > 0, succ, -1 - np.arange(succ.shape[-1])), axis=-1)
    if (np.diff(listed, axis=-1) == 0).any():
        raise UserError("A (s, a) row lists the same successor twice; add their probabilities.")
    prob = _distribution(prob, "The transition probabilities of (stage, state, action)")
    if nu.shape != (S,):
        raise UserError(f"The initial distribution has shape {nu.shape}, not ({S},).")
    nu = _distribution(nu, "The initial distribution")
    return MDP(
        succ=jnp.asarray(succ, jnp.int32),
        prob=jnp.asarray(prob),
        nu=jnp.asarray(nu),
        reward=jnp.asarray(_reward(reward, horizon, S, A)),
        horizon=int(horizon),
    )


def _check_sizes(horizon: int, states: int, actions: int) -> None:
    sizes = {"horizon": horizon, "number of states": states, "number of actions": actions}
    for name, size in sizes.items():
        if size != int(size) or size < 1:
            raise UserError(f"The {name} is {size}; it must be a whole number, at least 1.")


def _distribution(p: np.ndarray, name: str) -> np.ndarray:
    total = p.sum(-1, keepdims=True)
    bad = ~(np.isfinite(p).all(-1) & (p >= 0).all(-1))
    bad |= ~(np.abs(total[..., 0] - 1) <= PROBABILITY_TOLERANCE)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        row = np.array2string(p[where], precision=4, threshold=6)
        raise UserError(
            f"{name}{f' {where}' if where else ''} must be non-negative and sum to one; "
            f"got {row}, sum {p[where].sum():.6g}."
        )
    return p / total


def _reward(reward: np.ndarray | None, H: int, S: int, A: int) -> np.ndarray:
    r = np.zeros((1, S, A)) if reward is None else np.asarray(reward, dtype=float)
    given = r.shape
    r = r[:, None] if r.shape == (S,) else r
    r = r[None] if r.ndim == 2 else r
    if r.ndim != 3 or r.shape[0] not in (1, H) or r.shape[1] != S or r.shape[2] not in (1, A):
        raise UserError(f"The reward has shape {given}; give (S,), (S, A) or (H, S, A).")
    if not np.isfinite(r).all():
        raise UserError("The reward has a value that is not finite (NaN or infinity).")
    return np.broadcast_to(r, (r.shape[0], S, A)).copy()
