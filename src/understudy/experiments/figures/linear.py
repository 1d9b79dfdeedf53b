"""Regret against K and against d in linear MDPs: the appendix's setting, which the paper does not
measure.

Every K is a run of its own, since the theory's step sizes depend on it.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import ticker
from matplotlib.figure import Figure as Canvas
from rich.table import Table

from understudy.core.errors import UserError
from understudy.experiments.figures import drawing
from understudy.experiments.figures.claims import decide
from understudy.experiments.figures.figure import Figure
from understudy.experiments.figures.palette import colour, line_style
from understudy.experiments.figures.regret_fits import Regrets, covered
from understudy.experiments.stored_runs import StoredRun
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners.config import Config

STAGES = 6  # of RandomLinear
SWEEP = Sweep(
    name="linear",
    envs=("RandomLinear-d4", "RandomLinear-d8", "RandomLinear-d16", "RandomLinear-d32"),
    seeds=(0, 1, 2),
    config=Config(batch=1, steps="theory", visits="sampled", handed="last", marks=20),
    grid={
        "window": ("1", "4", "32", "128"),
        "interactions": tuple(STAGES * K for K in (250, 500, 1_000, 2_000, 4_000, 8_000)),
    },
)
EXPONENT = 0.6  # of K, at most: √K is promised, and a fit over few K has an error
SPLIT = ("optimisation", "shift", "estimation", "demonstrations")


def draw(stored: Sequence[StoredRun], stem: Path) -> None:
    """Regret against K, at the middle d, and against d, at the largest K; a line a window."""
    found = Regrets(stored)
    middle = found.ds[(len(found.ds) - 1) // 2]
    with matplotlib.rc_context(drawing.STYLE):
        figure = Canvas(figsize=(7.0, 3.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        for N in found.windows:
            look: Any = {"color": colour(N), "ls": line_style(N), "marker": "o"}
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
        drawing.save(figure, stem)


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
    refuse_uncovered(stored)
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


def refuse_uncovered(stored: Sequence[StoredRun]) -> None:
    """Every run of this figure kept its regret."""
    for run in stored:
        if run not in covered([run]):
            raise UserError(f"The run {run.folder} has no regret; take it away to run it anew.")


FIGURE = Figure(SWEEP, draw, claims, table, judged_by="the AIL regret")
