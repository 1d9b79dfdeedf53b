"""Copies of an environment to try an action in, quickly: what never changes is shared by all.

Every copy draws its random numbers from one of two streams, which go on from copy to copy. An
action that is tried twice then meets other numbers each time; and that a stream has moved tells
that numbers were drawn at all.
"""

import copy
import random
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from understudy.envs import world_state
from understudy.envs.guard import calling, plain


class Copies:
    """How an environment is copied, and what its copies may draw."""

    def __init__(self, world: gymnasium.Env, drawn_from: list[Any], name: str) -> None:
        self.name = plain(name)
        still = world_state.still(world)
        self.known = world_state.written_of(still)
        shared: dict[int, Any] = {id(x): x for x in still}
        for layer in _chain(world):
            for name, x in vars(layer).items():
                if name == "P" or isinstance(x, gymnasium.Space | EnvSpec):
                    shared[id(x)] = x
        # Two streams for each generator; copies hold the first of them, whatever they are made of.
        self._streams = [(another(x, 1), another(x, 2)) for x in drawn_from]
        first = {id(x): a for x, (a, _) in zip(drawn_from, self._streams, strict=True)}
        first |= {id(a): a for a, _ in self._streams}
        second = first | {id(a): b for a, b in self._streams}
        self._memo = shared | first, shared | second
        self._alive = [shared, drawn_from]

    def copy(self, world: gymnasium.Env, stream: int = 0) -> gymnasium.Env:
        """Another just like it, but for what it will draw."""
        memo = dict(self._memo[stream])
        with calling(f"Environment {self.name} cannot be copied, which exploring it takes"):
            cells = world_state.cells(world)
            if cells:  # hundreds, nearly all of them shared: quicker than one call for each
                memo[id(cells)] = [
                    None if x is None else memo.get(id(x)) or copy.deepcopy(x, memo) for x in cells
                ]
            return copy.deepcopy(world, memo)

    def drawn(self) -> list[Any]:
        """Where the streams are, and the generators that a whole program shares."""
        streams = [position(x) for pair in self._streams for x in pair]
        words: Any = np.random.get_state()  # noqa: NPY002
        return [*streams, random.getstate(), words[1].tobytes(), words[2]]


def _chain(world: gymnasium.Env) -> list[gymnasium.Env]:
    found, inner = [], world
    while isinstance(inner, gymnasium.Wrapper):
        found.append(inner)
        inner = inner.env
    return [*found, inner]


def another(generator: Any, seed: int) -> Any:
    """A generator of the same kind, elsewhere."""
    if isinstance(generator, random.Random):
        return random.Random(seed)
    if isinstance(generator, np.random.RandomState):
        return np.random.RandomState(seed)
    if isinstance(generator, np.random.Generator):
        return type(generator)(type(generator.bit_generator)(seed))
    return type(generator)(seed)


def position(generator: Any) -> str:
    """Where a generator is in its numbers."""
    if isinstance(generator, random.Random):
        return str(generator.getstate())
    if isinstance(generator, np.random.RandomState):
        return str([x.tolist() if isinstance(x, np.ndarray) else x for x in
                    generator.get_state(legacy=True)])  # fmt: skip
    bits = generator.bit_generator if isinstance(generator, np.random.Generator) else generator
    with np.printoptions(threshold=10_000):
        return str(bits.state)
