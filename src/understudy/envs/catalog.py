"""From a name to a task: an MDP, and demonstrations where we have them."""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.spaces import Discrete

from understudy.core.adaptive import Rewards
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.linear_mdp import LinearMDP, random_linear
from understudy.core.mdp import MDP
from understudy.envs import empty_room, layouts, making, numbered, sampled, slippery_room, toy_text
from understudy.envs.exploring import LONGEST, Told
from understudy.envs.guard import plain
from understudy.envs.layouts import Layout
from understudy.envs.limits import time_limit
from understudy.envs.numbered import Numbered

LINEAR = re.compile(r"RandomLinear-d(\d+)(?:-seed(\d+))?")
SLIPPERY = re.compile(r"SlipperyRoom-(\d+)x(\d+)(?:-seed(\d+))?")
ROOM = re.compile(r"(?:understudy/)?EmptyRoom-(\d+)x(\d+)(?:-v0)?")


@dataclass(frozen=True)
class Task:
    name: str
    mdp: MDP
    demonstrations: Demonstrations | None = None  # ours; where None, the expert is the optimum
    note: str = ""
    linear: LinearMDP | None = None  # the features of `mdp`, where it has some
    rewards: Rewards | None = None  # on these, where they are of one kind
    first: tuple[int, int] = (0, 0)  # what the environment calls its first state and action
    explored: str | None = None  # tells the states that were explored, and their order


def quiet(states: int) -> None:
    """Nobody is told how far exploring is."""


def find(name: str, *, horizon: int | None = None, seed: int = 0, told: Told = quiet) -> Task:
    """EmptyRoom of any size (`EmptyRoom-9x9`), SlipperyRoom of any size, a random linear MDP
    (`RandomLinear-d8`), a task of MiniGrid's or another environment of one layout
    (`MiniGrid-FourRooms-v0-layout3`), explored; or a discrete Gymnasium environment by its id: from
    its P table where it has one, otherwise by sampling it with `seed`."""
    if horizon is not None and not 1 <= horizon <= LONGEST:
        raise UserError(f"The horizon is {horizon}; it must be from 1 to {LONGEST:,}.")
    if random := LINEAR.fullmatch(name):
        d, drawn = int(random[1]), int(random[2] or 0)
        if not 1 <= d <= 256:
            raise UserError(f"{name} has {d} features; it may have 1 to 256.")
        linear = random_linear(drawn, S=12, A=3, H=horizon or 6, d=d)
        return Task(name, linear.mdp, linear=linear)
    if slippery := SLIPPERY.fullmatch(name):
        n, drawn = _side(name, slippery), int(slippery[3] or 0)
        linear = slippery_room.slippery_room(n, seed=drawn, horizon=horizon)
        shown = slippery_room.demonstrations(n, seed=drawn, horizon=horizon)
        return Task(name, linear.mdp, shown, linear=linear, rewards="cube")
    if (n := room_size(name)) is not None:
        room = empty_room.empty_room(n, horizon=horizon)
        demos = empty_room.demonstrations(n, horizon=horizon)
        return Task(f"understudy/EmptyRoom-{n}x{n}-v0", room, demos)
    layout = layouts.find(name)
    if layout is None:
        with contextlib.closing(make(name)) as env:
            if not _to_explore(env, name):
                return of_env(env, name, horizon=horizon, seed=seed)
        layout = Layout(name)
    with contextlib.closing(numbered.make(layout, horizon, told=told)) as env:
        return of_numbered(env)


def of_env(
    env: gymnasium.Env, name: str, *, horizon: int | None = None, seed: int = 0, told: Told = quiet
) -> Task:
    """The table of an environment: its own; where it shows no states, by exploring its layout 0;
    otherwise what sampling it with `seed` shows."""
    if (known := numbered.inside(env)) is not None:
        if horizon not in (None, known.found.horizon):
            raise UserError(
                f"{known.layout.name} was explored for episodes of {known.found.horizon:,} steps; "
                f"leave the horizon of {horizon:,} out, or explore it with that one."
            )
        return of_numbered(known)
    if _to_explore(env, name):
        return of_numbered(numbered.number(env, Layout(name), horizon, told=told))
    horizon = horizon or time_limit(env)
    if horizon is None:
        raise UserError(f"Environment {name} sets no time limit; give one (--horizon).")
    states: Any = env.observation_space
    actions: Any = env.action_space
    first = int(states.start), int(actions.start)
    if toy_text.table_of(env) is not None:
        return Task(name, toy_text.from_env(env, horizon=horizon), first=first)
    found = sampled.from_samples(env, horizon=horizon, seed=seed)
    note = (
        f"no P table: sampled {sampled.INTERACTIONS:,} steps, "
        f"{found.coverage:.1%} of state-actions tried"
    )
    return Task(name, found.mdp, note=note, first=first)


def of_numbered(env: Numbered) -> Task:
    """The table of an environment that was explored."""
    space: Any = env.action_space
    found = env.found
    note = f"explored {found.states:,} states; every episode has layout {env.layout.seed}"
    first = 0, int(space.start)
    return Task(env.layout.name, env.mdp, note=note, first=first, explored=found.fingerprint())


def shows_states(env: gymnasium.Env) -> bool:
    """Whether it is for tables: its observations are states, or it is a task of MiniGrid's."""
    id = env.spec.id if env.spec else ""
    return isinstance(env.observation_space, Discrete) or layouts.find(id) is not None


def _to_explore(env: gymnasium.Env, name: str) -> bool:
    """Whether what it shows is no state; a table of it has those that its simulator holds."""
    if not isinstance(env.action_space, Discrete):
        raise UserError(
            f"Environment {name} has actions {plain(env.action_space)}; the tabular learner needs "
            f"them Discrete."
        )
    return not isinstance(env.observation_space, Discrete)


def room_size(name: str) -> int | None:
    """n of an n×n EmptyRoom, or None if the name is of something else."""
    if name == "understudy/EmptyRoom-v0":
        return 5
    if not (room := ROOM.fullmatch(name)):
        return None
    return _side(name, room)


def _side(name: str, room: re.Match[str]) -> int:
    if room[1] != room[2]:
        raise UserError(f"Environment {name} is not square; {name.split('-')[0]} is n×n.")
    return int(room[1])


def make(
    name: str,
    *,
    horizon: int | None = None,
    render_mode: str | None = None,
    keys: Sequence[str] = (),
) -> gymnasium.Env:
    """`gymnasium.make`, with rooms of any size, behind a guard, and with errors that help; of what
    is shown by name, only the `keys`, if any are given."""
    if (layout := layouts.find(name)) is not None:
        return numbered.make(layout, horizon, render_mode=render_mode)
    drawn: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}
    if (n := room_size(name)) is not None:
        return making.make("understudy/EmptyRoom-v0", size=n, horizon=horizon, **drawn)
    return making.make(name, max_episode_steps=horizon, keys=keys, **drawn)
