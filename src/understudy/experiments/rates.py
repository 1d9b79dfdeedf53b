"""Regret against K and against d in linear MDPs, from stored runs: fits, picture, table, claims.

Every K is a run of its own, since the theory's step sizes depend on it. Nothing here trains.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import ticker
from matplotlib.figure import Figure
from rich.table import Table

from understudy.experiments import figures
from understudy.experiments.stored_runs import StoredRun
from understudy.experiments.verdicts import decide

EXPONENT = 0.6  # of K, at most: √K is promised, and a fit over few K has an error
SPLIT = ("optimisation", "shift", "estimation", "demonstrations")


def features_of(env: str) -> int:
    """d of RandomLinear-dD; 0 of anything else."""
    found = re.match(r"RandomLinear-d(\d+)", env)
    return int(found[1]) if found else 0


def covered(stored: Sequence[StoredRun]) -> list[StoredRun]:
    """The runs in random linear MDPs that kept a ledger and have a fixed window."""
    return [
        run
        for run in stored
        if features_of(run.env) and run.regret and re.fullmatch("[0-9]+", run.window)
    ]


class Regrets:
    """Final AIL regret, the mean over seeds, by d, N and K."""

    def __init__(self, stored: Sequence[StoredRun]):
        cells: dict[tuple[int, int, int], list[float]] = {}
        for run in covered(stored):
            at = features_of(run.env), int(run.window), int(run.updates[-1])
            cells.setdefault(at, []).append(float((run.regret or {})["ail"][-1]))
        self.mean = {at: float(np.mean(values)) for at, values in cells.items()}
        self.ds, self.windows, self.ks = (sorted({at[i] for at in cells}) for i in range(3))

    def against_k(self, d: int, N: int) -> np.ndarray:
        return np.array([self.mean[d, N, K] for K in self.ks])

    def against_d(self, N: int, K: int) -> np.ndarray:
        return np.array([self.mean[d, N, K] for d in self.ds])

    def exponent(self, d: int, N: int) -> float:
        return slope(self.ks, self.against_k(d, N))

    def exponent_in_d(self, N: int) -> float:
        return slope(self.ds, self.against_d(N, self.ks[-1]))


def slope(x: Sequence[int], y: np.ndarray) -> float:
    """The exponent of a power law, by least squares on log axes."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def draw(stored: Sequence[StoredRun], stem: Path) -> None:
    """Regret against K, at the middle d, and against d, at the largest K; a line a window."""
    found = Regrets(stored)
    middle = found.ds[(len(found.ds) - 1) // 2]
    with matplotlib.rc_context(figures.STYLE):
        figure = Figure(figsize=(7.0, 3.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        for N in found.windows:
            look: Any = {"color": figures.colour(N), "ls": figures.line_style(N), "marker": "o"}
            label = f"N = {N}: K$^{{{found.exponent(middle, N):.2f}}}$"
            left.loglog(found.ks, found.against_k(middle, N), ms=3, label=label, **look)
            label = f"N = {N}: d$^{{{found.exponent_in_d(N):.2f}}}$"
            y = found.against_d(N, found.ks[-1])
            right.loglog(found.ds, y, ms=3, label=label, **look)
        left.set_title(f"d = {middle}")
        left.set_xlabel("updates, K")
        left.set_ylabel("AIL regret")
        right.set_title(f"K = {found.ks[-1]:,}")
        right.set_xlabel("features, d")
        for panel, ticks in ((left, found.ks), (right, found.ds)):
            panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
            panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
            panel.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))
            panel.minorticks_off()
            panel.legend(fontsize=8)
        figures.save(figure, stem)


def table(stored: Sequence[StoredRun]) -> Table:
    """Mean final regret by d, N and K, with the exponent of K."""
    found = Regrets(stored)
    t = Table(title="AIL regret after K updates (mean over seeds)")
    for column in ("d", "N", *(f"K = {K:,}" for K in found.ks), "exponent"):
        t.add_column(column, justify="right")
    for d in found.ds:
        t.add_section()
        for N in found.windows:
            cells = (f"{value:,.0f}" for value in found.against_k(d, N))
            t.add_row(str(d), str(N), *cells, f"{found.exponent(d, N):.2f}")
    return t


def claims(stored: Sequence[StoredRun]) -> list[dict[str, Any]]:
    """What the appendix promises of linear MDPs, measured."""
    found = Regrets(stored)
    judged = []
    for N in found.windows:
        each = {d: found.exponent(d, N) for d in found.ds}
        judged.append(
            decide(
                f"Regret grows as √K for N = {N}",
                ", ".join(f"d = {d}: K^{value:.2f}" for d, value in each.items()),
                max(each.values()) <= EXPONENT,
                f"the exponent fitted over K = {found.ks[0]:,} … {found.ks[-1]:,} is at most "
                f"{EXPONENT} for every d",
            )
        )
    in_d = {N: found.exponent_in_d(N) for N in found.windows}
    judged.append(
        decide(
            "Regret grows with d no faster than the bound's largest term, d^1.5",
            ", ".join(f"N = {N}: d^{value:.2f}" for N, value in in_d.items()),
            max(in_d.values()) <= 1.5,
            f"the exponent fitted over d = {', '.join(map(str, found.ds))} at K = "
            f"{found.ks[-1]:,} is at most 1.5",
        )
    )
    rows = [
        (run, name, row) for run in stored for name, row in run.summary.get("ledger", {}).items()
    ]
    failed = [f"{run.folder.name}: {name}" for run, name, row in rows if row.get("holds") is False]
    bounded = sum(row.get("bound") is not None for _, _, row in rows)
    judged.append(
        decide(
            "Every bound holds in every run",
            f"{bounded:,} bounds in {len(stored)} runs, {len(failed)} broken"
            + (f" ({failed[0]})" if failed else ""),
            not failed,
            "each measured term is at most its bound, by the paper's stability and by the sharper",
        )
    )
    gap = max(map(split_gap, stored))
    judged.append(
        decide(
            "The reward regret splits exactly",
            f"the largest gap is {gap:.1e} of the regret",
            gap <= 1e-9,
            "the four terms add up to it within 1e-9 of the largest of them, at every mark",
        )
    )
    return judged


def split_gap(run: StoredRun) -> float:
    """|Σ terms − reward regret| over the largest of them, at the worst mark."""
    regret = run.regret or {}
    gap = np.abs(sum(regret[term] for term in SPLIT) - regret["reward"])
    scale = np.max([np.abs(regret[term]) for term in (*SPLIT, "reward")], axis=0)
    worst = float(np.max(gap / np.where(scale > 0, scale, 1)))
    return worst if math.isfinite(worst) else math.inf
