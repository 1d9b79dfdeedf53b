"""Figures from stored curves. Nothing here trains."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import ticker
from matplotlib.figure import Figure

from understudy.experiments import store
from understudy.experiments.figures.averages import Band, summarise
from understudy.experiments.figures.cells import by_panel, on_common_marks
from understudy.experiments.figures.palette import (
    colour,
    line_style,
    literal,
    natural,
    panel_title,
    window_label,
)
from understudy.experiments.stored_runs import StoredRun

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # text stays text; some venues refuse Type 3 fonts
}


def curves(
    runs: Sequence[StoredRun],
    path_stem: Path,
    *,
    band: Band = "std",
    title: str | None = None,
    unit: str = "interactions",
) -> tuple[Path, Path]:
    """Return against interactions to `<stem>.png` and `<stem>.pdf`: a panel an environment, a
    curve a window, the expert dashed, cloning alone dotted where runs began with it. Over seeds, a
    curve is

    - std: the mean ± one standard deviation;
    - stderr: the mean ± its standard error;
    - iqm: the interquartile mean in its 95 % bootstrap interval.

    A curve ends where the shortest of its runs does.
    """
    panels = by_panel(runs)
    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    rows = -(-len(panels) // columns)
    width = 7.0 if columns > 1 else 3.5  # inches: a page, or one of two columns
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, 2.1 * rows + 0.6), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for place, (env, cells) in zip(axes.flat, panels.items(), strict=False):
            end = 1.0
            for window, cell in cells.items():
                x, y = on_common_marks(cell)
                middle, low, high = summarise(y, band)
                end = max(end, float(x[-1]))
                place.fill_between(x, low, high, color=colour(window), alpha=0.2, lw=0)
                label, marker = window_label(window), "." if len(x) == 1 else ""
                place.plot(
                    x, middle, line_style(window), color=colour(window), lw=1.5, label=label,
                    marker=marker,
                )  # fmt: skip
            expert = np.mean([run.expert_return for cell in cells.values() for run in cell])
            place.axhline(expert, color="black", ls=(0, (3, 3)), lw=1, label="expert", zorder=3)
            cloned = [run.returns[0] for cell in cells.values() for run in cell if run.cloned]
            if cloned:  # before any practice a clone is just that
                grey = {"color": "#666666", "ls": (0, (1, 1)), "lw": 1, "zorder": 3}
                place.axhline(float(np.mean(cloned)), label="cloning alone", **grey)
            place.set_title(literal(panel_title(env)))
            place.set_xlim(0, end)
            if place.get_ylim()[0] > 0:  # begun elsewhere, ripples would look like waves
                place.set_ylim(bottom=0)
            place.yaxis.set_major_locator(ticker.MaxNLocator(7, steps=[1, 2, 5, 10]))
            place.xaxis.set_major_locator(ticker.MaxNLocator(4, prune="upper"))
            place.xaxis.set_major_formatter(thousands(end))
        for empty in axes.flat[len(panels) :]:
            empty.set_visible(False)
        for column in range(columns):  # the lowest panel of each column
            axes[(len(panels) - 1 - column) // columns, column].set_xlabel(unit)
        for row in axes:
            row[0].set_ylabel("return per episode")
        if title is not None:
            figure.suptitle(title, fontsize=10)
        legend(figure, axes.flat[: len(panels)], columns=6 if columns > 1 else 3)
        return save(figure, path_stem)


def save(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """To `<stem>.png` and `<stem>.pdf`."""
    png, pdf = (stem.with_name(stem.name + suffix) for suffix in (".png", ".pdf"))
    with store.whole(png) as draft:
        figure.savefig(draft, dpi=200)
    with store.whole(pdf) as draft:  # undated, so that the same runs give the same file
        figure.savefig(draft, metadata={"CreationDate": None})
    return png, pdf


def legend(figure: Figure, axes: Any, *, columns: int) -> None:
    """One for all panels, below them: windows in order, then what does not learn."""
    shown = {}
    for place in axes:
        handles, labels = place.get_legend_handles_labels()
        shown |= dict(zip(labels, handles, strict=True))
    last = [label for label in ("cloning alone", "expert") if label in shown]
    labels = [*sorted(shown.keys() - last, key=natural), *last]
    handles = [shown[label] for label in labels]
    lines = -(-len(labels) // columns)
    figure.legend(
        handles, labels, loc="outside lower center", ncols=-(-len(labels) // lines),
        handlelength=2.2, columnspacing=1.2, borderpad=0, borderaxespad=0.2,
    )  # fmt: skip


def thousands(end: float) -> ticker.FuncFormatter:
    """2,500 on an axis up to 10,000; 25k or 1.5M on one whose zeros would not fit."""
    unit, letter = (1e6, "M") if end >= 2e6 else (1e3, "k") if end > 2e4 else (1, "")
    return ticker.FuncFormatter(lambda value, _: f"{value / unit:,.4g}{letter if value else ''}")
