"""`understudy.explore`: from an environment that does the same every time to a table of it."""

from typing import Any

from understudy.core.errors import UserError
from understudy.core.precision import double
from understudy.envs import exploring, layouts, making, numbered
from understudy.envs.given import given
from understudy.envs.layouts import Layout
from understudy.envs.numbered import Numbered


@double
def explore(
    env: Any, *, layout: int | None = None, horizon: int | None = None, most: int = exploring.MOST
) -> Numbered:
    """Explore the states that can be reached in an environment that does the same every time.

    Args:
        env: An environment's id, a Gymnasium environment (which is copied, and stays as it is), or
            a function that makes one. Its actions are Discrete; it can be copied.
        layout: The seed that every episode is reset with; that of the name, or 0, if not given.
        horizon: Steps per episode; the environment's own limit if not given.
        most: So many states are too many.

    Returns:
        The environment with its states' numbers as observations, for `understudy.train` and to play
        in. `mdp` is its table.
    """
    if layout is not None and not 0 <= layout < 10**9:
        raise UserError(f"The layout is {layout}; it must be a seed from 0 to 999,999,999.")
    if horizon is not None and not 1 <= horizon <= exploring.LONGEST:
        raise UserError(f"The horizon is {horizon}; it must be from 1 to {exploring.LONGEST:,}.")
    if most < 1:
        raise UserError(f"The most states are {most}; allow at least 1.")
    if isinstance(env, str):
        asked = layouts.find(env) or Layout(env)
        world = making.bare(
            asked.world, **({} if horizon is None else {"max_episode_steps": horizon})
        )
    else:
        task = given(env)
        asked, world = Layout(task.name), task.make(None)
    seed = asked.seed if layout is None else layout
    return numbered.number(world, Layout(asked.world, seed), horizon, most=most)
