"""After how many steps an environment cuts its episodes off."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import TimeLimit

from understudy.core.errors import UserError
from understudy.envs.guard import plain


def time_limit(env: gymnasium.Env) -> int | None:
    """By its spec, or by a wrapper."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            return env._max_episode_steps
        env = env.env
    return env.spec.max_episode_steps if env.spec else None


def own_limit(env: gymnasium.Env) -> int | None:
    """The same, or its attribute `max_steps`, as MiniGrid's have it; some of them only know it when
    they have been reset."""
    own: Any = getattr(env.unwrapped, "max_steps", None)
    counts = isinstance(own, int | np.integer) and not isinstance(own, bool) and own > 0
    limit = time_limit(env)
    if not counts:
        return limit
    return int(own) if limit is None else min(int(own), limit)


def horizon_of(env: gymnasium.Env, name: str, asked: int | None) -> int:
    """Steps of an episode: as asked for, or the environment's own limit."""
    limit = own_limit(env)
    if (horizon := asked or limit) is None:
        raise UserError(f"Environment {plain(name)} sets no time limit; give one (--horizon).")
    if limit is not None and horizon > limit:
        raise cut_off(name, limit)
    return horizon


def cut_off(name: str, steps: int) -> UserError:
    return UserError(
        f"Environment {plain(name)} cuts its episodes off after {steps:,} steps; give a --horizon "
        f"of at most {steps:,}."
    )
