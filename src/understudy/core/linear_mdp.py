"""Linear MDPs (the paper's appendix): P_h(s'|s,a) = ψ(s,a,s')ᵀθ_h and r_h(s,a) = φ(s,a)ᵀμ_h.

The simulator is the finite MDP that P makes. ψ is listed along its successors, (S, A, C, ·), so
nothing here has the size S². Any finite MDP is linear with one-hot features.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.core import features
from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.core.features import Features
from understudy.core.mdp import MDP, PROBABILITY_TOLERANCE
from understudy.core.precision import double

NORM_TOLERANCE = 1e-9  # a unit vector in float64 may be longer than one by so much


class LinearMDP(eqx.Module):
    """An MDP with the features that make it linear."""

    mdp: MDP
    phi: Features  # of (s, a)
    psi: Features  # of (s, a, c), the c-th successor
    theta: Float[Array, "T p"]  # θ_h; the learner sees it only where transitions are known

    @property
    def d(self) -> int:
        """Features of the reward."""
        return self.phi.size

    @property
    def p(self) -> int:
        """Features of the transitions."""
        return self.psi.size


@double
def build(
    succ: np.ndarray,
    psi: np.ndarray | Features,
    theta: np.ndarray,
    phi: np.ndarray | Features,
    *,
    horizon: int,
    nu: np.ndarray,
    mu: np.ndarray | None = None,
) -> LinearMDP:
    """From features, checked: succ (S, A, C), ψ (S, A, C, p), θ (p,) or (H, p), φ (S, A, d).

    The task's own reward is φᵀμ, with μ (d,) or (H, d).
    """
    succ, theta = np.asarray(succ), np.asarray(theta, float)
    theta = theta[None] if theta.ndim == 1 else theta
    if succ.ndim != 3:
        raise UserError(f"The successors have shape {succ.shape}; give (S, A, C).")
    S, A, _ = succ.shape
    psi = _features(psi, succ.shape, "ψ", "(S, A, C, p)")
    phi = _features(phi, (S, A), "φ", "(S, A, d)")
    _check_norms(phi)
    theta = _weights(theta, psi.size, horizon, "θ", "p")
    prob = np.asarray(features.dot(psi, jnp.asarray(theta)))
    _check_transitions(prob)
    reward = None
    if mu is not None:
        mu = np.asarray(mu, float)
        mu = _weights(mu[None] if mu.ndim == 1 else mu, phi.size, horizon, "μ", "d")
        reward = np.asarray(features.dot(phi, jnp.asarray(mu)))
    listed = np.broadcast_to(succ, prob.shape)
    mdp = mdps.build(listed, np.maximum(prob, 0), horizon=horizon, nu=nu, reward=reward)
    return LinearMDP(mdp, phi, psi, jnp.asarray(theta))


@double
def of_features(mdp: MDP, phi: np.ndarray | Features, *, any_length: bool = False) -> LinearMDP:
    """A finite MDP with features φ (S, A, d) of its rewards; its transitions keep one-hot ψ. The
    theory needs ‖φ‖ ≤ 1; features of `any_length` are for rewards in the cube, which it lacks."""
    phi = _features(phi, mdp.shape[1:], "φ", "(S, A, d)")
    if not any_length:
        _check_norms(phi)
    psi = features.one_hot(mdp.succ.shape[1:])
    if mdp.succ.shape[0] > 1 and not np.array_equal(mdp.succ, mdp.succ[:1].repeat(mdp.horizon, 0)):
        raise UserError(
            "This MDP's successors differ between stages; ψ needs one list for all stages."
        )
    return LinearMDP(mdp, phi, psi, mdp.prob.reshape(mdp.prob.shape[0], -1))


@double
def one_hot(mdp: MDP) -> LinearMDP:
    """Any finite MDP: d = SA, a coordinate for each state-action."""
    return of_features(mdp, features.one_hot(mdp.shape[1:]))


@double
def random_linear(
    seed: int, *, S: int, A: int, H: int, d: int, C: int | None = None, p: int | None = None
) -> LinearMDP:
    """A mixture of p kernels over C random successors, P_h = Σ_i θ_{h,i} P_i, and random φ.

    Each kernel's rows are Dirichlet(½), θ_h is Dirichlet(1), so ‖θ_h‖ ≤ 1; φ is uniform on the
    sphere of radius 1; the task's reward has ‖μ_h‖ = √d, the largest that the theory allows.
    """
    for name, size in (("d", d), ("p", p or d), ("C", C or 1)):
        if size < 1:
            raise UserError(f"The random linear MDP's {name} is {size}; it must be at least 1.")
    if C is not None and C > S:
        raise UserError(f"The random linear MDP has C = {C} successors of {S} states.")
    rng = np.random.default_rng([seed, 11])
    C, p = min(S, 4) if C is None else C, d if p is None else p
    succ = np.stack([rng.permutation(S)[:C] for _ in range(S * A)]).reshape(S, A, C)
    kernels = np.moveaxis(rng.dirichlet(np.full(C, 0.5), size=(p, S, A)), 0, -1)
    phi, mu = rng.normal(size=(S, A, d)), rng.normal(size=(H, d))
    return build(
        succ,
        kernels,
        rng.dirichlet(np.ones(p), size=H),
        phi / np.linalg.norm(phi, axis=-1, keepdims=True),
        horizon=H,
        nu=np.eye(S)[0],
        mu=np.sqrt(d) * mu / np.linalg.norm(mu, axis=-1, keepdims=True),
    )


# --- checks ----------------------------------------------------------------------------------


def _features(
    given: np.ndarray | Features, place: tuple[int, ...], name: str, wanted: str
) -> Features:
    if isinstance(given, Features):
        shape, found = (*place, given.size), given
        if given.index.shape[:-1] != place:
            raise UserError(f"The features {name} are at {given.index.shape[:-1]}, not at {place}.")
    else:
        given = np.asarray(given, float)
        shape, found = given.shape, None
        if given.ndim != len(place) + 1 or shape[:-1] != place or shape[-1] < 1:
            raise UserError(
                f"The features {name} have shape {shape}; give {wanted}, here {place} + (size,)."
            )
        found = features.dense(given)
    if not np.isfinite(np.asarray(found.value)).all():
        raise UserError(f"The features {name} have a value that is not finite (NaN or infinity).")
    return found


def _check_norms(phi: Features) -> None:
    norm = features.norms(phi)
    if norm.max() > 1 + NORM_TOLERANCE:
        s, a = (int(i) for i in np.argwhere(norm == norm.max())[0])
        raise UserError(
            f"The features φ of state {s}, action {a} have norm {norm.max():.4g}; the theory needs "
            f"‖φ‖ ≤ 1, so divide all of them by {norm.max():.4g}."
        )


def _weights(w: np.ndarray, size: int, horizon: int, name: str, letter: str) -> np.ndarray:
    if w.ndim != 2 or w.shape[1] != size or w.shape[0] not in (1, horizon):
        raise UserError(
            f"The weights {name} have shape {w.shape}; give ({letter},) or (H, {letter}), here "
            f"({size},) or ({horizon}, {size})."
        )
    longest = float(np.linalg.norm(w, axis=-1).max())
    if not longest <= np.sqrt(size) + NORM_TOLERANCE:
        raise UserError(
            f"The weights {name} have norm {longest:.4g}; the theory needs at most "
            f"√{letter} = {np.sqrt(size):.4g}."
        )
    return w


def _check_transitions(prob: np.ndarray) -> None:
    total = prob.sum(-1)
    if not prob.min() >= -PROBABILITY_TOLERANCE:
        t, s, a, c = (int(i) for i in np.argwhere(prob == prob.min())[0])
        raise UserError(
            f"ψᵀθ gives the probability {prob.min():.4g} to successor {c} of state {s}, action {a} "
            f"at stage {t + 1}; probabilities must not be negative."
        )
    if not np.abs(total - 1).max() <= PROBABILITY_TOLERANCE:
        t, s, a = (int(i) for i in np.argwhere(np.abs(total - 1) == np.abs(total - 1).max())[0])
        raise UserError(
            f"ψᵀθ gives the successors of state {s}, action {a} at stage {t + 1} the probability "
            f"{total[t, s, a]:.4g} in all; it must be one."
        )
