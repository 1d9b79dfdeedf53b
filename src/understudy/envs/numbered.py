"""An explored environment to play in: its observations are the numbers of its states.

The number is read off the simulator at every step, by all that it holds. Every reset is with the
layout's seed, whatever seed is given, and an episode has as many steps as the table has stages.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.spaces import Discrete

from understudy.core.errors import UserError
from understudy.core.mdp import MDP
from understudy.envs import exploring, making, world_state
from understudy.envs.explored import Explored
from understudy.envs.guard import guarded
from understudy.envs.layouts import Layout
from understudy.envs.limits import horizon_of
from understudy.envs.world_state import Reading, Still

_found: dict[tuple[Layout, int | None], Explored] = {}  # by name: one process explores once


class Numbered(gymnasium.Wrapper):
    """States in place of what the agent sees. `found` is what was explored, `mdp` its table."""

    def __init__(self, world: gymnasium.Env, layout: Layout, found: Explored) -> None:
        super().__init__(guarded(world, layout.name))
        self.layout, self.found, self.stage = layout, found, 0
        self.observation_space = Discrete(found.states)
        self._numbers = {digest: s for s, digest in enumerate(found.digests)}
        self._known: Still = {}

    @property
    def spec(self) -> Any:
        """The environment's own."""
        return self.env.spec

    @functools.cached_property
    def mdp(self) -> MDP:
        """The table, to compute with."""
        return self.found.mdp()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        """Where every episode begins: in state 0, whatever the seed."""
        more = {} if options is None else {"options": options}
        _, info = self.env.reset(seed=self.layout.seed, **more)
        self._known, self.stage = world_state.written_of(world_state.still(self.env)), 0
        if (begun := self._number()) != 0:
            raise UserError(
                f"{self.layout.name} begins in its state {begun} now, and began in 0 when it was "
                f"explored; reset it without options."
            )
        return 0, info

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        _, reward, terminated, truncated, info = self.env.step(action)
        self.stage += 1
        sink = self.found.sink
        over = terminated and sink is not None
        number = sink if over else self._number(sink if truncated or terminated else None)
        late = self.stage >= self.found.horizon
        return int(number or 0), float(reward), bool(terminated), bool(truncated or late), info

    def _number(self, ended: int | None = None) -> int:
        """Of the state that the simulator is in; `ended`, where it is in none and has ended."""
        digest = Reading(self.env, self.found.clocks, self._known).digest
        number = self._numbers.get(digest, ended)
        if number is None:
            raise UserError(
                f"{self.layout.name} is in a state that was not there when it was explored; if it "
                f"keeps what it draws among its attributes, give it a method understudy_state() "
                f"that says what its state is."
            )
        return number


def inside(env: gymnasium.Env) -> Numbered | None:
    """The explored environment in an environment, if there is one."""
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, Numbered):
            return inner
        inner = inner.env
    return None


def number(
    world: gymnasium.Env,
    layout: Layout,
    horizon: int | None = None,
    *,
    most: int = exploring.MOST,
    told: Callable[[int], object] = lambda states: None,
) -> Numbered:
    """Explore an environment, which is then the one that is played in."""
    exploring.reset(world, layout.world, layout.seed)
    steps = horizon_of(world, layout.world, horizon)
    found = exploring.explore(
        world, layout.world, layout=layout.seed, horizon=steps, most=most, told=told
    )
    return Numbered(world, layout, found)


def make(
    layout: Layout,
    horizon: int | None = None,
    *,
    render_mode: str | None = None,
    told: Callable[[int], object] = lambda states: None,
) -> Numbered:
    """An environment by its name and layout. What was explored before is not explored again; what
    is drawn is another environment than the one that was copied."""
    limit = {} if horizon is None else {"max_episode_steps": horizon}
    drawn = {} if render_mode is None else {"render_mode": render_mode}
    if (found := _found.get((layout, horizon))) is None:
        with contextlib.closing(making.bare(layout.world, **limit)) as world:
            found = number(world, layout, horizon, told=told).found
        _found[layout, horizon] = found
    return Numbered(making.bare(layout.world, **limit, **drawn), layout, found)
