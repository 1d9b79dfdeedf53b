"""Batches: of everything practised, a segment a policy in `window.py`'s window; of the expert."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key

from understudy.core.window import Window
from understudy.learners.deep.actor_critic import Transitions


def batch(window: Window, written: Int[Array, ""], size: int, *, key: Key[Array, ""]) -> Any:
    """`size` points, uniformly from the segments that are kept, `written` having been written."""
    kept = jnp.minimum(written, window.slots) * window.size
    i = jax.random.randint(key, (size,), 0, kept)
    return jax.tree.map(lambda x: x[i // window.size, i % window.size], window.segments)


def draw(expert: Transitions, count: int, *, key: Key[Array, ""]) -> Transitions:
    """Expert points, uniformly."""
    i = jax.random.randint(key, (count,), 0, expert.obs.shape[0])
    return jax.tree.map(lambda x: x[i], expert)
