"""What demonstrations are like, and what is wrong with them."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, Space

from understudy.core.demonstrations import Demonstrations
from understudy.envs.action_fit import switches


def describe(demos: Demonstrations, world: gymnasium.Env | None = None) -> dict[str, Any]:
    """Counts, lengths, returns, ranges, ends, repetitions and coverage."""
    lengths = np.array([len(a) for a in demos.actions])
    seen, taken = np.concatenate(demos.observations), np.concatenate(demos.actions)
    return {
        "episodes": len(demos),
        "steps": int(lengths.sum()),
        "lengths": _spread(lengths),
        "returns": _spread(demos.returns),
        "terminated": sum(demos.terminated),
        "truncated": len(demos) - sum(demos.terminated),
        "observations": _array(seen),
        "actions": _array(taken),
        "repeated_episodes": repeated(demos),
        "distinct_observations": len(np.unique(seen, axis=0)),
        **coverage(demos, world),
    }


def coverage(demos: Demonstrations, world: gymnasium.Env | None) -> dict[str, Any]:
    """How much of the spaces was seen: the share of the states and of the actions that are numbers;
    of a box, the share of each side between the least and the largest value, on average over the
    sides that have ends."""
    if world is None:
        return {}
    told = {}
    for name, space, episodes in (
        ("observations", world.observation_space, demos.observations),
        ("actions", world.action_space, demos.actions),
    ):
        values, space = np.concatenate(episodes), _boxed(space)
        if isinstance(space, Discrete):
            told[name] = len(np.unique(values)) / int(space.n)
        elif isinstance(space, Box) and values.shape[1:] == space.shape:
            ends = np.isfinite(space.low) & np.isfinite(space.high) & (space.high > space.low)
            sides = np.ptp(values.astype(float), axis=0)[ends] / (space.high - space.low)[ends]
            if sides.size:
                told[name] = float(np.clip(sides, 0, 1).mean())
    return {"coverage": told}


def _boxed(space: Space[Any]) -> Space[Any]:
    """Several choices at once as the box of their numbers; other spaces as they are."""
    if (ends := switches(space)) is None:
        return space
    return Box(*ends, dtype=np.int64)


def repeated(demos: Demonstrations) -> int:
    """How many episodes are the same as one before."""
    whole = {
        (o.tobytes(), a.tobytes()) for o, a in zip(demos.observations, demos.actions, strict=True)
    }
    return len(demos) - len(whole)


def misfits(demos: Demonstrations, world: gymnasium.Env) -> list[str]:
    """What cannot be of this environment, a sentence each."""
    told = []
    for noun, space, episodes in (
        ("observations", world.observation_space, demos.observations),
        ("actions", world.action_space, demos.actions),
    ):
        values, several = np.concatenate(episodes), switches(space) is not None
        space = _boxed(space)
        if several and (values % 1 != 0).any():
            told.append(f"The {noun} are not whole numbers; the environment takes choices.")
        if isinstance(space, Discrete):
            if values.ndim != 1 or (values % 1 != 0).any():
                told.append(f"The {noun} are not whole numbers; the environment has {space}.")
            elif values.min() < space.start or values.max() >= space.start + space.n:
                told.append(
                    f"The {noun} go from {values.min():.0f} to {values.max():.0f}; the "
                    f"environment has {space}."
                )
        elif isinstance(space, Box):
            if values.shape[1:] != space.shape:
                told.append(
                    f"The {noun} have shape {values.shape[1:]}; the environment has {space.shape}."
                )
                continue
            slack = 1e-5 * np.maximum(1, np.abs(values))
            outside = ((values < space.low - slack) | (values > space.high + slack)).reshape(
                len(values), -1
            )
            if outside.any():
                told.append(
                    f"{outside.any(1).sum():,} of {len(values):,} {noun} are outside the "
                    f"environment's bounds, in dimension {outside.any(0).argmax()} first."
                )
        else:
            told.append(f"The environment's {noun} are {space}, which are not compared.")
    limit = world.spec.max_episode_steps if world.spec else None
    longest = max(len(a) for a in demos.actions)
    if limit is not None and longest > limit:
        told.append(f"An episode has {longest} steps; the environment ends it after {limit}.")
    return told


def oddities(demos: Demonstrations, world: gymnasium.Env | None = None) -> list[str]:
    """What may be meant, but a learner could stumble over, a sentence each."""
    told = []
    if count := repeated(demos):
        told.append(f"{count} of {len(demos)} episodes are copies of another.")
    if not any(r.any() for r in demos.rewards):
        told.append(
            "There are no rewards (all are zero): shares of the expert's return say nothing."
        )
    for noun, episodes in (("observation", demos.observations), ("action", demos.actions)):
        values = np.concatenate(episodes)
        if values.ndim == 2 and values.dtype.kind == "f":
            still = np.flatnonzero(np.ptp(values, axis=0) == 0)
            if len(still):
                listed = ", ".join(map(str, still[:5])) + (" …" if len(still) > 5 else "")
                told.append(f"Dimension {listed} of each {noun} never changes.")
    limit = world.spec.max_episode_steps if world is not None and world.spec else None
    if limit is not None:
        short = [
            i
            for i, (a, ended) in enumerate(zip(demos.actions, demos.terminated, strict=True))
            if not ended and len(a) < limit
        ]
        if short:
            told.append(
                f"Episode {short[0]} has {len(demos.actions[short[0]])} of {limit} steps and was "
                f"not ended by the task ({len(short)} such): cut off, or its end was not recorded."
            )
    return told


def _spread(values: np.ndarray) -> dict[str, float]:
    return {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "min": float(values.min()),
        "max": float(values.max()),
    }


def _array(values: np.ndarray) -> dict[str, Any]:
    flat = values.reshape(len(values), -1).astype(float)
    return {
        "shape": list(values.shape[1:]),
        "type": str(values.dtype),
        "low": flat.min(0).tolist(),
        "high": flat.max(0).tolist(),
    }
