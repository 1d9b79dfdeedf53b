"""All of JAX's devices at once: a batch of runs is dealt out, as many to each.

Runs of a batch never look at each other, so a device needs nothing of the others', and the results
are those of a single one, up to the order in which sums are rounded.
"""

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

Tree = TypeVar("Tree")


def deal(batched: Tree, size: int) -> Tree:
    """A tree whose leaves have `size` runs along their first axis, dealt out over the devices; the
    last run is repeated where they do not come out even. A number is for all."""
    devices = jax.devices()
    if len(devices) == 1:
        return batched
    more = -size % len(devices)
    dealt = NamedSharding(_mesh(), PartitionSpec("runs"))

    def one(x: Any) -> Any:
        if jnp.ndim(x) == 0:
            return jax.device_put(x, NamedSharding(_mesh(), PartitionSpec()))
        even = jnp.concatenate([x, jnp.repeat(x[-1:], more, axis=0)]) if more else x
        return jax.device_put(even, dealt)

    return jax.tree.map(one, batched)


def copy_to_all(tree: Tree) -> Tree:
    """What every run needs, on every device."""
    if len(jax.devices()) == 1:
        return tree
    return eqx.filter_shard(tree, NamedSharding(_mesh(), PartitionSpec()))


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()), ("runs",))


def gather(batched: Tree, size: int) -> Tree:
    """The first `size` runs, on one device: without those that were repeated."""
    first = jax.devices()[0]

    def one(x: Any) -> Any:
        return x if jnp.ndim(x) == 0 else jax.device_put(x[:size], first)

    return batched if len(jax.devices()) == 1 else jax.tree.map(one, batched)
