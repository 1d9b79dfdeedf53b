"""From a name to a task: an MDP, and demonstrations where we have them."""

import contextlib
import re
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.spaces import Discrete
from gymnasium.wrappers import TimeLimit

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.linear_mdp import LinearMDP, random_linear
from understudy.core.mdp import MDP
from understudy.envs import empty_room, making, sampled, toy_text

LINEAR = re.compile(r"RandomLinear-d(\d+)(?:-seed(\d+))?")
LONGEST = 10**6  # stages of a table
ROOM = re.compile(r"(?:understudy/)?EmptyRoom-(\d+)x(\d+)(?:-v0)?")


@dataclass(frozen=True)
class Task:
    name: str
    mdp: MDP
    demonstrations: Demonstrations | None = None  # ours; where None, the expert is the optimum
    note: str = ""
    linear: LinearMDP | None = None  # the features of `mdp`, where it has some
    first: tuple[int, int] = (0, 0)  # what the environment calls its first state and action


def find(name: str, *, horizon: int | None = None, seed: int = 0) -> Task:
    """EmptyRoom of any size (`EmptyRoom-9x9`), a random linear MDP (`RandomLinear-d8`), or a
    discrete Gymnasium environment by its id: from its P table where it has one, otherwise by
    sampling it with `seed`."""
    if horizon is not None and not 1 <= horizon <= LONGEST:
        raise UserError(f"The horizon is {horizon}; it must be from 1 to {LONGEST:,}.")
    if random := LINEAR.fullmatch(name):
        d, drawn = int(random[1]), int(random[2] or 0)
        if not 1 <= d <= 256:
            raise UserError(f"{name} has {d} features; it may have 1 to 256.")
        linear = random_linear(drawn, S=12, A=3, H=horizon or 6, d=d)
        return Task(name, linear.mdp, linear=linear)
    if (n := room_size(name)) is not None:
        room = empty_room.empty_room(n, horizon=horizon)
        demos = empty_room.demonstrations(n, horizon=horizon)
        return Task(f"understudy/EmptyRoom-{n}x{n}-v0", room, demos)
    with contextlib.closing(make(name)) as env:
        return of_env(env, name, horizon=horizon, seed=seed)


def of_env(env: gymnasium.Env, name: str, *, horizon: int | None = None, seed: int = 0) -> Task:
    """The table of a discrete environment: its own, or what sampling it with `seed` shows."""
    if not isinstance(env.observation_space, Discrete) or not isinstance(
        env.action_space, Discrete
    ):
        raise UserError(
            f"Environment {name} has observations {env.observation_space} and actions "
            f"{env.action_space}; the tabular learner needs both Discrete."
        )
    horizon = horizon or time_limit(env)
    if horizon is None:
        raise UserError(f"Environment {name} sets no time limit; give one (--horizon).")
    first = int(env.observation_space.start), int(env.action_space.start)
    if toy_text.table_of(env) is not None:
        return Task(name, toy_text.from_env(env, horizon=horizon), first=first)
    found = sampled.from_samples(env, horizon=horizon, seed=seed)
    note = (
        f"no P table: sampled {sampled.INTERACTIONS:,} steps, "
        f"{found.coverage:.1%} of state-actions tried"
    )
    return Task(name, found.mdp, note=note, first=first)


def time_limit(env: gymnasium.Env) -> int | None:
    """Where its episodes are cut off: by its spec, or by a wrapper."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            return env._max_episode_steps
        env = env.env
    return env.spec.max_episode_steps if env.spec else None


def room_size(name: str) -> int | None:
    """n of an n×n EmptyRoom, or None if the name is of something else."""
    if name == "understudy/EmptyRoom-v0":
        return 5
    if not (room := ROOM.fullmatch(name)):
        return None
    if room[1] != room[2]:
        raise UserError(f"Environment {name} is not square; EmptyRoom is n×n.")
    return int(room[1])


def make(name: str, *, horizon: int | None = None, render_mode: str | None = None) -> gymnasium.Env:
    """`gymnasium.make`, with rooms of any size, behind a guard, and with errors that help."""
    drawn: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}
    if (n := room_size(name)) is not None:
        return making.make("understudy/EmptyRoom-v0", size=n, horizon=horizon, **drawn)
    return making.make(name, max_episode_steps=horizon, **drawn)
