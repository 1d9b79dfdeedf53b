"""The two players: a mirror or gradient step for the policy, a projected step for the reward."""

import math
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from understudy.core.occupancy import Points
from understudy.core.types import Logits, Occupancy, Policy, Reward, Values

Player = Literal["mirror", "gradient", "reinforce"]
Rewarder = Literal["step", "leader"]


def policy(logits: Logits) -> Policy:
    """π = softmax of logits whose largest entry per state is zero (as both steps leave them)."""
    weight = jnp.exp(logits)
    return weight / jnp.sum(weight, axis=-1, keepdims=True)


def pace(size: Float[Array, ""], k: Int[Array, ""], *, anytime: bool) -> Float[Array, ""]:
    """The step size of update k: constant, or that of the first over √k, which asks for no K."""
    return size / jnp.sqrt(k * 1.0) if anytime else size


def mirror(
    logits: Logits, Q: Values, sigma: Float[Array, ""], fade: Float[Array, ""] | float = 1.0
) -> Logits:
    """π_k ∝ π_{k−1} exp(σ Q), the closed form (Eq. 4) of the KL-regularised step (Eq. 3).

    In log space, so that an action driven to e⁻¹⁰⁰⁰ can still come back. With σ_k that shrink, old
    logits must too, by `fade` = σ_k/σ_{k−1}: π_k ∝ exp(σ_k Σ_{j≤k} Q_j), dual averaging. Mirror
    descent with shrinking steps and no fading has no bound: what KL(π* ‖ π_k) is left counts anew
    whenever 1/σ grows.
    """
    return climb(fade * logits, Q, sigma)


def climb(logits: Logits, slope: Logits, ascent: Float[Array, ""]) -> Logits:
    """θ_k = θ_{k−1} + α · slope, the largest entry per state back at zero. With a constant α and
    ∇_θ J(π_θ, μ_k) it is the gradient players' step, with σ and Q the mirror step."""
    logits = logits + ascent * slope
    return logits - jnp.max(logits, axis=-1, keepdims=True)


def policy_gradient(d: Occupancy, pi: Policy, Q: Values) -> Logits:
    """∂J/∂θ_h(s,a) = ν_h(s) π_h(a|s) (Q_h(s,a) − V_h(s)) for π = softmax θ; d_h = ν_h π_h."""
    V = jnp.sum(pi * Q, axis=-1, keepdims=True)
    return d * (Q - V)


def reinforce(points: Points, G: Float[Array, " points"], pi: Policy, Q: Values) -> Logits:
    """REINFORCE with a baseline: H/n Σ_i ∇_θ log π(a_i|s_i) (G_i − V(s_i)) over n points.

    ∇_θ log π_h(a|s) is e_a − π_h(·|s), at θ_h(s,·). H/n makes the n/H trajectories that n points
    amount to a mean: unbiased for `policy_gradient` where the points are drawn from π, every stage
    equally often, and neither μ nor Q depends on them. (In a run μ_k does, a little: the same
    points moved it.)
    """
    H, _, A = pi.shape
    here = points.h, points.s
    advantage = G - jnp.sum(pi * Q, axis=-1)[here]
    score = jax.nn.one_hot(points.a, A, dtype=pi.dtype) - pi[here]
    return jnp.zeros_like(pi).at[here].add(H / len(G) * advantage[:, None] * score)


def returns_to_go(points: Points, mu: Reward, Q: Values, *, lanes: int) -> Float[Array, " points"]:
    """G_i: the reward from point i to the end of its episode, as it was sampled.

    Points are stored step by step, `lanes` walkers at each. Where they stop before the episode
    does, Q_h(s,a) of the last one stands for what would have come. So whole trajectories give the
    plain sampled return, a single point gives Q_h(s,a), and the mean is Q_h(s,a) in between too.
    """
    H = Q.shape[0]
    where = points.h, points.s, points.a
    rewards = jnp.broadcast_to(mu, Q.shape)[where].reshape(-1, lanes)
    over = (points.h == H - 1).reshape(-1, lanes)
    to_come = Q[where].reshape(-1, lanes)[-1] - rewards[-1]

    def back(ahead: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
        reward, over = at
        G = reward + jnp.where(over, 0, ahead)
        return G, G

    return jax.lax.scan(back, to_come, (rewards, over), reverse=True)[1].reshape(-1)


def gather(x: Float[Array, "H *features"], mu: Array) -> Float[Array, "R *features"]:
    """x as a reward like μ meets it: ⟨μ, x⟩ of a stationary one (R = 1) sums x over stages."""
    return x if mu.shape[0] > 1 else jnp.sum(x, axis=0, keepdims=True)


def ascend(
    mu: Float[Array, "R *features"],
    gradient: Float[Array, "H *features"],
    eta: Float[Array, ""],
    project: Callable[[Array], Array] = lambda mu: project_box(mu),
) -> Float[Array, "R *features"]:
    """μ_k = Proj[μ_{k−1} + η ∇_μ L] (Eq. 5), ∇_μ L = d_E − d_mix, or E_dE φ − E_mix φ by features.

    A stationary reward (R = 1) collects the gradient of all stages.
    """
    return project(mu + eta * gather(gradient, mu))


def lead(
    gain: Float[Array, "R *features"],
    gradient: Float[Array, "H *features"],
    eta: Float[Array, ""],
    project: Callable[[Array], Array] = lambda mu: project_box(mu),
) -> tuple[Float[Array, "R *features"], Float[Array, "R *features"]]:
    """The leader: Ĝ_k = Ĝ_{k−1} + ∇_μ L, and μ_k = Proj[η Ĝ_k] = argmax_μ ⟨μ, Ĝ_k⟩ − ‖μ‖²/(2η).

    The regularised best response to all data, equally weighted, where Eq. 5 is one step along a
    gradient. (docs/theory.md, "The whole theorem".)
    """
    gain = gain + gather(gradient, gain)
    return gain, project(eta * gain)


def project_box(mu: Float[Array, "R *features"]) -> Float[Array, "R *features"]:
    """The nearest point of [0, 1] in each coordinate."""
    return jnp.clip(mu, 0.0, 1.0)


def project_cube(mu: Float[Array, "R *features"]) -> Float[Array, "R *features"]:
    """The nearest point of [−1, 1] in each coordinate."""
    return jnp.clip(mu, -1.0, 1.0)


def project_ball(mu: Float[Array, "R d"]) -> Float[Array, "R d"]:
    """The nearest point of the ball ‖μ_h‖₂ ≤ √d, stage by stage."""
    length = jnp.linalg.norm(mu, axis=-1, keepdims=True)
    radius = math.sqrt(mu.shape[-1])
    return mu * (radius / jnp.maximum(length, radius))


def best_in_box(gain: Float[Array, "R *features"]) -> Float[Array, "R *features"]:
    """argmax ⟨μ, gain⟩ on the box: one where it pays."""
    return (gain > 0).astype(gain.dtype)


def best_in_cube(gain: Float[Array, "R *features"]) -> Float[Array, "R *features"]:
    """argmax ⟨μ, gain⟩ on the cube: its sign."""
    return jnp.sign(gain)


def best_in_ball(gain: Float[Array, "R d"]) -> Float[Array, "R d"]:
    """argmax ⟨μ, gain⟩ on the ball: √d · gain_h/‖gain_h‖, zero where there is nothing to gain."""
    length = jnp.linalg.norm(gain, axis=-1, keepdims=True)
    unit = gain / jnp.where(length > 0, length, 1)
    return math.sqrt(gain.shape[-1]) * unit


def theory_steps(H: int, S: int, A: int, K: int) -> tuple[float, float]:
    """(σ, η) of Thm 4.5: σ = √(2 log A / (H² K)), η = √(SA / K)."""
    return math.sqrt(2 * math.log(A) / (H**2 * K)), math.sqrt(S * A / K)


def linear_steps(H: int, A: int, d: int, K: int) -> tuple[float, float]:
    """(σ, η) of the appendix: σ = √(2 log A / (H² √d K)), η = √(d / K)."""
    return math.sqrt(2 * math.log(A) / (H**2 * math.sqrt(d) * K)), math.sqrt(d / K)


def paper_steps(H: int, K: int) -> tuple[float, float]:
    """(σ, η) of the paper's MiniGrid runs: σ = 10 √(2 log 4 / (H² K)), η = 5/√K.

    The 4 is the paper's, though the rooms have five actions. What counts as K is the caller's
    choice (see `finite.plan`).
    """
    return 10 * math.sqrt(2 * math.log(4) / (H**2 * K)), 5 / math.sqrt(K)


def anytime_steps(H: int, A: int, fresh: int) -> tuple[float, float]:
    """(σ_1, η_1) of steps σ_k = σ_1/√k, η_k = η_1/√k, which ask for no K: 7 √(2 log A) / H, and
    10 √(fresh/H), at most 10.

    The forms are the theory's. A segment of fewer than H points has one stage at a time, each
    point counting H/fresh, so its gradient is √(H/fresh) times as long. The constants 7 and 10 were
    chosen on problems that the battery of docs/theory.md does not have (its section "The default").
    """
    return 7 * math.sqrt(2 * math.log(max(A, 2))) / H, 10 * math.sqrt(min(1.0, fresh / H))
