"""Draws without replacement, where what there is to draw from is known only as the program runs."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key


def choose(
    held: Bool[Array, " n"],
    many: Float[Array, ""] | int,
    shape: tuple[int, ...],
    *,
    key: Key[Array, ""],
) -> Bool[Array, "n *shape"]:
    """In each place of `shape`, so many of those held, every set of them equally likely; all, where
    there are fewer.

    Selection sampling (Knuth, volume 2, 3.4.2, S): one by one, each is taken with the probability
    (still wanted) / (still there). A draw decides for all places at once, and nothing is sorted.
    """
    # 32 bits are enough to compare whole numbers with: u·n < n for u < 1, and 0·n < 1.
    u = jax.random.uniform(key, (len(held), *shape), jnp.float32)
    there = jnp.cumsum(held[::-1], dtype=jnp.int32)[::-1]  # from this one on

    def decide(
        wanted: Float[Array, "*shape"], at: tuple[Array, Array, Array]
    ) -> tuple[Array, Array]:
        u, held, there = at
        taken = held & (u * there.astype(jnp.float32) < wanted)
        return wanted - taken, taken

    wanted = jnp.full(shape, jnp.minimum(many, there[0]), jnp.float32)
    return jax.lax.scan(decide, wanted, (u, held, there), unroll=4)[1]
