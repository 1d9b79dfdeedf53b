"""A world whose steps take five milliseconds, for `copies.py`."""

import time

import gymnasium
import numpy as np
from gymnasium.spaces import Box


class World(gymnasium.Env):
    """A point on a line, pushed about, by something that takes its time."""

    observation_space, action_space = Box(-9, 9, (1,), np.float64), Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = self.np_random.uniform(-1, 1, 1), 0
        return self.at, {}

    def step(self, action):
        time.sleep(0.005)
        self.at, self.t = np.clip(self.at + 0.1 * action, -9, 9), self.t + 1
        return self.at, float(-np.abs(self.at).sum()), False, self.t == 200, {}
