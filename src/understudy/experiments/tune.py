"""`understudy tune`: a search for settings of networks, by Optuna.

A search is a folder: `study.db`, Optuna's own, which `optuna-dashboard` shows while it goes on; a
run's folder for each of its runs; and `tune.json`, what came of it. A run is measured at its marks.
After each, Optuna's median pruner ends it if it is below the median of the runs before it at that
mark. Its score is the mean of the returns at the last quarter of its marks: single ones jump about.

Stopped, the same command goes on: with the run under way from its checkpoint, then with the others.
Each run's settings are drawn with a seed of its own number, from the runs before it, so that a
search that was stopped ends as one that was not.
"""

import contextlib
import dataclasses
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from understudy.core import extras
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import Diverged, UserError
from understudy.core.precision import double
from understudy.envs.given import given
from understudy.experiments import console, deep_run, run_files, runs, store, train_networks
from understudy.experiments.search_space import Spans, changed, chosen, described, usual
from understudy.learners.baselines.methods import Method, options
from understudy.learners.deep.config import PRESETS, DeepConfig, check_deep
from understudy.learners.seeds import check_seed

STUDY, RESULT = "study.db", "tune.json"
LAST = 4  # a run's score is of this part of its marks, the last
FREE = 5  # runs before any is pruned
MOST = 10_000  # runs


class Pruned(Exception):
    """A run is below the others, and goes no further."""


@dataclass(frozen=True)
class Asked:
    """One search."""

    env: str
    config: DeepConfig
    spans: Spans
    shown: Demonstrations
    options: dict[str, Any]  # of `train_networks.prepare`
    out: Path
    seed: int

    def document(self) -> dict[str, Any]:
        """What it is; the budget is no part of it, so that a search can be gone on with."""
        request = train_networks.request(self.env, self.config, self.shown, **self.options)
        return store.plain({**request, "over": described(self.spans)})


@double
def tune(
    env: str,
    config: DeepConfig,
    *,
    budget: int = 20,
    over: Sequence[str] = (),
    method: Method = "mdpo",
    demos: str | None = None,
    trajectories: int | None = None,
    thin: int | None = None,
    keys: Sequence[str] = (),
    horizon: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    checkpoint: float = deep_run.SECONDS,
) -> dict[str, Any]:
    """So many runs in all, those from before among them; the best is told."""
    extras.refuse_missing("A search", "optuna")
    check_deep(config)
    check_seed(seed)
    if not 1 <= budget <= MOST:
        raise UserError(f"--runs is {budget}; it must be from 1 to {MOST:,}.")
    spans = chosen(over, method)
    for values in (usual(spans, config), _far(spans)):
        check_deep(changed(config, values))  # ends of one's own may be out of all bounds
    asked = Asked(
        env=env,
        config=config,
        spans=spans,
        shown=train_networks.demonstrations(env, demos, trajectories, keys),
        options={"method": method, "demos": demos, "trajectories": trajectories, "thin": thin,
                 "keys": keys, "horizon": horizon, "seed": seed},
        out=out or Path("runs") / f"tune-{runs.default(given(env).name, seed).name}",
        seed=seed,
    )  # fmt: skip
    with store.workplace(asked.out), _study(asked) as study:
        for trial in _trials(study, asked, budget):
            _run(study, trial, asked, checkpoint)
        document = _document(study, asked)
        with store.room_for(asked.out):
            store.write_json(asked.out / RESULT, document)
    return document


def _far(spans: Spans) -> dict[str, Any]:
    """The other end of each span, to be checked before any run."""
    return {name: span.near(1e300) for name, span in spans.items()}


@contextlib.contextmanager
def _study(asked: Asked) -> Iterator[Any]:
    """The search as it stands in its folder, new or gone on with."""
    import optuna
    from sqlalchemy.pool import NullPool

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = asked.out / STUDY
    try:
        storage = optuna.storages.RDBStorage(
            f"sqlite:///{path}", engine_kwargs={"poolclass": NullPool}
        )
        study = optuna.create_study(
            storage=storage,
            study_name=f"understudy {asked.env}",
            direction="maximize",
            load_if_exists=True,
            # By marks, of which the first quarter shows little but the clone.
            pruner=optuna.pruners.MedianPruner(
                n_startup_trials=FREE, n_warmup_steps=asked.config.interactions // 4
            ),
        )
        told = study.user_attrs.get("asked")
    except Exception as error:  # SQLite, SQLAlchemy and Alembic each have their own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"The search {path} cannot be read: {reason}; choose another folder (--out)."
        ) from None
    try:
        if told is None:
            study.set_user_attr("asked", json.dumps(asked.document()))
            study.enqueue_trial(usual(asked.spans, asked.config))
        elif json.loads(told) != asked.document():
            raise UserError(
                f"The folder {asked.out} holds a search for something else; choose another folder "
                f"(--out)."
            )
        yield study
    finally:
        storage.remove_session()


def _trials(study: Any, asked: Asked, budget: int) -> Iterator[Any]:
    """The run that was under way, and new ones until there are as many as asked for."""
    import optuna

    for stopped in study.get_trials(states=(optuna.trial.TrialState.RUNNING,)):
        study.sampler = _sampler(asked, stopped.number)
        yield optuna.trial.Trial(study, stopped._trial_id)
    while (number := _begun(study)) < budget:
        study.sampler = _sampler(asked, number)
        yield study.ask()


def _begun(study: Any) -> int:
    """How many runs there are; the first waits in the queue until it begins."""
    return sum(trial.state.name != "WAITING" for trial in study.get_trials(deepcopy=False))


def _sampler(asked: Asked, number: int) -> Any:
    import optuna

    seed = np.random.SeedSequence([asked.seed, number]).generate_state(1)[0]
    return optuna.samplers.TPESampler(seed=int(seed), n_startup_trials=FREE)


def folder_of(asked: Asked, number: int) -> Path:
    return asked.out / f"run{number:04d}"


def _run(study: Any, trial: Any, asked: Asked, checkpoint: float) -> None:
    """One run of the search, to its end or until it is pruned."""
    import optuna

    values = {name: span.drawn(trial, name) for name, span in asked.spans.items()}
    config, folder = changed(asked.config, values), folder_of(asked, trial.number)
    told = ", ".join(f"{name.replace('_', '-')} {value:.4g}" for name, value in values.items())
    console.say(f"run {trial.number}: {told}")
    world = given(asked.env, asked.options["keys"])
    ready = train_networks.prepare(
        world, asked.shown, config, **asked.options, checkpoint=checkpoint
    )

    def tell(n: int, row: Mapping[str, Any] | None) -> None:
        if row is None:
            return
        if n not in trial.storage.get_trial(trial._trial_id).intermediate_values:
            trial.report(row["return"], n)
        if trial.should_prune():
            raise Pruned

    try:
        summary = deep_run.in_folder(
            folder,
            ready.request,
            ready.begin,
            ready.stage,
            ready.schedule,
            expert_return=ready.expert_return,
            tell=tell,
        )
    except Pruned:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        (folder / run_files.CHECKPOINT).unlink(missing_ok=True)  # it will not go on
        console.say(f"run {trial.number}: pruned")
    except Diverged as error:
        trial.set_user_attr("failed", str(error))
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        console.say(f"run {trial.number}: {error}")
    else:
        score = score_of(runs.metrics(folder))
        trial.set_user_attr("return", summary["return"])
        study.tell(trial, score)
        console.say(f"run {trial.number}: score {score:,.2f}")


def score_of(rows: Sequence[Mapping[str, Any]]) -> float:
    """The mean of the returns at the last quarter of the marks, one of them at least."""
    last = max(1, len(rows) // LAST)
    return float(np.mean([row["return"] for row in rows[-last:]]))


def _document(study: Any, asked: Asked) -> dict[str, Any]:
    """What came of it: every run, and the command that trains as the best one did."""
    listed = [
        {
            "run": str(folder_of(asked, trial.number)),
            "state": {"COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed"}[trial.state.name],
            "score": trial.value if trial.state.name == "COMPLETE" else None,
            "interactions": trial.last_step,
            "values": trial.params,
        }
        for trial in study.get_trials(deepcopy=False)
    ]
    done = [one for one in listed if one["score"] is not None]
    if not done:
        raise UserError(
            f"None of {len(listed)} runs came to its end; see why in {asked.out}, and give more "
            f"with --runs."
        )
    best = max(done, key=lambda one: one["score"])
    return {
        "env": asked.env,
        "out": str(asked.out),
        "study": f"sqlite:///{asked.out / STUDY}",
        "best": best,
        "usual": listed[0]["score"],
        "expert_return": float(asked.shown.returns.mean()),
        "command": command(asked, best["values"]),
        "runs": listed,
    }


def command(asked: Asked, values: Mapping[str, Any]) -> str:
    """The command that trains with these values: what differs from the method's usual config."""
    words = ["understudy", "train", asked.env]
    for name in ("method", "demos", "trajectories", "thin", "keys", "horizon"):
        value = asked.options[name]
        if value not in (None, ()) and (name, value) != ("method", "mdpo"):
            listed = value if isinstance(value, tuple | list) else [value]
            words += [f"--{name}", *map(str, listed)]
    there = dataclasses.asdict(changed(asked.config, dict(values)))
    usual = dataclasses.asdict(options(asked.options["method"], PRESETS["fast"]))
    for name, value in there.items():
        if value != usual[name] or name in values:
            flag = name.replace("_", "-")
            if isinstance(value, bool):
                words.append(f"--{flag}" if value else f"--no-{flag}")
            else:
                listed = value if isinstance(value, tuple) else [value]
                words += [f"--{flag}", *map(str, listed)]
    return shlex.join(words)


def table(document: Mapping[str, Any]) -> Table:
    """The runs, the best first, a line each."""
    ranked = sorted(document["runs"], key=lambda x: (x["score"] is None, -(x["score"] or 0)))
    shown = Table()
    for column in ("run", "score", "interactions", *next(iter(ranked))["values"]):
        shown.add_column(column.replace("_", "-"), justify="right")
    for one in ranked[:10]:
        score = one["state"] if one["score"] is None else f"{one['score']:,.1f}"
        values = [f"{value:.4g}" for value in one["values"].values()]
        shown.add_row(Path(one["run"]).name, score, f"{one['interactions'] or 0:,}", *values)
    if len(ranked) > 10:
        shown.add_row("…", f"{len(ranked) - 10} more")
    return shown
