"""Asking an environment in the networks' units; what it does wrong is its guard's to say."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from understudy.core.errors import UserError
from understudy.envs.action_fit import Fit
from understudy.envs.guard import plain
from understudy.learners.deep.scaling import Scaling

Taken = np.ndarray | np.integer  # an action in the environment's units

FAR = 1e12  # in the networks' units; some thousand times farther off, and they answer with NaN


def begin(env: gymnasium.Env, *, seed: int) -> np.ndarray:
    """The first observation of an episode."""
    return np.asarray(env.reset(seed=seed)[0])


def step(env: gymnasium.Env, action: Taken) -> tuple[np.ndarray, float, bool, bool]:
    """Observation, reward, terminated and truncated."""
    shape = env.action_space.shape
    shaped: Any = action.reshape(shape) if shape else int(action)
    obs, reward, terminated, truncated, _ = env.step(shaped)
    return np.asarray(obs), float(reward), terminated, truncated


def try_out(env: gymnasium.Env, steps: int = 3) -> None:
    """A reset and some steps, before anything is written: most of what is wrong shows at once."""
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset(seed=0)


def refuse_far_reward(practised: Mapping[str, np.ndarray]) -> None:
    """A reward that networks cannot learn from."""
    most = float(np.abs(practised["reward"]).max())
    if most > FAR:
        raise UserError(
            f"The environment gave a reward of {most:g}, too large for the networks; scale it."
        )


def as_sent(fit: Fit | None, shape: tuple[int, ...], taken: np.ndarray) -> np.ndarray:
    """Actions (n, …) as the environment gets them: whole where its Box is of whole numbers."""
    if fit is None:
        return taken
    shaped = taken.reshape(len(taken), *shape)
    return np.stack([fit(action) for action in shaped]).reshape(taken.shape)


def scaled(scaling: Scaling, seen: np.ndarray, name: str) -> np.ndarray:
    """Observations (n, …) as the networks see them. One so far off that a network would answer
    with NaN is the environment's doing, and is told as such."""
    obs = scaling.obs(seen)
    flat = obs.ravel()
    if not flat.dot(flat) < FAR**2:
        far = np.abs(flat)
        if not (far < FAR).all():
            raw = np.asarray(seen).reshape(len(seen), -1).ravel()[int(np.argmax(~(far < FAR)))]
            raise UserError(
                f"Environment {plain(name)} gave an observation with the number {raw:g}, which is "
                f"too far off for the networks, where it is {far.max():g}; scale or bound what it "
                f"shows."
            )
    return obs
