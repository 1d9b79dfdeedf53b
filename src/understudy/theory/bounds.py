"""Each lemma and theorem of the paper as a function with its constants, the Õ form beside it.

Explicit bounds follow the paper's proofs line by line; where a proof cites another paper for a
constant, ours is derived in docs/theory.md and the docstring says so. They hold for B ≥ 1 whole
trajectories per iteration; `δ` is the probability with which one of them may fail.

`sharp` forms use our stability bound TV ≤ σ (H−h+1)/4, without the paper's factor A.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sizes:
    """S, A, H, K, B of a run."""

    S: int
    A: int
    H: int
    K: int
    B: int = 1


@dataclass(frozen=True)
class Terms:
    """The four terms of Thm 4.5."""

    policy: float
    optimisation: float
    shift: float
    estimation: float

    @property
    def reward(self) -> float:
        """Thm 4.4: the last three."""
        return self.optimisation + self.shift + self.estimation

    @property
    def total(self) -> float:
        """Thm 4.5, by Lemma 3.2."""
        return self.policy + self.reward


# --- stability ------------------------------------------------------------------------------


def tv_step(A: int, H: int, sigma: float) -> float:
    """Thm 4.3: TV(π_k ‖ π_{k−1})[s] ≤ A H σ. From ½ Σ_a |Δπ| ≤ ½ · 2AσH, the proof's last line."""
    return A * H * sigma


def sharp_tv_step(H: int, sigma: float, h: int | np.ndarray = 1) -> float | np.ndarray:
    """TV(π_k ‖ π_{k−1})[s] ≤ σ (H−h+1) / 4 at stage h = 1 … H, with no factor A.

    Along π_t ∝ π exp(tQ), d/dt π_t = π_t (Q − E Q), and a variable on [0, R] has mean absolute
    deviation at most R/2. Tight: two actions, π = ½, Q = (0, R), σ → 0.
    """
    return sigma * (H - h + 1) / 4


def occupancy_drift(nu: np.ndarray, tv: np.ndarray) -> np.ndarray:
    """Lemma 4.2: ‖d_h − d'_h‖₁ ≤ 2 Σ_{i≤h} E_{s~ν_i}[TV_i(s)], for each h.

    `nu[h, s]` is the state distribution of the first policy, `tv[h, s]` the two policies' TV.
    """
    return 2 * np.cumsum((nu * tv).sum(-1))


def drift_per_step(H: int, A: int, sigma: float, *, sharp: bool) -> np.ndarray:
    """Lemma 4.2 with the TV step put in: ‖d_h^k − d_h^{k−1}‖₁ for h = 1 … H (Eq. A.3.11)."""
    h = np.arange(1, H + 1)
    tv = sharp_tv_step(H, sigma, h) if sharp else np.full(H, tv_step(A, H, sigma))
    return 2 * np.cumsum(tv)


# --- the two players ------------------------------------------------------------------------


def policy_regret(
    size: Sizes, sigma: float, eta: float, *, bonus_scale: float = 0.0, delta: float = 0.05
) -> float:
    """Lemma 4.1, of Shani et al., who give Õ(√(H⁴S²AK)); the constants are ours.

    H log A / σ + σ K H³ / 2   mirror descent with gradients Q ∈ [0, H], against any policy
    + √2 η H K                 π_k is improved against μ_{k+1}, and μ moves by √2 η a stage
    + 2 scale (H SA + 2H √(SAK) + H √(2K log(2/δ)))   the bonus and the model's error, twice Σ b,
                               where transitions are learned with b = scale/√n (else scale = 0)
    """
    S, A, H, K = size.S, size.A, size.H, size.K
    mirror = H * math.log(A) / sigma + sigma * K * H**3 / 2
    behind = math.sqrt(2) * eta * H * K
    visits = H * S * A + 2 * H * math.sqrt(S * A * K) + H * math.sqrt(2 * K * math.log(2 / delta))
    return mirror + behind + 2 * bonus_scale * visits


def optimisation(size: Sizes, eta: float, gradient: float = 2.0) -> float:
    """First term of Thm 4.4: HSA/(2η) + g²ηHK for ‖ĝ_h‖₂ ≤ g; the paper has g = 2 (Eqs. A.3.13
    and A.3.14)."""
    return size.H * size.S * size.A / (2 * eta) + gradient**2 * eta * size.H * size.K


def shift(size: Sizes, sigma: float, windows: Sequence[int] | np.ndarray, *, sharp: bool) -> float:
    """Second term of Thm 4.4: Σ_k Σ_h (N(k)−1)/2 · ‖d_h^k − d_h^{k−1}‖₁ (Eqs. A.3.8 to A.3.15),
    for uniform weights; (N−1)/2 is (1/N) Σ_n (N−n) of Eq. A.3.10.

    A fixed N gives K (N−1) A σ H²(H+1)/2 by the paper, K (N−1) σ H(H+1)(2H+1)/24 by ours.
    """
    step = drift_per_step(size.H, size.A, sigma, sharp=sharp).sum()
    return float(np.sum((np.asarray(windows) - 1) / 2) * step)


def estimation(
    size: Sizes, eta: float, windows: Sequence[int] | np.ndarray, *, delta: float = 0.05
) -> float:
    """Third term of Thm 4.4. The paper takes Õ(√(H³SAK/(BN))) from Liu et al. (Lemma H.8); that
    treats the samples of one update as independent of those of the next, which reuse makes them
    not. With c_j the weight that segment j receives in all (about 1, whatever N), L = log(4HSA/δ):

    H √(2 L SA Σc²/B) + ⅔ H SA max(c) L / B    sup over μ, by Freedman's inequality per (h, s, a)
    + H √(Σc² log(2/δ) / (2B))                 ⟨μ_j, noise⟩, by Azuma-Hoeffding
    + η H Σ_k (N(k)−1)                         μ_k has already seen the samples that it reuses
    """
    S, A, H = size.S, size.A, size.H
    c = segment_weights(windows)
    L = math.log(4 * H * S * A / delta)
    energy = float((c**2).sum()) / size.B
    return (
        H * math.sqrt(2 * L * S * A * energy)
        + 2 / 3 * H * S * A * float(c.max()) * L / size.B
        + H * math.sqrt(energy * math.log(2 / delta) / 2)
        + eta * H * float(np.sum(np.asarray(windows) - 1))
    )


def segment_weights(windows: Sequence[int] | np.ndarray) -> np.ndarray:
    """c_j = Σ of 1/N(k) over the updates k whose window holds segment j; k = 1 … K."""
    N = np.asarray(windows)
    k = np.arange(1, len(N) + 1)
    steps = np.zeros(len(N) + 1)
    np.add.at(steps, k - N, 1 / N)
    np.add.at(steps, k, -1 / N)
    return np.cumsum(steps)[:-1]


# --- the Õ forms, and what follows from them ------------------------------------------------


def order(size: Sizes, N: float, *, sharp: bool) -> Terms:
    """Thm 4.5 as printed, constants and logarithms dropped; `sharp` without the A of the shift."""
    S, A, H, K, B = size.S, size.A, size.H, size.K, size.B
    return Terms(
        policy=math.sqrt(H**4 * S**2 * A * K),
        optimisation=math.sqrt(H**2 * S * A * K),
        shift=math.sqrt(H**4 * (1 if sharp else A**2) * (N - 1) ** 2 * K),
        estimation=math.sqrt(H**3 * S * A * K / (B * N)),
    )


def best_window(size: Sizes, *, sharp: bool) -> float:
    """N*, at least 1: (S/(HAB))^{1/3} by Prop. 4.6, (SA/(HB))^{1/3} by the sharper bound."""
    S, A, H, B = size.S, size.A, size.H, size.B
    return max(1.0, (S * A / (H * B) if sharp else S / (H * A * B)) ** (1 / 3))


def largest_window(K: int) -> int:
    """Prop. 4.7 asks N = o(√K): the largest whole number below √K."""
    return max(1, math.isqrt(K - 1)) if K > 1 else 1


# --- linear MDPs (the paper's appendix), d features ------------------------------------------


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


def linear_tv_step(A: int, H: int, sigma: float, rewards: Rewards) -> float:
    """Thm 4.3 in linear MDPs: A H σ √d, from ½ · 2AσH√d."""
    return A * H * sigma * rewards.most


def sharp_linear_tv_step(
    H: int, sigma: float, rewards: Rewards, h: int | np.ndarray = 1
) -> float | np.ndarray:
    """σ (H−h+1) width / 4: the sharper bound for Q of that range; on the ball σ (H−h+1) √d / 2."""
    return sharp_tv_step(H, sigma, h) * rewards.width


def linear_drift_per_step(
    H: int, A: int, sigma: float, rewards: Rewards, *, sharp: bool
) -> np.ndarray:
    """Lemma 4.2 in linear MDPs with the TV step put in: ‖d_h^k − d_h^{k−1}‖₁ for h = 1 … H."""
    h = np.arange(1, H + 1)
    paper = np.full(H, linear_tv_step(A, H, sigma, rewards))
    return 2 * np.cumsum(sharp_linear_tv_step(H, sigma, rewards, h) if sharp else paper)


def linear_policy_regret(
    size: Sizes, sigma: float, eta: float, rewards: Rewards, gradient: float = 2.0
) -> float:
    """Lemma 4.1 in linear MDPs with known θ. The paper takes Õ(√(H⁴d³K)), with θ learned, from Liu
    et al.; the constants are ours:

    H log A / σ + σ K H³ width² / 8   mirror descent with Q of that range, against any policy
    + g η H K                         π_k is improved against μ_{k+1}; ‖ĝ_h‖₂ ≤ g
    + H √d                            J(π, μ_0) − J(π, μ_K), by shifting the index; μ_0 = 0
    """
    A, H, K = size.A, size.H, size.K
    mirror = H * math.log(A) / sigma + sigma * K * H**3 * rewards.width**2 / 8
    return mirror + gradient * eta * H * K + H * rewards.most


def linear_optimisation(size: Sizes, eta: float, rewards: Rewards, gradient: float = 2.0) -> float:
    """2Hd/η + 4ηHK: ‖μ − μ'‖² ≤ 4d on the ball of radius √d (Eq. B.1), ‖ĝ_h‖ ≤ 2 (Eq. B.2)."""
    H, K = size.H, size.K
    return H * rewards.diameter**2 / (2 * eta) + gradient**2 * eta * H * K


def linear_shift(
    size: Sizes,
    sigma: float,
    rewards: Rewards,
    windows: Sequence[int] | np.ndarray,
    *,
    sharp: bool,
) -> float:
    """Σ_k Σ_h 2√d · (N(k)−1)/2 · ‖d_h^k − d_h^{k−1}‖₁ (Eq. B.3), with |φᵀ(μ−μ')| ≤ 2√d."""
    step = linear_drift_per_step(size.H, size.A, sigma, rewards, sharp=sharp).sum()
    return float(rewards.width * np.sum((np.asarray(windows) - 1) / 2) * step)


def linear_estimation(
    size: Sizes,
    eta: float,
    rewards: Rewards,
    windows: Sequence[int] | np.ndarray,
    *,
    delta: float = 0.05,
) -> float:
    """Third term of Thm 4.4 in linear MDPs (Eq. B.4). The paper takes Õ(√(H³d²K/(BN))) from Liu et
    al. (Lemma H.8); ours has d in place of d², for features add up in one norm, and counts what
    reuse does to independence. With c_j as in `estimation`:

    H diameter √(2 log(4H/δ) Σc²/B)    sup over μ: the noise is a martingale in ℝᵈ of steps ≤ 2c/B,
                                       whose norm Pinelis bounds as if d were one
    + H width √(Σc² log(2/δ) / (2B))   ⟨μ_j, noise⟩, by Azuma-Hoeffding
    + 2 η H Σ_k (N(k)−1)               μ_k has already seen the samples that it reuses
    """
    H = size.H
    energy = float((segment_weights(windows) ** 2).sum()) / size.B
    return (
        H * rewards.diameter * math.sqrt(2 * math.log(4 * H / delta) * energy)
        + H * rewards.width * math.sqrt(energy * math.log(2 / delta) / 2)
        + 2 * eta * H * float(np.sum(np.asarray(windows) - 1))
    )


def linear_order(size: Sizes, d: int, N: float, *, sharp: bool) -> Terms:
    """The appendix's main theorem as printed, constants and logarithms dropped."""
    A, H, K, B = size.A, size.H, size.K, size.B
    return Terms(
        policy=math.sqrt(H**4 * d**3 * K),
        optimisation=math.sqrt(H**2 * d * K),
        shift=math.sqrt(H**4 * (1 if sharp else A**2) * (N - 1) ** 2 * K * d**1.5),
        estimation=math.sqrt(H**3 * d**2 * K / (B * N)),
    )


def linear_best_window(size: Sizes, d: int, *, sharp: bool) -> float:
    """N*, at least 1, where shift and estimation of `linear_order` balance: (√d/(HA²B))^{1/3}, or
    without the shift's A (√d/(HB))^{1/3}. The paper states none for linear MDPs."""
    A, H, B = size.A, size.H, size.B
    return max(1.0, (math.sqrt(d) / (H * B * (1 if sharp else A**2))) ** (1 / 3))
