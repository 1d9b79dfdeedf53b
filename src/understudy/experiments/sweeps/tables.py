"""A sweep of tables: seeds are batched, equal shapes share a compiled program."""

import dataclasses
import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core.errors import UserError
from understudy.core.precision import double
from understudy.envs import catalog
from understudy.experiments import console, outcome, runs, standing, train_tables
from understudy.experiments.sweeps import cluster, runner, workers
from understudy.experiments.sweeps.cluster import Cluster
from understudy.experiments.sweeps.shared_place import Place
from understudy.experiments.sweeps.sweep import Failure, Sweep, refuse_failed
from understudy.experiments.train_tables import Expert, choose_expert
from understudy.learners.config import Config
from understudy.learners.finite import Plan, expert_return, plan, pose
from understudy.learners.loop import Run
from understudy.learners.seeds import keys_of

AT_ONCE = 10  # seeds that share a batch


@dataclass(frozen=True)
class Cell:
    """Some seeds of one setting in one environment, and the folders of their runs."""

    requests: tuple[dict[str, Any], ...]
    folders: tuple[Path, ...]
    job: runner.Job

    @property
    def left(self) -> list[int]:
        """The places of the runs that have not finished."""
        return [i for i, folder in enumerate(self.folders) if not runs.ended(folder)]


def run(
    sweep: Sweep,
    out: Path,
    on: Cluster | None = None,
    checkpoint: float | None = None,
    *,
    restart: bool = False,
) -> dict[str, Any]:
    """Run what is not done yet, each run in a folder of its own below `out`."""
    if checkpoint is not None:
        raise UserError("--checkpoint is for runs with networks; those with tables have none.")
    done = work(sweep, out, on, restart=restart)
    failed = done.pop("failed")
    refuse_failed(failed, done["runs"])
    return done


@double
def work(
    sweep: Sweep, out: Path, on: Cluster | None = None, *, restart: bool = False
) -> dict[str, Any]:
    """The same; what failed is in the document."""
    begun = time.perf_counter()
    cells, failed = _cells(sweep, out)
    folders = [folder for cell in cells for folder in cell.folders]
    if on is not None and on.share is not None:
        for folder in folders:
            on.share.fetch(folder)
    if restart:
        for cell in cells:
            for folder, request in zip(cell.folders, cell.requests, strict=True):
                standing.mend(folder, request)
    left = sum(len(cell.left) for cell in cells)
    absent = sum(one.runs for one in failed)
    took, lost = here(cells, cells) if on is None else there(sweep, out, cells, on)
    return {
        "sweep": sweep.name,
        "out": str(out),
        "runs": len(folders) + absent,
        "failed": [*failed, *lost],
        "resumed": len(folders) - left,
        "folders": [str(folder) for folder in folders],
        "seconds": round(time.perf_counter() - begun, 3),
        **took,
    }


@double
def here(cells: list[Cell], asked: list[Cell]) -> tuple[dict[str, float], list[Failure]]:
    """On this machine, those `asked` of a sweep's cells; the seconds that it took, what failed."""
    failed: dict[Path, str] = {}
    waiting = {id(cell.job): (cell, len(left)) for cell in asked if (left := cell.left)}
    total = sum(len(cell.folders) for cell in asked)
    left = sum(count for _, count in waiting.values())
    with console.bar() as bar:
        compiling = bar.add_task("compiling programs", total=None, visible=left > 0)
        running = bar.add_task("runs", total=total, completed=total - left, visible=False)
        practice = bar.add_task(
            "interactions", total=sum(_cost(c) for c, _ in waiting.values()), visible=False
        )
        best: dict[str, float] = {}

        def compiled(done: int, of: int) -> None:
            bar.update(compiling, completed=done, total=of, visible=done < of)
            for task in (running, practice):
                bar.update(task, visible=done == of)

        def keep(job: runner.Job, result: Run) -> None:
            cell, _ = waiting[id(job)]
            bar.advance(running, _write(cell, result, failed))
            env, top = cell.requests[0]["env"], float(np.asarray(result.returns)[:, -1].max())
            best[env] = max(best.get(env, top), top)
            shown = ", ".join(f"{env} {value:.2f}" for env, value in best.items())
            bar.update(running, description=f"runs (best: {shown})")

        done = runner.run_jobs(
            [cell.job for cell in cells],
            wanted=lambda job: id(job) in waiting,
            keep=keep,
            failed=lambda job, error: failed.update(
                {folder: workers.said(error) for folder in waiting[id(job)][0].folders}
            ),
            compiled=compiled,
            progress=lambda more: bar.advance(practice, more),
        )
    took = {
        "compile_seconds": round(done.compile_seconds, 3),
        "run_seconds": round(done.run_seconds, 3),
    }
    return took, _failures(asked, failed)


def there(
    sweep: Sweep, out: Path, cells: list[Cell], on: Cluster
) -> tuple[dict[str, float], list[Failure]]:
    """On a cluster, a cell a task. Each runs in the program that all cells share, so the results
    are those of this machine."""
    places = [place for place, cell in enumerate(cells) if cell.left]
    total = sum(len(cell.folders) for cell in cells)
    left = sum(len(cells[place].left) for place in places)
    failed: dict[Path, str] = {}
    with console.bar() as bar:
        running = bar.add_task("runs", total=total, completed=total - left)

        def ended(task: int, error: BaseException | None) -> None:
            cell = cells[places[task]]
            if on.share is not None:
                for folder in cell.folders:
                    on.share.fetch(folder)
            why = "it ended, but not in a folder that is seen here"
            why = why if error is None else workers.said(error)
            failed.update({cell.folders[i]: why for i in cell.left})
            bar.update(running, completed=sum(len(c.folders) - len(c.left) for c in cells))

        tasks = [functools.partial(_at_node, sweep, out, place, on.share) for place in places]
        if tasks:
            cluster.work_off(on, tasks, ended, lambda: None)
    return {}, _failures(cells, failed)


def _at_node(sweep: Sweep, out: Path, place: int, share: Place | None) -> None:
    """One cell's task."""
    cells, _ = _cells(sweep, out)
    try:
        _, failed = here(cells, [cells[place]])
        if failed:
            raise UserError(failed[0].why)
    finally:
        if share is not None:
            for folder in cells[place].folders:
                share.bring(folder)


def _cells(sweep: Sweep, out: Path) -> tuple[list[Cell], list[Failure]]:
    """Every cell of the sweep, and the environments that have none."""
    keys_of(sweep.seeds)
    cells = []
    expert = Expert(demonstrations=sweep.trajectories)
    tasks, broken = {}, dict(sweep.broken)
    for name in sweep.envs:
        try:
            task = catalog.find(name, horizon=sweep.horizon)
            where = task.linear or task.mdp
            shown = choose_expert(task, expert, seed=0)
            tasks[task.name] = task, where, pose(where, shown, rewards=task.rewards or "ball")
        except UserError as error:
            broken[name] = str(error)
    if not tasks:
        raise UserError(next(iter(broken.values())))
    for env, (task, where, problem) in tasks.items():
        for config in sweep.settings():
            assert isinstance(config, Config)
            planned = plan(where, config)
            for seeds in _chunks(sweep.seeds, AT_ONCE):
                requests = tuple(
                    train_tables.request(task, config, seed, **dataclasses.asdict(expert))
                    for seed in seeds
                )
                folders = tuple(out / runs.name(request) for request in requests)
                cells.append(Cell(requests, folders, runner.Job(env, problem, planned, seeds)))
    return cells, [Failure(env, why, sweep.each()) for env, why in broken.items()]


def _fail(cell: Cell, i: int, returns: np.ndarray) -> None:
    """Mark a run whose policy became NaN, so that the sweep can go on without it."""
    marks, folder = cell.job.plan.marks, cell.folders[i]
    finite = np.isfinite(returns)
    first = len(returns) - 1 if finite.all() else int(np.argmin(finite))
    when = f"between updates {marks[max(first - 1, 0)]:,} and {marks[first]:,}"
    runs.begin(folder, cell.requests[i])
    runs.fail(folder, f"The policy became NaN {when}; use smaller step sizes.")


def _failures(cells: list[Cell], failed: Mapping[Path, str]) -> list[Failure]:
    """What cannot go on, now as before, and what did not go well this time."""
    folders = [folder for cell in cells for folder in cell.folders]
    told = [(f, runs.failure(f) or failed.get(f)) for f in folders if not runs.done(f)]
    return [Failure(folder.name, why) for folder, why in told if why]


def _cost(cell: Cell) -> int:
    p: Plan = cell.job.plan
    return p.iterations * p.protocol.fresh * len(cell.folders)


def _chunks(seeds: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    return [seeds[i : i + size] for i in range(0, len(seeds), size)]


def _write(cell: Cell, result: Run, failed: dict[Path, str]) -> int:
    """Write the runs of a cell that were not there yet; how many. Where one cannot be written, the
    reason joins those that failed."""
    job, left = cell.job, cell.left
    expert = expert_return(job.problem)
    batch = outcome.Outcome(result.measured, result.policy, result.state.pi, result.state.mu)
    for i in left:
        one = batch.of(i)
        try:
            standing.of_run(cell.folders[i], cell.requests[i])
        except UserError as error:  # what is there cannot be accounted for
            failed[cell.folders[i]] = str(error)
            continue
        if not np.isfinite(one.policy).all():
            _fail(cell, i, np.asarray(one.measured.returns))
            continue
        summary = {
            **outcome.ends(job.plan, one.measured),
            "expert_return": expert,
            "interactions": job.plan.iterations * job.plan.protocol.fresh,
            "iterations": job.plan.iterations,
            **outcome.step_sizes(job.plan),
        }
        try:
            outcome.record(cell.folders[i], cell.requests[i], summary, job.plan, job.problem, one)
        except UserError as error:
            failed[cell.folders[i]] = str(error)
    return len(left)
