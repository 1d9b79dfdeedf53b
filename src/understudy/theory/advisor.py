"""How many policies to reuse, from the sizes of the problem alone."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from understudy.errors import UserError
from understudy.theory import bounds
from understudy.theory.bounds import Sizes


@dataclass(frozen=True)
class Advice:
    """What the theory says of a problem of this size."""

    size: Sizes
    n_star: dict[str, float]  # by the paper, by the sharper bound
    n_max: int  # the largest N below √K
    sigma: float
    eta: float
    windows: list[int]
    terms: dict[str, dict[str, list[float]]]  # paper | sharp → term → by window

    def document(self) -> dict[str, Any]:
        return {
            **asdict(self.size),
            "n_star": self.n_star,
            "n_max": self.n_max,
            "sigma": self.sigma,
            "eta": self.eta,
            "terms": {"N": self.windows, **self.terms},
        }


def advise(size: Sizes) -> Advice:
    """The four terms of Thm 4.5 as functions of N, N* and the theory's step sizes."""
    names = {"S": "states", "A": "actions", "H": "horizon", "K": "iterations", "B": "batch"}
    for symbol, name in names.items():
        value = getattr(size, symbol)
        if value < (2 if symbol == "A" else 1):
            raise UserError(f"--{name} is {value}; it must be at least {1 + (symbol == 'A')}.")
    n_max = bounds.largest_window(size.K)
    windows = _spread(n_max)
    terms = {
        kind: {
            name: [
                getattr(bounds.order(size, float(N), sharp=kind == "sharp"), name) for N in windows
            ]
            for name in ("policy", "optimisation", "shift", "estimation", "total")
        }
        for kind in ("paper", "sharp")
    }
    return Advice(
        size=size,
        n_star={kind: bounds.best_window(size, sharp=kind == "sharp") for kind in terms},
        n_max=n_max,
        sigma=math.sqrt(2 * math.log(size.A) / (size.H**2 * size.K)),
        eta=math.sqrt(size.S * size.A / size.K),
        windows=windows,
        terms=terms,
    )


def _spread(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, 16, … up to the largest window."""
    steps = {most, 1}
    for i in range(most.bit_length()):
        steps |= {n for n in (2**i, 3 * 2 ** (i - 1)) if n == int(n) and 1 <= n <= most}
    return sorted(int(n) for n in steps)
