"""Soft Actor-Critic on practice and demonstrations, half a batch of each: what SQIL and IQ-Learn
share. There is no discriminator; they differ in what their critics are fitted to."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int, Key

from understudy.core import window as windows
from understudy.core.window import Window
from understudy.learners.deep import actor_critic, replay
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.actor_critic import Agent, Transitions
from understudy.learners.deep.learner import Settings
from understudy.learners.deep.networks import toward

# One step of the critics and their targets, on practised points and on the expert's, where an
# episode has ended early (`terminates`) or none has.
Fit = Callable[..., tuple[Agent, Float32[Array, ""]]]


class State(eqx.Module):
    """Everything a run needs to go on, but for the environment."""

    agent: Agent
    average: Actor  # of the latest policies' weights: the one that is measured and kept
    window: Window
    terminates: Bool[Array, ""]  # an episode has ended early
    key: Key[Array, ""]
    k: Int[Array, ""]  # updates done


class Info(eqx.Module):
    """What one iteration saw: the last of its steps."""

    critic_loss: Float32[Array, ""]
    q: Float32[Array, ""]
    entropy: Float32[Array, ""]


def init(
    settings: Settings, observations: int, actions: int, *, discrete: bool, key: Key[Array, ""]
) -> State:
    playing, going = jax.random.split(key)
    agent = actor_critic.init(
        observations, actions, settings.tuning, discrete=discrete, key=playing
    )
    return State(
        agent=agent,
        average=jax.tree.map(jnp.copy, agent.actor),
        window=windows.empty(
            actor_critic.blank(observations, actions, settings.fresh), settings.slots
        ),
        terminates=jnp.zeros((), bool),
        key=going,
        k=jnp.zeros((), jnp.int32),
    )


def stepping(fit: Fit) -> Callable[..., tuple[State, Info]]:
    """The compiled iteration of a method that fits its critics so."""
    step = functools.partial(iterate, fit=fit)
    return jax.jit(step, static_argnames=("settings", "moving"), donate_argnums=0)


def iterate(
    state: State,
    practised: Transitions,
    expert: Transitions,
    *,
    fit: Fit,
    settings: Settings,
    moving: bool = True,
) -> tuple[State, Info]:
    """Keep what was practised, then take the policy's steps. Unless `moving`, the actor waits for
    its critics."""
    config, tuning = settings.config, settings.tuning
    window = windows.append(state.window, practised, label=state.k)
    terminates = state.terminates | jnp.any(practised.terminated)
    k = state.k + 1
    pace = 1 - (1 - config.final_rate) * (k / settings.K).astype(jnp.float32)
    half = max(1, round(config.demo_share * config.batch))
    agent = eqx.tree_at(
        lambda a: a.anchor, state.agent, state.agent.actor
    )  # for a --kl of one's own

    def one(agent: Agent, key: Array) -> tuple[Agent, Info]:
        drawing, choosing, fitting, improving = jax.random.split(key, 4)
        seen = replay.batch(window, k, config.batch - half, key=drawing)
        shown = replay.draw(expert, half, key=choosing)
        agent, loss = fit(agent, seen, shown, tuning, terminates=terminates, key=fitting)
        if not moving:
            return agent, Info(loss, jnp.zeros_like(loss), jnp.zeros_like(loss))
        batch = both(seen, shown)
        hint = actor_critic.shown(batch, half) if tuning.cloning else None
        agent, info = actor_critic.ascend(agent, batch, loss, tuning, pace, hint, key=improving)
        return agent, Info(loss, info.q, info.entropy)

    keys = jax.random.split(jax.random.fold_in(state.key, k), settings.policy_steps)
    agent, told = jax.lax.scan(one, agent, keys)
    share = 1 / (1 + config.average * k.astype(jnp.float32))
    average = toward(state.average, agent.actor, share)
    state = State(agent, average, window, terminates, state.key, k)
    return state, jax.tree.map(lambda x: x[-1], told)


def both(seen: Transitions, shown: Transitions) -> Transitions:
    """Practised points, then the expert's."""
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), seen, shown)
