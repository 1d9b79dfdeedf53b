"""The two players: a mirror step for the policy, a projected step for the reward."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.types import Logits, Occupancy, Policy, Reward, Values


def policy(logits: Logits) -> Policy:
    """π = softmax of logits whose largest entry per state is zero (as `mirror` leaves them)."""
    weight = jnp.exp(logits)
    return weight / jnp.sum(weight, axis=-1, keepdims=True)


def mirror(logits: Logits, Q: Values, sigma: Float[Array, ""]) -> Logits:
    """π_k ∝ π_{k−1} exp(σ Q), the closed form (Eq. 4) of the KL-regularised step (Eq. 3).

    In log space, so that an action driven to e⁻¹⁰⁰⁰ can still come back.
    """
    logits = logits + sigma * Q
    return logits - jnp.max(logits, axis=-1, keepdims=True)


def ascend(mu: Reward, gradient: Occupancy, eta: Float[Array, ""]) -> Reward:
    """μ_k = Proj[μ_{k−1} + η ∇_μ L] on the box [0, 1] (Eq. 5), ∇_μ L = d_E − d_mix.

    A stationary reward (R = 1) collects the gradient of all stages.
    """
    if mu.shape[0] == 1:
        gradient = jnp.sum(gradient, axis=0, keepdims=True)
    return project_box(mu + eta * gradient)


def project_box(mu: Reward) -> Reward:
    """The nearest point of [0, 1]^{R×S×A}."""
    return jnp.clip(mu, 0.0, 1.0)


def theory_steps(H: int, S: int, A: int, K: int) -> tuple[float, float]:
    """(σ, η) of Thm 4.5: σ = √(2 log A / (H² K)), η = √(SA / K)."""
    return math.sqrt(2 * math.log(A) / (H**2 * K)), math.sqrt(S * A / K)


def paper_steps(H: int, K: int) -> tuple[float, float]:
    """(σ, η) of the paper's MiniGrid runs: σ = 10 √(2 log 4 / (H² K)), η = 5/√K.

    The 4 is the paper's, though the rooms have five actions. What counts as K is the caller's
    choice (see `imitation.plan`).
    """
    return 10 * math.sqrt(2 * math.log(4) / (H**2 * K)), 5 / math.sqrt(K)
