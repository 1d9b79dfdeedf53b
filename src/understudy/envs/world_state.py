"""All that an environment holds, by value, as a few bytes: two simulators with the same bytes go on
alike. It is the whole of the simulator's state, not what the agent sees of it.

Left out is what the future does not depend on: what draws the world (a window is None before the
first picture, so None is left out too), spaces, generators of random numbers (explored worlds must
not use them) and the clocks, attributes that count steps, for the stage is the table's own. Numbers
and rows of numbers are told by value and not by type, for MiniGrid writes a position as a tuple
here and as an array there. An object that is met twice is named the second time: whether two things
are the same one is part of the state.

An environment with a method `understudy_state()` says itself what its state is: numbers, strings,
arrays, or lists and dictionaries of them.
"""

import enum
import functools
import hashlib
import random
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import wrappers
from gymnasium.envs.registration import EnvSpec

from understudy.envs.guard import Guard, calling, plain

BYTES = 16  # of 10,000 states two are alike by chance once in 10³⁰
LEFT_OUT = frozenset(  # settings of what draws, the seed, and toy text's table, which never changes
    ("P", "_np_random_seed", "agent_pov", "env", "highlight", "metadata", "render_mode",
     "render_size", "screen_size", "tile_size")
)  # fmt: skip
DRAWN_BY = frozenset(("pygame", "matplotlib", "PIL", "tkinter", "moderngl", "pyglet", "OpenGL"))
# They count steps or remember that they were called, and change nothing but how an episode is cut.
BOOKKEEPING = (
    Guard,
    wrappers.FlattenObservation,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
    wrappers.TimeLimit,
)
RANDOM = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
CODE = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
# Things in MiniGrid's cells that never change; there are hundreds of them.
STILL = frozenset(("Wall", "Goal", "Lava", "Floor"))
ATOMS = frozenset((type(None), bool, int, float, str))
SHORT = 16  # numbers in a row that is told like a tuple

Still = dict[int, str]  # by `id`: what is written of things that never change
Clocks = frozenset[str]


def layers(world: gymnasium.Env) -> list[gymnasium.Env]:
    """The environment and all that it wraps, from the outside, without what keeps the books."""
    found: list[gymnasium.Env] = []
    inner: Any = world
    while isinstance(inner, gymnasium.Wrapper):
        if not isinstance(inner, BOOKKEEPING):
            found.append(inner)
        inner = inner.env
    return [*found, inner]


def core(world: gymnasium.Env) -> gymnasium.Env:
    """The environment without the books that are kept around it."""
    while isinstance(world, BOOKKEEPING):
        world = world.env
    return world


def place(layer: gymnasium.Env, name: str) -> str:
    """How an attribute of a layer is called among clocks."""
    return f"{type(layer).__qualname__}.{name}"


def clocks_of(layer: gymnasium.Env, clocks: Iterable[str]) -> dict[str, str]:
    """From the names of a layer's attributes to what they are called among the clocks."""
    split = [(clock, *clock.rpartition(".")[::2]) for clock in clocks]
    kind, held = type(layer).__qualname__, vars(layer)
    return {name: clock for clock, of, name in split if of == kind and name in held}


def cells(world: gymnasium.Env) -> list[Any]:
    """What is in the cells of a MiniGrid world; nothing, if it is none."""
    grid = getattr(getattr(world.unwrapped, "grid", None), "grid", None)
    return grid if isinstance(grid, list) else []


def still(world: gymnasium.Env) -> list[Any]:
    """The things of a MiniGrid world that never change: copies may share them."""
    return [cell for cell in cells(world) if _never_changes(cell)]


def _never_changes(x: Any) -> bool:
    kind = type(x)
    return kind.__qualname__ in STILL and kind.__module__ == "minigrid.core.world_object"


def written_of(things: list[Any]) -> Still:
    return {id(x): _still(x) for x in things}


def _still(x: Any) -> str:
    return f"<{type(x).__qualname__} {x.color}>"


class Reading:
    """What an environment holds: `digest`, and the generators of random numbers on the way."""

    def __init__(self, world: gymnasium.Env, clocks: Clocks, known: Still) -> None:
        self.out: list[str] = []
        self.random: list[Any] = []
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # or an address could be used again
        self._known = known
        parts = layers(world)
        told = getattr(parts[-1], "understudy_state", None)
        for number, layer in enumerate(parts):
            self._seen[id(layer)] = number
        with calling(f"The state of {plain(type(parts[-1]).__name__)} cannot be read"):
            if told is not None:
                self._read(told())
                parts = parts[:-1]
            for layer in parts:
                self._attributes(vars(layer), LEFT_OUT.union(clocks_of(layer, clocks)))
        self.digest = hashlib.blake2b("\x1f".join(self.out).encode(), digest_size=BYTES).digest()

    def _attributes(self, held: dict[str, Any], without: frozenset[str]) -> None:
        for name in sorted(held):
            value = held[name]
            if isinstance(value, RANDOM):
                self.random.append(value)
            elif name in without or value is None:
                continue
            elif type(value) in ATOMS:
                self.out += name, repr(value)
            elif not _nothing(value):
                self.out.append(name)
                self._read(value)

    def _read(self, x: Any) -> None:
        if x is None or isinstance(x, bool | np.bool_ | enum.Enum):
            self.out.append(str(x))
        elif isinstance(x, int | np.integer):
            self.out.append(f"{x:d}")
        elif isinstance(x, float | np.floating):
            self.out.append(repr(float(x)))
        elif isinstance(x, str | bytes | complex | range):
            self.out.append(repr(x))
        elif isinstance(x, tuple):
            self._row(x)
        elif isinstance(x, np.ndarray) and x.ndim == 1 and x.size <= SHORT:
            self._row(x.tolist())
        elif _never_changes(x):
            self.out.append(_still(x))
        elif isinstance(x, RANDOM):
            self.random.append(x)
        elif isinstance(x, gymnasium.Space | EnvSpec | np.random.SeedSequence) or _nothing(x):
            return
        elif isinstance(x, CODE):
            self.out.append(x.__name__)
        else:
            self._thing(x)

    def _row(self, items: Any) -> None:
        self.out.append("(")
        for item in items:
            if type(item) in ATOMS:
                self.out.append(repr(item))
            elif (known := self._known.get(id(item))) is not None:
                self.out.append(known)
            else:
                self._read(item)
        self.out.append(")")

    def _thing(self, x: Any) -> None:
        """What can be changed in place, or has parts."""
        if id(x) in self._seen:
            self.out.append(f"again {self._seen[id(x)]}")
            return
        self._seen[id(x)] = len(self._seen)
        self._kept.append(x)
        self.out.append(f"<{type(x).__qualname__}")
        if isinstance(x, np.ndarray):
            self._array(x)
        elif isinstance(x, dict):
            for key in sorted(x, key=_order):
                self._read(key)
                self._read(x[key])
        elif isinstance(x, list | deque):
            self._row(x)
        elif isinstance(x, set | frozenset):
            self._row(sorted(x, key=_order))
        elif not isinstance(x, types.MethodType) and (attributes := _attributes_of(x)) is not None:
            self._attributes(attributes, frozenset())
        else:
            self._row(x.__reduce_ex__(4)[1:3])
        self.out.append(">")

    def _array(self, x: np.ndarray) -> None:
        if x.dtype.hasobject:
            self._row(x.ravel().tolist())
        else:
            self.out.append(f"{x.dtype.str} {x.shape} {x.tobytes().hex()}")


@functools.cache
def _drawing(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in DRAWN_BY


def _nothing(x: Any) -> bool:
    """None, or pictures in the place of it."""
    if isinstance(x, list | tuple | dict) and x:
        parts = x.values() if isinstance(x, dict) else x
        return all(item is not None and _nothing(item) for item in parts)
    return x is None or _drawing(type(x))


def _order(x: Any) -> str:
    """An order of keys and of a set's elements that is the same in every process."""
    if isinstance(x, str | int | float | bool | bytes | np.generic | enum.Enum | None):
        return f"{type(x).__name__} {x!r}"
    if isinstance(x, tuple):
        return " ".join(map(_order, x))
    raise TypeError(
        f"a {plain(type(x).__name__)} in a set or as a key has no order; give the environment a "
        f"method understudy_state() that says what its state is"
    )


def _attributes_of(x: Any) -> dict[str, Any] | None:
    """What an object of a class has, by name; None of one that keeps its values elsewhere."""
    slots = [n for kind in type(x).__mro__ for n in kind.__dict__.get("__slots__", ())]
    if not slots and not isinstance(getattr(x, "__dict__", None), dict):
        return None
    held = {name: getattr(x, name, None) for name in slots if name != "__dict__"}
    return held | getattr(x, "__dict__", {})


def counters(world: gymnasium.Env) -> Iterator[tuple[str, int]]:
    """The attributes of its layers that are whole numbers: their place and their value."""
    for layer in layers(world):
        for name, value in vars(layer).items():
            if isinstance(value, int | np.integer) and not isinstance(value, bool):
                yield place(layer, name), int(value)


def times(world: gymnasium.Env, clocks: Iterable[str]) -> dict[str, int]:
    """What its clocks say."""
    found = [(layer, clocks_of(layer, clocks)) for layer in layers(world)]
    return {clock: vars(layer)[name] for layer, named in found for name, clock in named.items()}


def set_times(world: gymnasium.Env, at: dict[str, int]) -> None:
    """Let it be a certain step of the episode."""
    for layer in layers(world):
        for name, clock in clocks_of(layer, at).items():
            setattr(layer, name, at[clock])
