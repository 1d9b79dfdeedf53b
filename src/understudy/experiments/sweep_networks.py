"""A sweep of deep runs, each a task: on this machine's cores, or on a Ray cluster.

A run is a rehearsal and resumes exactly, so a sweep that was stopped goes on in the middle of each.
What fails is told at the end, and does not keep the others from running.
"""

import contextlib
import functools
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.deep import learner
from understudy.deep.config import DeepConfig
from understudy.errors import UserError
from understudy.experiments import cluster, console, deep_train, rehearsal, runs, workers
from understudy.experiments.cluster import Cluster
from understudy.experiments.shared import Place
from understudy.experiments.sweep import Sweep
from understudy.imitation import keys_of


@dataclass(frozen=True)
class Asked:
    """One run, and its folder."""

    env: str
    config: DeepConfig
    options: dict[str, Any]  # method, demos, trajectories, …, as of `deep_train.train`
    folder: Path

    @property
    def done(self) -> bool:
        return runs.done(self.folder)


def run(
    sweep: Sweep, out: Path, on: Cluster | None = None, checkpoint: float = rehearsal.SECONDS
) -> dict[str, Any]:
    """Run what is not done yet, each run in a folder of its own below `out`."""
    done = work(_asked(sweep, out), on, checkpoint)
    if failed := done.pop("failed"):
        raise UserError(f"{len(failed)} of {done['runs']} runs failed; the first: {failed[0]}")
    return {"sweep": sweep.name, "out": str(out), **done}


def work(
    asked: list[Asked], on: Cluster | None = None, checkpoint: float = rehearsal.SECONDS
) -> dict[str, Any]:
    """Run what is not done yet; what was done, where, and what failed."""
    begun = time.perf_counter()
    share = None if on is None else on.share
    if share is not None:
        for one in asked:
            share.fetch(one.folder)
    left = [one for one in asked if not one.done]
    failed: list[str] = []
    with console.bar() as bar:
        running = bar.add_task("runs", total=len(asked), completed=len(asked) - len(left))
        total = sum(one.config.interactions for one in left)
        practice = bar.add_task("interactions", total=total)

        def ended(place: int, error: BaseException | None) -> None:
            one = left[place]
            if share is not None:
                share.fetch(one.folder)
            if isinstance(error, UserError):
                failed.append(f"{one.folder.name}: {error}")
            elif error is not None:
                raise error
            elif not one.done:
                failed.append(f"{one.folder.name}: it ended, but not in a folder that is seen here")
            bar.advance(running)
            if not console.err.is_terminal:
                console.say(f"{one.folder.name}: {_reached(one)}")

        def tell() -> None:
            bar.update(practice, completed=sum(_latest(one)[0] for one in left))

        tasks = [functools.partial(_train, one, checkpoint, share) for one in left]
        if tasks and on is None:
            workers.work_off(tasks, ended, tell)
        elif tasks and on is not None:
            cluster.work_off(on, tasks, ended, tell)
    return {
        "runs": len(asked),
        "failed": failed,
        "resumed": len(asked) - len(left),
        "folders": [str(one.folder) for one in asked],
        "seconds": round(time.perf_counter() - begun, 3),
    }


def _asked(sweep: Sweep, out: Path) -> list[Asked]:
    """Every run of the sweep. Seeds vary slowest, so that early results say something of all."""
    keys_of(sweep.seeds)
    shown = {
        env: deep_train.demonstrations(env, sweep.demos, sweep.trajectories)
        for env in dict.fromkeys(sweep.envs)
    }
    listed = []
    for seed in sweep.seeds:
        for env, demonstrations in shown.items():
            for config in sweep.settings():
                assert isinstance(config, DeepConfig)
                learner.settle(config)  # refuses now what it would refuse later
                options = {
                    "method": "mdpo",
                    "demos": sweep.demos,
                    "trajectories": sweep.trajectories,
                    "thin": None,
                    "horizon": sweep.horizon,
                    "seed": seed,
                }
                request = deep_train.asked(env, config, demonstrations, **options)
                listed.append(Asked(env, config, options, out / runs.name(request)))
    return listed


def _train(one: Asked, checkpoint: float, share: Place | None) -> None:
    with share.keeping(one.folder, checkpoint) if share else contextlib.nullcontext():
        deep_train.train(one.env, one.config, **one.options, out=one.folder, checkpoint=checkpoint)


def _latest(one: Asked) -> tuple[int, float]:
    """Interactions and return at the last mark of a run under way."""
    try:
        line = (one.folder / "metrics.jsonl").read_text().splitlines()[-1]
        row = json.loads(line)
        return row["interactions"], row["return"]
    except (OSError, IndexError, ValueError):
        return 0, float("nan")


def _reached(one: Asked) -> str:
    interactions, gained = _latest(one)
    return f"return {gained:,.0f} after {interactions:,} interactions"
