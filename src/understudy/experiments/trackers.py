"""Metrics shown elsewhere while they are written: TensorBoard, Weights & Biases.

`metrics.jsonl` is always there, and is the record; a tracker is told the same rows, from the first
one on whenever a run goes on, so that it misses none.
"""

import contextlib
import importlib
import importlib.util
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from understudy.core import extras
from understudy.experiments import console, runs, store

Tracker = Literal["tensorboard", "wandb"]
Tell = Callable[[Mapping[str, Any]], None]


@contextlib.contextmanager
def tracking(names: Sequence[Tracker], folder: Path, request: Mapping[str, Any]) -> Iterator[Tell]:
    """Opens the trackers; what it yields tells each of them a row of metrics."""
    with contextlib.ExitStack() as stack:
        opened = [
            stack.enter_context(
                {"tensorboard": _tensorboard, "wandb": _wandb}[name](folder, request)
            )
            for name in dict.fromkeys(names)
        ]

        def tell(row: Mapping[str, Any]) -> None:
            for one in opened:
                one(dict(_numbers(row)))

        yield tell


def refuse_missing(names: Sequence[Tracker]) -> None:
    """Before any work is spent."""
    for name in names:
        extras.refuse_missing(f"--track {name}", name)


def replay(names: Sequence[Tracker], folder: Path) -> None:
    """Tell the trackers of a run that has ended."""
    if not names:
        return
    request = store.read_json(folder / "config.json", "The run's")
    request.pop("versions", None)
    with tracking(names, folder, request) as tell:
        for row in runs.metrics(folder):
            tell(row)


def _numbers(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Each number under its name; those of the ledger under 'regret/'."""
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and math.isfinite(value):
            yield prefix + name, float(value)


@contextlib.contextmanager
def _tensorboard(folder: Path, request: Mapping[str, Any]) -> Iterator[Tell]:
    writer = importlib.import_module("tensorboard.summary").Writer(str(folder / "tensorboard"))

    def tell(row: Mapping[str, Any]) -> None:
        for name, value in row.items():
            writer.add_scalar(name, value, int(row["interactions"]))
        writer.flush()

    try:
        yield tell
    finally:
        writer.close()
        console.say(f"TensorBoard: tensorboard --logdir {folder / 'tensorboard'}")


@contextlib.contextmanager
def _wandb(folder: Path, request: Mapping[str, Any]) -> Iterator[Tell]:
    """Without the network, unless WANDB_MODE asks for it."""
    wandb = importlib.import_module("wandb")
    mode: Any = os.environ.get("WANDB_MODE", "offline")
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", "understudy"),
        name=folder.name,
        id=runs.identity(request),
        resume="allow" if mode == "online" else None,
        config={**request["config"], **{k: v for k, v in request.items() if k != "config"}},
        dir=str(folder),
        mode=mode,
        settings=wandb.Settings(silent=True, console="off"),
    )
    run.define_metric("*", step_metric="interactions")
    try:
        yield run.log
    finally:
        run.finish()
        if mode == "offline":
            console.say(f"W&B: wandb sync {folder / 'wandb'}/offline-run-*")
