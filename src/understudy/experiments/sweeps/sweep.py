"""A sweep is data: environments, a grid of settings, seeds. Its runs resume where they stopped."""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from understudy.core.errors import UserError
from understudy.experiments import console
from understudy.learners.config import Config
from understudy.learners.deep.config import DeepConfig


@dataclass(frozen=True)
class Sweep:
    """Every setting of the grid, in every environment, for every seed."""

    name: str
    envs: tuple[str, ...]
    seeds: tuple[int, ...]
    horizon: int | None = None  # the environments' own, if not given
    config: Config | DeepConfig = field(default_factory=Config)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    vary: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    # Of the demonstrations, all if not given; with tables, sampled from the optimal policy.
    trajectories: int | None = None
    demos: str | None = None  # those to imitate; the package's own, if not given
    # Environments that cannot be made, and why: the others are run all the same.
    broken: Mapping[str, str] = field(default_factory=dict)

    def settings(self) -> list[Config | DeepConfig]:
        """The configs of the grid, the last name varying fastest; then those that vary alone."""
        combinations = itertools.product(*self.grid.values())
        asked = [tuple(zip(self.grid, values, strict=True)) for values in combinations]
        asked += [((name, value),) for name, values in self.vary.items() for value in values]
        configs = (dataclasses.replace(self.config, **_changes(pairs)) for pairs in asked)
        return list(dict.fromkeys(configs))  # what is listed twice is run once

    def each(self) -> int:
        """How many runs an environment has."""
        return len(self.settings()) * len(self.seeds)


@dataclass(frozen=True)
class Failure:
    """A run, or all of an environment, that failed while the others went on."""

    what: str
    why: str
    runs: int = 1

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def refuse_failed(failed: Sequence[Failure], of: int) -> None:
    """When all others have ended: every failure is named, and the command does not succeed."""
    if not failed:
        return
    for one in failed:
        console.say(f"Failed: {one}")
    count = sum(one.runs for one in failed)
    raise UserError(f"{count} of {of} runs failed; the first: {failed[0]}")


def names_in(name: str) -> list[str]:
    """The options of a name: "window, fresh" are two that change together."""
    return [one.strip() for one in name.split(",")]


def _changes(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Options and values, where names may stand for several options."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        names = names_in(name)
        found |= dict(zip(names, value if len(names) > 1 else (value,), strict=True))
    return found
