"""IQ-Learn (Garg et al. 2021): Q alone, which is policy and reward at once.

A soft Q stands for the reward r(s,a) = Q(s,a) − γ V(s′), with V(s) = E_π[Q − α log π]: a change of
variables, as in the family that the paper contrasts with. The critics maximise

    E_E[r] − (1−γ) E_E[V(s)] − c E_all[r²]

over the expert's points and all points: the expert's reward up, its value at the start down, and a
χ² regulariser that keeps r small. It is their objective for online learning, with targets for
V(s′), in the form that they use where episodes can end: the start is anywhere along the expert's
way (`v0` in their code). The other form, E_all[V(s) − γ V(s′)] in the middle, pays everything
practised about −1 a step, so that Hopper learns to fall at once.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Key

from understudy.learners.baselines import soft
from understudy.learners.deep import actor_critic
from understudy.learners.deep.actor_critic import Agent, Transitions, Tuning
from understudy.learners.deep.critic import Critic

CHI = 0.5  # c = 1/(4·CHI)


def fit(
    agent: Agent, seen: Transitions, shown: Transitions, tuning: Tuning, *, key: Key[Array, ""]
) -> tuple[Agent, Float32[Array, ""]]:
    """The critics' step down the objective."""
    here, ahead = jax.random.split(key)
    batch, alpha = soft.both(seen, shown), jnp.exp(agent.log_alpha)
    # γ V(s′), and nothing beyond a termination.
    to_come = actor_critic.backup(
        agent, batch, jnp.zeros(len(batch.obs), jnp.float32), tuning, key=ahead
    )
    a = agent.actor.at(shown.obs).options(key=here)

    def loss(Q: Critic) -> Array:
        soft_Q = Q(shown.obs, a.action) - alpha * a.log
        V = jnp.sum(a.weight * soft_Q, axis=1)  # (twins, shown)
        r = Q(batch.obs, batch.action[None])[:, 0] - to_come
        return objective(r[:, len(seen.obs) :], r, (1 - tuning.gamma) * V)

    agent, value = actor_critic.fit(agent, loss, tuning)
    return actor_critic.follow(agent, tuning), value


def objective(
    r_expert: Float32[Array, "twins shown"],
    r: Float32[Array, "twins batch"],
    start: Float32[Array, "twins shown"],
) -> Float32[Array, ""]:
    """−E_E[r] + E_E[(1−γ) V] + E_all[r²]/(4·CHI), the mean of the twins."""
    return jnp.mean(start) - jnp.mean(r_expert) + jnp.mean(r**2) / (4 * CHI)


init, step = soft.init, soft.stepping(fit)
