"""Runs by environment and window: what a curve averages over, and where."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from understudy.core.errors import UserError
from understudy.experiments.figures.palette import natural, panel_title
from understudy.experiments.runs import identity
from understudy.experiments.stored_runs import StoredRun

POINTS = 300  # at most so many along a curve: more than the pixels show


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
