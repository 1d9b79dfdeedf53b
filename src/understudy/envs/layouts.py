"""Environments of one layout, by name: `MiniGrid-FourRooms-v0-layout3` is MiniGrid's four rooms as
a reset with the seed 3 makes them, in every episode. Its states are explored into a table.

`NAME-layoutN` asks for that of any environment; MiniGrid's and BabyAI's tasks are tables in any
case, and have layout 0 where nothing is said. The layout's seed is part of what the environment
is, and so of its name; a run's seed is another thing. No heavy import: the command line asks first.
"""

import contextlib
import importlib
import re
from dataclasses import dataclass

import gymnasium

from understudy.core import extras

LAYOUT = re.compile(r"(.+)-layout(\d{1,9})")
FAMILIES = re.compile(r"(?:minigrid:)?((?:MiniGrid|BabyAI)-.+)")


@dataclass(frozen=True)
class Layout:
    """An environment, and the seed that every episode of it is reset with."""

    world: str
    seed: int = 0

    @property
    def name(self) -> str:
        """As a user may write it."""
        return f"{self.world}-layout{self.seed}"


def find(name: str) -> Layout | None:
    """The layout that a name asks for, if it asks for one."""
    if name in gymnasium.registry and not FAMILIES.fullmatch(name):
        return None  # whatever its own name ends with
    asked = LAYOUT.fullmatch(name)
    world, seed = (asked[1], int(asked[2])) if asked else (name, 0)
    family = FAMILIES.fullmatch(world)
    if asked is None and family is None:
        return None
    return Layout(family[1] if family else world, seed)


def register(world: str) -> None:
    """MiniGrid's environments are in Gymnasium's registry once MiniGrid is imported."""
    if world in gymnasium.registry or not FAMILIES.fullmatch(world):
        return
    extras.refuse_missing(f"Environment '{world}'", "minigrid")
    with contextlib.suppress(ModuleNotFoundError):  # of one of its own parts: no such id, then
        importlib.import_module("minigrid")
