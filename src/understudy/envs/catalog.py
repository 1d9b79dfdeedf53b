"""From a name to a task: an MDP, and demonstrations where we have them."""

import difflib
import re
from dataclasses import dataclass

import gymnasium
from gymnasium.spaces import Discrete

from understudy.demos import Demonstrations
from understudy.envs import empty_room, sampled, toy_text
from understudy.errors import UserError
from understudy.mdp import MDP

ROOM = re.compile(r"(?:understudy/)?EmptyRoom-(\d+)x(\d+)(?:-v0)?")


@dataclass(frozen=True)
class Task:
    name: str
    mdp: MDP
    demonstrations: Demonstrations | None = None  # ours; where None, the expert is the optimum
    note: str = ""


def find(name: str, *, horizon: int | None = None, seed: int = 0) -> Task:
    """EmptyRoom of any size (`EmptyRoom-9x9`), or a discrete Gymnasium environment by its id:
    from its P table where it has one, otherwise by sampling."""
    if horizon is not None and horizon < 1:
        raise UserError(f"The horizon is {horizon}; it must be at least 1.")
    if room := ROOM.fullmatch(name):
        n, m = int(room[1]), int(room[2])
        if n != m:
            raise UserError(f"Environment {name} is not square; EmptyRoom is n×n.")
        demos = empty_room.demonstrations(n, horizon=horizon)
        return Task(
            f"understudy/EmptyRoom-{n}x{n}-v0", empty_room.empty_room(n, horizon=horizon), demos
        )
    env = make(name)
    try:
        if horizon is None:
            horizon = env.spec.max_episode_steps if env.spec else None
        if horizon is None:
            raise UserError(f"Environment {name} sets no time limit; give one with --horizon.")
        if hasattr(env.unwrapped, "P"):
            return Task(name, toy_text.from_table(env, horizon=horizon))
        if not isinstance(env.observation_space, Discrete):
            raise UserError(
                f"Environment {name} has observations {env.observation_space}; the tabular "
                f"learner needs Discrete observations and actions."
            )
        found = sampled.from_samples(env, horizon=horizon, seed=seed)
        note = f"no P table: sampled 50,000 steps, {found.coverage:.1%} of state-actions tried"
        return Task(name, found.mdp, note=note)
    finally:
        env.close()


def make(name: str, **kwargs: object) -> gymnasium.Env:
    """`gymnasium.make`, with rooms of any size, and errors that help."""
    if (room := ROOM.fullmatch(name)) and room[1] == room[2]:
        return gymnasium.make("understudy/EmptyRoom-v0", size=int(room[1]), **kwargs)  # type: ignore[arg-type]
    try:
        return gymnasium.make(name, **kwargs)  # type: ignore[arg-type]
    except gymnasium.error.Error as error:
        known = [*gymnasium.registry, *(f"EmptyRoom-{n}x{n}" for n in (3, 5, 9))]
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else "use EmptyRoom-5x5 or a Gymnasium id."
        raise UserError(f"Unknown environment '{name}' ({_first(error)}); {hint}") from None
    except ModuleNotFoundError as error:
        raise UserError(f"Environment '{name}' needs a package: {_first(error)}.") from None


def _first(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")
