"""A figure: the sweep that makes it, how it is drawn and tabulated, and the claims about it."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from understudy.core.errors import UserError
from understudy.experiments import kinds
from understudy.experiments.figures.cells import by_panel
from understudy.experiments.figures.claims import Curves, small
from understudy.experiments.stored_runs import StoredRun
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners.deep.config import DeepConfig

# Interactions in the printed table.
SHOWN = (200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
Judged = list[dict[str, Any]]


@dataclass(frozen=True)
class Figure:
    """One figure of the paper, or of its appendix. Drawing, tables and claims read stored runs."""

    sweep: Sweep
    draw: Callable[[Sequence[StoredRun], Path], object]  # to <stem>.png and <stem>.pdf
    claims: Callable[[Sequence[StoredRun]], Judged]
    table: Callable[[Sequence[StoredRun]], Table]
    judged_by: str = "returns"  # what the claims are about

    @property
    def name(self) -> str:
        return self.sweep.name


def on_curves(claims: Callable[[Curves], Judged]) -> Callable[[Sequence[StoredRun]], Judged]:
    """Claims about learning curves."""
    return lambda stored: claims(Curves(stored))


def quick(sweep: Sweep) -> Sweep:
    """About a minute: two environments, two seeds, and a name of its own. With networks some
    minutes: the beginning of one task, one seed."""
    if isinstance(sweep.config, DeepConfig):
        return dataclasses.replace(
            sweep,
            name=f"{sweep.name}-quick",
            envs=sweep.envs[1:2],
            seeds=sweep.seeds[:1],
            config=dataclasses.replace(sweep.config, interactions=15_000, marks=15),
        )
    return dataclasses.replace(
        sweep, name=f"{sweep.name}-quick", envs=sweep.envs[:2], seeds=sweep.seeds[:2]
    )


def part(sweep: Sweep, windows: tuple[str, ...], seeds: int | None, episodes: int | None) -> Sweep:
    """Only these windows, so many seeds, and measured by so many episodes, where they are given."""
    if windows:
        if not isinstance(sweep.config, DeepConfig):
            raise UserError(f"--windows is for fig2; the claims of {sweep.name} need all its N.")
        ((together, pairs),) = sweep.grid.items()
        known = [N for N, _ in pairs]
        unknown = [N for N in windows if N not in known]
        if unknown:
            raise UserError(f"{sweep.name} has no N = {unknown[0]}; it has {', '.join(known)}.")
        if "1" not in windows or not {"4", "32"} & set(windows):
            raise UserError("--windows needs 1, and 4 or 32: the claims compare them.")
        kept = tuple(pair for pair in pairs if pair[0] in windows)
        sweep = dataclasses.replace(sweep, grid={together: kept})
    if seeds is not None:
        if not 1 <= seeds <= 100:
            raise UserError(f"--seeds is {seeds}; it must be from 1 to 100.")
        sweep = dataclasses.replace(sweep, seeds=tuple(range(seeds)))
    if episodes is not None:
        config = dataclasses.replace(sweep.config, episodes=episodes)
        kinds.of_config(config).check(config)
        sweep = dataclasses.replace(sweep, config=config)
    return sweep


def return_table(stored: Sequence[StoredRun], title: str | None = None) -> Table:
    """Mean return over seeds at a few interactions, a block an environment."""
    end = stored[0].interactions[-1]
    shown = [at for at in SHOWN if end / 50 <= at <= end]
    t = Table(title=title or "Return after so many interactions (mean over seeds)")
    t.add_column("environment (expert)")
    t.add_column("N", justify="right")
    for at in shown:
        t.add_column(f"@{at:,}", justify="right")
    for env, cells in by_panel(stored).items():
        t.add_section()
        for place, (window, cell) in enumerate(cells.items()):
            label = "" if place else f"{small(env)} ({number(cell[0].expert_return)})"
            means = [np.mean([run.at(at) for run in cell]) for at in shown]
            t.add_row(label, window, *(number(float(mean)) for mean in means))
    return t


def number(value: float) -> str:
    """6.20, or 8,154 where hundredths say nothing."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
