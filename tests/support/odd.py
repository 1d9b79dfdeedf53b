"""Worlds that misbehave on command, for tests by entry point ('odd:Vector')."""

import sys
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

LENGTH = 6


class Stranger(BaseException):
    """An exception that is not even an Exception."""


class Mute(Exception):
    """One that fails as it is printed."""

    def __str__(self):
        raise RuntimeError("no words")


@dataclass(frozen=True)
class Fault:
    """At the n-th call of a method in this process: raise, print, or return something else."""

    method: str  # constructor, reset, step, close, render
    call: int
    does: str  # raise, exit, print, or the part of the answer that is exchanged
    value: Any = None


fault: Fault | None = None
calls: dict[str, int] = {}


def set_fault(chosen):
    global fault
    fault = chosen
    calls.clear()


def happened(method):
    """Whether this call is the one, or a later one, for what is wrong stays wrong."""
    calls[method] = calls.get(method, 0) + 1
    if fault is None or fault.method != method or calls[method] < fault.call:
        return False
    if fault.does == "raise":
        raise fault.value
    if fault.does == "exit":
        sys.exit(fault.value)
    if fault.does == "print":
        print("\x1b[31mI am a world\x1b[0m\n{")
        return False
    return True


class World(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 25}  # noqa: RUF012 (Gymnasium's way)
    render_mode = None

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        happened("constructor")
        self.buffer = np.zeros(2)

    def see(self):
        self.buffer[:] = self.at  # the same array every time
        return self.buffer

    def move(self, action):
        self.at = np.clip(self.at + np.asarray(action).ravel()[0] * 0.1, -5, 5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = self.np_random.uniform(-1, 1, 2), 0
        told = {"obs": self.see(), "info": {}}
        if happened("reset"):
            if fault.does == "all":
                return fault.value
            told[fault.does] = fault.value
        return tuple(told.values())

    def step(self, action):
        self.move(action)
        self.t += 1
        told = {
            "obs": self.see(), "reward": float(-abs(self.at[0])), "terminated": False,
            "truncated": self.t == LENGTH, "info": {},
        }  # fmt: skip
        if happened("step"):
            if fault.does == "all":
                return fault.value
            if fault.does == "endless":
                told["truncated"] = False
            else:
                told[fault.does] = fault.value
        return tuple(told.values())

    def render(self):
        if happened("render"):
            return fault.value
        return np.zeros((8, 8, 3), np.uint8)

    def close(self):
        happened("close")


class Vector(World):
    observation_space, action_space = Box(-10, 10, (2,), np.float64), Box(-1, 1, (1,), np.float32)


class Choice(World):
    observation_space, action_space = Box(-10, 10, (2,), np.float64), Discrete(3)


class Whole(World):
    """Takes whole numbers alone."""

    observation_space, action_space = Box(-10, 10, (2,), np.float64), Box(-2, 5, (2,), np.int64)

    def step(self, action):
        assert self.action_space.contains(action), action
        return super().step(action)


class Table(World):
    observation_space, action_space = Discrete(4), Discrete(2)

    def see(self):
        return int(self.at[0] > 0) + 2 * int(self.at[1] > 0)


class Counting(Vector):
    """Its rewards tell how often it was reset."""

    resets = 0

    def reset(self, **options):
        self.resets += 1
        return super().reset(**options)

    def step(self, action):
        obs, reward, *rest = super().step(action)
        return obs, reward + self.resets, *rest


def hold(obs):
    """A player of Choice."""
    return 1


def push(obs):
    """A player of Vector."""
    return np.zeros(1, np.float32)
