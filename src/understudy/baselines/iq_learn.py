"""IQ-Learn (Garg et al. 2021): Q alone, which is policy and reward at once.

A soft Q stands for the reward r(s,a) = Q(s,a) − γ V(s′), with V(s) = E_π[Q − α log π]: a change of
variables, as in the family that the paper contrasts with. The critics maximise

    E_E[r] − E_all[V(s) − γ V(s′)] − c E_all[r²]

over the expert's points and all points: the expert's reward up, everyone's value down, and a χ²
regulariser that keeps r small. It is their objective for online learning, with targets for V(s′).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Key

from understudy.baselines import soft
from understudy.deep import actor_critic as players
from understudy.deep.actor_critic import Agent, Transitions, Tuning
from understudy.deep.critic import Critic

CHI = 0.5  # c = 1/(4·CHI)


def fit(
    agent: Agent, seen: Transitions, shown: Transitions, tuning: Tuning, *, key: Key[Array, ""]
) -> tuple[Agent, Float32[Array, ""]]:
    """The critics' step down the objective."""
    here, ahead = jax.random.split(key)
    batch, alpha = soft.both(seen, shown), jnp.exp(agent.log_alpha)
    of_expert = jnp.arange(len(batch.obs)) >= len(seen.obs)
    # γ V(s′), and nothing beyond a termination.
    to_come = players.backup(
        agent, batch, jnp.zeros(len(batch.obs), jnp.float32), tuning, key=ahead
    )
    a = agent.actor.at(batch.obs).options(key=here)

    def loss(Q: Critic) -> Array:
        soft_Q = Q(batch.obs, a.action) - alpha * a.log
        V = jnp.sum(a.weight * soft_Q, axis=1)  # (twins, batch)
        r = Q(batch.obs, batch.action[None])[:, 0] - to_come
        return objective(r, V - to_come, of_expert)

    agent, value = players.fit(agent, loss, tuning)
    return players.follow(agent, tuning), value


def objective(
    r: Float32[Array, "twins batch"],
    gain: Float32[Array, "twins batch"],
    of_expert: Array,
) -> Float32[Array, ""]:
    """−E_E[r] + E_all[V − γ V′] + E_all[r²]/(4·CHI), the mean of the twins."""
    shown = jnp.sum(jnp.where(of_expert, r, 0), axis=-1) / jnp.sum(of_expert)
    each = -shown + jnp.mean(gain, axis=-1) + jnp.mean(r**2, axis=-1) / (4 * CHI)
    return jnp.mean(each)


init, step = soft.init, soft.stepping(fit)
