"""Who is handed out: the clone, or the average of what became of it. Practice decides.

The newest policy explores, and now and then it falls. The running average of the newest is
steadier, but what it would do is not known before it has done it. So both are auditioned: every few
episodes a lane plays one of them without noise, the clone and the average in turns until the clone
was heard often enough, and the average from then on (`turns`). What each of the average's latest
auditions earned of the learned reward stands beside what the clone's did, all judged by the
discriminator of now. Once it was heard the average is handed out, unless the clone is better beyond
doubt: each of its auditions earned more than any of the average's. If both were the same, that
would happen by chance once in twenty times where three of each are heard. It takes neither a
critic's word, nor the environment's reward, nor a schedule.

An audition is not kept: it lies in the window with all that was practised, and what is remembered
is where. One that the window has let go of in part no longer counts.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int

from understudy.core.window import Window
from understudy.learners.deep import discriminator as discriminators
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.discriminator import Discriminator, RewardMap
from understudy.learners.deep.turns import Player


class Auditions(eqx.Module):
    """Where the latest auditions of one policy lie, a ring of them: the lane, the first step and
    the one after the last, counted from the first step of the run."""

    lane: Int[Array, " latest"]
    begun: Int[Array, " latest"]
    ended: Int[Array, " latest"]
    count: Int[Array, ""]  # of all so far


class Lead(eqx.Module):
    """The clone, where it and the average were heard, and which of them is handed out."""

    clone: Actor
    of_clone: Auditions
    of_average: Auditions
    average: Bool[Array, ""]  # it is handed out; else the clone
    since: Int[Array, ""]  # the iteration that decided so; 0: it was so from the beginning
    clone_earned: Float32[Array, ""]  # learned reward an episode
    earned: Float32[Array, ""]  # the same of the average


class Judging(eqx.Module):
    """What an audition is judged by: the window that holds it, and the reward of now."""

    window: Window
    judge: Discriminator
    terminates: Bool[Array, ""]
    lanes: int = eqx.field(static=True)
    reward: RewardMap = eqx.field(static=True)
    absorbing: bool = eqx.field(static=True)
    together: int = eqx.field(static=True)  # points judged at once
    share: float = eqx.field(static=True)  # of the environment's own reward that is paid
    unit: float = eqx.field(static=True)


def first(clone: Actor, *, latest: int, alone: bool) -> Lead:
    """Nobody was heard. A clone is handed out; where there is none the average stands `alone`. So
    many auditions of each will count, the latest."""
    zero, none = jnp.zeros((), jnp.float32), jnp.zeros((), jnp.int32)

    def unheard() -> Auditions:
        lane, begun, ended = jnp.zeros((3, latest), jnp.int32)
        return Auditions(lane, begun, ended, jnp.copy(none))

    return Lead(
        clone=jax.tree.map(jnp.copy, clone),
        of_clone=unheard(),
        of_average=unheard(),
        average=jnp.asarray(alone),
        since=none,
        clone_earned=zero,
        earned=jnp.copy(zero),
    )


def next_heard(state: Lead) -> Int[Array, ""]:
    """Whose the next audition is: in turns, until the clone was heard as often as counts."""
    clone, average = state.of_clone.count, state.of_average.count
    enough = (clone > average) | (clone >= len(state.of_clone.lane))
    return jnp.where(enough, int(Player.AVERAGE), int(Player.CLONE))


def handed(state: Lead, average: Actor) -> Actor:
    """The policy that is handed out."""
    return jax.tree.map(lambda a, b: jnp.where(state.average, a, b), average, state.clone)


def review(
    state: Lead,
    player: Int[Array, "steps lanes"],
    begun: Int[Array, "steps lanes"],
    ended: Bool[Array, "steps lanes"],
    k: Int[Array, ""],
    by: Judging,
) -> Lead:
    """The lead after iteration k, in which this was played and these episodes ended."""
    clones, averages = (ended & (player == who) for who in (Player.CLONE, Player.AVERAGE))
    state = dataclasses.replace(
        state,
        of_clone=note(state.of_clone, begun, clones, k),
        of_average=note(state.of_average, begun, averages, k),
    )

    def decide(state: Lead) -> Lead:
        clone, cloned = earned(state.of_clone, by)
        average, averaged = earned(state.of_average, by)
        # The least of nothing is ∞: a clone that nobody heard is not better beyond doubt.
        worst = jnp.min(jnp.where(cloned, clone, jnp.inf))
        best = jnp.max(jnp.where(averaged, average, -jnp.inf))
        doubt = jnp.any(averaged) & ~(jnp.any(cloned) & (worst > best))
        return dataclasses.replace(
            state,
            average=doubt,
            since=jnp.where(doubt == state.average, state.since, k),
            clone_earned=mean(clone, cloned),
            earned=mean(average, averaged),
        )

    return jax.lax.cond(jnp.any(averages), decide, lambda state: state, state)


def note(
    auditions: Auditions,
    begun: Int[Array, "steps lanes"],
    over: Bool[Array, "steps lanes"],
    k: Int[Array, ""],
) -> Auditions:
    """The auditions, with those that were over at these steps of iteration k, in their order."""
    latest, (steps, lanes) = len(auditions.lane), over.shape
    at = (k - 1) * steps + jnp.broadcast_to(jnp.arange(steps)[:, None], over.shape)
    lane = jnp.broadcast_to(jnp.arange(lanes), over.shape)
    flat = over.reshape(-1)
    count = auditions.count + jnp.cumsum(flat, dtype=jnp.int32)  # with each of them
    kept = flat & (count > count[-1] - latest)  # of more than the ring holds, the last
    where = jnp.where(kept, (count - 1) % latest, latest)  # past the end: nothing is written

    def put(ring: Array, new: Array) -> Array:
        return ring.at[where].set(new.reshape(-1).astype(jnp.int32), mode="drop")

    return Auditions(
        lane=put(auditions.lane, lane),
        begun=put(auditions.begun, begun),
        ended=put(auditions.ended, at + 1),
        count=count[-1],
    )


def mean(gained: Float32[Array, " latest"], whole: Bool[Array, " latest"]) -> Float32[Array, ""]:
    """Of those auditions that count; 0 of none."""
    return jnp.sum(jnp.where(whole, gained, 0)) / jnp.maximum(jnp.sum(whole), 1)


def earned(
    auditions: Auditions, by: Judging
) -> tuple[Float32[Array, " latest"], Bool[Array, " latest"]]:
    """The learned reward of each audition, and whether it counts: those that were, and that the
    window still has whole."""
    steps = by.window.size // by.lanes
    label = by.window.label
    oldest = jnp.min(jnp.where(label >= 0, label, jnp.max(label)))  # segment that is kept
    heard = jnp.arange(len(auditions.lane)) < auditions.count
    whole = heard & (auditions.begun >= steps * oldest)
    end = jnp.where(whole, auditions.ended, 0)  # nothing is summed of the others

    def one(audition: tuple[Array, Array, Array]) -> Array:
        lane, begun, ended = audition
        return of_episode(lane, begun, ended, by)

    return jax.lax.map(one, (auditions.lane, auditions.begun, end)), whole


def of_episode(
    lane: Int[Array, ""], begun: Int[Array, ""], ended: Int[Array, ""], by: Judging
) -> Float32[Array, ""]:
    """The sum of the learned reward over these steps of a lane, some of them at a time."""
    window, steps = by.window, by.window.size // by.lanes

    def some(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        at, total = carry
        step = at + jnp.arange(by.together)
        slot, row = (step // steps) % window.slots, step % steps * by.lanes + lane
        seen = jax.tree.map(lambda x: x[slot, row], window.segments)
        logit = by.judge(discriminators.points(seen, by.absorbing))
        mu = discriminators.reward(logit, by.reward, by.terminates)
        mu = discriminators.paid(mu, seen.reward, by.share, by.unit)
        return at + by.together, total + jnp.sum(jnp.where(step < ended, mu, 0))

    going = (begun, jnp.zeros((), jnp.float32))
    return jax.lax.while_loop(lambda carry: carry[0] < ended, some, going)[1]
