"""An environment that pays the learned reward, for whatever learns from rewards."""

from typing import Any

import gymnasium
import numpy as np

from understudy.core.errors import UserError
from understudy.learners.deep.learned_reward import Reward


class LearnedReward(gymnasium.Wrapper):
    """Pays a reward that was learned in place of the environment's own, which stays in `info` as
    `task_reward`.

    Where ended episodes had a state of their own (`--absorbing`), the step that ends one is also
    paid what staying in that state is worth, discounted by the `gamma` of whoever learns here.
    """

    def __init__(self, env: gymnasium.Env, reward: Reward, *, gamma: float = 0.99) -> None:
        super().__init__(env)
        shapes = (env.observation_space.shape, env.action_space.shape)
        wanted = (reward.observation_shape, reward.action_shape)
        for name, has, takes in zip(("observations", "actions"), shapes, wanted, strict=True):
            if has != takes:
                raise UserError(
                    f"The environment has {name} of shape {has}; the learned reward of "
                    f"{reward.env} takes {takes}."
                )
        if not 0 <= gamma < 1:
            raise UserError(f"gamma is {gamma}; it must be from 0 up to, not including, 1.")
        self.reward, self.beyond = reward, gamma / (1 - gamma) * reward.absorbed
        self.seen: np.ndarray | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(seed=seed, options=options)
        self.seen = np.array(obs)  # a copy: an environment may write into its own
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.seen is None:
            raise UserError("The environment was stepped before it was reset; call reset() first.")
        paid = self.reward(self.seen, action)
        obs, task, terminated, truncated, info = self.env.step(action)
        self.seen = np.array(obs)
        if terminated:
            paid += self.beyond
        return obs, paid, terminated, truncated, {**info, "task_reward": float(task)}
