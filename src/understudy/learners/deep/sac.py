"""Soft Actor-Critic on the environment's own reward: how experts are made."""

import functools
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int, Key

from understudy.core import window as windows
from understudy.core.window import Window
from understudy.learners.deep import actor_critic, replay
from understudy.learners.deep.actor_critic import Agent, Info, Transitions, Tuning


class Rewarded(eqx.Module):
    """Points with the environment's reward."""

    points: Transitions
    reward: Float32[Array, "*points"]


class State(eqx.Module):
    agent: Agent
    window: Window
    key: Key[Array, ""]
    k: Int[Array, ""]  # segments written


def init(
    observations: int,
    actions: int,
    tuning: Tuning,
    *,
    discrete: bool,
    fresh: int,
    slots: int,
    key: Key[Array, ""],
) -> State:
    beginning, going = jax.random.split(key)
    return State(
        agent=actor_critic.init(observations, actions, tuning, discrete=discrete, key=beginning),
        window=windows.empty(example(observations, actions, fresh), slots),
        key=going,
        k=jnp.zeros((), jnp.int32),
    )


def example(observations: int, actions: int, fresh: int) -> Rewarded:
    points = actor_critic.blank(observations, actions, fresh)
    return Rewarded(points, jnp.zeros(fresh, jnp.float32))


@functools.partial(jax.jit, static_argnames=("tuning", "steps", "batch"), donate_argnums=0)
def step(
    state: State, segment: Rewarded, *, tuning: Tuning, steps: int, batch: int
) -> tuple[State, Info]:
    """Keep a segment, then take `steps` policy steps (none, while exploring)."""
    window = windows.append(state.window, segment, label=state.k)
    k = state.k + 1

    def one(agent: Agent, key: Array) -> tuple[Agent, Info]:
        drawing, improving = jax.random.split(key)
        taken = replay.batch(window, k, batch, key=drawing)
        return actor_critic.improve(agent, taken.points, taken.reward, tuning, key=improving)

    keys = jax.random.split(jax.random.fold_in(state.key, k), steps)
    agent, info = jax.lax.scan(one, state.agent, keys)
    return State(agent, window, state.key, k), jax.tree.map(lambda x: x[-1:], info)


def segment(practised: Mapping[str, np.ndarray]) -> Rewarded:
    """What was practised, with its reward."""
    return Rewarded(actor_critic.transitions(practised), jnp.asarray(practised["reward"]))
