"""Asking an environment: whatever it does wrong becomes one sentence."""

from typing import Any

import gymnasium
import numpy as np

from understudy.errors import UserError

Taken = np.ndarray | np.integer  # an action in the environment's units


def begin(env: gymnasium.Env, name: str, *, seed: int) -> np.ndarray:
    """The first observation of an episode."""
    try:
        obs, _ = env.reset(seed=seed)
    except Exception as error:
        raise UserError(
            f"Environment {name} failed at a reset: {type(error).__name__}: {error}"
        ) from error
    return _seen(obs, 0.0, name, 0)


def step(
    env: gymnasium.Env, name: str, action: Taken, t: int
) -> tuple[np.ndarray, float, bool, bool]:
    """Observation, reward, terminated and truncated of step t."""
    shape = env.action_space.shape
    shaped: Any = action.reshape(shape) if shape else int(action)
    try:
        obs, reward, terminated, truncated, _ = env.step(shaped)
    except Exception as error:
        raise UserError(
            f"Environment {name} failed in step {t} of an episode: {type(error).__name__}: {error}"
        ) from error
    gained = float(reward)
    return _seen(obs, gained, name, t), gained, bool(terminated), bool(truncated)


def _seen(obs: Any, reward: float, name: str, t: int) -> np.ndarray:
    """A copy of its own: an environment may write its next observation over this one."""
    seen = np.array(obs)
    if not (np.isfinite(seen).all() and np.isfinite(reward)):
        raise UserError(
            f"Environment {name} gave an observation or a reward that is not finite (NaN) in step "
            f"{t} of an episode."
        )
    return seen
