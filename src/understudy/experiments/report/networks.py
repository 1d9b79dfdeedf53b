"""How runs with networks learned: what they told of themselves at each mark, mean over seeds."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from understudy.experiments.report.cells import Cell, Json, by_env, digits, named, thin
from understudy.experiments.stored_runs import StoredRun

MARKS = 200
DRAWN = (
    "practice_return", "clone_earned", "earned", "expert_logit", "agent_logit", "q", "kl",
    "entropy", "missed", "held",
)  # fmt: skip
# Of the actor: noughts while it waits for its critics.
WAITING = ("q", "kl", "entropy", "missed", "held")
JUDGED = ("clone_earned", "earned")  # noughts until the average was auditioned


def learned(cells: Sequence[Cell]) -> list[Json]:
    """An entry an environment: the expert's return, and each cell with what its runs told."""
    charts = []
    for env, of_env in by_env(cells).items():
        within = [entry for cell in of_env if (entry := of_cell(cell)) is not None]
        if within:
            charts.append({"env": env, "cells": within})
    return charts


def of_cell(cell: Cell) -> Json | None:
    """The mean and deviation over seeds of the return and of all that was told; None if nothing
    was."""
    each = [measured(run) for run in cell.runs]
    names = [name for name in each[0] if all(name in told for told in each)]
    if not names:
        return None
    x = cell.runs[0].interactions
    kept = thin(len(x), MARKS)
    returns = np.stack([run.returns for run in cell.runs])
    stacks = {"return": returns} | {name: np.stack([told[name] for told in each]) for name in names}
    return named(cell) | {
        "expert": float(f"{np.mean([run.expert_return for run in cell.runs]):.6g}"),
        "x": x[kept].tolist(),
        "told": {name: band(y[:, kept]) for name, y in stacks.items()},
        "leads": [{"seed": run.seed, "since": leads(run)} for run in cell.runs if leads(run)],
    }


def measured(run: StoredRun) -> dict[str, np.ndarray]:
    """What was told where it was measured, by name; what never was is left out."""
    told = {name: values.copy() for name, values in run.told.items()}
    none = np.full(len(run.interactions), np.nan)
    waits = (told.get("q", none) == 0) & (told.get("entropy", none) == 0)
    unled = (told.get("clone_earned", none) == 0) & (told.get("earned", none) == 0)
    for names, blank in ((WAITING, waits), (JUDGED, unled)):
        for name in names:
            if name in told:
                told[name][blank] = np.nan
    return {
        name: told[name]
        for name in DRAWN
        if name in told and (np.nan_to_num(told[name]) != 0).any()
    }


def leads(run: StoredRun) -> list[int]:
    """The interactions after which the lead changed hands, as far as the marks saw it; none where
    nobody is judged and the average is always handed out."""
    if "lead_since" not in run.told:
        return []
    since = np.unique(run.told["lead_since"])
    return [int(n) for n in since if n > 0]  # NaN is not


def band(y: Float[np.ndarray, "seeds marks"]) -> Json:
    """Mean and deviation over those seeds that told something at a mark."""
    there = np.isfinite(y)
    count = there.sum(axis=0)
    mean = np.where(there, y, 0).sum(axis=0) / np.maximum(count, 1)
    std = np.sqrt((np.where(there, y - mean, 0) ** 2).sum(axis=0) / np.maximum(count, 1))
    gone = count == 0
    return {
        "mean": digits(np.where(gone, np.nan, mean)),
        "std": digits(np.where(gone, np.nan, std)),
    }
