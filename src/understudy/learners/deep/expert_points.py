"""Demonstrations as the networks see them: the steps that are shown, in the networks' units."""

import gymnasium
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.learners.deep import absorbing, scaling
from understudy.learners.deep.actor_critic import Transitions
from understudy.learners.deep.asking import FAR
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.scaling import Scaling


def kept(shown: Demonstrations, thin: int | None) -> list[np.ndarray]:
    """The steps of each demonstration that are shown: all, or every so many from a random one on,
    as is usual since Ho & Ermon (2016)."""
    lengths = [len(actions) for actions in shown.actions]
    if thin is None:
        return [np.arange(length) for length in lengths]
    if not 1 <= thin <= min(lengths):
        raise UserError(
            f"--thin is {thin}; it must be from 1 to {min(lengths)}, the shortest demonstration."
        )
    first = np.random.default_rng(0).integers(thin, size=len(lengths))
    return [np.arange(f, length, thin) for f, length in zip(first, lengths, strict=True)]


def expert_points(
    shown: Demonstrations,
    world: gymnasium.Env,
    border: Scaling,
    config: DeepConfig,
    env: str,
    thin: int | None = None,
) -> tuple[Transitions, Scaling]:
    """The demonstrations in the networks' units, and the scaling that they set."""
    if config.absorbing:
        shown = absorbing.of_demonstrations(shown)
    rows = kept(shown, thin)
    obs, after, action = (
        np.concatenate([episode[of + i] for episode, i in zip(episodes, rows, strict=True)])
        for episodes, of in ((shown.observations, 0), (shown.observations, 1), (shown.actions, 0))
    )
    if len(action) < 2:
        raise UserError(f"The demonstrations of {env} have one step in all; give more.")
    border.check(obs, action, world, env)
    if config.normalise:
        border = scaling.standardised(border, obs, absorbing=config.absorbing)
    last = np.concatenate(
        [
            (i == len(actions) - 1) & ended
            for i, actions, ended in zip(rows, shown.actions, shown.terminated, strict=True)
        ]
    )
    points = border.obs(obs), border.encode(action), border.obs(after), last
    for name, values in zip(("observation", "action", "observation"), points[:3], strict=True):
        if not (np.abs(values) < FAR).all():
            raise UserError(
                f"The demonstrations of {env} have an {name} that is too far off for the networks "
                f"({np.abs(values).max():g} in their units); scale or bound what they show."
            )
    return Transitions(*map(jnp.asarray, points), reward=own(shown, rows, config, env)), border


def own(
    shown: Demonstrations, rows: list[np.ndarray], config: DeepConfig, env: str
) -> Array | None:
    """The environment's rewards in the steps that are shown, where a share of them is paid."""
    if not config.task_reward:
        return None
    gained = np.concatenate([r[i] for r, i in zip(shown.rewards, rows, strict=True)])
    size = float(np.abs(gained).mean())
    if not 1e-12 < size < FAR:
        raise UserError(
            f"The demonstrations of {env} have rewards of a mean size of {size:g}, and "
            f"--task-reward is in units of it; give demonstrations with the task's rewards."
        )
    return jnp.asarray(gained, jnp.float32)
