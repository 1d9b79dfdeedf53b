"""The training loop of what learns with networks: practise, update, measure.

Where a run is kept, and who is told of it, are the caller's: `Storage` and `tell`. A run goes on
from whatever `Place` it is handed, and ends with the same bytes.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from understudy.core.errors import Diverged
from understudy.learners.deep import acting
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.collect import Act, Collector
from understudy.learners.deep.discriminator import Discriminator
from understudy.learners.deep.evaluation import Evaluator

Judged = tuple[Discriminator, bool]  # the discriminator, and whether an episode ended early


@dataclass(frozen=True)
class Method:
    """What learns: the expert or the learner, each as a state and functions of it."""

    state: Any  # where it begins
    fresh: int  # steps of each environment per iteration
    act: Callable[[Any, int], Act]  # how it practises, after so many interactions
    step: Callable[[Any, dict[str, np.ndarray], int], tuple[Any, dict[str, Any]]]
    actor: Callable[[Any], Actor]
    judge: Callable[[Any], Judged | None] = lambda state: None  # where a reward is learned


@dataclass(frozen=True)
class Schedule:
    """How long, and how often what is done."""

    interactions: int
    marks: int  # evaluations
    episodes: int  # of each
    keep_best: bool  # the policy of the best evaluation, or the last one
    checkpoint_seconds: float
    enough: float = math.inf  # a return that ends the run early


@dataclass
class Place:
    """How far a run is."""

    state: Any
    best: Actor
    interactions: int = 0
    best_return: float = -math.inf
    seconds: float = 0.0
    measured: bool = False  # whether the first measurement is kept


@runtime_checkable
class Storage(Protocol):
    """Where a run is kept while it goes on."""

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row to its metrics."""

    def keep(self, place: Place, collector: Collector) -> None:
        """Keep where it is, in place of where it was kept before."""


class Nowhere:
    """Storage of a run that nobody will go on with."""

    def append(self, row: Mapping[str, Any]) -> None:
        """Nothing."""

    def keep(self, place: Place, collector: Collector) -> None:
        """Nothing."""


Tell = Callable[[int, Mapping[str, Any] | None], object]
"""Called with the interactions so far, and with a row of metrics where there is one."""


def begin(method: Method) -> Place:
    """The beginning."""
    return Place(method.state, jax.tree.map(jnp.copy, method.actor(method.state)))


def total(schedule: Schedule, method: Method, lanes: int) -> int:
    """The interactions of a whole run: whole iterations only."""
    each = method.fresh * lanes
    return schedule.interactions and max(1, schedule.interactions // each) * each


def rehearse(
    place: Place,
    method: Method,
    collector: Collector,
    evaluator: Evaluator,
    schedule: Schedule,
    storage: Storage,
    tell: Tell,
    *,
    begun: float,
) -> Actor:
    """Go on from `place`, which is moved along, to the end, and return the policy reached. The time
    counts from `begun`."""
    each = method.fresh * len(collector.lanes)
    end = total(schedule, method, len(collector.lanes))
    marks = set(np.linspace(0, end // each, schedule.marks + 1).round().astype(int) * each)
    saved = time.perf_counter()

    def measure(info: Mapping[str, Any]) -> None:
        row = evaluate(place, method, evaluator, collector, info)
        storage.append(row)
        tell(place.interactions, row)

    def keep() -> None:
        refuse_nan_in(place.state)
        storage.keep(place, collector)

    if not place.measured:
        measure({})
        place.measured = True
        keep()
    while place.interactions < end and place.best_return < schedule.enough:
        act = method.act(place.state, place.interactions)
        practised = collector.practise(act, method.fresh)
        place.state, info = method.step(place.state, practised, place.interactions)
        place.interactions += each
        refuse_nan(info)
        if place.interactions in marks:
            measure(info)
        else:
            tell(place.interactions, None)
        if time.perf_counter() - saved >= schedule.checkpoint_seconds:
            place.seconds, saved = time.perf_counter() - begun, time.perf_counter()
            keep()
    place.seconds = time.perf_counter() - begun
    return place.best if schedule.keep_best else method.actor(place.state)


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
    """NaN in what an iteration tells is caught in that iteration."""
    for name, value in info.items():
        if not np.isfinite(np.asarray(value)).all():
            raise Diverged(f"The learner's {name.replace('_', ' ')} became NaN; use smaller steps")


def refuse_nan_in(state: Any) -> None:
    """NaN in the learner's state, which is not to be kept."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if jnp.issubdtype(leaf.dtype, jnp.floating) and not np.isfinite(np.asarray(leaf)).all():
            name = f"state{jax.tree_util.keystr(path)}"
            raise Diverged(f"The learner's {name} became NaN; use smaller steps")
