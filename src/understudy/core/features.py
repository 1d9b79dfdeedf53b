"""Known features of finite things, as lists: φ(s,a), or ψ(s,a,s') along the successors.

An entry j is `value[…, j]` at coordinate `index[…, j]`. One-hot features have one entry each,
dense ones d. So no array of size S·A·d is made where features are sparse.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


class Features(eqx.Module):
    """Vectors of ℝᵈ, one at each place."""

    index: Int[Array, "*place J"]
    value: Float[Array, "*place J"]
    size: int = eqx.field(static=True)  # d
    full: bool = eqx.field(static=True, default=False)  # each place has all coordinates, in order


def dense(vectors: np.ndarray) -> Features:
    """From arrays of shape (…, d)."""
    value = jnp.asarray(vectors, float)
    size = value.shape[-1]
    return Features(
        jnp.broadcast_to(jnp.arange(size, dtype=jnp.int32), value.shape), value, size, True
    )


def one_hot(shape: tuple[int, ...]) -> Features:
    """Each place a coordinate of its own."""
    size = int(np.prod(shape))
    index = jnp.arange(size, dtype=jnp.int32).reshape(*shape, 1)
    return Features(index, jnp.ones((*shape, 1)), size)


def dot(features: Features, w: Float[Array, "R d"]) -> Float[Array, "R *place"]:
    """φᵀw_h at every place."""
    if features.full:
        return jnp.einsum("...d,rd->r...", features.value, w)
    return jax.vmap(lambda w: jnp.sum(features.value * w[features.index], axis=-1))(w)


def collect(features: Features, x: Float[Array, "R *place"]) -> Float[Array, "R d"]:
    """Σ x_h φ over all places, the adjoint of `dot`: with an occupancy, E_{d_h} φ."""
    if features.full:
        return jnp.einsum("r...,...d->rd", x, features.value)

    def add(x: Array) -> Array:
        return jnp.zeros(features.size).at[features.index].add(x[..., None] * features.value)

    return jax.vmap(add)(x)


def vectors(features: Features) -> Float[Array, "*place d"]:
    """The vectors in full."""
    *place, entries = features.index.shape
    rows = jnp.arange(int(np.prod(place)))[:, None]
    full = jnp.zeros((len(rows), features.size))
    flat = features.index.reshape(-1, entries), features.value.reshape(-1, entries)
    return full.at[rows, flat[0]].add(flat[1]).reshape(*place, features.size)


def norms(features: Features) -> np.ndarray:
    """‖φ‖₂ at every place; the coordinates of a place must differ where their values are not 0."""
    return np.sqrt(np.sum(np.asarray(features.value) ** 2, axis=-1))
