"""Who is handed out: the policy whose practice earned most.

The newest policy practises, and now and then it falls. What is handed out has the lead: at first
the average of the newest, which is the clone as long as that one waits. Whenever an episode ends,
the practice of the latest `trial` iterations stands beside the practice that the lead is known by,
both judged by the discriminator of now. If it earned more of the learned reward an episode, the
average of the newest policies takes the lead. So nothing is handed out for long that earns less
than the clone did, and it takes neither a critic's word, nor the environment's reward, nor a
schedule.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int

from understudy.core.window import Window
from understudy.learners.deep import discriminator as discriminators
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.discriminator import Discriminator


class Lead(eqx.Module):
    """The policy that is handed out, and the practice that it is known by."""

    actor: Actor
    ended: Int[Array, ""]  # the iteration at whose end it took the lead; 0: unknown as yet
    earned: Float32[Array, ""]  # learned reward an episode in the trial before, as judged last
    newest: Float32[Array, ""]  # the same of the latest practice
    episodes: Int[Array, " slots"]  # that ended in each segment of the window


def first(actor: Actor, slots: int) -> Lead:
    """A policy that nothing is known of."""
    zero = jnp.zeros((), jnp.float32)
    return Lead(
        jax.tree.map(jnp.copy, actor),
        ended=jnp.zeros((), jnp.int32),
        earned=zero,
        newest=jnp.copy(zero),
        episodes=jnp.zeros(slots, jnp.int32),
    )


def follow(state: Lead, average: Actor, k: Int[Array, ""]) -> Lead:
    """Without trials the average of now has the lead."""
    return dataclasses.replace(state, actor=average, ended=k)


def review(
    state: Lead,
    average: Actor,
    practised: Window,
    episodes: Int[Array, ""],
    judge: Discriminator,
    terminates: Bool[Array, ""],
    k: Int[Array, ""],
    *,
    trial: int,
    config: DeepConfig,
) -> Lead:
    """The lead after iteration k, in which so many episodes ended."""
    slots = practised.slots
    state = dataclasses.replace(state, episodes=state.episodes.at[(k - 1) % slots].set(episodes))

    def earned(ended: Int[Array, ""]) -> Float32[Array, ""]:
        """Learned reward an episode in the trial that ended then, of whole episodes if it saw one;
        −∞ where it is forgotten."""
        lag = jnp.arange(trial + 1)  # the trial, and whether an episode began with it
        i = ended - 1 - lag
        slot = i % slots
        points = jax.tree.map(lambda x: x[slot], practised.segments)
        x = discriminators.points(points, config.absorbing)
        logit = judge(x.reshape(-1, x.shape[-1]))
        gained = discriminators.reward(logit, config.reward, terminates).reshape(trial + 1, -1)
        ends = jnp.where(i < 0, 1, jnp.where(i >= k - slots, state.episodes[slot], 0))
        begun = jnp.max(jnp.where(ends > 0, lag, 0))  # what is more recent is of whole episodes
        whole = lag < jnp.where(begun > 0, begun, trial)
        total = jnp.sum(jnp.where(whole[:, None], gained, 0))
        mean = total / jnp.maximum(jnp.sum(jnp.where(whole, ends, 0)), 1)
        return jnp.where(i[trial - 1] >= jnp.maximum(k - slots, 0), mean, -jnp.inf)

    def compare(state: Lead) -> Lead:
        ours, theirs = earned(k), earned(state.ended)
        wins = ours > theirs
        return dataclasses.replace(
            state,
            actor=_either(wins, average, state.actor),
            ended=jnp.where(wins, k, state.ended),
            earned=jnp.maximum(ours, theirs),
            newest=ours,
        )

    def wait(state: Lead) -> Lead:
        actor = _either(state.ended == 0, average, state.actor)
        return dataclasses.replace(state, actor=actor)

    # In mid-episode nobody is judged, unless the trial saw no end of one at all.
    endless = jnp.sum(state.episodes[(k - 1 - jnp.arange(trial)) % slots]) == 0
    ready = (k >= trial) & ((episodes > 0) | (endless & (k % trial == 0)))
    return jax.lax.cond(ready, compare, wait, state)


def _either(first: Bool[Array, ""], one: Actor, other: Actor) -> Actor:
    return jax.tree.map(lambda a, b: jnp.where(first, a, b), one, other)
