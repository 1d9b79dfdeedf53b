"""Each lemma and theorem of the paper as a function with its constants, the Õ form beside it.

Explicit bounds follow the paper's proofs line by line; where a proof cites another paper for a
constant, ours is derived in docs/theory.md and the docstring says so. They hold for B ≥ 1 whole
trajectories per iteration; `δ` is the probability with which one of them may fail. Step sizes are a
number, or one for each of the K updates, none larger than the one before.

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


def each(step: float | np.ndarray, K: int) -> np.ndarray:
    """A step size for each of K updates."""
    return np.broadcast_to(np.asarray(step, float), (K,))


def played(steps: np.ndarray) -> float:
    """Σ_{k<K} of the steps, counted from zero, where the first stands for the one before it."""
    return float(steps[0] + steps[:-1].sum())


def mirror_descent(size: Sizes, sigma: float | np.ndarray, width: float = 1.0) -> float:
    """sup_π Σ_k J(π, μ_{k+1}) − J(π_k, μ_{k+1}) ≤ H log A/σ_K + Σ_{k<K} σ_k Σ_h ((H−h+1) w)²/8,
    for rewards of width w and steps that never grow; σ_0 = σ_1."""
    steps = each(sigma, size.K)
    stages = np.arange(1, size.H + 1) * width
    return size.H * math.log(size.A) / steps[-1] + played(steps) * float((stages**2).sum()) / 8


def policy_regret(
    size: Sizes,
    sigma: float | np.ndarray,
    eta: float | np.ndarray,
    *,
    bonus_scale: float = 0.0,
    delta: float = 0.05,
) -> float:
    """Lemma 4.1, of Shani et al., who give Õ(√(H⁴S²AK)); the constants are ours.

    H log A / σ_K + Σ_k σ_k Σ_h (H−h+1)² / 8    mirror descent, against any policy
    + √2 H Σ_k η_k             π_k is improved against μ_{k+1}, and μ moves by √2 η a stage
    + 2 scale (H SA + 2H √(SAK) + H √(2K log(2/δ)))   the bonus and the model's error, twice Σ b,
                               where transitions are learned with b = scale/√n (else scale = 0)
    """
    S, A, H, K = size.S, size.A, size.H, size.K
    behind = math.sqrt(2) * H * float(each(eta, K).sum())
    visits = H * S * A + 2 * H * math.sqrt(S * A * K) + H * math.sqrt(2 * K * math.log(2 / delta))
    return mirror_descent(size, sigma) + behind + 2 * bonus_scale * visits


def optimisation(size: Sizes, eta: float | np.ndarray, gradient: float = 2.0) -> float:
    """First term of Thm 4.4: HSA/(2η_K) + g²HΣη_k for ‖ĝ_h‖₂ ≤ g; the paper has g = 2 (Eqs. A.3.13
    and A.3.14). The projected steps and the leader alike have half of the second part."""
    steps = each(eta, size.K)
    spread = size.H * size.S * size.A / (2 * steps[-1])
    return spread + gradient**2 * size.H * float(steps.sum())


def shift(size: Sizes, sigma: float, windows: Sequence[int] | np.ndarray, *, sharp: bool) -> float:
    """Second term of Thm 4.4: Σ_k Σ_h (N(k)−1)/2 · ‖d_h^k − d_h^{k−1}‖₁ (Eqs. A.3.8 to A.3.15),
    for uniform weights; (N−1)/2 is (1/N) Σ_n (N−n) of Eq. A.3.10, the mean lag.

    A fixed N gives K (N−1) A σ H²(H+1)/2 by the paper, K (N−1) σ H(H+1)(2H+1)/24 by ours. For
    other weights the mean lag Σ_n (n−1) β_n takes the place of (N−1)/2 (`lagged`).
    """
    return lagged(size, sigma, float(np.sum((np.asarray(windows) - 1) / 2)), sharp=sharp)


def lagged(size: Sizes, sigma: float, lag: float, *, sharp: bool) -> float:
    """The shift of any weights: the mean lag Σ_n (n−1) β_n(k), summed over updates, times the drift
    of one."""
    return lag * float(drift_per_step(size.H, size.A, sigma, sharp=sharp).sum())


def delayed(size: Sizes, eta: float | np.ndarray, windows: Sequence[int] | np.ndarray) -> float:
    """The shift of Eq. 5 as delayed feedback, with no word of how policies drift:
    H Σ_k η_1 (N(k)−1) + 2H Σ_j |1 − c_j|, by summation by parts (docs/theory.md). The second part
    is the segments that the run's two ends count too much or too little; for a fixed N it is
    2H(N−1) from K = 2N−1 on."""
    N = np.asarray(windows)
    ends = float(np.abs(1 - segment_weights(N)).sum())
    return size.H * float(each(eta, size.K)[0] * (N - 1).sum()) + 2 * size.H * ends


def sampling(size: Sizes, weights: np.ndarray, *, delta: float = 0.05) -> float:
    """sup_μ Σ_j c_j ⟨μ, ξ_j⟩ − Σ_j c_j ⟨μ_j, ξ_j⟩ for the noise ξ_j = d̂_j − d_j of B trajectories:

    H √(Σc²/(2B) (SA log 2 + log(2H/δ)))   Azuma for each of the 2^{SA} vertices of a stage's box
    + H √(Σc²/(2B) log(2/δ))               Azuma: μ_j has not seen ξ_j
    """
    S, A, H = size.S, size.A, size.H
    energy = float((weights**2).sum()) / (2 * size.B)
    vertices = S * A * math.log(2) + math.log(2 * H / delta)
    return H * math.sqrt(energy) * (math.sqrt(vertices) + math.sqrt(math.log(2 / delta)))


def estimation(
    size: Sizes,
    eta: float | np.ndarray,
    windows: Sequence[int] | np.ndarray,
    *,
    delta: float = 0.05,
) -> float:
    """Third term of Thm 4.4. The paper takes Õ(√(H³SAK/(BN))) from Liu et al. (Lemma H.8); that
    treats the samples of one update as independent of those of the next, which reuse makes them
    not. With c_j the weight that segment j receives in all, about 1 whatever N: `sampling`, and

    + H η_1 Σ_k (N(k)−1)    for μ_k has already seen the samples that it reuses
    """
    N = np.asarray(windows)
    seen = size.H * float(each(eta, size.K)[0] * (N - 1).sum())
    return sampling(size, segment_weights(N), delta=delta) + seen


def regret(
    size: Sizes,
    sigma: float | np.ndarray,
    eta: float | np.ndarray,
    windows: Sequence[int] | np.ndarray,
    *,
    exact: bool = False,
    bonus_scale: float = 0.0,
    delta: float = 0.05,
) -> float:
    """Regret_AIL of either reward player, whole: with μ_{k+1} in place of μ_k in the pairs, nothing
    is paid for moving, and the prox term of each step pays for the noise that it has just seen.

    mirror descent + HSA/(2η_K) + H Σ_k η_k + sampling
    + the smaller of the two bounds of the shift, and H η_1 Σ_k (N(k)−1): both zero for N = 1, and
    so for the leader, who weighs each segment once. All Σ_k run over k < K, from 0. Exact gradients
    have no noise to pay for: neither sampling nor H Σ_k η_k.
    """
    N, steps, H = np.asarray(windows), each(eta, size.K), size.H
    gained = H * size.S * size.A / (2 * steps[-1])
    noise = 0.0 if exact else H * played(steps) + estimation(size, steps, N, delta=delta)
    known = policy_regret(size, sigma, 0.0, bonus_scale=bonus_scale, delta=delta)
    moved = delayed(size, steps, N) if (N > 1).any() else 0.0
    paces = each(sigma, size.K)
    if paces[-1] == paces[0]:  # fading logits move a policy besides, and have no such bound
        moved = min(moved, shift(size, float(paces[0]), N, sharp=True))
    return known + gained + noise + moved


def adaptive_players(K: int, width: float, A: int) -> float:
    """2Δ of a policy player that adapts, payoffs within [0, R]: 2R (√(K log A) + 2)."""
    return 2 * width * (math.sqrt(K * math.log(max(A, 2))) + 2)


def adaptive_regret(size: Sizes) -> float:
    """Regret_AIL with P known, exact gradients and steps that adapt, before the run is made:
    H(H+1)(√(K log A) + 2) for the policy, 2H(√(SAK) + SA) for the reward. What the run itself has
    been surprised by bounds it far better (`core.adaptive.certificate`)."""
    S, A, H, K = size.S, size.A, size.H, size.K
    policy = sum(adaptive_players(K, float(R), A) for R in range(1, H + 1))
    return policy + 2 * H * (math.sqrt(S * A * K) + S * A)


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


def proven(size: Sizes, N: float) -> Terms:
    """`regret` with known P and the theory's steps, constants and logarithms dropped. What the
    paper prints as estimation falls with N; what holds for reused samples does not, and the sum is
    least at N = 1."""
    S, A, H, K, B = size.S, size.A, size.H, size.K, size.B
    sampled = math.sqrt(H**2 * S * A * K)
    return Terms(
        policy=math.sqrt(H**4 * K),
        optimisation=sampled,
        shift=(N - 1) * min(math.sqrt(H**4 * K), sampled),
        estimation=sampled / math.sqrt(B) + (N - 1) * sampled,
    )


def best_window(size: Sizes, *, sharp: bool) -> float:
    """N*, at least 1: (S/(HAB))^{1/3} by Prop. 4.6, (SA/(HB))^{1/3} by the sharper bound.

    Neither is advice: the estimation error that it balances does not hold for reused samples.
    """
    S, A, H, B = size.S, size.A, size.H, size.B
    return max(1.0, (S * A / (H * B) if sharp else S / (H * A * B)) ** (1 / 3))


def largest_window(K: int) -> int:
    """Prop. 4.7 asks N = o(√K): the largest whole number below √K."""
    return max(1, math.isqrt(K - 1)) if K > 1 else 1
