"""Figures from stored curves. Nothing here trains."""

import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
from jaxtyping import Float
from matplotlib import ticker
from matplotlib.figure import Figure

from understudy.core.errors import UserError
from understudy.experiments import store
from understudy.experiments.runs import identity
from understudy.experiments.stored_runs import StoredRun

# The same N has the same colour everywhere. The paper's windows have Okabe and Ito's colours; the
# others were chosen far from those and from each other, as red- and green-blind readers see them.
COLOURS = {
    1: "#E69F00",
    4: "#CC79A7",
    32: "#0072B2",
    128: "#009E73",
    256: "#56B4E9",
    "all": "#D55E00",
    2: "#99CC77",
    8: "#7766FF",
    16: "#443300",
    64: "#110099",
    "adaptive": "#DD0044",
}
OTHERS = ("#0000FF", "#663355", "#113388", "#7F7F7F")  # windows outside the table, never solid
# Where curves coincide, the one beneath shows.
STYLES = {128: "--", 256: "-.", "all": ":"}
OTHER_STYLES = ("--", "-.", ":")
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
POINTS = 300  # at most so many along a curve: more than the pixels show
RESAMPLES = 1000  # of the bootstrap

Band = Literal["std", "stderr", "iqm"]


def colour(window: str | int) -> str:
    """The colour of a window; one outside the table gets the same one every time."""
    key = _key(window)
    return COLOURS.get(key) or OTHERS[_hash(key) % len(OTHERS)]


def line_style(window: str | int) -> str:
    """The line style of a window, which also tells apart those outside the table."""
    key = _key(window)
    if key in COLOURS:
        return STYLES.get(key, "-")
    return OTHER_STYLES[_hash(key) // len(OTHERS) % len(OTHER_STYLES)]


def _key(window: str | int) -> str | int:
    name = str(window).strip().lower()
    return int(name) if re.fullmatch(r"[0-9]+", name) else name


def _hash(key: str | int) -> int:
    return zlib.crc32(str(key).encode())  # the same in every process


def curves(
    runs: Sequence[StoredRun],
    path_stem: Path,
    *,
    band: Band = "std",
    title: str | None = None,
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
            axes[(len(panels) - 1 - column) // columns, column].set_xlabel("interactions")
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


def by_panel(runs: Sequence[StoredRun]) -> dict[str, dict[str, list[StoredRun]]]:
    """Runs by environment and window, both in natural order; a copied run counts once.

    A curve averages over seeds only, so runs that differ in anything else are refused.
    """
    if not runs:
        raise UserError("There are no finished runs to draw.")
    once = {identity(run.request): run for run in runs}.values()
    found: dict[str, dict[str, list[StoredRun]]] = {}

    def place(run: StoredRun) -> tuple[Any, ...]:
        return natural(panel_title(run.env)), natural(run.window), run.seed

    for run in sorted(once, key=place):
        found.setdefault(run.env, {}).setdefault(run.window, []).append(run)
    for env, cells in found.items():
        for window, cell in cells.items():
            first = settings(cell[0])
            for run in cell:
                other = settings(run)
                names = sorted(k for k in first.keys() & other.keys() if first[k] != other[k])
                if names:
                    raise UserError(
                        f"The runs of {env} with window {window} differ in {', '.join(names)}; "
                        f"draw one kind at a time."
                    )
    return found


def settings(run: StoredRun) -> dict[str, str]:
    """What a run was asked beside its environment and seed, but for what changes no return."""
    flat = run.asked
    flat |= {k: v for k, v in run.request["config"].items() if k not in ("marks", "ledger")}
    return {k: json.dumps(v, sort_keys=True) for k, v in flat.items()}


def natural(name: str) -> tuple[list[str], list[int]]:
    """Sorts 3x3 before 11x11, and numbers before words."""
    return re.split(r"\d+", name), [int(digits) for digits in re.findall(r"\d+", name)]


def on_common_marks(cell: list[StoredRun]) -> tuple[np.ndarray, Float[np.ndarray, "seeds points"]]:
    """All marks of a cell's runs up to the end of the shortest, and each run's return there: that
    of its last mark so far."""
    x = np.unique(np.concatenate([run.interactions for run in cell]))
    x = x[x <= min(run.interactions[-1] for run in cell)]
    if len(x) > POINTS:
        x = x[np.linspace(0, len(x) - 1, POINTS).astype(int)]
    places = [np.searchsorted(run.interactions, x, side="right") - 1 for run in cell]
    return x, np.stack(
        [run.returns[np.maximum(at, 0)] for run, at in zip(cell, places, strict=True)]
    )


def summarise(
    y: Float[np.ndarray, "seeds points"], band: Band
) -> tuple[
    Float[np.ndarray, " points"], Float[np.ndarray, " points"], Float[np.ndarray, " points"]
]:
    """The middle and the two edges of the band, over seeds."""
    if band == "iqm":
        return interquartile_mean(y), *bootstrap_interval(y)
    mean = y.mean(0)
    spread = y.std(0, ddof=1) if len(y) > 1 else np.zeros_like(mean)
    if band == "stderr":
        spread = spread / np.sqrt(len(y))
    return mean, mean - spread, mean + spread


def interquartile_mean(y: Float[np.ndarray, "seeds *points"]) -> Float[np.ndarray, "*points"]:
    """The mean of the middle half of the seeds; of fewer than four seeds, of all."""
    cut = len(y) // 4
    return np.sort(y, axis=0)[cut : len(y) - cut].mean(0)


def bootstrap_interval(
    y: Float[np.ndarray, "seeds points"], level: float = 0.95
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """Percentile bootstrap of the interquartile mean over seeds, at each point by itself.

    Seeds are drawn by rank. A draw's interquartile mean is then a weighting of the sorted values,
    the same at every point, and all draws are one matrix product.
    """
    n, cut = len(y), len(y) // 4
    rng = np.random.default_rng(0)
    ranks = np.sort(rng.integers(n, size=(RESAMPLES, n)), axis=1)[:, cut : n - cut]
    flat = (ranks + n * np.arange(RESAMPLES)[:, None]).ravel()
    counts = np.bincount(flat, minlength=RESAMPLES * n).reshape(RESAMPLES, n)
    drawn = counts / ranks.shape[1] @ np.sort(y, axis=0)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def window_label(window: str) -> str:
    """N = 32, N adaptive, or N = 2 k with its exponent raised."""
    if window.strip().lower() == "adaptive":
        return "N adaptive"
    power = re.fullmatch(r"(?:([\d.]+)\s*\*\s*)?k\s*\^\s*([\d.]+)", window.strip())
    return f"N = {power[1] or ''}k$^{{{power[2]}}}$" if power else f"N = {literal(window)}"


def panel_title(env: str) -> str:
    """EmptyRoom 3×3 for understudy/EmptyRoom-3x3-v0; other names as they are."""
    room = re.fullmatch(r"(?:understudy/)?EmptyRoom-(\d+)x(\d+)(?:-v0)?", env)
    return f"EmptyRoom {room[1]}×{room[2]}" if room else env


def literal(text: str) -> str:
    """A name as it is: a dollar sign in it begins no formula."""
    return text.replace("$", r"\$")


def thousands(end: float) -> ticker.FuncFormatter:
    """2,500 on an axis up to 10,000; 25k or 1.5M on one whose zeros would not fit."""
    unit, letter = (1e6, "M") if end >= 2e6 else (1e3, "k") if end > 2e4 else (1, "")
    return ticker.FuncFormatter(lambda value, _: f"{value / unit:,.4g}{letter if value else ''}")


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
