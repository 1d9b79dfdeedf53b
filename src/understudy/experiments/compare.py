"""`understudy compare`: methods side by side, with the same budget, demonstrations, measurements
and seeds. Its runs are runs like any other; stopped, the same command goes on where it was."""

import dataclasses
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import ticker
from matplotlib.figure import Figure

from understudy.core.errors import UserError
from understudy.core.occupancy import policy_of
from understudy.envs import catalog
from understudy.experiments import console, figures, runs, standing, store, stored_runs
from understudy.experiments import outcome as account
from understudy.experiments.stored_runs import StoredRun
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners.baselines import methods
from understudy.learners.config import Config
from understudy.learners.deep.config import PRESETS
from understudy.learners.finite import expert_return, plan, pose

PARTS = (0.1, 0.25, 0.5, 1.0)  # of the budget, where a method is shown
NEAR = 0.9  # of the expert's return: how soon a method is there ranks it
DEEP = {"understudy" if name == "mdpo" else name: name for name in methods.TITLES}
COLOURS = {
    "understudy": "#D55E00",
    "bc": "#666666",
    "gail": "#E69F00",
    "dac": "#0072B2",
    "sqil": "#009E73",
    "iq-learn": "#CC79A7",
    "importance": "#56B4E9",
    "oal": "#443300",
}


@dataclass(frozen=True)
class Shown:
    """What is demonstrated: so many trajectories (None: all there are), every so many steps."""

    trajectories: int | None = None
    thin: int | None = None

    def __str__(self) -> str:
        many = "all" if self.trajectories is None else str(self.trajectories)
        plural = "trajectory" if self.trajectories == 1 else "trajectories"
        thinned = "" if self.thin is None else f", every {self.thin}th step"
        return f"{many} {plural}{thinned}"


@dataclass(frozen=True)
class Row:
    """One method, from one set of demonstrations, over seeds."""

    shown: str
    method: str
    seeds: int
    shares: tuple[float, ...]  # of the expert's return, interquartile mean at PARTS
    interval: tuple[float, float]  # of the last, 95 % bootstrap
    near: tuple[int | None, ...]  # by seed: the interactions to NEAR
    seconds: float | None  # of a run
    rank: int = 0

    @property
    def typical(self) -> float:
        """The median of `near`; infinite where most seeds never get there."""
        return float(statistics.median(np.inf if n is None else n for n in self.near))


def compare(
    env: str,
    names: Sequence[str],
    *,
    budget: int | None = None,
    seeds: int = 3,
    shown: Sequence[Shown] = (Shown(),),
    out: Path | None = None,
    restart: bool = False,
) -> dict[str, Any]:
    """Run what is not done yet, and return table, figure and all that is in them. With `restart`,
    runs that are damaged or have failed are moved aside first."""
    deep = catalog.continuous(env)
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
    out = out or Path("runs") / f"compare-{re.sub('[/:]', '-', runs.short(env))}"
    with store.workplace(out):
        run = _with_networks if deep else _with_tables
        asked = Comparison(env, names, budget, range(seeds), shown, out, restart)
        stored = run(asked)
        for sentence in asked.failed:
            console.say(f"Failed, and left out: {sentence}")
        if not stored:
            why = f" The first failed: {asked.failed[0]}" if asked.failed else ""
            raise UserError(f"No run on {env} ended; there is nothing to compare.{why}")
        rows = ranked(stored)
        document = {
            "env": env,
            "budget": budget_of(stored),
            "expert": float(np.mean([r.expert_return for cell in stored.values() for r in cell])),
            "rows": [
                {**dataclasses.asdict(row), "title": known[row.method], "reached": reached(row)}
                for row in rows
            ],
            "curves": [
                {"shown": str(one), "title": known[name], "colour": COLOURS[name]}
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
            "failed": asked.failed,
        }


Cells = Mapping[tuple[Shown, str], list[StoredRun]]


@dataclass(frozen=True)
class Comparison:
    """What to compare, checked."""

    env: str
    names: Sequence[str]
    budget: int | None
    seeds: Sequence[int]
    shown: Sequence[Shown]
    out: Path
    restart: bool  # those that are damaged or have failed
    failed: list[str] = field(default_factory=list)  # the runs that are left out, and why


def _with_networks(of: Comparison) -> Cells:
    from understudy.experiments import train_networks as deep_train
    from understudy.experiments.sweeps import networks as sweep_networks
    from understudy.learners.deep import learner

    base = PRESETS["fast"]
    base = dataclasses.replace(base, interactions=of.budget or base.interactions)
    cells: dict[tuple[Shown, str], list[sweep_networks.Asked]] = {}
    for one in of.shown:
        demonstrations = deep_train.demonstrations(of.env, None, one.trajectories)
        deep_train.kept(demonstrations, one.thin)  # refuses now what it would refuse later
        for name in of.names:
            method: Any = DEEP[name]
            config = methods.options(method, base)
            learner.settle(config)
            for seed in of.seeds:
                options: dict[str, Any] = {
                    "method": method,
                    "demos": None,
                    "trajectories": one.trajectories,
                    "thin": one.thin,
                    "horizon": None,
                    "seed": seed,
                }
                request = deep_train.asked(of.env, config, demonstrations, **options)
                folder = of.out / name / runs.name(request)
                asked = sweep_networks.Asked(of.env, config, options, request, folder)
                cells.setdefault((one, name), []).append(asked)
    # Seeds vary slowest, so that early results say something of all.
    by_seed = [asked for group in zip(*cells.values(), strict=True) for asked in group]
    done = sweep_networks.work(by_seed, restart=of.restart)
    of.failed.extend(map(str, done["failed"]))
    ended = {
        key: _read(asked.folder for asked in cell if asked.done) for key, cell in cells.items()
    }
    return {key: cell for key, cell in ended.items() if cell}


def _with_tables(of: Comparison) -> Cells:
    from understudy.core import mdp as mdps
    from understudy.experiments.sweeps import tables as sweep_tables

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
                done = sweep_tables.work(asked, of.out / name, restart=of.restart)
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
    from understudy.core import mdp as mdps
    from understudy.experiments.train_tables import Expert, choose_expert

    task, config = catalog.find(asked.envs[0]), asked.config
    assert isinstance(config, Config)
    expert = Expert(demonstrations=asked.trajectories)
    request = {
        "env": task.name,
        "horizon": task.mdp.horizon,
        "seed": seed,
        **dataclasses.asdict(expert),
        "method": "counts",
        "config": dataclasses.asdict(config),
    }
    folder = out / runs.name(request)
    if restart:
        standing.mend(folder, request)
    if runs.done(folder):
        return folder
    problem = pose(task.mdp, choose_expert(task, expert, seed=0))
    pi = policy_of(problem.expert)
    planned = plan(task.mdp, config)
    value = float(mdps.value(task.mdp, pi, task.mdp.reward))
    result = account.Outcome(
        np.full(len(planned.marks), value), None, None, np.asarray(pi), np.zeros((1, 1, 1))
    )
    summary = {"return": value, "expert_return": expert_return(problem), "interactions": 0}
    account.record(folder, request, summary, planned, problem, result)
    return folder


# --- what came out -----------------------------------------------------------------------------


def ranked(stored: Cells) -> list[Row]:
    """A row a method, in order: who needs the fewest interactions to NEAR of the expert; of those
    who never get there, who ends higher."""
    rows = [_row(str(one), name, cell, budget_of(stored)) for (one, name), cell in stored.items()]
    listed = []
    for shown in dict.fromkeys(row.shown for row in rows):
        of = sorted(
            (row for row in rows if row.shown == shown), key=lambda r: (r.typical, -r.shares[-1])
        )
        listed += [dataclasses.replace(row, rank=i) for i, row in enumerate(of, start=1)]
    return listed


def share(run: StoredRun, R: Any) -> Any:
    """1 + (R − E)/|E|: the return as a share of the expert's, whatever its sign; the gain where the
    expert's is zero."""
    E = run.expert_return
    return 1 + (R - E) / (abs(E) or 1)


def nearest(run: StoredRun, interactions: float) -> float:
    """The return at the nearest mark: methods that update in larger steps have other marks."""
    return float(run.returns[np.argmin(np.abs(run.interactions - interactions))])


def budget_of(stored: Cells) -> int:
    """The interactions of those that practise."""
    return max(int(run.interactions[-1]) for cell in stored.values() for run in cell)


def ours_last(stored: Cells) -> list[tuple[tuple[Shown, str], list[StoredRun]]]:
    """So that ours is seen where curves coincide."""
    return sorted(stored.items(), key=lambda item: item[0][1] == "understudy")


def levels(cell: list[StoredRun], end: int) -> dict[str, np.ndarray]:
    """A curve over seeds, in shares of the expert's return: its interquartile mean, and the edges
    of its 95 % bootstrap interval. Without practice it is a level."""
    x, y = figures.on_common_marks(cell)
    y = np.stack([share(run, R) for run, R in zip(cell, y, strict=True)])
    if len(x) == 1:
        x, y = np.array([0, end]), np.repeat(y, 2, axis=1)
    middle, low, high = figures.summarise(y, "iqm")
    return {"x": x, "middle": middle, "low": low, "high": high}


def _row(shown: str, name: str, cell: list[StoredRun], budget: int) -> Row:
    at = [np.array([share(run, nearest(run, part * budget)) for run in cell]) for part in PARTS]
    low, high = figures.bootstrap_interval(at[-1][:, None])
    seconds = [run.summary["seconds"] for run in cell if "seconds" in run.summary]
    return Row(
        shown=shown,
        method=name,
        seeds=len(cell),
        shares=tuple(float(figures.interquartile_mean(x[:, None])[0]) for x in at),
        interval=(float(low[0]), float(high[0])),
        near=tuple(run.near(NEAR) for run in cell),
        seconds=float(np.mean(seconds)) if seconds else None,
    )


def reached(row: Row) -> str:
    """The interactions to NEAR, and how many seeds got there if not all or none."""
    there = sum(n is not None for n in row.near)
    when = "never" if np.isinf(row.typical) else f"{row.typical:,.0f}"
    return f"{when} ({there} of {row.seeds})" if 0 < there < row.seeds else when


def markdown(rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    """As it stands in the docs."""
    parts = [f"{part:.0%}" for part in PARTS]
    head = ["shown", "method", "seeds", *parts, "95 % interval", f"interactions to {NEAR}",
            "seconds a run"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * 2}{'---:|' * (len(head) - 2)}"]
    for row in rows:
        cells = [
            row.shown,
            f"{row.rank}. {titles[row.method]}",
            str(row.seeds),
            *(f"{share:.2f}" for share in row.shares),
            f"{row.interval[0]:.2f} to {row.interval[1]:.2f}",
            reached(row),
            "–" if row.seconds is None else f"{row.seconds:,.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def titles_of(deep: bool) -> dict[str, str]:
    """Every method with networks, or with tables, by name."""
    if deep:
        return {name: methods.TITLES[method] for name, method in DEEP.items()}
    return methods.TABULAR_TITLES


def draw(env: str, stored: Cells, titles: Mapping[str, str], stem: Path) -> Path:
    """Share of the expert's return against interactions: a panel a set of demonstrations, a curve a
    method, its interquartile mean in its 95 % bootstrap interval."""
    shown = list(dict.fromkeys(one for one, _ in stored))
    end = budget_of(stored)
    columns = min(len(shown), 3)
    rows = -(-len(shown) // columns)
    with matplotlib.rc_context(figures.STYLE):
        figure = Figure(
            figsize=(7.0 if columns > 1 else 4.5, 2.3 * rows + 0.8), layout="constrained"
        )
        axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for place, one in zip(axes.flat, shown, strict=False):
            cells = {name: cell for (of, name), cell in ours_last(stored) if of == one}
            for name, cell in cells.items():
                x, middle, low, high = levels(cell, end).values()
                place.fill_between(x, low, high, color=COLOURS[name], alpha=0.15, lw=0)
                style = {"bc": "--", "understudy": (0, (4, 1))}.get(name, "-")
                place.plot(x, middle, ls=style, color=COLOURS[name], lw=1.5, label=titles[name])
            place.axhline(1, color="black", ls=(0, (3, 3)), lw=1, label="expert", zorder=3)
            place.set_title(
                str(one) if len(shown) > 1 else figures.literal(figures.panel_title(env))
            )
            place.set_xlim(0, end)
            place.xaxis.set_major_locator(ticker.MaxNLocator(4, prune="upper"))
            place.xaxis.set_major_formatter(figures.thousands(end))
            place.set_xlabel("interactions")
        for empty in axes.flat[len(shown) :]:
            empty.set_visible(False)
        axes[0, 0].set_ylabel("return / expert's")
        if len(shown) > 1:
            figure.suptitle(figures.literal(figures.panel_title(env)), fontsize=10)
        figures.legend(figure, axes.flat[: len(shown)], columns=4 if columns > 1 else 2)
        return figures.save(figure, stem)[0]
