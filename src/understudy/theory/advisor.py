"""The terms of the bound against N: as the paper prints them, sharper, and as they hold."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from understudy.core.errors import UserError
from understudy.theory import bounds, linear_bounds
from understudy.theory.bounds import Sizes


@dataclass(frozen=True)
class Advice:
    """What the theory says of a problem of this size."""

    size: Sizes
    n_star: dict[str, float]  # by the paper, by the sharper bound; neither is advice
    n_max: int  # the largest N below √K
    sigma: float
    eta: float
    windows: list[int]
    terms: dict[str, dict[str, list[float]]]  # paper | sharp | proven → term → by window
    d: int | None = None  # features, where the MDP is linear

    def document(self) -> dict[str, Any]:
        size = asdict(self.size)
        if self.d is not None:
            size = {"d": self.d, **{name: n for name, n in size.items() if name != "S"}}
        return {
            **size,
            "n_star": self.n_star,
            "n_max": self.n_max,
            "sigma": self.sigma,
            "eta": self.eta,
            "terms": {"N": self.windows, **self.terms},
        }


def advise(size: Sizes, d: int | None = None) -> Advice:
    """The four terms of Thm 4.5 as functions of N, N* and the theory's step sizes; with d features,
    those of the appendix, which do not know S."""
    names = {"S": "states", "A": "actions", "H": "horizon", "K": "iterations", "B": "batch"}
    for symbol, name in names.items():
        value = getattr(size, symbol)
        if value < (2 if symbol == "A" else 1):
            raise UserError(f"--{name} is {value}; it must be at least {1 + (symbol == 'A')}.")
    if d is not None and d < 1:
        raise UserError(f"--features is {d}; it must be at least 1.")
    n_max = bounds.largest_window(size.K)
    windows = _spread(n_max)

    def order(N: int, kind: str) -> bounds.Terms:
        if kind == "proven":
            whole = float(N)
            return bounds.proven(size, whole) if d is None else linear_bounds.proven(size, d, whole)
        sharp = kind == "sharp"
        if d is None:
            return bounds.order(size, float(N), sharp=sharp)
        return linear_bounds.order(size, d, float(N), sharp=sharp)

    def star(kind: str) -> float:
        sharp = kind == "sharp"
        if d is None:
            return bounds.best_window(size, sharp=sharp)
        return linear_bounds.best_window(size, d, sharp=sharp)

    terms = {
        kind: {
            name: [getattr(order(N, kind), name) for N in windows]
            for name in ("policy", "optimisation", "shift", "estimation", "total")
        }
        for kind in ("paper", "sharp", "proven")
    }
    scale = 1.0 if d is None else math.sqrt(d)  # σ has √d beside H²
    return Advice(
        size=size,
        n_star={kind: star(kind) for kind in ("paper", "sharp")},
        n_max=n_max,
        sigma=math.sqrt(2 * math.log(size.A) / (size.H**2 * scale * size.K)),
        eta=math.sqrt((size.S * size.A if d is None else d) / size.K),
        windows=windows,
        terms=terms,
        d=d,
    )


def _spread(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, 16, … up to the largest window."""
    steps = {most, 1}
    for i in range(most.bit_length()):
        steps |= {n for n in (2**i, 3 * 2 ** (i - 1)) if n == int(n) and 1 <= n <= most}
    return sorted(int(n) for n in steps)
