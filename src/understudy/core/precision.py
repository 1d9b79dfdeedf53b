"""64 bits where the theory needs them, and only there: the rest of the program keeps its own.

Over 10,000 mirror steps the log-policy loses three digits; in float32 that is enough to flip a
sampled action, and a run would depend on which other runs share its batch. So what computes with
tables does so in float64; and JAX's switch for that is the user's program's, which we may not turn.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def double(function: Callable[P, R]) -> Callable[P, R]:
    """The function with JAX in 64 bits while it runs, and as it was before when it has returned.
    Arrays that it returns keep their 64 bits."""

    @functools.wraps(function)
    def within(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return within
