"""Who is handed out: the policy whose practice earned most.

The newest policy practises, and now and then it falls. The running average of the newest is
steadier, but what it would do is not known before it has done it. So the two practise in turns,
episode by episode: the newest as it explores, and a candidate, the average as it was when its turn
began, as it would be handed out. At the end of its episode, what the latest candidates earned of
the learned reward, an episode, over as many interactions as a trial has, stands beside what those
earned that the policy in the lead was the last of, both judged by the discriminator of now. If it
is more, the candidate takes the lead. A clone is the first, and those after it differ little from
one to the next, so that a trial of several says more than one episode does. Nothing is handed out
for long that earns less than the clone did, and it takes neither a critic's word, nor the
environment's reward, nor a schedule.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int

from understudy.learners.deep import discriminator as discriminators
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.discriminator import Discriminator, RewardMap


class Trial(eqx.Module):
    """The latest practice of candidates, an iteration after another, in a ring that has a slot more
    than the trial: whether an episode ended just before it."""

    points: Float32[Array, "slots fresh D"]
    its: Bool[Array, "slots fresh"]  # those of them that a candidate practised
    episodes: Int[Array, " slots"]  # that it ended
    count: Int[Array, ""]  # of the iterations so far


class Lead(eqx.Module):
    """The policy that is handed out, and the one whose turn comes."""

    actor: Actor
    known: Trial  # by which it took the lead
    candidate: Actor
    trial: Trial
    turns: Bool[Array, " lanes"]  # the candidate's; else the newest practises
    ages: Int[Array, " lanes"]  # iterations that the turn has lasted
    since: Int[Array, ""]  # the iteration that gave the lead; 0: nobody has been tried
    earned: Float32[Array, ""]  # learned reward an episode of who has it, as judged last
    tried: Float32[Array, ""]  # the same of the latest candidates


def first(actor: Actor, *, iterations: int, fresh: int, lanes: int, width: int) -> Lead:
    """Nobody is known; this policy is the first to be tried, after the newest's first turn. In
    every second lane it begins. A trial is of so many iterations."""
    zero, none = jnp.zeros((), jnp.float32), jnp.zeros((), jnp.int32)
    slots = iterations + 1
    trial = Trial(
        points=jnp.zeros((slots, fresh, width), jnp.float32),
        its=jnp.zeros((slots, fresh), bool),
        episodes=jnp.zeros(slots, jnp.int32),
        count=none,
    )
    return Lead(
        actor=jax.tree.map(jnp.copy, actor),
        known=jax.tree.map(jnp.copy, trial),
        candidate=jax.tree.map(jnp.copy, actor),
        trial=trial,
        turns=(jnp.arange(lanes) % 2 == 1) & (iterations > 0),
        ages=jnp.zeros(lanes, jnp.int32),
        since=jnp.copy(none),
        earned=zero,
        tried=jnp.copy(zero),
    )


def follow(state: Lead, average: Actor, k: Int[Array, ""]) -> Lead:
    """Without trials the average of now has the lead."""
    return dataclasses.replace(state, actor=average, since=k)


def review(
    state: Lead,
    average: Actor,
    points: Float32[Array, "fresh D"],
    ended: Bool[Array, " fresh"],
    judge: Discriminator,
    terminates: Bool[Array, ""],
    k: Int[Array, ""],
    *,
    reward: RewardMap,
) -> Lead:
    """The lead after iteration k, in which this was practised, and episodes ended there."""
    lanes, longest = len(state.turns), len(state.trial.points) - 1
    its = jnp.tile(state.turns, len(points) // lanes)  # points are of step by step, lane by lane
    # A turn is an episode, or as long as a trial where none ends.
    over = jnp.any(ended.reshape(-1, lanes), axis=0) | (state.ages + 1 == longest)
    tried = jnp.any(over & state.turns)
    state = dataclasses.replace(
        state,
        trial=note(state.trial, points, its, ended),
        turns=state.turns ^ over,
        ages=jnp.where(over, 0, state.ages + 1),
    )

    def compare(state: Lead) -> Lead:
        known = earned(state.known, judge, reward, terminates)
        known = jnp.where(state.since > 0, known, -jnp.inf)
        new = earned(state.trial, judge, reward, terminates)
        wins = new > known
        ours, theirs = (state.candidate, state.trial), (state.actor, state.known)
        actor, of = jax.tree.map(lambda a, b: jnp.where(wins, a, b), ours, theirs)
        return dataclasses.replace(
            state,
            actor=actor,
            known=of,
            candidate=average,
            since=jnp.where(wins, k, state.since),
            earned=jnp.maximum(new, known),
            tried=new,
        )

    def wait(state: Lead) -> Lead:
        """What nobody has tried is all that there is to hand out."""
        unknown = state.since == 0
        actor = jax.tree.map(lambda a, b: jnp.where(unknown, a, b), average, state.actor)
        return dataclasses.replace(state, actor=actor)

    return jax.lax.cond(tried, compare, wait, state)


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
    trial: Trial, judge: Discriminator, reward: RewardMap, terminates: Bool[Array, ""]
) -> Float32[Array, ""]:
    """Learned reward an episode, of whole episodes if there are any; all as one, if none ended."""
    slots = len(trial.points)
    age = (trial.count - 1 - jnp.arange(slots)) % slots  # iterations since a slot was written
    # Unless it is as short as that, a trial may begin in the middle of an episode, which is left
    # out; where that is the only one, it counts.
    begun = jnp.max(jnp.where(trial.episodes > 0, age, 0))
    whole = (trial.count < slots) | (age < jnp.where(begun > 0, begun, slots - 1))
    logit = judge(trial.points.reshape(-1, trial.points.shape[-1]))
    gained = discriminators.reward(logit, reward, terminates).reshape(trial.its.shape)
    total = jnp.sum(jnp.where(trial.its & whole[:, None], gained, 0))
    return total / jnp.maximum(jnp.sum(jnp.where(whole, trial.episodes, 0)), 1)
