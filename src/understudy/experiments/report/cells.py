"""Runs as cells, all that was asked but the seed, and the numbers of a cell as the page wants them.

Runs of the same environment and N that differ in anything else are never averaged: what differs
becomes the name of their setting.
"""

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from understudy.experiments.stored_runs import StoredRun
from understudy.learners.config import Config

Json = dict[str, Any]

SPLIT = ("optimisation", "shift", "estimation", "demonstrations")  # of the reward regret
BOOKED = (*SPLIT, "reward", "policy", "ail")
SILENT = {"window", "ledger", "replay"}  # config that says how to keep or name a run, not to learn


@dataclasses.dataclass(frozen=True)
class Cell:
    """Runs that differ in their seed alone."""

    env: str
    window: str
    asked: dict[str, str]  # all but environment, window and seed
    names: tuple[str, ...]  # what differs between the cells of this environment
    runs: list[StoredRun]

    def setting(self, *, but: str | None = None) -> str:
        """In words; a run of another kind lacks some of what differs."""
        said = (key for key in self.names if key != but and key in self.asked)
        return ", ".join(f"{key} {self.asked[key]}" for key in said)

    def stack(self, values: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        each = np.stack([np.asarray(v, dtype=float) for v in values])
        return each.mean(0), each.std(0)


def gather(stored: Sequence[StoredRun]) -> tuple[list[Cell], list[str]]:
    """Cells in order of environment and window; and a sentence on each run that is there twice."""
    groups: dict[tuple[Any, ...], dict[int, StoredRun]] = {}
    repeated = []
    for run in sorted(stored, key=lambda run: run.regret is None):  # with a ledger first
        marks = hashlib.sha256(run.interactions.tobytes() + run.updates.tobytes()).hexdigest()
        key = (str(run.env), str(run.window), tuple(sorted(asked(run).items())), marks)
        seeds = groups.setdefault(key, {})
        if run.seed in seeds:
            other = seeds[run.seed].folder
            repeated.append(f"The run {run.folder} repeats {other}, and is counted once.")
        else:
            seeds[run.seed] = run
    values: dict[str, dict[str, set[str]]] = {}
    for env, _, pairs, _ in groups:
        for name, value in pairs:
            values.setdefault(env, {}).setdefault(name, set()).add(value)
    cells = [
        Cell(
            env=env,
            window=window,
            asked=dict(pairs),
            names=tuple(name for name, seen in values[env].items() if len(seen) > 1),
            runs=[seeds[seed] for seed in sorted(seeds)],
        )
        for (env, window, pairs, _), seeds in groups.items()
    ]
    cells.sort(key=lambda c: (natural(c.env), by_size(c.window), natural(c.setting())))
    return cells, repeated


def asked(run: StoredRun) -> dict[str, str]:
    """What a run was asked, in words; options that it is too old to know have their defaults."""
    known = {field.name: field.default for field in dataclasses.fields(Config)}
    config = {**known, **run.request["config"]}
    return {
        name: "none" if value is None else spoken(value)
        for name, value in {**run.asked, **config}.items()
        if name not in SILENT
    }


def natural(text: str) -> list[tuple[bool, float, str]]:
    """EmptyRoom-9x9 before EmptyRoom-10x10."""
    parts = re.split(r"(\d+)", text)
    return [(i % 2 == 0, float(p) if i % 2 else 0.0, p) for i, p in enumerate(parts)]


def by_size(window: str) -> tuple[int, float, str]:
    """Numbers by size, then growing windows, then the adaptive one, then all."""
    try:
        return (0, float(window), window)
    except ValueError:
        return ({"adaptive": 2, "all": 3}.get(window, 1), 0.0, window)


def by_env(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.env, []).append(cell)
    return groups


def named(cell: Cell) -> Json:
    return {"N": cell.window, "setting": cell.setting(), "seeds": len(cell.runs)}


def has_ledger(run: StoredRun) -> bool:
    booked = run.regret or {}
    return all(term in booked and booked[term].ndim == 1 for term in BOOKED)


def thin(marks: int, most: int, *, early: bool = True) -> np.ndarray:
    """At most so many of the marks, first and last among them; more early ones, for log axes."""
    if marks <= most:
        return np.arange(marks)
    if not early:
        return np.unique(np.linspace(0, marks - 1, most).round().astype(int))
    even = np.linspace(0, marks - 1, most - most // 4)
    return np.unique(np.append(even, np.geomspace(1, marks - 1, most // 4)).round().astype(int))


def last_of_each(k: np.ndarray) -> np.ndarray:
    """The marks at which an update was new: an iteration may take longer than from mark to mark."""
    return np.flatnonzero(np.append(np.diff(k) > 0, True))


def digits(values: Iterable[float]) -> list[float | None]:
    """Six significant digits; what is not a number is nothing, since JSON has no NaN."""
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in values]


def average(values: Iterable[Any]) -> float | None:
    """None if any is: a bound that covers some of the runs is no bound of their mean."""
    listed = list(values)
    if not listed or not all(isinstance(v, int | float) and np.isfinite(v) for v in listed):
        return None
    return float(f"{np.mean(listed):.6g}")


def thousandths(frames: np.ndarray) -> list[list[int]]:
    """Three digits, as whole numbers, a flat list a frame: s · A + a."""
    return (frames.reshape(len(frames), -1) * 1000).round().astype(int).tolist()


def spoken(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {spoken(of)}" for key, of in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(spoken(of) for of in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
