"""Seeds, and the keys that they stand for."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array

from understudy.core.errors import UserError


def check_seed(seed: int) -> None:
    """Refuse what is no seed."""
    if not 0 <= seed < 2**32:
        raise UserError(f"The seed is {seed}; it must be from 0 to 4,294,967,295.")


def keys_of(seeds: Sequence[int]) -> Array:
    """A key for each seed."""
    for seed in seeds:
        check_seed(seed)
    if not seeds:
        raise UserError("There are no seeds; give at least one.")
    return jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
