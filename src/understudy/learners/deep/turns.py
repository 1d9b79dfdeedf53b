"""Who practises in each lane, an episode at a time.

The newest policy explores: on top of its own spread its actions get a noise whose size differs
from episode to episode, from nothing to `--noise`. A policy that is nearly sure of itself sees
little of what other actions lead to, and its critics guess; and where noise makes it fall, episodes
with much of it are short, so that most of what is practised has little. Every few episodes
(`--audition`) a lane plays one of who might be handed out, as that would be, without noise
(`lead`).
"""

from enum import IntEnum

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int

GOLDEN = (5**0.5 - 1) / 2


class Player(IntEnum):
    """Whose episode it is."""

    NEWEST = 0
    CLONE = 1
    AVERAGE = 2


class Turns(eqx.Module):
    """Of each lane."""

    player: Int[Array, " lanes"]
    episodes: Int[Array, " lanes"]  # that have ended
    age: Int[Array, " lanes"]  # iterations that this one has lasted


def first(lanes: int, *, every: int) -> Turns:
    """Of the first episodes: the newest's, and the clone's where an audition is due."""
    none = jnp.zeros(lanes, jnp.int32)
    return Turns(_player(none, every, Player.CLONE), none, jnp.copy(none))


def after(
    turns: Turns,
    ended: Bool[Array, "steps lanes"],
    *,
    every: int,
    longest: int,
    heard: Bool[Array, ""],
) -> tuple[Turns, Bool[Array, " lanes"]]:
    """The turns once this was practised, and those lanes in which one was over. A turn is an
    episode, or `longest` iterations where none ends. An audition is the average's where the clone
    was `heard`."""
    over = jnp.any(ended, axis=0) | (turns.age + 1 == longest)
    episodes = turns.episodes + over
    due = _player(episodes, every, jnp.where(heard, Player.AVERAGE, Player.CLONE))
    player = jnp.where(over, due, turns.player)
    return Turns(player, episodes, jnp.where(over, 0, turns.age + 1)), over


def _player(episodes: Int[Array, " lanes"], every: int, heard: Array | int) -> Array:
    """In each lane each `every`-th episode is an audition; lanes side by side are at different
    points of that round."""
    if not every:
        return jnp.full_like(episodes, Player.NEWEST)
    due = (episodes + 1 + jnp.arange(len(episodes))) % every == 0
    return jnp.where(due, heard, int(Player.NEWEST)).astype(jnp.int32)


def boldness(turns: Turns) -> Float32[Array, " lanes"]:
    """How much of the noise each lane's episode has, from 0 to 1: multiples of the golden ratio, so
    that however few episodes there are they are spread evenly."""
    lanes = len(turns.episodes)
    return (GOLDEN * (turns.episodes + 1) + jnp.arange(lanes) / lanes).astype(jnp.float32) % 1
