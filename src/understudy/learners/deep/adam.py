"""Adam on a whole tree of weights."""

from typing import Any, TypeVar

import optax
from jaxtyping import Array

Tree = TypeVar("Tree")


def moments(weights: Any, rate: float) -> optax.OptState:
    """Before the first step."""
    return optax.adam(rate).init(weights)


def descend(
    weights: Tree, slope: Tree, moments: optax.OptState, rate: float | Array
) -> tuple[Tree, optax.OptState]:
    """One step down the slope."""
    tree: Any = slope
    move, moments = optax.adam(rate).update(tree, moments)
    moved: Any = optax.apply_updates(weights, move)  # type: ignore[arg-type]
    return moved, moments
