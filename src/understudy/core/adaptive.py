"""Step sizes that nobody sets: each player is as quick, at each place, as it has been right there.

Both players follow the regularised leader with a guess of what comes next (optimism), and both
measure how wrong the guess was. With L the sum of payoffs so far, M the guess, x the payoff that
came, and step size ρ, a player acts by w = argmax_w ⟨w, L + M⟩ − ψ(w)/ρ, and its surprise

    δ = max_w [⟨w, L + x⟩ − ψ(w)/ρ] − [⟨w, L + x⟩ − ψ(w)/ρ at the w it acted by]  ≥ 0

is what it would have gained by knowing. With Δ the sum of surprises, ρ = max ψ / Δ, and the regret
is at most 2Δ (docs/theory.md, "Steps that adapt"). AdaHedge (de Rooij et al. 2014) is the case of a
simplex without a guess, and AdaHedgeD (Flaspohler et al. 2021) has the guess.

- The policy has such a player in every (h, s): payoff Q, guess the last Q, ψ the relative entropy
  to the uniform choice, at most log A. Eq. 4 with a step size of each state's own.
- The reward has one in every coordinate of the box or the cube, or one a stage on the ball:
  payoff ĝ, which it has seen when it is asked, and so its guess is that the next is alike: M = 2ĝ.
  ψ = ‖μ‖²/2.
"""

import math
from typing import Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.core.types import Logits, Policy, Values
from understudy.core.updates import gather, project_ball, project_box, project_cube

LEAST = 1e-6  # no surprise counts as less: a step size beyond that would meet rounding errors

Rewards = Literal["box", "ball", "cube"]
PROJECT = {"box": project_box, "ball": project_ball, "cube": project_cube}


class Surprise(eqx.Module):
    """What the players remember: payoffs, guesses, and how wrong these were."""

    total: Values  # Σ_j Q_j, the largest of each state at zero
    guess: Values  # M of the next Q: the last one
    policy: Float[Array, "H S"]  # Δ of each state
    reward: Float[Array, "R *features"]  # Δ of each coordinate; on the ball of each stage


def none_yet(pi: Policy, mu: Float[Array, "R *features"], rewards: Rewards) -> Surprise:
    """Nothing guessed, nothing met."""
    zero = jnp.zeros_like(pi)
    apart = jnp.zeros_like(mu[:, :1]) if rewards == "ball" else jnp.zeros_like(mu)
    return Surprise(zero, zero, zero[..., 0], apart)


class Answer(NamedTuple):
    """The reward player's turn."""

    gain: Float[Array, "R *features"]  # Ĝ
    mu: Float[Array, "R *features"]
    surprise: Surprise


def answer(
    surprise: Surprise,
    gain: Float[Array, "R *features"],
    gradient: Float[Array, "H *features"],
    rewards: Rewards,
) -> Answer:
    """Ĝ_k = Ĝ_{k−1} + ĝ_k and μ_k = Proj[η (Ĝ_k + ĝ_k)], η = max ψ / Δ."""
    project = PROJECT[rewards]
    eta = most(gain, rewards) / jnp.maximum(surprise.reward, LEAST)
    x = gather(gradient, gain)
    gain = gain + x
    mu, known = project(eta * (gain + x)), project(eta * gain)

    def worth(mu: Array) -> Array:
        value = mu * gain - mu**2 / (2 * eta)
        return jnp.sum(value, axis=-1, keepdims=True) if rewards == "ball" else value

    delta = jnp.maximum(worth(known) - worth(mu), 0)
    surprise = eqx.tree_at(lambda s: s.reward, surprise, surprise.reward + delta)
    return Answer(gain, mu, surprise)


def most(mu: Float[Array, "R *features"], rewards: Rewards) -> float:
    """max ψ: ½ of a coordinate of the box or the cube, d/2 on the ball of radius √d."""
    return mu.shape[-1] / 2 if rewards == "ball" else 0.5


def turn(surprise: Surprise, pi: Policy, Q: Values) -> tuple[Logits, Surprise]:
    """The policy player's turn: π_k ∝ exp σ (Σ_j Q_j + Q_k), σ = log A / Δ in each state."""
    delta = mixability_gap(pi, Q - surprise.guess, rates(surprise))
    total = surprise.total + Q
    total = total - jnp.max(total, axis=-1, keepdims=True)
    surprise = Surprise(total, Q, surprise.policy + delta, surprise.reward)
    ahead = total + Q
    logits = rates(surprise)[..., None] * (ahead - jnp.max(ahead, axis=-1, keepdims=True))
    return logits, surprise


def rates(surprise: Surprise) -> Float[Array, "H S"]:
    """σ of each state."""
    A = surprise.total.shape[-1]
    return math.log(max(A, 2)) / jnp.maximum(surprise.policy, LEAST)


def mixability_gap(pi: Policy, x: Values, rate: Float[Array, "H S"]) -> Float[Array, "H S"]:
    """(1/σ) log E_π exp(σx) − E_π x: the surprise δ of a player on the simplex."""
    top = jnp.max(x, axis=-1)
    inside = jnp.sum(pi * jnp.exp(rate[..., None] * (x - top[..., None])), axis=-1)
    # Where π gives no weight to the best, the sum may vanish: then E x is at most as far below.
    tiny = jnp.finfo(inside.dtype).tiny
    mixed = top + jnp.log(jnp.maximum(inside, tiny)) / rate
    return jnp.maximum(mixed - jnp.sum(pi * x, axis=-1), 0)


def certificate(surprise: Surprise, expert: Float[Array, "H S A"]) -> Float[Array, ""]:
    """What the regret cannot exceed, from the run itself: 2 Σ_h E_{s~d_E} Δ_h(s) + 2 Σ Δ of the
    reward's, where the gradients are exact and P is known."""
    met = jnp.sum(expert, axis=-1) * jnp.maximum(surprise.policy, LEAST)
    return 2 * jnp.sum(met) + 2 * jnp.sum(jnp.maximum(surprise.reward, LEAST))
