"""What an environment is sent: actions of its space's kind, inside its bounds."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from understudy.core.errors import UserError

Fit = Callable[[Any], Any]


def switches(space: spaces.Space[Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """Of several choices at once, the first and the last number of each; None of other actions."""
    if isinstance(space, spaces.MultiDiscrete):
        return np.asarray(space.start), np.asarray(space.start + space.nvec - 1)
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape, np.int64), np.ones(space.shape, np.int64)
    return None


def refuse_actions(space: spaces.Space[Any], name: str) -> None:
    """Boxes that hold no action, or one without an axis."""
    if not isinstance(space, spaces.Box):
        return
    if space.shape == () or 0 in space.shape:
        raise UserError(
            f"Environment {name} has actions of shape {space.shape}; give its Box at least one "
            f"number, such as shape (1,)."
        )


def fitting(space: spaces.Space[Any]) -> Fit | None:
    """How an action is made one of the space; None where that takes nothing.

    A Box of whole numbers is sent whole numbers. One of fractions may have bounds that float32
    rounds outwards; actions are then kept to the next number inside, and are otherwise left alone.
    """
    if not isinstance(space, spaces.Box):
        return None
    low, high = space.low, space.high
    if space.dtype.kind in "iu":
        return lambda action: _whole(action, space)
    near, far = low.astype(np.float32), high.astype(np.float32)
    if not ((near < low).any() or (far > high).any()):
        return None
    near = np.where(near < low, np.nextafter(near, np.float32(np.inf)), near)
    far = np.where(far > high, np.nextafter(far, np.float32(-np.inf)), far)

    def inside(action: Any) -> Any:
        if isinstance(action, np.ndarray) and action.dtype == np.float32:
            return np.clip(action, near, far)
        return action

    return inside


def _whole(action: Any, space: spaces.Box) -> Any:
    given = np.asarray(action)
    if given.dtype.kind != "f":
        return action
    # Bounds of 64 bits may have no neighbour among the floats: they are applied to whole numbers.
    reach = np.iinfo(str(space.dtype))
    near = np.clip(np.rint(given.astype(np.float64)), float(reach.min), float(reach.max))
    below, above = near <= space.low.astype(np.float64), near >= space.high.astype(np.float64)
    within = np.where(below | above, 0, near).astype(space.dtype)
    return np.where(below, space.low, np.where(above, space.high, within)).astype(space.dtype)
