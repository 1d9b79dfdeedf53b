"""Whole episodes of anyone who can say what to do: a function, a policy, a person."""

import contextlib
import copy
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.envs import catalog
from understudy.envs.guard import calling, guarded, plain

# What to do at an observation; and whether it is the first of an episode.
Player = Callable[[Any, bool], Any]


@runtime_checkable
class Predicts(Protocol):
    """A policy that is asked as Stable-Baselines3's are."""

    def predict(
        self, observation: Any, state: Any, episode_start: Any, deterministic: bool
    ) -> tuple[Any, Any]: ...


class Done(Exception):
    """Raised by a player who has had enough: the episode under way is left out."""


def record(
    world: gymnasium.Env | str,
    play: Player,
    episodes: int,
    *,
    seed: int = 0,
    told: Callable[[float], None] = lambda gained: None,
) -> Demonstrations:
    """So many episodes of a player in an environment, given itself or by its id.

    Args:
        world: The environment, or its id.
        play: What to do at an observation, and whether it is the first of an episode: `acting(f)`
            for a function of the observation alone, `predicting(policy)` for a policy.
        episodes: How many; the i-th is reset with seed + i.
        seed: Of the first episode.
        told: Told each episode's return.

    Returns:
        The demonstrations.
    """
    if isinstance(world, str):
        with contextlib.closing(catalog.make(world)) as made:
            return record(made, play, episodes, seed=seed, told=told)
    world = guarded(world)
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray, bool]] = []
    try:
        for i in range(seed, seed + episodes):
            kept.append(_episode(world, play, seed=i))
            told(float(kept[-1][2].sum()))
    except Done:
        if not kept:
            raise UserError("No episode was played to its end; nothing is kept.") from None
    return Demonstrations(*map(list, zip(*kept, strict=True)))


def acting(act: Callable[[Any], Any]) -> Player:
    """A function of the observation alone."""

    def play(obs: Any, first: bool) -> Any:
        with calling("The player failed"):
            return act(obs)

    return play


def predicting(policy: Predicts) -> Player:
    """A policy of ours, of Stable-Baselines3, or of anyone with a `predict` such as theirs, which
    acts deterministically and may remember."""
    memory: Any = None

    def play(obs: Any, first: bool) -> Any:
        nonlocal memory
        memory = None if first else memory
        with calling("The player failed"):
            action, memory = policy.predict(obs, memory, np.array([first]), True)
        return action

    return play


def _episode(
    world: gymnasium.Env, play: Player, *, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    x, _ = world.reset(seed=seed)
    seen, taken, gained, terminated, over = [x], [], [], False, False
    while not over:
        action = play(copy.copy(x), not taken)
        with calling("The player's action cannot be used"):
            fits = world.action_space.contains(action)
        if not fits:
            raise UserError(
                f"The player's action {plain(repr(action))} is not in {plain(world.action_space)}."
            )
        taken.append(np.array(action))  # a player may use its array again, or the world change it
        x, r, terminated, truncated, _ = world.step(action)
        seen.append(x)
        gained.append(float(r))
        over = terminated or truncated
    return np.array(seen), np.array(taken), np.array(gained), bool(terminated)
