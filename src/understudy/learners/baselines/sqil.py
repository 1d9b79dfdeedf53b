"""SQIL (Reddy et al. 2020): Soft Actor-Critic with a reward of 1 for what the expert did and of 0
for what was practised, whatever it was."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Key

from understudy.learners.baselines import soft
from understudy.learners.deep import actor_critic
from understudy.learners.deep.actor_critic import Agent, Transitions, Tuning


def fit(
    agent: Agent,
    seen: Transitions,
    shown: Transitions,
    tuning: Tuning,
    *,
    terminates: Bool[Array, ""],
    key: Key[Array, ""],
) -> tuple[Agent, Float32[Array, ""]]:
    """The critics' step towards r + γ V′, with r = 1 for the expert, if episodes end or not."""
    return actor_critic.evaluate(
        agent, soft.both(seen, shown), reward(seen, shown), tuning, key=key
    )


def reward(seen: Transitions, shown: Transitions) -> Float32[Array, " batch"]:
    """0 for practised points, 1 for the expert's."""
    return jnp.concatenate(
        [jnp.zeros(len(seen.obs), jnp.float32), jnp.ones(len(shown.obs), jnp.float32)]
    )


init, step = soft.init, soft.stepping(fit)
