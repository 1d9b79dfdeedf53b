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

from understudy.core.errors import UserError
from understudy.experiments import console, deep_run, runs, standing, train_networks
from understudy.experiments.sweeps import cluster, workers
from understudy.experiments.sweeps.cluster import Cluster
from understudy.experiments.sweeps.shared_place import Place
from understudy.experiments.sweeps.sweep import Failure, Sweep, refuse_failed
from understudy.learners.deep import learner
from understudy.learners.deep.config import DeepConfig
from understudy.learners.seeds import keys_of


@dataclass(frozen=True)
class Asked:
    """One run, and its folder."""

    env: str
    config: DeepConfig
    options: dict[str, Any]  # method, demos, trajectories, …, as of `train_networks.train`
    request: dict[str, Any]
    folder: Path

    @property
    def done(self) -> bool:
        return runs.done(self.folder)


def run(
    sweep: Sweep,
    out: Path,
    on: Cluster | None = None,
    checkpoint: float | None = None,
    *,
    restart: bool = False,
) -> dict[str, Any]:
    """Run what is not done yet, each run in a folder of its own below `out`."""
    asked, absent = _asked(sweep, out)
    seconds = deep_run.SECONDS if checkpoint is None else checkpoint
    done = work(asked, on, seconds, restart=restart)
    total = len(asked) + sum(one.runs for one in absent)
    refuse_failed([*absent, *done.pop("failed")], total)
    return {"sweep": sweep.name, "out": str(out), **done}


def work(
    asked: list[Asked],
    on: Cluster | None = None,
    checkpoint: float = deep_run.SECONDS,
    *,
    restart: bool = False,
) -> dict[str, Any]:
    """Run what is not done yet; what was done, where, and what failed."""
    begun = time.perf_counter()
    share = None if on is None else on.share
    if share is not None:
        for one in asked:
            share.fetch(one.folder)
    if restart:
        for one in asked:
            standing.mend(one.folder, one.request)
    left = [one for one in asked if not one.done]
    failed: list[Failure] = []
    with console.bar() as bar:
        running = bar.add_task("runs", total=len(asked), completed=len(asked) - len(left))
        total = sum(one.config.interactions for one in left)
        practice = bar.add_task("interactions", total=total)

        def ended(place: int, error: BaseException | None) -> None:
            one = left[place]
            if share is not None:
                share.fetch(one.folder)
            if error is not None:
                failed.append(Failure(one.folder.name, workers.said(error)))
            elif not one.done:
                unseen = "it ended, but not in a folder that is seen here"
                failed.append(Failure(one.folder.name, unseen))
            bar.advance(running)
            if not console.err.is_terminal:
                console.say(f"{one.folder.name}: {_reached(one) if one.done else 'failed'}")

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


def _asked(sweep: Sweep, out: Path) -> tuple[list[Asked], list[Failure]]:
    """Every run of the sweep, and the environments that have none. Seeds vary slowest, so that
    early results say something of all."""
    keys_of(sweep.seeds)
    shown, broken = {}, dict(sweep.broken)
    for env in dict.fromkeys(sweep.envs):
        try:
            shown[env] = train_networks.demonstrations(env, sweep.demos, sweep.trajectories)
        except UserError as error:
            broken[env] = str(error)
    if not shown:
        raise UserError(next(iter(broken.values())))
    listed = []
    for seed in sweep.seeds:
        for env, demonstrations in shown.items():
            for config in sweep.settings():
                assert isinstance(config, DeepConfig)
                learner.resolve(config)  # refuses now what it would refuse later
                options = {
                    "method": "mdpo",
                    "demos": sweep.demos,
                    "trajectories": sweep.trajectories,
                    "thin": None,
                    "horizon": sweep.horizon,
                    "seed": seed,
                }
                request = train_networks.request(env, config, demonstrations, **options)
                listed.append(Asked(env, config, options, request, out / runs.name(request)))
    return listed, [Failure(env, why, sweep.each()) for env, why in broken.items()]


def _train(one: Asked, checkpoint: float, share: Place | None) -> None:
    with share.keeping(one.folder, checkpoint) if share else contextlib.nullcontext():
        train_networks.train(
            one.env, one.config, **one.options, out=one.folder, checkpoint=checkpoint
        )


def _latest(one: Asked) -> tuple[int, float]:
    """Interactions and return at the last mark of a run under way."""
    try:
        line = (one.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1]
        row = json.loads(line)
        return row["interactions"], row["return"]
    except (OSError, IndexError, ValueError):
        return 0, float("nan")


def _reached(one: Asked) -> str:
    interactions, gained = _latest(one)
    return f"return {gained:,.0f} after {interactions:,} interactions"
