"""How many policies to reuse, from the sizes of the problem alone."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
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
            name: [getattr(bounds.order(size, N, sharp=kind == "sharp"), name) for N in windows]
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


def plot(advice: Advice, width: int = 56) -> list[str]:
    """A small terminal plot: shift + estimation against N, both ways, logarithmic bars."""
    rows = []
    for kind in ("paper", "sharp"):
        of_kind = advice.terms[kind]
        moving = [a + b for a, b in zip(of_kind["shift"], of_kind["estimation"], strict=True)]
        low, high = math.log(min(moving)), math.log(max(moving))
        best = min(range(len(moving)), key=moving.__getitem__)
        rows.append(
            f"{kind}: shift + estimation against N (log scale, least at N = {advice.windows[best]})"
        )
        for i, (N, value) in enumerate(zip(advice.windows, moving, strict=True)):
            share = (math.log(value) - low) / (high - low) if high > low else 0.0
            mark = " ◀" if i == best else ""
            rows.append(f"{N:>7,} {'█' * (1 + round(share * (width - 1)))} {value:.3g}{mark}")
    return rows


def draw(advice: Advice, path: Path) -> None:
    """The four terms against N, the paper's and the sharper bound side by side."""
    import matplotlib
    from matplotlib.figure import Figure

    colours = {
        "policy": "#0072B2",
        "optimisation": "#E69F00",
        "shift": "#D55E00",
        "estimation": "#009E73",
        "total": "#000000",
    }
    with matplotlib.rc_context(
        {
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
        }
    ):
        figure = Figure(figsize=(7.6, 3.4), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for panel, kind in zip(panels, ("paper", "sharp"), strict=True):
            for name, values in advice.terms[kind].items():
                panel.plot(
                    advice.windows,
                    values,
                    color=colours[name],
                    label=name,
                    linewidth=1 if name == "total" else 1.8,
                    linestyle="--" if name == "total" else "-",
                )
            star = advice.n_star[kind]
            panel.axvline(star, color="grey", linewidth=1, linestyle=":")
            panel.annotate(
                f"N* = {star:.2f}",
                (star, 0.02),
                xycoords=("data", "axes fraction"),
                xytext=(4, 0),
                textcoords="offset points",
                color="dimgrey",
            )
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_xlabel("policies reused, N")
            panel.set_title(
                "paper's bound" if kind == "paper" else "sharper bound (no factor A)", fontsize=10
            )
        panels[0].set_ylabel("regret bound, constants dropped")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
        figure.savefig(path, dpi=160)
