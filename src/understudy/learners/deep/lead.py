"""Who is handed out: the clone, or the average of what became of it. Practice decides.

The newest policy explores, and now and then it falls. The running average of the newest is
steadier, but what it would do is not known before it has done it. So both are auditioned: every few
episodes a lane plays one of them without noise, the clone and the average in turns until the clone
was heard often enough, and the average from then on (`turns`). What the average's latest auditions
earned of the learned reward, an episode, stands beside what the clone's did, both judged by the
discriminator of now, and who earned more is handed out. Nothing is handed out for long that earns
less than the clone, and it takes neither a critic's word, nor the environment's reward, nor a
schedule.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int

from understudy.learners.deep import discriminator as discriminators
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.discriminator import Discriminator, RewardMap
from understudy.learners.deep.turns import Player, Turns


class Trial(eqx.Module):
    """The latest auditions of one policy, an iteration after another, in a ring that has a slot
    more than the trial: whether an episode ended just before it."""

    points: Float32[Array, "slots fresh D"]
    its: Bool[Array, "slots fresh"]  # those of them that it practised
    episodes: Int[Array, " slots"]  # that it ended
    count: Int[Array, ""]  # of the iterations so far


class Lead(eqx.Module):
    """The clone, what is known of it and of the average, and which of them is handed out."""

    clone: Actor
    known: Trial  # the clone's auditions
    trial: Trial  # the average's
    average: Bool[Array, ""]  # it is handed out; else the clone
    since: Int[Array, ""]  # the iteration that decided so; 0: it was so from the beginning
    clone_earned: Float32[Array, ""]  # learned reward an episode
    earned: Float32[Array, ""]  # the same of the average


def first(clone: Actor, *, iterations: int, fresh: int, width: int, alone: bool) -> Lead:
    """Nobody is known. A clone is handed out; where there is none, or no trial, it is the average
    that stands `alone`. A trial is of so many iterations."""
    zero, none = jnp.zeros((), jnp.float32), jnp.zeros((), jnp.int32)
    slots = iterations + 1
    trial = Trial(
        points=jnp.zeros((slots, fresh, width), jnp.float32),
        its=jnp.zeros((slots, fresh), bool),
        episodes=jnp.zeros(slots, jnp.int32),
        count=none,
    )
    return Lead(
        clone=jax.tree.map(jnp.copy, clone),
        known=jax.tree.map(jnp.copy, trial),
        trial=trial,
        average=jnp.asarray(alone),
        since=jnp.copy(none),
        clone_earned=zero,
        earned=jnp.copy(zero),
    )


def heard(state: Lead, *, latest: int) -> Bool[Array, ""]:
    """Whether the clone was heard more often than the average, or often enough: then that one is
    next."""
    ended, others = jnp.sum(state.known.episodes), jnp.sum(state.trial.episodes)
    full = state.known.count >= len(state.known.points) - 1
    return full | (ended > others) | (ended >= latest)


def handed(state: Lead, average: Actor) -> Actor:
    """The policy that is handed out."""
    return jax.tree.map(lambda a, b: jnp.where(state.average, a, b), average, state.clone)


def review(
    state: Lead,
    turns: Turns,
    over: Bool[Array, " lanes"],
    points: Float32[Array, "fresh D"],
    ended: Bool[Array, " fresh"],
    judge: Discriminator,
    terminates: Bool[Array, ""],
    k: Int[Array, ""],
    *,
    reward: RewardMap,
    latest: int,
    share: float = 0.0,
) -> Lead:
    """The lead after iteration k, in which this was practised in these turns; episodes `ended`
    there, and some turns were `over`. So many episodes count, the latest. Where a `share` of the
    environment's reward is paid, it is the last number of each point."""
    player = jnp.tile(turns.player, len(points) // len(over))  # step by step, lane by lane
    state = dataclasses.replace(
        state,
        known=note(state.known, points, player == Player.CLONE, ended),
        trial=note(state.trial, points, player == Player.AVERAGE, ended),
    )

    def decide(state: Lead) -> Lead:
        clone = earned(state.known, judge, reward, terminates, latest=latest, share=share)
        clone = jnp.where(state.known.count > 0, clone, -jnp.inf)
        average = earned(state.trial, judge, reward, terminates, latest=latest, share=share)
        better = average > clone
        return dataclasses.replace(
            state,
            average=better,
            since=jnp.where(better == state.average, state.since, k),
            clone_earned=jnp.where(state.known.count > 0, clone, 0),
            earned=average,
        )

    tried = jnp.any(over & (turns.player == Player.AVERAGE))
    return jax.lax.cond(tried, decide, lambda state: state, state)


def note(
    trial: Trial, points: Float32[Array, "fresh D"], its: Bool[Array, " fresh"], ended: Array
) -> Trial:
    """The trial, with what was practised in an iteration if some of it is `its`."""
    played, slots = jnp.any(its), len(trial.points)
    i = jnp.where(played, trial.count % slots, slots)  # past the end: nothing is written
    ends = jnp.sum(its & ended, dtype=jnp.int32)
    return Trial(
        points=trial.points.at[i].set(points, mode="drop"),
        its=trial.its.at[i].set(its, mode="drop"),
        episodes=trial.episodes.at[i].set(ends, mode="drop"),
        count=trial.count + played,
    )


def earned(
    trial: Trial,
    judge: Discriminator,
    reward: RewardMap,
    terminates: Bool[Array, ""],
    *,
    latest: int,
    share: float = 0.0,
) -> Float32[Array, ""]:
    """Learned reward an episode, of the latest whole episodes if there are any; all as one, if none
    ended."""
    slots = len(trial.points)
    age = (trial.count - 1 - jnp.arange(slots)) % slots  # iterations since a slot was written
    # Unless it is as short as that, a trial may begin in the middle of an episode, which is left
    # out; where that is the only one, it counts.
    begun = jnp.max(jnp.where(trial.episodes > 0, age, 0))
    whole = (trial.count < slots) | (age < jnp.where(begun > 0, begun, slots - 1))
    newer = jnp.sum(jnp.where(age[None] < age[:, None], trial.episodes[None], 0), axis=1)
    counts = whole & (newer < latest)
    seen, own = trial.points.reshape(-1, trial.points.shape[-1]), None
    if share:
        seen, own = seen[:, :-1], seen[:, -1]
    gained = discriminators.reward(judge(seen), reward, terminates)
    gained = discriminators.paid(gained, own, share).reshape(trial.its.shape)
    total = jnp.sum(jnp.where(trial.its & counts[:, None], gained, 0))
    return total / jnp.maximum(jnp.sum(jnp.where(counts, trial.episodes, 0)), 1)
