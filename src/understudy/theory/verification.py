"""A measured run beside its bounds."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from understudy.theory import bounds, linear_bounds
from understudy.theory.bounds import Sizes
from understudy.theory.ledger import Regret, lags
from understudy.theory.linear_bounds import Rewards

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Setting:
    """What the bounds depend on, besides the sizes."""

    sigma: np.ndarray | None  # of each update; None: not the mirror step, which the bounds rest on
    eta: np.ndarray  # of each update
    windows: np.ndarray  # N(k), k = 1 … K
    lags: np.ndarray  # mean lag Σ_n (n−1) β_n of each update
    trajectories: bool  # each segment is B whole trajectories, and the whole window is used
    uniform: bool  # weights
    staged: bool  # a reward per stage, as in the theory
    leader: bool  # the reward player
    bonus_scale: float | None  # None: transitions known
    rewards: Rewards | None = None  # the set of φᵀμ; None: a table
    covered: bool = True  # rewards and steps are of a kind that the theory knows
    feasible: bool = True  # d_E is the occupancy of a policy, which Lemma 3.2 needs
    modelled: bool = False  # gradients from the counted model, which are no samples
    corrected: bool = False  # importance ratios, with which gradients have no bound
    exact: bool = False  # gradients, which then have no noise
    features: int | None = None  # d, with rewards φᵀμ
    adaptive: bool = False  # step sizes: sigma and eta are not what ran
    certificate: float | None = None  # of the regret, demonstrations and all, where steps adapt
    misshown: float = 0.0  # sup_μ ⟨μ, d̂_E − d_E⟩, which the bounds of the whole regret pay besides


class Limits(NamedTuple):
    """Bounds; where there are two, by the paper's stability and by the sharper one."""

    policy: float | None
    optimisation: float | None
    shift: tuple[float | None, ...]
    estimation: float | None
    ail: float | None  # the whole, by `bounds.regret`
    tv: tuple[float | None, ...]
    drift: tuple[float | None, ...]  # a step, the largest over stages


def limits(size: Sizes, setting: Setting, delta: float) -> Limits:
    """What the theory says of a run, and None where it says nothing."""
    if not setting.covered:
        nothing = (None, None)
        return Limits(None, None, nothing, None, None, nothing, nothing)
    return _adapting(size, setting) if setting.adaptive else _set(size, setting, delta)


def _adapting(size: Sizes, setting: Setting) -> Limits:
    """Of steps that adapt: the whole regret where gradients are exact and P is known, and nothing
    of its parts, which pair π_k with μ_k where the theorem has μ_{k+1}. N = 1 shifts nothing."""
    ail = None
    if setting.exact and setting.staged and setting.bonus_scale is None:
        ail = (
            bounds.adaptive_regret(size)
            if setting.rewards is None or setting.features is None
            else linear_bounds.adaptive_regret(size, setting.features, setting.rewards)
        )
    noise = 0.0 if setting.exact else None
    nothing = (None, None)
    return Limits(None, None, (0.0, 0.0), noise, ail, nothing, nothing)


def _set(size: Sizes, setting: Setting, delta: float) -> Limits:
    """Of steps whose sizes are set beforehand."""
    sigma, eta, rewards, windows = setting.sigma, setting.eta, setting.rewards, setting.windows
    # ‖ĝ_h‖₂ at most: of two distributions √2, of two means of unit vectors 2
    whole = math.sqrt(2) if rewards is None else 2.0
    told_all = setting.trajectories or setting.exact  # each stage alike
    gradient = whole if told_all else 1.0 + size.H
    if setting.corrected:
        gradient = math.inf
    covered = told_all and setting.uniform and setting.staged and not setting.corrected
    moving = bool((eta > 0).all())
    policy = optimisation = estimation = ail = None
    shift = tv = drift = (None, None)
    if setting.staged and moving:
        steepest = max(2.0, gradient)
        optimisation = (
            bounds.optimisation(size, eta, steepest)
            if rewards is None
            else linear_bounds.optimisation(size, eta, rewards, steepest)
        )
    if setting.exact:
        estimation = 0.0
    elif covered and not setting.modelled:  # a model's error is no sampling error
        estimation = (
            bounds.estimation(size, eta, windows, delta=delta)
            if rewards is None
            else linear_bounds.estimation(size, eta, rewards, windows, delta=delta)
        )
    if sigma is not None and (sigma > 0).all() and setting.staged:
        # The leader's η_k G_k also moves where η_k shrinks: by half as much again at most.
        pace = 1.5 if setting.leader and eta[-1] < eta[0] else 1.0
        # With transitions learned, every stage must be visited as often as the next.
        told = setting.trajectories and (setting.bonus_scale or 0) >= 1
        scale = setting.bonus_scale or 0.0
        if rewards is not None:  # with θ learned, values and regressors are an iteration apart
            if setting.bonus_scale is None:
                policy = linear_bounds.policy_regret(size, sigma, pace * eta, rewards, gradient)
                if moving:
                    ail = linear_bounds.regret(
                        size, sigma, eta, rewards, windows, exact=setting.exact, delta=delta
                    )
        elif setting.bonus_scale is None or told:
            behind = pace * eta * gradient / math.sqrt(2)
            policy = bounds.policy_regret(size, sigma, behind, bonus_scale=scale, delta=delta)
            if moving:
                ail = bounds.regret(
                    size,
                    sigma,
                    eta,
                    windows,
                    exact=setting.exact,
                    bonus_scale=scale,
                    delta=delta,
                )
    if sigma is not None:
        H, A, first, kinds = size.H, size.A, float(sigma[0]), (False, True)
        lag = float(setting.lags.sum())
        if rewards is None:
            tv = bounds.tv_step(A, H, first), float(bounds.sharp_tv_step(H, first))
            shifts = (bounds.lagged(size, first, lag, sharp=s) for s in kinds)
            drifts = (bounds.drift_per_step(H, A, first, sharp=s) for s in kinds)
        else:
            sharp = float(linear_bounds.sharp_tv_step(H, first, rewards))
            tv = linear_bounds.tv_step(A, H, first, rewards), sharp
            step = [linear_bounds.drift_per_step(H, A, first, rewards, sharp=s) for s in kinds]
            shifts = (rewards.width * lag * float(one.sum()) for one in step)
            drifts = iter(step)
        if sigma[-1] == sigma[0]:  # fading logits move a policy besides, and have no such bound
            drift = tuple(float(steps.max()) for steps in drifts)
            shift = tuple(shifts) if setting.staged else shift
        else:
            tv = (None, None)
            shift = (0.0, 0.0) if lag == 0 and setting.staged else shift
    linear_reuse = rewards is not None and shift[1] is None and (windows > 1).any()
    if not covered or not moving or setting.modelled or linear_reuse:
        ail = None
    return Limits(policy, optimisation, shift, estimation, ail, tv, drift)


def beside(regret: Regret, size: Sizes, setting: Setting, *, delta: float = 0.05) -> dict[str, Any]:
    """Each term by name: what was measured, the bound by the paper's stability and by the sharper
    one, and whether both hold. A bound is None where the theory does not cover the run."""
    policy, optimisation, shift, estimation, ail, tv, drift = limits(size, setting, delta)
    demonstrations = float(regret.demonstrations)
    told = None if ail is None else ail + demonstrations + setting.misshown
    whole = told if setting.certificate is None else setting.certificate

    def total(*parts: float | None) -> float | None:
        return (
            None if any(p is None for p in parts) else float(sum(p for p in parts if p is not None))
        )

    terms = {
        "policy": (regret.policy, policy, policy),
        "optimisation": (regret.optimisation, optimisation, optimisation),
        "shift": (regret.shift, *shift),
        "estimation": (regret.estimation, estimation, estimation),
        "demonstrations": (regret.demonstrations, None, None),
        "reward": (
            regret.reward,
            *(total(optimisation, of_kind, estimation, demonstrations) for of_kind in shift),
        ),
        "ail": (
            regret.ail,
            *(
                (
                    told
                    if setting.adaptive
                    else total(policy, optimisation, shift[0], estimation, demonstrations),
                    whole,
                )
                if setting.feasible
                else (None, None)
            ),
        ),
        "tv_step": (regret.tv, *tv),
    }
    measured_lags = lags(len(regret.drift) and 2 + 2 ** (len(regret.drift) - 1))
    for lag, measured in zip(measured_lags, np.asarray(regret.drift), strict=True):
        terms[f"drift_{lag}"] = (measured, *(None if d is None else lag * d for d in drift))

    def finite(bound: float | None) -> float | None:  # a bound beyond all numbers says nothing
        return None if bound is None or not math.isfinite(bound) else float(bound)

    document: dict[str, Any] = {
        name: {
            "measured": float(measured),
            "bound": paper,
            "sharp_bound": sharp,
            "holds": all(float(measured) <= bound + TOLERANCE for bound in told) if told else None,
        }
        for name, (measured, *bounds) in terms.items()
        for paper, sharp in [map(finite, bounds)]
        for told in [[bound for bound in (paper, sharp) if bound is not None]]
    }
    # Lemma 3.2, of experts that are policies: a few episodes of a world that rolls dice need not be
    # any policy's occupancy, and none can then do as well.
    holds = float(regret.slack) >= -TOLERANCE
    document["slack"] = {
        "measured": float(regret.slack),
        "holds": holds if setting.feasible else None,
    }
    return document
