"""Whatever a user gives for an environment: its id, the environment itself, or a function that
makes one. What comes of it is a name, and a way to make as many of it as are needed."""

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import gymnasium
from gymnasium.wrappers import TimeLimit

from understudy.core.errors import UserError
from understudy.envs import catalog, making
from understudy.envs.guard import calling, plain


@dataclass(frozen=True)
class Given:
    """An environment by name, and a way to make one; with a horizon, episodes are cut there."""

    name: str
    make: Callable[[int | None], gymnasium.Env]
    about: str | None = None  # of one that was not given by its name, which alone does not tell it

    def named(self) -> dict[str, str]:
        """What a run's identity says of it, besides its name."""
        return {} if self.about is None else {"given": self.about}


def given(env: Any, keys: Sequence[str] = ()) -> Given:
    """From an id or 'module:Class', a Gymnasium environment, or a function that makes one; of what
    it shows by name, only the `keys`, if any are given."""
    if isinstance(env, Given):
        return env
    if isinstance(env, str):
        return Given(env, functools.partial(_by_name, env, keys))
    if isinstance(env, gymnasium.Env):
        name = _name(env)
        about = plain(f"{env} {env.spec.kwargs if env.spec else ''}".strip())
        copying = functools.partial(_copy, env)
        return Given(name, functools.partial(_again, copying, name, keys), about)
    if callable(env):
        name = _place(env if isinstance(env, type | FunctionType) else type(env))
        make = functools.partial(_again, functools.partial(_called, env, name), name, keys)
        return Given(name, make, name)
    raise UserError(
        f"The environment is {type(env).__name__}; give an id, a Gymnasium environment, a function "
        f"that makes one, an MDP or a LinearMDP."
    )


def _by_name(name: str, keys: Sequence[str], horizon: int | None) -> gymnasium.Env:
    """A function with a name, which other processes know too."""
    return catalog.make(name, horizon=horizon, keys=keys)


def _name(env: gymnasium.Env) -> str:
    spec = env.spec
    return plain(spec.id) if spec is not None else _place(type(env.unwrapped))


def _place(made_by: Any) -> str:
    """As 'module:Class', by which the command line can make it again, where it can."""
    return plain(f"{made_by.__module__}:{made_by.__qualname__}")


def _again(
    make: Callable[[], gymnasium.Env], name: str, keys: Sequence[str], horizon: int | None
) -> gymnasium.Env:
    made = making.guarded_vectors(make(), name, keys)
    return made if horizon is None else TimeLimit(made, horizon)


def _copy(env: gymnasium.Env) -> gymnasium.Env:
    """Another environment just like it: the user's own stays as it is."""
    try:
        return copy.deepcopy(env)
    except Exception as error:  # whatever stands in the way of a copy: a window, a handle, a socket
        raise UserError(
            f"Environment {_name(env)} cannot be copied ({type(error).__name__}); give a function "
            f"that makes one in its place."
        ) from error


def _called(make: Callable[[], Any], name: str) -> gymnasium.Env:
    with calling(f"The function {name} made no environment"):
        made = make()
    if not isinstance(made, gymnasium.Env):
        raise UserError(
            f"The function {name} gave {type(made).__name__} in place of a Gymnasium environment."
        )
    return made
