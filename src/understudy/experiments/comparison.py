"""Methods side by side, from stored runs: who is how good when, the table and the figure."""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import ticker
from matplotlib.figure import Figure

from understudy.experiments.figures import averages, cells, drawing, palette
from understudy.experiments.stored_runs import StoredRun
from understudy.learners.baselines import methods
from understudy.learners.deep.executed import Executed

PARTS = (0.1, 0.25, 0.5, 1.0)  # of the budget, where a method is shown
NEAR = 0.9  # of the expert's return: how soon a method is there ranks it
OURS = "understudy"
COLOURS = {
    OURS: "#D55E00",
    methods.SCRATCH: "#882255",
    "bc": "#666666",
    "gail": "#E69F00",
    "dac": "#0072B2",
    "sqil": "#009E73",
    "iq-learn": "#CC79A7",
    "importance": "#56B4E9",
    "oal": "#443300",
}


def colour_of(name: str) -> str:
    """The colour of a method; grey, where it has none yet."""
    return COLOURS.get(name, "#7F7F7F")


@dataclass(frozen=True)
class Shown:
    """What is demonstrated: so many trajectories (None: all there are), every so many steps."""

    trajectories: int | None = None
    thin: int | None = None

    def __str__(self) -> str:
        many = "all" if self.trajectories is None else str(self.trajectories)
        plural = "trajectory" if self.trajectories == 1 else "trajectories"
        thinned = "" if self.thin is None else f", every {self.thin}th step"
        return f"{many} {plural}{thinned}"


@dataclass(frozen=True)
class Row:
    """One method, from one set of demonstrations, over seeds."""

    shown: str
    method: str
    seeds: int
    shares: tuple[float, ...]  # of the expert's return, interquartile mean at PARTS
    interval: tuple[float, float]  # of the last, 95 % bootstrap
    near: tuple[int | None, ...]  # by seed: the interactions to NEAR
    seconds: float | None  # of a run
    below: tuple[float, float, float] | None = None  # P(ours ends higher), and its 95 % interval
    rank: int = 0

    @property
    def typical(self) -> float:
        """The median of `near`; infinite where most seeds never get there."""
        return float(statistics.median(np.inf if n is None else n for n in self.near))


Cells = Mapping[tuple[Shown, str], list[StoredRun]]


def ranked(stored: Cells) -> list[Row]:
    """A row a method, in order: who needs the fewest interactions to NEAR of the expert; of those
    who never get there, who ends higher."""
    budget = budget_of(stored)
    rows = [
        _row(str(one), name, cell, budget, stored.get((one, OURS), []) if name != OURS else [])
        for (one, name), cell in stored.items()
    ]
    listed = []
    for shown in dict.fromkeys(row.shown for row in rows):
        of = sorted(
            (row for row in rows if row.shown == shown), key=lambda r: (r.typical, -r.shares[-1])
        )
        listed += [dataclasses.replace(row, rank=i) for i, row in enumerate(of, start=1)]
    return listed


def share(run: StoredRun, R: Any) -> Any:
    """1 + (R − E)/|E|: the return as a share of the expert's, whatever its sign; the gain where the
    expert's is zero."""
    E = run.expert_return
    return 1 + (R - E) / (abs(E) or 1)


def nearest(run: StoredRun, interactions: float) -> float:
    """The return at the nearest mark: methods that update in larger steps have other marks."""
    return float(run.returns[np.argmin(np.abs(run.interactions - interactions))])


def budget_of(stored: Cells) -> int:
    """The interactions of those that practise."""
    return max(int(run.interactions[-1]) for cell in stored.values() for run in cell)


def ours_last(stored: Cells) -> list[tuple[tuple[Shown, str], list[StoredRun]]]:
    """So that ours is seen where curves coincide."""
    return sorted(stored.items(), key=lambda item: item[0][1] == OURS)


def levels(cell: list[StoredRun], end: int) -> dict[str, np.ndarray]:
    """A curve over seeds, in shares of the expert's return: its interquartile mean, and the edges
    of its 95 % bootstrap interval. Without practice it is a level."""
    x, y = cells.on_common_marks(cell)
    y = np.stack([share(run, R) for run, R in zip(cell, y, strict=True)])
    if len(x) == 1:
        x, y = np.array([0, end]), np.repeat(y, 2, axis=1)
    middle, low, high = averages.summarise(y, "iqm")
    return {"x": x, "middle": middle, "low": low, "high": high}


def shares(cell: list[StoredRun], interactions: float) -> np.ndarray:
    """Of the expert's return, by seed."""
    return np.array([share(run, nearest(run, interactions)) for run in cell])


def _row(shown: str, name: str, cell: list[StoredRun], budget: int, ours: list[StoredRun]) -> Row:
    at = [shares(cell, part * budget) for part in PARTS]
    low, high = averages.bootstrap_interval(at[-1][:, None])
    seconds = [run.summary["seconds"] for run in cell if "seconds" in run.summary]
    return Row(
        shown=shown,
        method=name,
        seeds=len(cell),
        shares=tuple(float(averages.interquartile_mean(x[:, None])[0]) for x in at),
        interval=(float(low[0]), float(high[0])),
        near=tuple(run.near(NEAR) for run in cell),
        seconds=float(np.mean(seconds)) if seconds else None,
        below=_below(at[-1], shares(ours, float(budget))) if ours else None,
    )


def _below(these: np.ndarray, ours: np.ndarray) -> tuple[float, float, float]:
    """How probable it is that a run of ours ends higher than one of these."""
    return averages.improvement(ours, these), *averages.improvement_interval(ours, these)


def reached(row: Row) -> str:
    """The interactions to NEAR, and how many seeds got there if not all or none."""
    there = sum(n is not None for n in row.near)
    when = "never" if np.isinf(row.typical) else f"{row.typical:,.0f}"
    return f"{when} ({there} of {row.seeds})" if 0 < there < row.seeds else when


def beaten(row: Row) -> str:
    """P(ours ends higher) and its interval; of ours itself nothing."""
    if row.below is None:
        return "–"
    middle, low, high = row.below
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def markdown(rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    """As it stands in the docs."""
    parts = [f"{part:.0%}" for part in PARTS]
    head = ["shown", "method", "seeds", *parts, "95 % interval", f"interactions to {NEAR}",
            "P(ours higher)", "seconds a run"]  # fmt: skip
    body = [
        [
            row.shown,
            f"{row.rank}. {titles[row.method]}",
            str(row.seeds),
            *(f"{share:.2f}" for share in row.shares),
            f"{row.interval[0]:.2f} to {row.interval[1]:.2f}",
            reached(row),
            beaten(row),
            "–" if row.seconds is None else f"{row.seconds:,.0f}",
        ]
        for row in rows
    ]
    return _table(head, body)


def work(done: Mapping[str, Executed], titles: Mapping[str, str]) -> str:
    """What each method executed, as it stands in the docs."""
    head = ["method", "policy steps an interaction", "reward steps an interaction", "batch",
            "actor", "critics", "begins with"]  # fmt: skip
    return _table(head, [[titles[name], *spelt(each).values()] for name, each in done.items()])


def spelt(each: Executed) -> dict[str, str]:
    """In words, by name."""
    return {
        "policy_steps": f"{each.policy_steps:.4g}",
        "reward_steps": f"{each.reward_steps:.4g}",
        "batch": str(each.batch),
        "actor": _layers(each.actor),
        "critics": f"two of {_layers(each.critics)}" if each.critics else "–",
        "begins": "its clone" if each.warm_start == "clone" else "nothing",
    }


def _layers(widths: Sequence[int]) -> str:
    """3 × 256; one by one where they differ."""
    if len(set(widths)) == 1:
        return f"{len(widths)} × {widths[0]}"
    return ", ".join(map(str, widths))


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """As Markdown: the method, and what it was shown, on the left, numbers on the right."""
    named = 1 + (head[0] == "shown")
    rule = f"|{'---|' * named}{'---:|' * (len(head) - named)}"
    first, *rest = (f"| {' | '.join(line)} |" for line in (head, *body))
    return "\n".join([first, rule, *rest])


def titles_of(deep: bool) -> dict[str, str]:
    """Every method with networks, or with tables, by name."""
    if deep:
        return {name: title for name, (title, _) in methods.COMPARED.items()}
    return methods.TABULAR_TITLES


def draw(env: str, stored: Cells, titles: Mapping[str, str], stem: Path) -> Path:
    """Share of the expert's return against interactions: a panel a set of demonstrations, a curve a
    method, its interquartile mean in its 95 % bootstrap interval."""
    shown = list(dict.fromkeys(one for one, _ in stored))
    end = budget_of(stored)
    columns = min(len(shown), 3)
    rows = -(-len(shown) // columns)
    with matplotlib.rc_context(drawing.STYLE):
        figure = Figure(
            figsize=(7.0 if columns > 1 else 4.5, 2.3 * rows + 0.8), layout="constrained"
        )
        axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for place, one in zip(axes.flat, shown, strict=False):
            cells = {name: cell for (of, name), cell in ours_last(stored) if of == one}
            for name, cell in cells.items():
                x, middle, low, high = levels(cell, end).values()
                place.fill_between(x, low, high, color=colour_of(name), alpha=0.15, lw=0)
                style = {"bc": "--", OURS: (0, (4, 1))}.get(name, "-")
                place.plot(x, middle, ls=style, color=colour_of(name), lw=1.5, label=titles[name])
            place.axhline(1, color="black", ls=(0, (3, 3)), lw=1, label="expert", zorder=3)
            place.set_title(
                str(one) if len(shown) > 1 else palette.literal(palette.panel_title(env))
            )
            place.set_xlim(0, end)
            place.xaxis.set_major_locator(ticker.MaxNLocator(4, prune="upper"))
            place.xaxis.set_major_formatter(drawing.thousands(float(end)))
            place.set_xlabel("interactions")
        for empty in axes.flat[len(shown) :]:
            empty.set_visible(False)
        axes[0, 0].set_ylabel("return / expert's")
        if len(shown) > 1:
            figure.suptitle(palette.literal(palette.panel_title(env)), fontsize=10)
        drawing.legend(figure, axes.flat[: len(shown)], columns=4 if columns > 1 else 2)
        return drawing.save(figure, stem)[0]
