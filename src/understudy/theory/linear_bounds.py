"""The bounds of `bounds` for linear MDPs (the paper's appendix): rewards φᵀμ_h, d features."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.theory import bounds
from understudy.theory.bounds import Sizes, Terms


@dataclass(frozen=True)
class Rewards:
    """A set of rewards φᵀμ_h, ‖φ‖ ≤ 1, by its sizes."""

    most: float  # |φᵀμ| at most
    width: float  # the largest φᵀμ less the smallest
    diameter: float  # ‖μ − μ'‖₂ at most


def ball(d: int) -> Rewards:
    """‖μ_h‖₂ ≤ √d, the appendix's. Rewards are then in [−√d, √d], and Q in (H−h+1) times that; its
    proofs write 0 ≤ Q ≤ H√d. The paper's stability is kept as it is printed."""
    root = math.sqrt(d)
    return Rewards(most=root, width=2 * root, diameter=2 * root)


def box(d: int) -> Rewards:
    """μ_h ∈ [0, 1]ᵈ, with features that average: rewards are in [0, 1]."""
    return Rewards(most=1.0, width=1.0, diameter=math.sqrt(d))


def tv_step(A: int, H: int, sigma: float, rewards: Rewards) -> float:
    """Thm 4.3 in linear MDPs: A H σ √d, from ½ · 2AσH√d."""
    return A * H * sigma * rewards.most


def sharp_tv_step(
    H: int, sigma: float, rewards: Rewards, h: int | np.ndarray = 1
) -> float | np.ndarray:
    """σ (H−h+1) width / 4: the sharper bound for Q of that range; on the ball σ (H−h+1) √d / 2."""
    return bounds.sharp_tv_step(H, sigma, h) * rewards.width


def drift_per_step(H: int, A: int, sigma: float, rewards: Rewards, *, sharp: bool) -> np.ndarray:
    """Lemma 4.2 in linear MDPs with the TV step put in: ‖d_h^k − d_h^{k−1}‖₁ for h = 1 … H."""
    h = np.arange(1, H + 1)
    paper = np.full(H, tv_step(A, H, sigma, rewards))
    return 2 * np.cumsum(sharp_tv_step(H, sigma, rewards, h) if sharp else paper)


def policy_regret(
    size: Sizes,
    sigma: float | np.ndarray,
    eta: float | np.ndarray,
    rewards: Rewards,
    gradient: float = 2.0,
) -> float:
    """Lemma 4.1 in linear MDPs with known θ. The paper takes Õ(√(H⁴d³K)), with θ learned, from Liu
    et al.; the constants are ours:

    H log A / σ_K + Σ_k σ_k Σ_h ((H−h+1) width)² / 8    mirror descent, against any policy
    + g H Σ_k η_k                     π_k is improved against μ_{k+1}; ‖ĝ_h‖₂ ≤ g
    + H |φᵀμ|                         J(π, μ_0) − J(π, μ_K), by shifting the index; μ_0 = 0
    """
    behind = gradient * size.H * float(bounds.each(eta, size.K).sum())
    return bounds.mirror_descent(size, sigma, rewards.width) + behind + size.H * rewards.most


def optimisation(
    size: Sizes, eta: float | np.ndarray, rewards: Rewards, gradient: float = 2.0
) -> float:
    """2Hd/η + 4ηHK: ‖μ − μ'‖² ≤ 4d on the ball of radius √d (Eq. B.1), ‖ĝ_h‖ ≤ 2 (Eq. B.2)."""
    steps = bounds.each(eta, size.K)
    spread = size.H * rewards.diameter**2 / (2 * steps[-1])
    return spread + gradient**2 * size.H * float(steps.sum())


def shift(
    size: Sizes,
    sigma: float,
    rewards: Rewards,
    windows: Sequence[int] | np.ndarray,
    *,
    sharp: bool,
) -> float:
    """Σ_k Σ_h 2√d · (N(k)−1)/2 · ‖d_h^k − d_h^{k−1}‖₁ (Eq. B.3), with |φᵀ(μ−μ')| ≤ 2√d."""
    step = drift_per_step(size.H, size.A, sigma, rewards, sharp=sharp).sum()
    return float(rewards.width * np.sum((np.asarray(windows) - 1) / 2) * step)


def sampling(size: Sizes, rewards: Rewards, weights: np.ndarray, *, delta: float = 0.05) -> float:
    """`sampling` for rewards φᵀμ. The paper has d² in its Õ where this has d, for features add up
    in one norm:

    H diameter √(2 log(4H/δ) Σc²/B)    sup over μ: the noise is a martingale in ℝᵈ of steps ≤ 2c/B,
                                       whose norm Pinelis bounds as if d were one
    + H width √(Σc² log(2/δ) / (2B))   ⟨μ_j, noise⟩, by Azuma-Hoeffding
    """
    H, energy = size.H, float((weights**2).sum()) / size.B
    return H * rewards.diameter * math.sqrt(2 * math.log(4 * H / delta) * energy) + (
        H * rewards.width * math.sqrt(energy * math.log(2 / delta) / 2)
    )


def estimation(
    size: Sizes,
    eta: float | np.ndarray,
    rewards: Rewards,
    windows: Sequence[int] | np.ndarray,
    *,
    delta: float = 0.05,
) -> float:
    """Third term of Thm 4.4 in linear MDPs (Eq. B.4); the paper takes Õ(√(H³d²K/(BN))) from Liu et
    al. (Lemma H.8). `sampling` with c_j as in `estimation`, and

    + 2 H η_1 Σ_k (N(k)−1)    for μ_k has already seen the samples that it reuses
    """
    N = np.asarray(windows)
    seen = 2 * size.H * float(bounds.each(eta, size.K)[0] * (N - 1).sum())
    return sampling(size, rewards, bounds.segment_weights(N), delta=delta) + seen


def regret(
    size: Sizes,
    sigma: float | np.ndarray,
    eta: float | np.ndarray,
    rewards: Rewards,
    windows: Sequence[int] | np.ndarray,
    *,
    exact: bool = False,
    delta: float = 0.05,
) -> float:
    """`regret` for rewards φᵀμ and θ known: mirror descent of that width + H diameter²/(2η_K)
    + 2H Σ_k η_k (‖ξ_h‖₂ ≤ 2) + the noise, neither of exact gradients, and for N > 1 the shift and
    what reuse has seen."""
    N, steps, H = np.asarray(windows), bounds.each(eta, size.K), size.H
    gained = H * rewards.diameter**2 / (2 * steps[-1])
    moved = shift(size, float(bounds.each(sigma, size.K)[0]), rewards, N, sharp=True)
    noise = 2 * H * bounds.played(steps) + estimation(size, steps, rewards, N, delta=delta)
    noise = 0.0 if exact else noise
    return bounds.mirror_descent(size, sigma, rewards.width) + gained + noise + moved


def adaptive_regret(size: Sizes, d: int, rewards: Rewards) -> float:
    """`bounds.adaptive_regret` for rewards φᵀμ of that width. The reward's part is 2H(√(dK) + d) on
    the box, a player a coordinate, and 2H(√(2dK) + 4√d) on the ball, one a stage."""
    H, K = size.H, size.K
    policy = sum(bounds.adaptive_players(K, R * rewards.width, size.A) for R in range(1, H + 1))
    if rewards.width == 1:
        return policy + 2 * H * (math.sqrt(d * K) + d)
    return policy + 2 * H * (math.sqrt(2 * d * K) + 4 * math.sqrt(d))


def order(size: Sizes, d: int, N: float, *, sharp: bool) -> Terms:
    """The appendix's main theorem as printed, constants and logarithms dropped."""
    A, H, K, B = size.A, size.H, size.K, size.B
    return Terms(
        policy=math.sqrt(H**4 * d**3 * K),
        optimisation=math.sqrt(H**2 * d * K),
        shift=math.sqrt(H**4 * (1 if sharp else A**2) * (N - 1) ** 2 * K * d**1.5),
        estimation=math.sqrt(H**3 * d**2 * K / (B * N)),
    )


def proven(size: Sizes, d: int, N: float) -> Terms:
    """`regret` with the appendix's steps, constants and logarithms dropped."""
    H, K, B = size.H, size.K, size.B
    sampled, played = math.sqrt(H**2 * d * K), math.sqrt(H**4 * d**1.5 * K)
    return Terms(
        policy=played,
        optimisation=sampled,
        shift=(N - 1) * played,
        estimation=sampled / math.sqrt(B) + (N - 1) * sampled,
    )


def best_window(size: Sizes, d: int, *, sharp: bool) -> float:
    """N*, at least 1, where shift and estimation of `order` balance: (√d/(HA²B))^{1/3}, or
    without the shift's A (√d/(HB))^{1/3}. The paper states none for linear MDPs."""
    A, H, B = size.A, size.H, size.B
    return max(1.0, (math.sqrt(d) / (H * B * (1 if sharp else A**2))) ** (1 / 3))
