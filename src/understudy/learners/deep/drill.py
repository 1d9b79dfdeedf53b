"""How a clone practises in a short run: it is pushed, and begins anew where it has gone astray.

A good clone stumbles now and then, where the demonstrations show next to nothing, and left to
itself it does so too seldom to learn from it. So in every fifth iteration it acts with a wide
spread, and has the other four to recover in. And what neither recovers nor ends, as a cheetah on
its back, is cut off: the rest of its episode would teach nothing new.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int

from understudy.learners.deep.actor import Actor
from understudy.learners.deep.config import DeepConfig

EVERY = 5  # iterations, of which the last is a push
SPREAD = 0.5  # of a push, before squashing
ASTRAY = -1.0  # a mean logit below this is unlike the expert
PATIENCE = 48  # steps of it in a row, and the episode begins anew


def practising(actor: Actor, k: int) -> Actor:
    """Who practises in iteration k, counted from zero: the policy, or what pushes it."""
    return _pushing(actor) if k % EVERY == EVERY - 1 and not actor.discrete else actor


@jax.jit
def _pushing(actor: Actor) -> Actor:
    return actor.with_spread(jnp.full(actor.net.layers[-1].b.size // 2, SPREAD, jnp.float32))


def strayed(
    so_far: Int[Array, " lanes"], logits: Float32[Array, "steps lanes"]
) -> Int[Array, " lanes"]:
    """The steps that each lane has been astray for, after those of these logits. A lane whose
    patience was at its end has begun anew."""
    lost = jnp.mean(logits, axis=0) < ASTRAY
    return jnp.where(lost, jnp.where(so_far >= PATIENCE, 0, so_far) + len(logits), 0)


def impatient(strayed: Int[Array, " lanes"]) -> list[int]:
    """The lanes that are to begin anew."""
    return np.flatnonzero(np.asarray(strayed) >= PATIENCE).tolist()


def drilling(config: DeepConfig) -> DeepConfig:
    """To learn from stumbles: twice as many policy steps, and a hold that begins looser
    (`DRILL_PACE`) and loosens less, for without it the gait itself would change."""
    return dataclasses.replace(twice_the_steps(config), loosen=config.loosen**0.5)


def twice_the_steps(config: DeepConfig) -> DeepConfig:
    """Of the policy, in each iteration."""
    return dataclasses.replace(config, policy_steps=2 * config.policy_steps)
