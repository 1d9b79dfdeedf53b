"""A sweep is data: environments, a grid of settings, seeds. Its runs resume where they stopped.

name = "windows"
envs = ["EmptyRoom-3x3", "EmptyRoom-5x5"]
seeds = 5                     # 0 … 4, or a list
[config]                      # the options of `understudy train`, for all runs
interactions = 2000
[grid]                        # every combination of these
window = ["1", "4", "32"]
"""

import dataclasses
import itertools
import re
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from understudy.config import Config, as_option, check
from understudy.envs import catalog
from understudy.errors import UserError
from understudy.experiments import account, console, runner, runs, store
from understudy.experiments.train import Expert, choose_expert
from understudy.imitation import Plan, expert_return, keys_of, plan, pose
from understudy.loop import Run

AT_ONCE = 10  # seeds that share a batch


@dataclass(frozen=True)
class Sweep:
    """Every setting of the grid, in every environment, for every seed."""

    name: str
    envs: tuple[str, ...]
    seeds: tuple[int, ...]
    horizon: int | None = None  # the environments' own, if not given
    config: Config = field(default_factory=Config)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def settings(self) -> list[Config]:
        """The configs of the grid, the last name varying fastest."""
        combinations = itertools.product(*self.grid.values())
        configs = (
            dataclasses.replace(self.config, **dict(zip(self.grid, values, strict=True)))
            for values in combinations
        )
        return list(dict.fromkeys(configs))  # what is listed twice is run once


@dataclass(frozen=True)
class Cell:
    """Some seeds of one setting in one environment, and the folders of their runs."""

    requests: tuple[dict[str, Any], ...]
    folders: tuple[Path, ...]
    job: runner.Job

    @property
    def left(self) -> list[int]:
        """The places of the runs that have not finished."""
        return [i for i, folder in enumerate(self.folders) if not runs.done(folder)]


def run(sweep: Sweep, out: Path) -> dict[str, Any]:
    """Run what is not done yet, each run in a folder of its own below `out`."""
    begun = time.perf_counter()
    with store.output_folder(out):
        cells = _cells(sweep, out)
        waiting = {id(cell.job): (cell, len(left)) for cell in cells if (left := cell.left)}
        total = sum(len(cell.folders) for cell in cells)
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
                bar.advance(running, _write(cell, result))
                env, top = cell.requests[0]["env"], float(np.asarray(result.returns)[:, -1].max())
                best[env] = max(best.get(env, top), top)
                shown = ", ".join(f"{env} {value:.2f}" for env, value in best.items())
                bar.update(running, description=f"runs (best: {shown})")

            done = runner.run_jobs(
                [cell.job for cell in cells],
                wanted=lambda job: id(job) in waiting,
                keep=keep,
                compiled=compiled,
                progress=lambda more: bar.advance(practice, more),
            )
    return {
        "sweep": sweep.name,
        "out": str(out),
        "runs": total,
        "resumed": total - left,
        "folders": [str(folder) for cell in cells for folder in cell.folders],
        "seconds": round(time.perf_counter() - begun, 3),
        "compile_seconds": round(done.compile_seconds, 3),
        "run_seconds": round(done.run_seconds, 3),
    }


def _cells(sweep: Sweep, out: Path) -> list[Cell]:
    keys_of(sweep.seeds)
    cells = []
    tasks = {
        task.name: task for task in (catalog.find(e, horizon=sweep.horizon) for e in sweep.envs)
    }
    for env, task in tasks.items():
        shown = choose_expert(task, Expert(), seed=0)
        where = task.linear or task.mdp
        problem = pose(where, shown)
        for config in sweep.settings():
            planned = plan(where, config)
            for seeds in _chunks(sweep.seeds, AT_ONCE):
                requests = tuple(
                    {
                        "env": task.name,
                        "horizon": task.mdp.horizon,
                        "seed": seed,
                        **dataclasses.asdict(Expert()),
                        "config": dataclasses.asdict(config),
                    }
                    for seed in seeds
                )
                folders = tuple(out / runs.name(request) for request in requests)
                cells.append(Cell(requests, folders, runner.Job(env, problem, planned, seeds)))
    return cells


def _cost(cell: Cell) -> int:
    p: Plan = cell.job.plan
    return p.iterations * p.protocol.fresh * len(cell.folders)


def _chunks(seeds: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    return [seeds[i : i + size] for i in range(0, len(seeds), size)]


def _write(cell: Cell, result: Run) -> int:
    """Write the runs of a cell that were not there yet; how many."""
    job, left = cell.job, cell.left
    expert = expert_return(job.problem)
    batch = account.Outcome(*result.measured, policy=result.state.pi, reward=result.state.mu)
    for i in left:
        one = batch.of(i)
        if not np.isfinite(one.policy).all():
            raise UserError(
                f"The policy of {cell.folders[i].name} became NaN; use smaller step sizes."
            )
        summary = {
            "return": float(one.returns[-1]),
            "expert_return": expert,
            "interactions": job.plan.iterations * job.plan.protocol.fresh,
            "iterations": job.plan.iterations,
            **account.step_sizes(job.plan),
        }
        account.record(cell.folders[i], cell.requests[i], summary, job.plan, job.problem, one)
    return len(left)


# --- from a file ---------------------------------------------------------------------------


def read(path: Path) -> Sweep:
    """A sweep from its TOML file, checked by name."""
    try:
        document = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"The sweep {path} does not exist.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"The sweep {path} cannot be read: {error}.") from None
    known = ("name", "envs", "seeds", "horizon", "config", "grid")
    unknown = set(document) - set(known)
    if unknown:
        raise UserError(f"The sweep {path} has '{min(unknown)}'; it may have {', '.join(known)}.")
    name, horizon = document.get("name", path.stem), document.get("horizon")
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]*", name):
        raise UserError(
            f"The sweep {path}: name = {name!r} must be a folder's name: letters, digits, - and _."
        )
    if horizon is not None and (type(horizon) is not int or horizon < 1):
        raise UserError(
            f"The sweep {path}: horizon = {horizon!r} must be a whole number, 1 or more."
        )
    envs: Any = document.get("envs")
    seeds = _seeds(document.get("seeds", 1))
    if not _list_of(envs, str):
        raise UserError(f"The sweep {path} needs envs, a list of environments by name.")
    if seeds is None:
        raise UserError(
            f"The sweep {path}: seeds must be how many (1 to 100,000), or a list of whole numbers."
        )
    config, grid = document.get("config", {}), document.get("grid", {})
    if not isinstance(config, dict) or not isinstance(grid, dict):
        raise UserError(f"The sweep {path}: [config] and [grid] must be tables.")
    for option, values in grid.items():
        if not isinstance(values, list) or not values:
            raise UserError(f"The sweep {path}: grid.{option} must be a list of values.")
        if option in config:
            raise UserError(f"The sweep {path} has {option} in [config] and in [grid]; keep one.")
    sweep = Sweep(
        name=name,
        envs=tuple(envs),
        seeds=seeds,
        horizon=horizon,
        config=Config(**{o: _option(path, o, value) for o, value in config.items()}),
        grid={o: tuple(_option(path, o, v) for v in values) for o, values in grid.items()},
    )
    for setting in sweep.settings():
        try:
            check(setting)
        except UserError as error:
            raise UserError(f"The sweep {path}: {error}") from None
    return sweep


def _seeds(given: Any) -> tuple[int, ...] | None:
    """From how many, or from a list; None where it is neither."""
    if type(given) is int and 1 <= given <= 100_000:
        return tuple(range(given))
    listed: Any = given if _list_of(given, int) else None
    return None if listed is None else tuple(dict.fromkeys(listed))


def _list_of(values: object, kind: type) -> bool:
    return (
        isinstance(values, list)
        and bool(values)
        and all(isinstance(v, kind) and not isinstance(v, bool) for v in values)
    )


def _option(path: Path, name: str, value: Any) -> Any:
    """A value for the option of that name: as `Config` annotates it, or a sentence that says so."""
    options = [field.name for field in dataclasses.fields(Config)]
    if name not in options:
        near = ", ".join(options)
        raise UserError(f"The sweep {path}: there is no option '{name}'; the options are {near}.")
    read = str(value) if name == "window" and type(value) is int else value  # N as a number
    try:
        return as_option(name, read)
    except ValueError:
        raise UserError(
            f"The sweep {path}: {name} = {value!r} is not what that option takes; "
            f"see understudy train --help."
        ) from None
