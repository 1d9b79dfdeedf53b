"""A run with networks in its folder: stop it anywhere, and the same command goes on.

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

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import Diverged, UserError
from understudy.experiments import console, run_files, runs, standing, store, trackers
from understudy.experiments.run_files import CHECKPOINT
from understudy.experiments.trackers import Tracker
from understudy.learners.deep import acting, checkpoint, learned_reward, rehearsal
from understudy.learners.deep import policy as policies
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.collect import Collector, Make
from understudy.learners.deep.evaluation import Evaluator
from understudy.learners.deep.learned_reward import Reward
from understudy.learners.deep.policy import Policy
from understudy.learners.deep.rehearsal import Judged, Method, Place, Schedule
from understudy.learners.deep.scaling import Scaling

SECONDS = 60.0  # between checkpoints


@dataclass(frozen=True)
class Stage:
    """Where it happens: the environment, its scaling, and how what was learned is exported from
    there: the actor, and the discriminator where there is one."""

    make: Make
    border: Scaling
    export: Callable[[Actor], Policy]
    lanes: int = 1  # copies to practise in
    processes: bool = False  # each in a process of its own
    price: Callable[[Judged], Reward] | None = None


After = Callable[[Path, Path, Demonstrations], dict[str, Any]]


@dataclass
class Reached:
    """The end of a run."""

    summary: dict[str, Any]
    policy: Policy
    reward: Reward | None
    played: Demonstrations
    rows: list[Mapping[str, Any]]  # of metrics


def in_memory(
    request: Mapping[str, Any],
    begin: Callable[[], Method],
    stage: Stage,
    schedule: Schedule,
    *,
    expert_return: float | None,
    tell: rehearsal.Tell,
) -> Reached:
    """Learn, and write nothing."""
    begun, rows = time.perf_counter(), []

    def note(n: int, row: Mapping[str, Any] | None) -> None:
        if row is not None:
            rows.append(row)
        tell(n, row)

    with _on_stage(request, stage, schedule) as (collector, evaluator):
        method = begin()
        place = rehearsal.begin(method)
        actor = rehearsal.rehearse(
            place, method, collector, evaluator, schedule, rehearsal.Nowhere(), note, begun=begun
        )
        played = evaluator(acting.deterministic(actor))
    summary = _summary(place, played, request, expert_return)
    return Reached(summary, stage.export(actor), _reward(stage, method, place), played, rows)


def _reward(stage: Stage, method: Method, place: Place) -> Reward | None:
    """The reward that was learned, where the method learns one."""
    judged = method.judge(place.state)
    return None if judged is None or stage.price is None else stage.price(judged)


def _keep(folder: Path, policy: Policy, reward: Reward | None) -> None:
    """What was learned, to the run's folder or a draft of it."""
    policies.save(folder, policy)
    if reward is not None:
        learned_reward.save(folder, reward)


def write(request: Mapping[str, Any], reached: Reached, folder: Path) -> None:
    """A run that was learned in memory, to its folder."""
    with runs.recording(folder, request) as draft:
        runs.append(draft, [dict(row) for row in reached.rows])
        _keep(draft, reached.policy, reached.reward)
        runs.mark(draft, {**reached.summary, "run": str(folder)})


def in_folder(
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
    tell: rehearsal.Tell = lambda n, row: None,
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
        with _on_stage(request, stage, schedule) as (collector, evaluator):
            begun = time.perf_counter()
            method = begin()
            place, folder = resume(out, request, method, collector)
            begun = time.perf_counter() - place.seconds if place.interactions else begun
            end = rehearsal.total(schedule, method, len(collector.lanes))
            with (
                trackers.tracking(track, out, request) as told,
                console.watching(env, end, place.interactions, expert_return) as shown,
            ):
                for row in runs.metrics(out) if place.measured else []:
                    told(row)

                def all_told(n: int, row: Mapping[str, Any] | None) -> None:
                    if row is not None:
                        told(row)
                    shown(n, row)
                    tell(n, row)

                each = method.fresh * len(collector.lanes)
                with explained(out, place, each):
                    actor = rehearsal.rehearse(
                        place, method, collector, evaluator, schedule, folder, all_told,
                        begun=begun,
                    )  # fmt: skip
            played = evaluator(acting.deterministic(actor))
        summary = _summary(place, played, request, expert_return, run=str(out))
        with store.room_for(out), store.together(out) as draft:
            _keep(draft, stage.export(actor), _reward(stage, method, place))
            summary |= after(out, draft, played)
            runs.mark(draft, summary, beside=out)
        store.still(out)  # a kill here leaves a finished run
        (out / CHECKPOINT).unlink(missing_ok=True)
        return summary


@contextlib.contextmanager
def _on_stage(request: Mapping[str, Any], stage: Stage, schedule: Schedule) -> Any:
    """The environments to practise in, and one to be measured in."""
    env, seed = request["env"], request["seed"]
    collector = Collector(
        stage.make,
        stage.border,
        lanes=stage.lanes,
        seed=seed,
        name=env,
        processes=stage.processes,
    )
    evaluator = Evaluator(stage.make, stage.border, episodes=schedule.episodes, name=env)
    with contextlib.closing(collector), contextlib.closing(evaluator):
        yield collector, evaluator


def _summary(
    place: Place,
    played: Demonstrations,
    request: Mapping[str, Any],
    expert_return: float | None,
    **more: Any,
) -> dict[str, Any]:
    share = request["config"].get("task_reward")
    return {
        "return": float(played.returns.mean()),
        "return_std": float(played.returns.std()),
        "episodes": len(played),
        **({} if expert_return is None else {"expert_return": expert_return}),
        **({} if share is None else {"task_reward": share}),  # the result says so
        **({} if "begun" not in request else {"begun_as": request["begin"]}),
        "interactions": place.interactions,
        "seconds": round(place.seconds, 1),
        **more,
        **{name: request[name] for name in ("env", "seed")},
    }


@contextlib.contextmanager
def explained(folder: Path, place: Place, each: int) -> Any:
    """What stops a run is told with when it was and what is left; one that cannot go on is
    marked."""
    try:
        yield
    except Diverged as error:
        when = f"in iteration {place.interactions // each:,}"
        kept = "nothing was kept yet"
        if (folder / CHECKPOINT).exists():
            told, _ = checkpoint.load(folder / CHECKPOINT)
            kept = f"the state of {told['interactions']:,} interactions is kept in {CHECKPOINT}"
        sentence = f"{str(error).rstrip('.')} ({when}; {kept})."
        runs.fail(folder, sentence, interactions=place.interactions)
        raise Diverged(sentence) from error
    except UserError as error:
        when = f"at {place.interactions:,} interactions"
        there = (folder / CHECKPOINT).exists()
        kept = "; the last checkpoint is intact, the same command goes on from it" if there else ""
        raise UserError(f"{str(error).rstrip('.')} ({when}{kept}).") from error


@dataclass
class Folder:
    """The storage of a run under way: its metrics and its checkpoint."""

    path: Path
    identity: str  # of the run's request
    metrics: int = 0  # bytes of metrics.jsonl that count

    def append(self, row: Mapping[str, Any]) -> None:
        with store.room_for(self.path):
            self.metrics += runs.append(self.path, [dict(row)])

    def keep(self, place: Place, collector: Collector) -> None:
        about = {
            "request": self.identity,
            "versions": runs.libraries(),
            "interactions": place.interactions,
            "metrics": self.metrics,
            "best_return": place.best_return if math.isfinite(place.best_return) else None,
            "seconds": place.seconds,
        }
        arrays = {f"lanes/{name}": x for name, x in collector.state().items()}
        arrays |= {f"state{name}": x for name, x in checkpoint.named(place.state).items()}
        arrays |= {f"best{name}": x for name, x in checkpoint.named(place.best).items()}
        with store.room_for(self.path), store.whole(self.path / CHECKPOINT) as draft:
            checkpoint.save(draft, arrays, about)


def resume(
    folder: Path, request: Mapping[str, Any], method: Method, collector: Collector
) -> tuple[Place, Folder]:
    """Where the run in `folder` stands: at its checkpoint, or at the beginning."""
    first, identity = rehearsal.begin(method), runs.identity(request)
    path = folder / CHECKPOINT
    if not path.exists():
        runs.begin(folder, request)
        return first, Folder(folder, identity)
    try:
        told, arrays = checkpoint.load(path)
    except UserError as error:
        raise run_files.Damaged(folder, str(error).rstrip(".")) from None
    if told.get("request", identity) != identity:
        raise run_files.Damaged(folder, f"its {CHECKPOINT} is of another run")
    counted = metrics_of(folder, told["metrics"])
    tell_versions(folder, told.get("versions") or runs.versions_of(folder))
    where = f"The checkpoint {path}"
    lanes = {name[len("lanes/") :]: x for name, x in arrays.items() if name.startswith("lanes/")}
    collector.restore(lanes)
    place = Place(
        state=checkpoint.fill(first.state, arrays, where, prefix="state"),
        best=checkpoint.fill(first.best, arrays, where, prefix="best"),
        interactions=told["interactions"],
        best_return=-math.inf if told["best_return"] is None else told["best_return"],
        seconds=told["seconds"],
        measured=told["metrics"] > 0,
    )
    with store.room_for(folder):
        standing.clear(folder, metrics=False)
        # What was measured after the checkpoint comes again. A new file takes the place of the old
        # one, which may be kept elsewhere by another link to it.
        with store.whole(folder / run_files.METRICS) as draft:
            draft.write_bytes(counted)
    return place, Folder(folder, identity, told["metrics"])


def metrics_of(folder: Path, size: int) -> bytes:
    """The metrics that a checkpoint counts on. What follows them must be ours to cut off."""
    try:
        metrics = (folder / run_files.METRICS).read_bytes()
    except OSError:
        raise run_files.Damaged(folder, f"its {run_files.METRICS} cannot be read") from None
    if len(metrics) < size:
        raise run_files.Damaged(folder, f"its {run_files.METRICS} was cut short")
    if not run_files.written(metrics[size:]):
        raise run_files.Damaged(
            folder, f"its {run_files.METRICS} holds what understudy did not write"
        )
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
