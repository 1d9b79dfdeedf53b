"""Who practises in each lane, an episode at a time.

The newest policy explores: on top of its own spread its actions get a noise whose size differs
from episode to episode, from nothing to `--noise`. A policy that is nearly sure of itself sees
little of what other actions lead to, and its critics guess; and where noise makes it fall, episodes
with much of it are short, so that most of what is practised has little. Every few episodes
(`--audition`) a lane plays one of who might be handed out, as that would be, without noise
(`lead`).

An episode belongs to one player from its first step to its last. Lanes are side by side on the last
axis, and the functions that practice asks at every step (`players`, `boldness`) are made of
operators alone, so that they take NumPy's arrays as well as JAX's.
"""

from enum import IntEnum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

GOLDEN = (5**0.5 - 1) / 2


class Player(IntEnum):
    """Whose episode it is."""

    NEWEST = 0
    CLONE = 1
    AVERAGE = 2


class Turns(eqx.Module):
    """Of each lane, when an iteration begins."""

    player: Int[Array, " lanes"]  # of the episode under way
    begun: Int[Array, " lanes"]  # the step at which it began, counted from the first of the run
    episodes: Int[Array, " lanes"]  # that have ended
    next: Int[Array, ""]  # whose the auditions are that begin now


def first(lanes: int, *, every: int) -> Turns:
    """Of the first episodes: the newest's, and the clone's where an audition is due."""
    none = jnp.zeros(lanes, jnp.int32)
    before = Turns(none, jnp.copy(none), none - 1, jnp.asarray(int(Player.CLONE), jnp.int32))
    begun = players(before, jnp.copy(none), every=every)
    return Turns(begun.astype(jnp.int32), before.begun, jnp.copy(none), before.next)


def players(turns: Turns, episodes: Any, *, every: int) -> Any:
    """Who plays in each lane once so many of its episodes have ended, in this iteration or before.
    Each `every`-th is an audition; lanes side by side are at different points of that round."""
    if not every:
        return 0 * episodes
    due = (episodes + 1 + np.arange(episodes.shape[-1])) % every == 0
    under_way = episodes == turns.episodes
    return under_way * turns.player + (1 - under_way) * due * turns.next


def boldness(episodes: Any) -> Any:
    """How much of the noise each lane's episode has, from 0 to 1: multiples of the golden ratio, so
    that however few episodes there are they are spread evenly."""
    lanes = episodes.shape[-1]
    return (GOLDEN * (episodes + 1) + np.arange(lanes) / lanes) % 1


def during(
    turns: Turns, ended: Bool[Array, "steps lanes"], k: Int[Array, ""], *, every: int
) -> tuple[Int[Array, "steps lanes"], Int[Array, "steps lanes"]]:
    """At each step of iteration k, which ended these episodes: who played it, and the step at which
    that episode had begun."""
    steps = len(ended)
    at = (k - 1) * steps + jnp.arange(steps, dtype=jnp.int32)[:, None]
    over = jnp.cumsum(ended, axis=0, dtype=jnp.int32) - ended  # before this step
    next_begins = jnp.where(ended, at + 1, 0)
    before = jnp.concatenate([turns.begun[None], next_begins[:-1]])
    begun = jax.lax.cummax(before, axis=0)
    return players(turns, turns.episodes + over, every=every), begun


def after(
    turns: Turns,
    ended: Bool[Array, "steps lanes"],
    k: Int[Array, ""],
    next: Int[Array, ""],
    *,
    every: int,
) -> Turns:
    """The turns once iteration k is over, if the auditions from now on are of `next`. One that
    began within it was still of who was next before."""
    steps = len(ended)
    at = (k - 1) * steps + jnp.arange(steps, dtype=jnp.int32)[:, None]
    episodes = turns.episodes + jnp.sum(ended, axis=0, dtype=jnp.int32)
    return Turns(
        player=players(turns, episodes, every=every).astype(jnp.int32),
        begun=jnp.maximum(turns.begun, jnp.max(jnp.where(ended, at + 1, 0), axis=0)),
        episodes=episodes,
        next=next.astype(jnp.int32),
    )
