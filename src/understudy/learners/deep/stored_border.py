"""The border of a network that is stored: what its file says of the spaces between which it stands,
and the numbers of its scaling. A policy's file has it, and a reward's; both are checked here."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from understudy.learners.deep.scaling import Scaling

MOST_LAYERS = 64
NUMBERS = ("mean", "std", "low", "high")
KINDS = {"categorical": True, "squashed gaussian": False}  # of actions: whether they are a choice

Shape = tuple[int, ...]


def told(
    scaling: Scaling, *, env: str, shapes: tuple[Shape, Shape], hidden: Sequence[int],
    absorbing: bool,
) -> dict[str, Any]:  # fmt: skip
    """What is said of it, as JSON has it; `shapes` are those of observations and of actions."""
    return {
        "env": env,
        "kind": next(kind for kind, discrete in KINDS.items() if discrete == scaling.discrete),
        "observation_shape": list(shapes[0]),
        "action_shape": list(shapes[1]),
        "observations": scaling.observations,
        "actions": scaling.actions,
        "hidden": list(hidden),
        "absorbing": absorbing,
    }


def arrays(scaling: Scaling) -> dict[str, np.ndarray]:
    """Its numbers, by their names in a file."""
    return {f"scaling.{name}": getattr(scaling, name) for name in NUMBERS}


def checked(
    about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[Scaling, tuple[Shape, Shape]]:
    """The scaling and the shapes that a file has; KeyError, TypeError or ValueError if it cannot
    have them. Every size is checked before anything is made of it."""
    discrete = _spaces(about)
    scaling = Scaling(**{n: arrays[f"scaling.{n}"] for n in NUMBERS}, discrete=discrete)
    _fits(scaling, about)
    if not all(np.isfinite(x).all() for x in arrays.values()):
        raise ValueError("an array has NaN or infinity")
    return scaling, (tuple(about["observation_shape"]), tuple(about["action_shape"]))


def _spaces(about: Mapping[str, Any]) -> bool:
    """Whether the actions are a choice."""
    hidden, shapes = about["hidden"], (about["observation_shape"], about["action_shape"])
    for listed in (hidden, *shapes):
        if type(listed) is not list or len(listed) > MOST_LAYERS:
            raise ValueError("its layers or its shapes are no short list")
    sizes = [*hidden, *shapes[0], *shapes[1], about["observations"], about["actions"]]
    if not all(type(n) is int and 0 < n <= 1_000_000 for n in sizes):
        raise ValueError("a size is not from 1 to 1,000,000")
    if type(about["absorbing"]) is not bool:
        raise ValueError("absorbing is neither true nor false")
    env = about["env"]
    if type(env) is not str or not 0 < len(env) <= 1_000 or not env.isprintable():
        raise ValueError("its env is no name")
    discrete = KINDS[about["kind"]]
    seen, acted = (math.prod(shape) for shape in shapes)
    if seen + about["absorbing"] != about["observations"]:
        raise ValueError("its observations do not have the shape it says")
    if not discrete and acted != about["actions"]:
        raise ValueError("its actions do not have the shape it says")
    return discrete


def _fits(scaling: Scaling, about: Mapping[str, Any]) -> None:
    """The border has the sizes it says, and divides by nothing that is not positive."""
    actions = math.prod(about["action_shape"]) if scaling.discrete else about["actions"]
    for name in NUMBERS:
        x, size = getattr(scaling, name), about["observations"]
        size = size if name in ("mean", "std") else actions
        if x.shape != (size,) or x.dtype not in (np.float32, np.float64):
            raise ValueError(f"scaling.{name} is {x.dtype}{x.shape}, not of {size} numbers")
        if not (np.abs(x) <= 1e30).all():
            raise ValueError(f"scaling.{name} has NaN, or a number beyond 1e30")
    if not (scaling.std > 1e-30).all():
        raise ValueError("scaling.std is not positive")
    ordered = scaling.low <= scaling.high if scaling.discrete else scaling.low < scaling.high
    if not ordered.all():
        raise ValueError("scaling.low is not below scaling.high")
    ends = np.concatenate([scaling.low, scaling.high])
    if scaling.discrete and not (np.array_equal(ends, np.round(ends)) and abs(ends).max() < 2**31):
        raise ValueError("its choices are not numbered")
    if scaling.actions != about["actions"]:
        raise ValueError("scaling.low and scaling.high do not fit its actions")
