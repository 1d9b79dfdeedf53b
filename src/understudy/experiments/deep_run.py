"""A deep run: practise, update, measure; stop it anywhere, and the same command goes on.

The run's folder is the one of `runs`, and holds besides, while the run is under way,
`checkpoint.safetensors`: networks, optimisers, keys, the replay with its segments, and where each
environment stands. What is written after a checkpoint is written again, so however often a run is
stopped, it ends with the same bytes.
"""

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import Diverged, UserError
from understudy.experiments import console, runs, standing, store, trackers
from understudy.experiments import run_files as own
from understudy.experiments.run_files import CHECKPOINT
from understudy.experiments.trackers import Tracker
from understudy.learners.deep import acting, checkpoint
from understudy.learners.deep import policy as policies
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.collect import Act, Collector, Make
from understudy.learners.deep.evaluation import Evaluator
from understudy.learners.deep.policy import Policy
from understudy.learners.deep.scaling import Scaling

SECONDS = 60.0  # between checkpoints


@dataclass(frozen=True)
class Method:
    """What learns: the expert or the learner, each as a state and functions of it."""

    state: Any  # where it begins
    fresh: int  # steps of each environment per iteration
    act: Callable[[Any, int], Act]  # how it practises, after so many interactions
    step: Callable[[Any, dict[str, np.ndarray], int], tuple[Any, dict[str, Any]]]
    actor: Callable[[Any], Actor]
    strayed: Callable[[Any], Sequence[int]] = lambda state: ()  # lanes that are to begin anew


@dataclass(frozen=True)
class Stage:
    """Where it happens: the environment, its scaling, and how the actor is exported from there."""

    make: Make
    border: Scaling
    export: Callable[[Actor], Policy]
    lanes: int = 1  # copies to practise in


@dataclass(frozen=True)
class Schedule:
    interactions: int
    marks: int  # evaluations
    episodes: int  # of each
    keep_best: bool  # the policy of the best evaluation, or the last one
    checkpoint_seconds: float = SECONDS
    enough: float = math.inf  # a return that ends the run early


@dataclass
class Place:
    """How far a run is."""

    state: Any
    best: Actor
    interactions: int = 0
    metrics: int = 0  # bytes of metrics.jsonl that count
    best_return: float = -math.inf
    seconds: float = 0.0
    identity: str = ""  # of the run's request


After = Callable[[Path, Path, Demonstrations], dict[str, Any]]


def rehearse(
    out: Path | None,
    request: Mapping[str, Any],
    begin: Callable[[], Method],
    stage: Stage,
    schedule: Schedule,
    *,
    expert_return: float | None = None,
    after: After = lambda folder, draft, played: {},
    track: Sequence[Tracker] = (),
    restart: bool = False,
) -> dict[str, Any]:
    """Learn in the folder `out`, going on from its checkpoint if it has one, and return the
    summary. `after` is called with the folder, a draft of it and the episodes of the policy reached
    before the marker is written; what it returns joins the summary. `track` names who is told the
    metrics. With `restart`, what the folder holds of this run is moved aside first."""
    env, seed = request["env"], request["seed"]
    prefix = "expert-" if request["method"] == "sac" else ""
    out = out or runs.default(prefix + env, seed)
    with store.workplace(out):
        if standing.prepare(out, request, restart=restart) == "done":
            console.say(f"The run in {out} has ended already.")
            return runs.summary(out)
        collector = Collector(stage.make, stage.border, lanes=stage.lanes, seed=seed, name=env)
        evaluator = Evaluator(stage.make, stage.border, episodes=schedule.episodes, name=env)
        with contextlib.closing(collector), contextlib.closing(evaluator):
            begun = time.perf_counter()
            return run(
                out, request, begin(), stage, collector, evaluator, schedule, expert_return, after,
                track, begun,
            )  # fmt: skip


def run(
    folder: Path,
    request: Mapping[str, Any],
    method: Method,
    stage: Stage,
    collector: Collector,
    evaluator: Evaluator,
    schedule: Schedule,
    expert_return: float | None,
    after: After,
    track: Sequence[Tracker],
    begun: float,
) -> dict[str, Any]:
    """Practise, update and measure to the end, and write what was reached. The time counts from
    `begun`, or on from a checkpoint's."""
    place = resume(folder, request, method, collector)
    each = method.fresh * len(collector.lanes)
    total = schedule.interactions and max(1, schedule.interactions // each) * each
    marks = set(np.linspace(0, total // each, schedule.marks + 1).round().astype(int) * each)
    saved = time.perf_counter()
    begun = saved - place.seconds if place.interactions else begun

    def measure(info: Mapping[str, Any]) -> None:
        row = evaluate(place, method, evaluator, collector, info)
        with store.room_for(folder):
            place.metrics += runs.append(folder, [row])
        tell(row)
        told = f"return {row['return']:,.0f}"
        if expert_return and expert_return > 0:
            told += f", {row['return'] / expert_return:.0%} of the expert's"
        bar.update(task, description=f"{request['env']}, {told}, interactions")
        if not console.err.is_terminal:
            console.say(f"{place.interactions:,} interactions: {told}")

    with trackers.tracking(track, folder, request) as tell, console.bar() as bar:
        task = bar.add_task(f"{request['env']}, interactions", total=total)
        bar.update(task, completed=place.interactions)
        try:
            if place.metrics == 0:
                measure({})
                keep(folder, place, collector)
            else:
                for row in runs.metrics(folder):
                    tell(row)
            while place.interactions < total and place.best_return < schedule.enough:
                act = method.act(place.state, place.interactions)
                practised = collector.practise(act, method.fresh)
                place.state, info = method.step(place.state, practised, place.interactions)
                place.interactions += each
                for lane in method.strayed(place.state):
                    collector.cut(lane)
                refuse_nan(info)
                if place.interactions in marks:
                    measure(info)
                bar.update(task, completed=place.interactions)
                if time.perf_counter() - saved >= schedule.checkpoint_seconds:
                    place.seconds, saved = time.perf_counter() - begun, time.perf_counter()
                    keep(folder, place, collector)
        except Diverged as error:
            when = f"in iteration {place.interactions // each:,}"
            told, _ = checkpoint.load(folder / CHECKPOINT)
            kept = f"the state of {told['interactions']:,} interactions is kept in {CHECKPOINT}"
            sentence = f"{str(error).rstrip('.')} ({when}; {kept})."
            runs.fail(folder, sentence, interactions=place.interactions)
            raise Diverged(sentence) from error
        except UserError as error:
            when = f"at {place.interactions:,} interactions"
            there = (folder / CHECKPOINT).exists()
            kept = (
                "; the last checkpoint is intact, the same command goes on from it" if there else ""
            )
            raise UserError(f"{str(error).rstrip('.')} ({when}{kept}).") from error
    place.seconds = time.perf_counter() - begun
    actor = place.best if schedule.keep_best else method.actor(place.state)
    played = evaluator(acting.deterministic(actor))
    summary = {
        "return": float(played.returns.mean()),
        "return_std": float(played.returns.std()),
        "episodes": len(played),
        **({} if expert_return is None else {"expert_return": expert_return}),
        "interactions": place.interactions,
        "seconds": round(place.seconds, 1),
        "run": str(folder),
        **{name: request[name] for name in ("env", "seed")},
    }
    with store.room_for(folder), store.together(folder) as draft:
        policies.save(draft, stage.export(actor))
        summary |= after(folder, draft, played)
        runs.mark(draft, summary, beside=folder)
    store.still(folder)  # a kill here leaves a finished run
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return summary


def resume(folder: Path, request: Mapping[str, Any], method: Method, collector: Collector) -> Place:
    """Where the run in `folder` stands: at its checkpoint, or at the beginning."""
    first = Place(method.state, jax.tree.map(jnp.copy, method.actor(method.state)))
    first.identity = runs.identity(request)
    path = folder / CHECKPOINT
    if not path.exists():
        runs.begin(folder, request)
        return first
    try:
        told, arrays = checkpoint.load(path)
    except UserError as error:
        raise own.Damaged(folder, str(error).rstrip(".")) from None
    if told.get("request", first.identity) != first.identity:
        raise own.Damaged(folder, f"its {CHECKPOINT} is of another run")
    counted = metrics_of(folder, told["metrics"])
    tell_versions(folder, told.get("versions") or runs.versions_of(folder))
    where = f"The checkpoint {path}"
    lanes = {name[len("lanes/") :]: x for name, x in arrays.items() if name.startswith("lanes/")}
    collector.restore(lanes)
    place = Place(
        state=checkpoint.fill(first.state, arrays, where, prefix="state"),
        best=checkpoint.fill(first.best, arrays, where, prefix="best"),
        interactions=told["interactions"],
        metrics=told["metrics"],
        best_return=-math.inf if told["best_return"] is None else told["best_return"],
        seconds=told["seconds"],
        identity=first.identity,
    )
    with store.room_for(folder):
        standing.clear(folder, metrics=False)
        # What was measured after the checkpoint comes again. A new file takes the place of the old
        # one, which may be kept elsewhere by another link to it.
        with store.whole(folder / own.METRICS) as draft:
            draft.write_bytes(counted)
    return place


def metrics_of(folder: Path, size: int) -> bytes:
    """The metrics that a checkpoint counts on. What follows them must be ours to cut off."""
    try:
        metrics = (folder / own.METRICS).read_bytes()
    except OSError:
        raise own.Damaged(folder, f"its {own.METRICS} cannot be read") from None
    if len(metrics) < size:
        raise own.Damaged(folder, f"its {own.METRICS} was cut short")
    if not own.written(metrics[size:]):
        raise own.Damaged(folder, f"its {own.METRICS} holds what understudy did not write")
    return metrics[:size]


def tell_versions(folder: Path, then: Mapping[str, str]) -> None:
    """Going on under other versions is allowed, and may lead elsewhere."""
    now = runs.libraries()
    changed = [f"{k} {v} (now {now.get(k)})" for k, v in then.items() if now.get(k) != v]
    if changed:
        console.say(
            f"The run in {folder} was begun with {', '.join(changed)}; it goes on, but may end "
            f"otherwise than it would have."
        )


def keep(folder: Path, place: Place, collector: Collector) -> None:
    """Write a checkpoint in place of the last."""
    about = {
        "request": place.identity,
        "versions": runs.libraries(),
        "interactions": place.interactions,
        "metrics": place.metrics,
        "best_return": place.best_return if math.isfinite(place.best_return) else None,
        "seconds": place.seconds,
    }
    arrays = {f"lanes/{name}": x for name, x in collector.state().items()}
    arrays |= {f"state{name}": x for name, x in checkpoint.named(place.state).items()}
    for name, x in arrays.items():
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            raise Diverged(f"The learner's {name} became NaN; use smaller steps")
    arrays |= {f"best{name}": x for name, x in checkpoint.named(place.best).items()}
    with store.room_for(folder), store.whole(folder / CHECKPOINT) as draft:
        checkpoint.save(draft, arrays, about)


def evaluate(
    place: Place,
    method: Method,
    evaluator: Evaluator,
    collector: Collector,
    info: Mapping[str, Any],
) -> dict[str, Any]:
    """A row of metrics; the best policy so far is noted."""
    actor = method.actor(place.state)
    played = evaluator(acting.deterministic(actor))
    mean = float(played.returns.mean())
    if mean > place.best_return:
        place.best, place.best_return = jax.tree.map(jnp.copy, actor), mean
    practised, collector.ended = collector.ended, []
    each = method.fresh * len(collector.lanes)
    return {
        "interactions": place.interactions,
        "updates": place.interactions // each,
        "return": mean,
        "return_std": float(played.returns.std()),
        "length": float(np.mean([len(a) for a in played.actions])),
        "practice_return": float(np.mean(practised)) if practised else None,
        **{name: float(np.asarray(x).mean()) for name, x in info.items()},
    }


def refuse_nan(info: Mapping[str, Any]) -> None:
    for name, value in info.items():
        if not np.isfinite(np.asarray(value)).all():
            raise Diverged(f"The learner's {name.replace('_', ' ')} became NaN; use smaller steps")
