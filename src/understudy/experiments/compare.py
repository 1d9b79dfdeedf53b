"""`understudy compare`: methods side by side, with the same budget, demonstrations, measurements
and seeds. Its runs are runs like any other; stopped, the same command goes on where it was."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.core.occupancy import policy_of
from understudy.core.precision import double
from understudy.envs import catalog
from understudy.experiments import (
    console,
    kinds,
    outcome,
    runs,
    standing,
    store,
    stored_runs,
    train_networks,
    train_tables,
)
from understudy.experiments.comparison import (
    Cells,
    Shown,
    budget_of,
    colour_of,
    draw,
    levels,
    markdown,
    ours_last,
    ranked,
    reached,
    spelt,
    titles_of,
    work,
)
from understudy.experiments.stored_runs import StoredRun
from understudy.experiments.sweeps import networks, tables
from understudy.experiments.sweeps.sweep import Sweep
from understudy.experiments.train_tables import Expert, choose_expert
from understudy.learners.baselines import methods
from understudy.learners.config import Config
from understudy.learners.deep import learner
from understudy.learners.deep.config import PRESETS
from understudy.learners.deep.executed import Executed, executed
from understudy.learners.deep.expert_points import kept
from understudy.learners.finite import expert_return, plan, pose
from understudy.learners.loop import imitation_gap


@double
def compare(
    env: str,
    names: Sequence[str],
    *,
    budget: int | None = None,
    seeds: int = 3,
    demos: str | None = None,
    shown: Sequence[Shown] = (Shown(),),
    out: Path | None = None,
    restart: bool = False,
) -> dict[str, Any]:
    """Run what is not done yet, and return table, figure and all that is in them. With `restart`,
    runs that are damaged or have failed are moved aside first."""
    deep = kinds.of_env(env) is kinds.NETWORKS
    known = titles_of(deep)
    names, shown = list(dict.fromkeys(names or known)), list(dict.fromkeys(shown))
    for name in names:
        if name not in known:
            raise UserError(f"There is no method '{name}' for {env}; there are {', '.join(known)}.")
    if budget is not None and budget < 1:
        raise UserError(f"--budget is {budget}; it must be at least 1.")
    if not 1 <= seeds <= 1_000:
        raise UserError(f"--seeds is {seeds}; it must be from 1 to 1,000.")
    if not deep and any(one.thin for one in shown):
        raise UserError("--thin is for environments with continuous observations.")
    if not deep and demos is not None:
        raise UserError("--demos is for environments with continuous observations.")
    out = out or Path("runs") / f"compare-{re.sub('[/:]', '-', runs.short(env))}"
    with store.workplace(out):
        run = _with_networks if deep else _with_tables
        asked = Comparison(env, names, budget, range(seeds), demos, shown, out, restart)
        stored = run(asked)
        for sentence in asked.failed:
            console.say(f"Failed, and left out: {sentence}")
        if not stored:
            why = f" The first failed: {asked.failed[0]}" if asked.failed else ""
            raise UserError(f"No run on {env} ended; there is nothing to compare.{why}")
        rows = ranked(stored)
        document = {
            "env": env,
            "demos": demos,
            "budget": budget_of(stored),
            "expert": float(np.mean([r.expert_return for cell in stored.values() for r in cell])),
            "rows": [
                {**dataclasses.asdict(row), "title": known[row.method], "reached": reached(row)}
                for row in rows
            ],
            "executed": [
                {"method": name, "title": known[name], **each._asdict(), "spelt": spelt(each)}
                for name, each in asked.executed.items()
            ],
            "curves": [
                {"shown": str(one), "title": known[name], "colour": colour_of(name)}
                | {k: np.round(v, 4).tolist() for k, v in levels(cell, budget_of(stored)).items()}
                for (one, name), cell in ours_last(stored)
            ],
        }
        store.write_json(out / "compare.json", document)
        drawn = draw(env, stored, known, out / "compare")
        return {
            **document,
            "out": str(out),
            "figure": str(drawn),
            "table": markdown(rows, known),
            "work": work(asked.executed, known) if asked.executed else None,
            "failed": asked.failed,
        }


@dataclass(frozen=True)
class Comparison:
    """What to compare, checked."""

    env: str
    names: Sequence[str]
    budget: int | None
    seeds: Sequence[int]
    demos: str | None
    shown: Sequence[Shown]
    out: Path
    restart: bool  # those that are damaged or have failed
    failed: list[str] = field(default_factory=list)  # the runs that are left out, and why
    executed: dict[str, Executed] = field(default_factory=dict)  # by method; none with tables


def _with_networks(of: Comparison) -> Cells:
    base = PRESETS["fast"]
    base = dataclasses.replace(base, interactions=of.budget or base.interactions)
    cells: dict[tuple[Shown, str], list[networks.Asked]] = {}
    for one in of.shown:
        demonstrations = train_networks.demonstrations(of.env, of.demos, one.trajectories)
        kept(demonstrations, one.thin)  # refuses now what it would refuse later
        for name in of.names:
            method, config = methods.compared(name, base)
            of.executed[name] = executed(method, learner.resolve(config))
            for seed in of.seeds:
                options: dict[str, Any] = {
                    "method": method,
                    "demos": of.demos,
                    "trajectories": one.trajectories,
                    "thin": one.thin,
                    "horizon": None,
                    "seed": seed,
                }
                request = train_networks.request(of.env, config, demonstrations, **options)
                folder = of.out / name / runs.name(request)
                asked = networks.Asked(of.env, config, options, request, folder)
                cells.setdefault((one, name), []).append(asked)
    # Seeds vary slowest, so that early results say something of all.
    by_seed = [asked for group in zip(*cells.values(), strict=True) for asked in group]
    done = networks.work(by_seed, restart=of.restart)
    of.failed.extend(map(str, done["failed"]))
    ended = {
        key: _read(asked.folder for asked in cell if asked.done) for key, cell in cells.items()
    }
    return {key: cell for key, cell in ended.items() if cell}


def _with_tables(of: Comparison) -> Cells:
    base = Config(interactions=of.budget or Config.interactions, ledger=False)
    task = catalog.find(of.env)
    mdp = task.mdp
    best = float(mdps.optimum(mdp, mdp.reward)[1])

    def beside_the_expert(run: StoredRun, shown: Shown) -> StoredRun:
        """A run beside the expert's own value, not beside its luck in the episodes shown."""
        if shown.trajectories is None:
            return run
        return dataclasses.replace(run, summary={**run.summary, "expert_return": best})

    cells: dict[tuple[Shown, str], list[StoredRun]] = {}
    for name in of.names:
        # Refuses now what it would refuse later.
        plan(task.linear or mdp, methods.tabular_options(name, base))
    for one in of.shown:
        for name in of.names:
            asked = Sweep(
                name,
                (of.env,),
                tuple(of.seeds),
                config=methods.tabular_options(name, base),
                trajectories=one.trajectories,
            )
            if name == "bc":
                folders = _counted(of, asked, of.out / name)
            else:
                done = tables.work(asked, of.out / name, restart=of.restart)
                of.failed.extend(map(str, done["failed"]))
                folders = [folder for folder in map(Path, done["folders"]) if runs.done(folder)]
            cells[one, name] = [beside_the_expert(run, one) for run in _read(folders)]
    return {key: cell for key, cell in cells.items() if cell}


def _read(folders: Iterable[Path]) -> list[StoredRun]:
    """The runs that can be read; what is skipped is told."""
    found, skipped = stored_runs.read_all(folders)
    for sentence in skipped:
        console.say(f"Skipped: {sentence}")
    return found


def _counted(of: Comparison, asked: Sweep, out: Path) -> list[Path]:
    """The runs of cloning by counts that there are in the end."""
    folders = []
    for seed in of.seeds:
        try:
            folders.append(_count(asked, seed, out, of.restart))
        except UserError as error:
            of.failed.append(str(error))
    return folders


def _count(asked: Sweep, seed: int, out: Path, restart: bool) -> Path:
    """Cloning by counts, as a run: the same return at every mark, for there is no practice. Sampled
    demonstrations are the same for every seed, as they are for the other methods."""
    task, config = catalog.find(asked.envs[0]), asked.config
    assert isinstance(config, Config)
    expert = Expert(demonstrations=asked.trajectories)
    asked_of = {**dataclasses.asdict(expert), "method": "counts"}
    request = train_tables.request(task, config, seed, **asked_of)
    folder = out / runs.name(request)
    if restart:
        standing.mend(folder, request)
    if runs.done(folder):
        return folder
    problem = pose(task.mdp, choose_expert(task, expert, seed=0))
    pi = policy_of(problem.expert)
    planned = plan(task.mdp, dataclasses.replace(config, handed="last"))
    value = float(mdps.value(task.mdp, pi, task.mdp.reward))
    gap = float(imitation_gap(problem, mdps.occupancy(task.mdp, pi), stationary=False))
    result = outcome.Outcome.unpractised(np.asarray(pi), value, gap, len(planned.marks))
    summary = {
        "return": value,
        "gap": gap,
        "expert_return": expert_return(problem),
        "interactions": 0,
    }
    outcome.record(folder, request, summary, planned, problem, result)
    return folder
