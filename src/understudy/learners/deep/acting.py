"""An actor as a function of NumPy arrays, compiled."""

import functools
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.learners.deep.actor import Actor


@jax.jit
def _sample(actor: Actor, obs: Array, key: Array, count: Array) -> Array:
    return actor.at(obs).sample(key=jax.random.fold_in(key, count))


@jax.jit
def _stray(action: Array, key: Array, count: Array, noise: Array) -> Array:
    drawn = jax.random.normal(jax.random.fold_in(key, count), action.shape, action.dtype)
    return jnp.clip(action + noise[:, None] * drawn, -1, 1)


@functools.partial(jax.jit, static_argnames=("actions", "discrete"))
def _explore(key: Array, count: Array, obs: Array, *, actions: int, discrete: bool) -> Array:
    key, shape = jax.random.fold_in(key, count), (len(obs), actions)
    if discrete:
        chosen = jax.random.randint(key, shape[:1], 0, actions)
        return jax.nn.one_hot(chosen, actions, dtype=jnp.float32)
    return jax.random.uniform(key, shape, jnp.float32, minval=-1, maxval=1)


@jax.jit
def _mode(actor: Actor, obs: Array) -> Array:
    return actor.at(obs).mode()


def sampling(actor: Actor, key: Array, start: int) -> Callable[[np.ndarray], np.ndarray]:
    """Stochastic actions; the n-th call draws from the key folded with start + n, so that a run
    which goes on after a stop draws the same."""
    count = itertools.count(start)
    return lambda obs: np.asarray(_sample(actor, obs, key, np.uint32(next(count))))


def straying(
    act: Callable[[np.ndarray], np.ndarray], key: Array, start: int
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """These actions in [−1, 1] with normal noise on top, of a size a lane that is given with the
    observations, drawn the same way."""
    count = itertools.count(start)
    return lambda obs, noise: np.asarray(
        _stray(act(obs), key, np.uint32(next(count)), noise.astype(np.float32))
    )


def exploring(
    actions: int, key: Array, start: int, *, discrete: bool, hold: int = 1
) -> Callable[[np.ndarray], np.ndarray]:
    """Uniformly random actions, drawn in the same way, each held for so many calls."""
    count = itertools.count(start)
    return lambda obs: np.asarray(
        _explore(key, np.uint32(next(count) // hold), obs, actions=actions, discrete=discrete)
    )


def deterministic(actor: Actor) -> Callable[[np.ndarray], np.ndarray]:
    return lambda obs: np.asarray(_mode(actor, obs))
