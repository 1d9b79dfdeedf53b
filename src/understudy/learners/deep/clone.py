"""Behavioural cloning: the actor fitted to the demonstrations, as a warm start.

What a clone does is its mode, and that is fitted (`Choice.miss`): likelihood would spend itself on
the directions in which the expert hardly varies (docs/log.md has what each gave). How sure it
is, its spread, is then how far it misses transitions held out. It has a hidden layer more than an
actor that is not cloned: with two, clones of HalfCheetah and Walker2d fall over more often.
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float32, Key

from understudy.learners.deep.actor import Actor
from understudy.learners.deep.config import DeepConfig


def clone(
    actor: Actor,
    obs: Float32[Array, "points S"],
    action: Float32[Array, "points A"],
    config: DeepConfig,
    *,
    key: Key[Array, ""],
) -> Actor:
    """The actor fitted to these transitions."""
    dividing, fitting = jax.random.split(key)
    order = jax.random.permutation(dividing, len(obs))
    held = max(1, int(config.clone_held_out * len(obs)))
    seen, unseen = order[held:], order[:held]
    steps = min(max(config.clone_steps * len(obs), config.clone_least), config.clone_most)
    actor = fit(actor, obs[seen], action[seen], config, steps=steps, key=fitting)
    if actor.discrete:
        return actor
    missed = actor.at(obs[unseen]).mode() - action[unseen]
    return actor.with_spread(jnp.sqrt(jnp.mean(missed**2, axis=0)))


def fit(
    actor: Actor,
    obs: Float32[Array, "points S"],
    action: Float32[Array, "points A"],
    config: DeepConfig,
    *,
    steps: int,
    key: Key[Array, ""],
) -> Actor:
    """So many steps, their rate falling to zero as a cosine."""
    optimiser = optax.adam(optax.cosine_decay_schedule(config.clone_rate, steps))
    weights: Any = actor
    keys = jax.random.split(key, steps)
    size, blur = min(config.clone_batch, len(obs)), config.clone_blur
    return descend(
        actor, optimiser.init(weights), obs, action, keys, optimiser=optimiser, size=size, blur=blur
    )[0]


@functools.partial(jax.jit, static_argnames=("optimiser", "size", "blur"))
def descend(
    actor: Actor,
    moments: optax.OptState,
    obs: Float32[Array, "points S"],
    action: Float32[Array, "points A"],
    keys: Key[Array, " steps"],
    *,
    optimiser: optax.GradientTransformation,
    size: int,
    blur: float,
) -> tuple[Actor, optax.OptState]:
    """A step a key down how far the actor misses the actions, at blurred observations: nearby
    states ask for nearby actions."""

    def loss(actor: Actor, rows: Array, noise: Array) -> Array:
        return jnp.mean(actor.at(obs[rows] + noise).miss(action[rows]))

    def one(carry: tuple[Actor, optax.OptState], key: Array) -> tuple[Any, None]:
        actor, moments = carry
        choosing, blurring = jax.random.split(key)
        rows = jax.random.randint(choosing, (size,), 0, len(obs))
        noise = blur * jax.random.normal(blurring, (size, obs.shape[1]), jnp.float32)
        slope: Any = jax.grad(loss)(actor, rows, noise)
        move, moments = optimiser.update(slope, moments)
        return (eqx.apply_updates(actor, move), moments), None

    return jax.lax.scan(one, (actor, moments), keys)[0]
