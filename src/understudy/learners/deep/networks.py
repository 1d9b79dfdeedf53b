"""Multi-layer perceptrons, the only kind of network here. All numbers are single precision."""

import math
from collections.abc import Sequence
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Key

Tree = TypeVar("Tree")
In = Float32[Array, "*batch i"]
Out = Float32[Array, "*batch o"]


class Linear(eqx.Module):
    """x ↦ x·w + b."""

    w: Float32[Array, "*ensemble i o"]
    b: Float32[Array, "*ensemble o"]

    def __call__(self, x: In) -> Out:
        return x @ self.w + self.b


class MLP(eqx.Module):
    """Rectified linear layers; `norm` standardises each hidden layer before its rectifier.

    The layer norm has no gain and offset of its own: the next layer's weights can do their work.
    """

    layers: tuple[Linear, ...]
    norm: bool = eqx.field(static=True)

    def __call__(self, x: In) -> Out:
        for layer in self.layers[:-1]:
            x = layer(x)
            x = jax.nn.relu(standardise(x) if self.norm else x)
        return self.layers[-1](x)


def standardise(x: In) -> In:
    """Mean 0 and variance 1 over the last axis."""
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)


def toward(slow: Tree, fast: Tree, share: float | Array) -> Tree:
    """The weights of `slow`, a share of the way to those of `fast`."""
    return jax.tree.map(lambda a, b: a + share * (b - a), slow, fast)


def mlp(sizes: Sequence[int], *, key: Key[Array, ""], norm: bool = False, last: float = 1.0) -> MLP:
    """Weights normal with variance 1/inputs, biases zero; the last layer's scaled by `last`."""
    keys = jax.random.split(key, len(sizes) - 1)
    scales = [1.0] * (len(sizes) - 2) + [last]
    layers = tuple(
        Linear(
            w=(scale / math.sqrt(i)) * jax.random.normal(k, (i, o), jnp.float32),
            b=jnp.zeros(o, jnp.float32),
        )
        for k, i, o, scale in zip(keys, sizes[:-1], sizes[1:], scales, strict=True)
    )
    return MLP(layers, norm)
