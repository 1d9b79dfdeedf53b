"""A measured run beside its bounds."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.theory import bounds
from understudy.theory.bounds import Sizes
from understudy.theory.ledger import Regret, lags


@dataclass(frozen=True)
class Setting:
    """What the bounds depend on, besides the sizes."""

    sigma: float | None  # None: not the mirror step, whose stability the bounds rest on
    eta: float
    windows: np.ndarray  # N(k), k = 1 … K; an upper bound of it where the window adapts
    trajectories: bool  # each segment is B whole trajectories, and the whole window is used
    uniform: bool  # weights
    adaptive: bool
    staged: bool  # a reward per stage, as in the theory
    bonus_scale: float | None  # None: transitions known


def beside(regret: Regret, size: Sizes, setting: Setting, *, delta: float = 0.05) -> dict[str, Any]:
    """Each term by name: what was measured, the bound by the paper's stability and by the sharper
    one, and whether both hold. A bound is None where the theory does not cover the run."""
    sigma = setting.sigma
    gradient = math.sqrt(2) if setting.trajectories else 1.0 + size.H  # ‖ĝ_h‖₂ at most
    optimistic = setting.bonus_scale is None or setting.bonus_scale >= 1
    policy = (
        bounds.policy_regret(
            size,
            sigma,
            setting.eta * gradient / math.sqrt(2),
            bonus_scale=setting.bonus_scale or 0.0,
            delta=delta,
        )
        if setting.staged and optimistic and sigma
        else None
    )
    optimisation = (
        bounds.optimisation(size, setting.eta, max(2.0, gradient))
        if setting.staged and setting.eta > 0
        else None
    )
    covered = setting.trajectories and setting.uniform and setting.staged and not setting.adaptive
    estimation = (
        bounds.estimation(size, setting.eta, setting.windows, delta=delta) if covered else None
    )
    shift = {
        kind: bounds.shift(size, sigma, setting.windows, sharp=kind == "sharp")
        if setting.uniform and setting.staged and sigma is not None
        else None
        for kind in ("paper", "sharp")
    }
    demonstrations = float(regret.demonstrations)

    def total(*parts: float | None) -> float | None:
        return (
            None if any(p is None for p in parts) else float(sum(p for p in parts if p is not None))
        )

    terms = {
        "policy": (regret.policy, policy, policy),
        "optimisation": (regret.optimisation, optimisation, optimisation),
        "shift": (regret.shift, shift["paper"], shift["sharp"]),
        "estimation": (regret.estimation, estimation, estimation),
        "demonstrations": (regret.demonstrations, None, None),
        "reward": (
            regret.reward,
            *(
                total(optimisation, shift[s], estimation, demonstrations)
                for s in ("paper", "sharp")
            ),
        ),
        "ail": (
            regret.ail,
            *(
                total(policy, optimisation, shift[s], estimation, demonstrations)
                for s in ("paper", "sharp")
            ),
        ),
        "tv_step": (
            regret.tv,
            None if sigma is None else bounds.tv_step(size.A, size.H, sigma),
            None if sigma is None else float(bounds.sharp_tv_step(size.H, sigma)),
        ),
    }
    measured_lags = lags(len(regret.drift) and 2 + 2 ** (len(regret.drift) - 1))
    for lag, measured in zip(measured_lags, np.asarray(regret.drift), strict=True):
        limits = (
            None
            if sigma is None
            else lag * bounds.drift_per_step(size.H, size.A, sigma, sharp=sharp).max()
            for sharp in (False, True)
        )
        terms[f"drift_{lag}"] = (measured, *limits)

    def finite(bound: float | None) -> float | None:  # a bound beyond all numbers says nothing
        return None if bound is None or not math.isfinite(bound) else float(bound)

    document: dict[str, Any] = {
        name: {
            "measured": float(measured),
            "bound": finite(paper),
            "sharp_bound": finite(sharp),
            "holds": all(
                bound is None or float(measured) <= bound + 1e-9 for bound in (paper, sharp)
            ),
        }
        for name, (measured, paper, sharp) in terms.items()
    }
    document["slack"] = {"measured": float(regret.slack), "holds": float(regret.slack) >= -1e-9}
    return document
