"""Behavioural cloning: the actor fitted to the demonstrations, as a warm start."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float32, Key

from understudy.deep import adam
from understudy.deep.actor import Actor

HELD_OUT = 0.1  # of the transitions
PATIENCE = 20  # epochs without a better held-out fit
EPOCHS = 500
BATCH = 256
RATE = 1e-3


def clone(
    actor: Actor,
    obs: Float32[Array, "points S"],
    action: Float32[Array, "points A"],
    *,
    key: Key[Array, ""],
) -> Actor:
    """Fit the actor by maximum likelihood; stop when held-out transitions get no more likely, and
    return the actor that was best at them."""
    order = np.asarray(jax.random.permutation(key, len(obs)))
    held = max(1, int(HELD_OUT * len(obs)))
    seen, unseen = (
        (obs[order[held:]], action[order[held:]]),
        (obs[order[:held]], action[order[:held]]),
    )
    moments = adam.moments(actor, RATE)
    best, best_fit, since = actor, float(fit(actor, *unseen)), 0
    for epoch in range(1, EPOCHS + 1):
        actor, moments = one_epoch(actor, moments, *seen, key=jax.random.fold_in(key, epoch))
        now = float(fit(actor, *unseen))
        since += 1
        if now > best_fit:
            best, best_fit, since = actor, now, 0
        if since >= PATIENCE:
            break
    return best


@jax.jit
def fit(
    actor: Actor, obs: Float32[Array, "points S"], action: Float32[Array, "points A"]
) -> Float32[Array, ""]:
    """E log π(a|s)."""
    return jnp.mean(actor.at(obs).log_action(action))


@jax.jit
def one_epoch(
    actor: Actor,
    moments: optax.OptState,
    obs: Float32[Array, "points S"],
    action: Float32[Array, "points A"],
    *,
    key: Key[Array, ""],
) -> tuple[Actor, optax.OptState]:
    """Once through the transitions, in batches; the few that fill no batch wait for the next."""
    size = min(BATCH, len(obs))
    order = jax.random.permutation(key, len(obs))[: len(obs) // size * size].reshape(-1, size)

    def one(carry: tuple[Actor, optax.OptState], rows: Array) -> tuple:
        actor, moments = carry
        slope = jax.grad(lambda pi: -fit(pi, obs[rows], action[rows]))(actor)
        return adam.descend(actor, slope, moments, RATE), None

    return jax.lax.scan(one, (actor, moments), order)[0]
