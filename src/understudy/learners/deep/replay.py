"""Everything practised, a segment a policy: the window of `window.py`, and batches from it."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key

from understudy.core.window import Window


def batch(window: Window, written: Int[Array, ""], size: int, *, key: Key[Array, ""]) -> Any:
    """`size` points, uniformly from the segments that are kept, `written` having been written."""
    kept = jnp.minimum(written, window.slots) * window.size
    i = jax.random.randint(key, (size,), 0, kept)
    return jax.tree.map(lambda x: x[i // window.size, i % window.size], window.segments)
