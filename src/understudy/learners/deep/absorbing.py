"""Absorbing states (Kostrikov et al. 2019): an ended episode is a state too.

Without them a reward that is always positive pays for staying alive, and one that is always
negative pays for ending, whatever the expert does. With them an episode that the task ends goes on
for one step in a state of its own, all zeros but for a last number that is 1 there and 0 elsewhere;
the discriminator sees whether experts go there, and the critics bootstrap from it for ever.

As in DAC's code, an ended episode adds one such transition, not the rest of its horizon.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from understudy.core.demonstrations import Demonstrations


class Absorbing(gymnasium.Wrapper):
    """Terminations lead to the absorbing state, and are cut off there one step later."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        shape = (int(np.prod(env.observation_space.shape or ())) + 1,)
        self.observation_space = Box(-np.inf, np.inf, shape, np.float32)
        self.absorbed = False

    def reset(self, **options: Any) -> tuple[np.ndarray, dict[str, Any]]:
        obs, info = self.env.reset(**options)
        self.absorbed = False
        return alive(np.asarray(obs)[None])[0], info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self.absorbed:
            return self.state, 0.0, False, True, {}
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated:
            self.absorbed = True
            return self.state, float(reward), False, False, info
        return alive(np.asarray(obs)[None])[0], float(reward), False, truncated, info

    @property
    def state(self) -> np.ndarray:
        end = np.zeros(self.observation_space.shape or (), np.float32)
        end[-1] = 1
        return end


def alive(obs: np.ndarray) -> np.ndarray:
    """Observations (n, …) of a world that goes on: flat, with a zero at the end."""
    flat = np.asarray(obs).reshape(len(obs), -1)
    flat = flat.astype(np.result_type(flat, np.float32))  # as fine as it is; scaling rounds it
    return np.concatenate([flat, np.zeros((len(obs), 1), flat.dtype)], axis=1)


def of_demonstrations(demos: Demonstrations) -> Demonstrations:
    """The same episodes, as the wrapper would have shown them."""
    observations, actions, rewards = [], [], []
    for o, a, r, ended in zip(
        demos.observations, demos.actions, demos.rewards, demos.terminated, strict=True
    ):
        seen = alive(o)
        if ended:
            end = np.zeros((2, seen.shape[1]), seen.dtype)
            end[:, -1] = 1
            seen = np.concatenate([seen[:-1], end])
            a, r = np.concatenate([a, np.zeros_like(a[:1])]), np.append(r, 0.0)
        observations.append(seen)
        actions.append(a)
        rewards.append(r)
    return Demonstrations(observations, actions, rewards, [False] * len(actions))
