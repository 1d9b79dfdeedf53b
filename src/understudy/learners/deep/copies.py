"""Copies of an environment, stepped side by side: one by itself, several as Gymnasium's vector
environments, in this process (`SyncVectorEnv`) or each in a process of its own (`AsyncVectorEnv`),
which is worth its messages where a step is slow.

Episodes are begun by us, each with its seed (`AutoresetMode.DISABLED`), so that a lane does the
same however it is stepped. What is seen comes back as float64, which holds every number of float32
and of whole numbers up to 2^53 exactly.
"""

import functools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from understudy.core.errors import UserError
from understudy.envs.guard import guarded, plain
from understudy.learners.deep import asking
from understudy.learners.deep.asking import Taken

Make = Callable[[], gymnasium.Env]
FAILED = "understudy failed"  # in what a copy tells besides

SLOW = 1e-3  # seconds a step, from which on processes are worth their messages
TIMED = 20  # steps, by which that is told


class Step(NamedTuple):
    """What a step of one lane came to."""

    obs: np.ndarray
    reward: float
    terminated: bool
    truncated: bool


@runtime_checkable
class Copies(Protocol):
    """So many lanes, each in an episode of its own."""

    action_space: Any
    """Of one lane."""

    def begin(self, seeds: Mapping[int, int]) -> dict[int, np.ndarray]:
        """The first observations of new episodes, by lane."""
        ...

    def step(self, actions: Sequence[Taken]) -> list[Step]:
        """A step in every lane."""
        ...

    def play(
        self, lane: int, seed: int, actions: Sequence[Taken]
    ) -> tuple[np.ndarray, list[float]]:
        """An episode of one lane, as far as the actions go or until it ends: where it led, and the
        rewards on the way."""
        ...

    def close(self) -> None:
        """Leave."""
        ...


def side_by_side(make: Make, name: str, lanes: int, *, processes: bool = False) -> Copies:
    """So many copies of what `make` makes; in a process each, if asked."""
    if lanes == 1:
        return Alone(make, name)
    return Several(make, name, lanes, processes=processes)


def slow(world: gymnasium.Env) -> bool:
    """Whether a step takes so long that processes are worth it, where there are cores for them."""
    if len(_cores()) < 2:
        return False
    world.action_space.seed(0)
    world.reset(seed=0)
    begun, steps = time.perf_counter(), 0
    while steps < TIMED and time.perf_counter() - begun < TIMED * SLOW:
        _, _, terminated, truncated, _ = world.step(world.action_space.sample())
        steps += 1
        if terminated or truncated:
            world.reset(seed=0)
    return (time.perf_counter() - begun) / steps >= SLOW


def _cores() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def play(env: gymnasium.Env, seed: int, actions: Sequence[Taken]) -> tuple[np.ndarray, list[float]]:
    obs, rewards = asking.begin(env, seed=seed), []
    for action in actions:
        obs, reward, terminated, truncated = asking.step(env, action)
        rewards.append(reward)
        if terminated or truncated:
            break
    return obs, rewards


class Alone:
    """One lane, with nothing between."""

    def __init__(self, make: Make, name: str) -> None:
        self.env = guarded(make(), name)
        self.action_space = self.env.action_space

    def begin(self, seeds: Mapping[int, int]) -> dict[int, np.ndarray]:
        return {lane: asking.begin(self.env, seed=seed) for lane, seed in seeds.items()}

    def step(self, actions: Sequence[Taken]) -> list[Step]:
        return [Step(*asking.step(self.env, action)) for action in actions]

    def play(
        self, lane: int, seed: int, actions: Sequence[Taken]
    ) -> tuple[np.ndarray, list[float]]:
        return play(self.env, seed, actions)

    def close(self) -> None:
        self.env.close()


class Copy(gymnasium.Wrapper):
    """One of several. It tells what went wrong in place of raising, for an exception would come out
    of another process as another one; and nothing else besides, which would be gathered up from all
    lanes at every step."""

    def __init__(self, env: gymnasium.Env, lane: int) -> None:
        super().__init__(env)
        self.lane, shape = lane, env.observation_space.shape or ()
        self.observation_space = Box(-np.inf, np.inf, shape, np.float64)
        self.seen = np.zeros(shape)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        try:
            self.seen = asking.begin(self.env, seed=seed or 0)
        except UserError as error:
            return self.seen, {FAILED: str(error)}
        return self.seen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        try:
            self.seen, reward, terminated, truncated = asking.step(self.env, action)
        except UserError as error:
            return self.seen, 0.0, True, False, {FAILED: str(error)}
        return self.seen, reward, terminated, truncated, {}

    def played(self, lane: int, seed: int, actions: Sequence[Taken]) -> Any:
        """`play`, if this is the lane that is meant; or a sentence."""
        if lane != self.lane:
            return None
        try:
            return play(self.env, seed, actions)
        except UserError as error:
            return str(error)


def copy_of(make: Make, name: str, lane: int, parent: int) -> Copy:
    """A copy, where it will be stepped. In a process of its own it leaves Ctrl-C to the parent, and
    ends with it."""
    if os.getpid() != parent:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_watch_parent, daemon=True).start()
    return Copy(guarded(make(), name), lane)


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class Several:
    """Lanes of one of Gymnasium's vector environments."""

    def __init__(self, make: Make, name: str, lanes: int, *, processes: bool) -> None:
        here = os.getpid()
        each = [functools.partial(copy_of, make, name, lane, here) for lane in range(lanes)]
        self.name, self.lanes = plain(name), lanes
        if processes:  # a forked JAX would hang
            self.vector: Any = AsyncVectorEnv(
                each, context="spawn", autoreset_mode=AutoresetMode.DISABLED
            )
        else:
            self.vector = SyncVectorEnv(each, autoreset_mode=AutoresetMode.DISABLED)
        self.action_space = self.vector.single_action_space

    def begin(self, seeds: Mapping[int, int]) -> dict[int, np.ndarray]:
        mask = np.array([lane in seeds for lane in range(self.lanes)])
        listed = [seeds.get(lane) for lane in range(self.lanes)]
        obs, told = self._asked(self.vector.reset, seed=listed, options={"reset_mask": mask})
        self._refuse(told)
        return {lane: obs[lane] for lane in seeds}

    def step(self, actions: Sequence[Taken]) -> list[Step]:
        obs, rewards, terminated, truncated, told = self._asked(self.vector.step, actions)
        self._refuse(told)
        marks = zip(rewards.tolist(), terminated.tolist(), truncated.tolist(), strict=True)
        return [Step(seen, *each) for seen, each in zip(obs, marks, strict=True)]

    def play(
        self, lane: int, seed: int, actions: Sequence[Taken]
    ) -> tuple[np.ndarray, list[float]]:
        told = self._asked(self.vector.call, "played", lane, seed, list(actions))[lane]
        if isinstance(told, str):
            raise UserError(told)
        return told

    def _asked(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        try:
            return call(*args, **options)
        except (EOFError, ConnectionError) as error:
            self.vector.closed = True  # nobody is to wait for what one will never say
            for process in self.vector.processes:
                process.terminate()
            raise UserError(
                f"A copy of environment {self.name} ended its process; see its own messages, or "
                f"step the copies in one process with --stepping sync."
            ) from error

    def _refuse(self, told: Mapping[str, Any]) -> None:
        if FAILED in told:
            raise UserError(next(said for said in told[FAILED] if said))

    def close(self) -> None:
        self.vector.close()
