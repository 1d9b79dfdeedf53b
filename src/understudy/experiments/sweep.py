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
import time
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from understudy.config import Config, check
from understudy.envs import catalog
from understudy.errors import UserError
from understudy.experiments import account, console, runner, runs, store
from understudy.experiments.train import Expert, choose_expert
from understudy.imitation import Plan, expert_occupancy, expert_return, keys_of, plan
from understudy.tabular import Problem, Run

AT_ONCE = 10  # seeds that share a batch


@dataclass(frozen=True)
class Sweep:
    """Every setting of the grid, in every environment, for every seed."""

    name: str
    envs: tuple[str, ...]
    seeds: tuple[int, ...]
    config: Config = field(default_factory=Config)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def settings(self) -> list[Config]:
        """The configs of the grid, the last name varying fastest."""
        combinations = itertools.product(*self.grid.values())
        return [
            dataclasses.replace(self.config, **dict(zip(self.grid, values, strict=True)))
            for values in combinations
        ]


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
        of_job = {id(cell.job): cell for cell in cells}
        total = sum(len(cell.folders) for cell in cells)
        left = sum(len(cell.left) for cell in cells)
        with console.bar() as bar:
            compiling = bar.add_task("compiling programs", total=None, visible=left > 0)
            running = bar.add_task("runs", total=total, completed=total - left, visible=False)
            practice = bar.add_task(
                "interactions", total=sum(_cost(cell) for cell in cells if cell.left), visible=False
            )
            best: dict[str, float] = {}

            def compiled(done: int, of: int) -> None:
                bar.update(compiling, completed=done, total=of, visible=done < of)
                for task in (running, practice):
                    bar.update(task, visible=done == of)

            def keep(job: runner.Job, result: Run) -> None:
                cell = of_job[id(job)]
                bar.advance(running, _write(cell, result))
                env, top = cell.requests[0]["env"], float(np.asarray(result.returns)[:, -1].max())
                best[env] = max(best.get(env, top), top)
                shown = ", ".join(f"{env} {value:.2f}" for env, value in best.items())
                bar.update(running, description=f"runs (best: {shown})")

            done = runner.run_jobs(
                [cell.job for cell in cells],
                wanted=lambda job: bool(of_job[id(job)].left),
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
    for env in sweep.envs:
        task = catalog.find(env)
        shown = choose_expert(task, Expert(), seed=0)
        problem = Problem(task.mdp, expert_occupancy(task.mdp, shown))
        for config in sweep.settings():
            planned = plan(task.mdp, config)
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
    batch = result.returns, result.regret, result.glimpse, result.state.pi, result.state.mu
    for i in left:
        returns, regret, glimpse, pi, mu = jax.tree.map(lambda x, i=i: np.asarray(x[i]), batch)
        if not np.isfinite(pi).all():
            raise UserError(
                f"The policy of {cell.folders[i].name} became NaN; use smaller step sizes."
            )
        summary: dict[str, Any] = {
            "return": float(returns[-1]),
            "expert_return": expert,
            "interactions": job.plan.iterations * job.plan.protocol.fresh,
            "iterations": job.plan.iterations,
            **account.step_sizes(job.plan),
        }
        if regret is not None:
            summary["ledger"] = account.ledger(regret, job.plan, job.problem.mdp)
        runs.begin(cell.folders[i], cell.requests[i])
        runs.append(cell.folders[i], account.rows(job.plan, returns, regret))
        replay = None if glimpse is None else vars(glimpse)
        runs.finish(cell.folders[i], {"policy": pi, "reward": mu}, summary, replay)
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
    unknown = set(document) - {"name", "envs", "seeds", "config", "grid"}
    if unknown:
        raise UserError(
            f"The sweep {path} has '{min(unknown)}'; it may have name, envs, seeds, config, grid."
        )
    envs: Any = document.get("envs")
    seeds = _seeds(document.get("seeds", 1))
    if not _list_of(envs, str):
        raise UserError(f"The sweep {path} needs envs, a list of environments by name.")
    if seeds is None:
        raise UserError(f"The sweep {path}: seeds must be how many, or a list of whole numbers.")
    config, grid = document.get("config", {}), document.get("grid", {})
    if not isinstance(config, dict) or not isinstance(grid, dict):
        raise UserError(f"The sweep {path}: [config] and [grid] must be tables.")
    for option, values in grid.items():
        if not isinstance(values, list) or not values:
            raise UserError(f"The sweep {path}: grid.{option} must be a list of values.")
    sweep = Sweep(
        name=str(document.get("name", path.stem)),
        envs=tuple(envs),
        seeds=seeds,
        config=Config(**{o: _option(path, o, value) for o, value in config.items()}),
        grid={o: tuple(_option(path, o, v) for v in values) for o, values in grid.items()},
    )
    for setting in sweep.settings():
        check(setting)
    return sweep


def _seeds(given: Any) -> tuple[int, ...] | None:
    """From how many, or from a list; None where it is neither."""
    if type(given) is int and 1 <= given <= 100_000:
        return tuple(range(given))
    listed: Any = given if _list_of(given, int) else None
    return None if listed is None else tuple(dict.fromkeys(listed))


def _list_of(values: object, kind: type | types.UnionType) -> bool:
    return (
        isinstance(values, list)
        and bool(values)
        and all(isinstance(v, kind) and not isinstance(v, bool) for v in values)
    )


def _option(path: Path, name: str, value: Any) -> Any:
    """A value for the option of that name: as `Config` annotates it, or a sentence that says so."""
    hints = typing.get_type_hints(Config)
    if name not in hints:
        near = ", ".join(hints)
        raise UserError(f"The sweep {path}: there is no option '{name}'; the options are {near}.")
    if name == "window" and isinstance(value, int):
        value = str(value)  # N may be written as a number
    value = tuple(float(v) for v in value) if _list_of(value, int | float) else value
    if type(value) is int and not _fits(value, hints[name]):
        value = float(value)  # a whole number is a number too
    if not _fits(value, hints[name]):
        raise UserError(f"The sweep {path}: {name} = {value!r} is not what that option takes.")
    return value


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an option's type."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return any(_fits(value, one) for one in typing.get_args(hint))
    if typing.get_origin(hint) is typing.Literal:
        return value in typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return isinstance(value, tuple)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
