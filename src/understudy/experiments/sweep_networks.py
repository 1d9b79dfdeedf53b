"""A sweep of deep runs: a process a core, one run at a time in each.

A run is a rehearsal and resumes exactly, so a sweep that was stopped goes on in the middle of each.
What fails is told at the end, and does not keep the others from running.
"""

import json
import multiprocessing
import os
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

from understudy.deep import learner
from understudy.deep.config import DeepConfig
from understudy.errors import UserError
from understudy.experiments import console, deep_train, runs
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


def run(sweep: Sweep, out: Path) -> dict[str, Any]:
    """Run what is not done yet, each run in a folder of its own below `out`."""
    done = work(_asked(sweep, out))
    if failed := done.pop("failed"):
        raise UserError(f"{len(failed)} of {done['runs']} runs failed; the first: {failed[0]}")
    return {"sweep": sweep.name, "out": str(out), **done}


def work(asked: list[Asked]) -> dict[str, Any]:
    """Run what is not done yet; what was done, where, and what failed."""
    begun = time.perf_counter()
    left = [one for one in asked if not one.done]
    failed: list[str] = []
    with console.bar() as bar:
        running = bar.add_task("runs", total=len(asked), completed=len(asked) - len(left))
        total = sum(one.config.interactions for one in left)
        practice = bar.add_task("interactions", total=total)

        def ended(one: Asked, future: Future[Any]) -> None:
            if isinstance(error := future.exception(), UserError):
                failed.append(f"{one.folder.name}: {error}")
            elif error is not None:
                raise error
            bar.advance(running)
            if not console.err.is_terminal:
                console.say(f"{one.folder.name}: {_reached(one)}")

        def tell() -> None:
            bar.update(practice, completed=sum(_latest(one)[0] for one in left))

        if left:
            _work_off(left, ended, tell)
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


def _work_off(left: list[Asked], ended: Any, tell: Any) -> None:
    """All of them on all cores."""
    fresh = multiprocessing.get_context("spawn")  # a forked JAX would hang
    cores = len(_cores())
    turn = fresh.Value("i", 0)
    with ProcessPoolExecutor(cores, fresh, initializer=_settle, initargs=(turn,)) as pool:
        waiting = {pool.submit(_train, one): one for one in left}
        try:
            while waiting:
                for future in wait(waiting, timeout=1).done:
                    ended(waiting.pop(future), future)
                tell()
        except BaseException:
            for process in (pool._processes or {}).values():  # ours, and busy for minutes more
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _settle(turn: "Synchronized[int]") -> None:
    """A worker keeps to one core, says nothing, and ends when the sweep does."""
    with turn.get_lock():
        place, turn.value = turn.value, turn.value + 1
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {_cores()[place % len(_cores())]})
    console.err.quiet = True
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # the run goes on from its checkpoint with the next sweep


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _train(one: Asked) -> None:
    deep_train.train(one.env, one.config, **one.options, out=one.folder)


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
