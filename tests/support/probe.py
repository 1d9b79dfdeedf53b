"""Small worlds that understudy has never heard of, for tests by entry point ('probe:Point')."""

import os
import time

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from understudy.core.demonstrations import Demonstrations

LENGTH = 20


class Point(gymnasium.Env):
    """A point on a plane, pushed about; the expert goes straight to the middle. The box of actions
    is not [−1, 1], and every episode begins elsewhere."""

    observation_space = Box(-10, 10, (2,), np.float64)
    action_space = Box(np.array([-1.0, -4.0]), np.array([3.0, 4.0]), dtype=np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = self.np_random.uniform(-3, 3, 2), 0
        return self.at.copy(), {}

    def step(self, action):
        assert self.action_space.contains(np.asarray(action, np.float64)), action
        push = (np.asarray(action, np.float64) - [1, 0]) / [2, 4]  # in [−1, 1]²
        self.at, self.t = np.clip(self.at + push, -10, 10), self.t + 1
        return self.at.copy(), float(-np.abs(self.at).sum()), False, self.t == LENGTH, {}


class Broken(Point):
    """Fails at its fiftieth step."""

    steps = 0

    def step(self, action):
        Broken.steps += 1
        if Broken.steps == 50:
            raise ZeroDivisionError("the world fell apart")
        return super().step(action)


class Endless(Point):
    """Has no time limit."""

    def step(self, action):
        obs, reward, *_ = super().step(action)
        return obs, reward, False, False, {}


class Foggy(Point):
    """Shows nothing from its thirtieth step on."""

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        self.seen = getattr(self, "seen", 0) + 1
        return obs * (np.nan if self.seen > 30 else 1), reward, terminated, truncated, info


class Forgetful(Point):
    """Its steps do not follow from its seed and its actions."""

    count = 0

    def step(self, action):
        obs, *rest = super().step(action)
        Forgetful.count += 1
        return obs + 1e-3 * Forgetful.count, *rest


def straight(episodes=5, world=Point, seed=100):
    """The expert's episodes."""
    env = world()
    seen, done, gained = [], [], []
    for i in range(episodes):
        obs, _ = env.reset(seed=seed + i)
        o, a, r, over = [obs], [], [], False
        while not over:
            action = np.clip(-obs, -1, 1) * [2, 4] + [1, 0]
            obs, reward, _, over, _ = env.step(action)
            o.append(obs)
            a.append(action)
            r.append(reward)
        seen.append(np.array(o))
        done.append(np.array(a))
        gained.append(np.array(r))
    return Demonstrations(seen, done, gained, [False] * episodes)


class Gone(Point):
    """Ends its process with its first step."""

    def step(self, action):
        os._exit(3)


class Sleepy(Point):
    """Takes two milliseconds a step."""

    def step(self, action):
        time.sleep(0.002)
        return super().step(action)
