"""A world that is seen by name, in part as a picture, and is acted in by several choices at once;
for tests by entry point ('camera:Camera')."""

import gymnasium
import numpy as np
from gymnasium import spaces

LENGTH = 8


class Camera(gymnasium.Env):
    """Shows a place on a plane, a door, and a picture; each choice pushes along an axis, the
    second one of 0 and 1 alone, and the way to the middle is to choose by the place's signs."""

    observation_space = spaces.Dict(
        {
            "place": spaces.Box(-9, 9, (2,)),
            "door": spaces.Discrete(3),
            "camera": spaces.Box(0, 255, (32, 32, 3), np.uint8),
        }
    )
    action_space = spaces.MultiDiscrete([3, 2])

    def seen(self):
        return {"place": self.place, "door": self.t % 3, "camera": np.zeros((32, 32, 3), np.uint8)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.place = 0, self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.seen(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        push = (np.asarray(action) - [1, 0.5]) * [0.3, 0.6]
        self.t, self.place = self.t + 1, np.clip(self.place + push, -9, 9).astype(np.float32)
        return self.seen(), float(-np.abs(self.place).sum()), False, self.t == LENGTH, {}


class Switches(gymnasium.Env):
    """A place alone, and four switches: two each pull it up and down, so that many combinations do
    the same."""

    observation_space = spaces.Box(-9, 9, (1,))
    action_space = spaces.MultiBinary(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.place = 0, self.np_random.uniform(-1, 1, 1).astype(np.float32)
        return self.place, {}

    def step(self, action):
        assert self.action_space.contains(action), action
        push = 0.2 * (np.asarray(action, int) @ [1, 1, -1, -1])
        self.t, self.place = self.t + 1, np.clip(self.place + np.float32(push), -9, 9)
        return self.place, float(-np.abs(self.place).sum()), False, self.t == LENGTH, {}


def expert(obs):
    """By what is seen of the place, which comes first: the choices of `Camera`."""
    return np.array([1 - int(np.sign(np.round(obs[0], 1))), int(obs[1] < 0)])
