"""IQ-Learn (Garg et al. 2021): Q alone, which is policy and reward at once.

A soft Q stands for the reward r(s,a) = Q(s,a) − γ V(s′), with V(s) = E_π[Q − α log π]: a change of
variables, as in the family that the paper contrasts with. The critics maximise

    E_E[r] − (1−γ) E_start[V] − c E_all[r²]

over the expert's points E and all points, half of them the expert's: the expert's reward up, the
value at the start down, and a χ² regulariser that keeps r small. Their code estimates the middle
term in two ways, by task:

- `v0`, where episodes can end (Hopper, Walker2d, Humanoid): (1−γ) E_E[V(s)], as though every state
  of the expert's were a start;
- `value`, in HalfCheetah and Ant: E_all[V(s) − γ V(s′)], which is the same for any distribution
  that is a policy's own. V(s′) is held still, so that whatever is practised comes to be paid about
  −1 a step. Where an episode can end, it is then best to end it at once.

So here it is `value`, and `v0` once an episode has ended early.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Key

from understudy.learners.baselines import soft
from understudy.learners.deep import actor_critic
from understudy.learners.deep.actor import Options
from understudy.learners.deep.actor_critic import Agent, Transitions, Tuning
from understudy.learners.deep.critic import Critic

CHI = 0.5  # c = 1/(4·CHI)


def fit(
    agent: Agent,
    seen: Transitions,
    shown: Transitions,
    tuning: Tuning,
    *,
    terminates: Bool[Array, ""],
    key: Key[Array, ""],
) -> tuple[Agent, Float32[Array, ""]]:
    """The critics' step down the objective."""
    here, ahead = jax.random.split(key)
    batch, alpha = soft.both(seen, shown), jnp.exp(agent.log_alpha)
    a = agent.actor.at(batch.obs).options(key=here)
    following = agent.actor.at(batch.next_obs).options(key=ahead)
    to_come = tuning.gamma * value(agent.target, batch.next_obs, following, alpha)
    to_come = jnp.where(batch.terminated, 0, to_come)  # nothing beyond a termination

    def loss(Q: Critic) -> Array:
        V = value(Q, batch.obs, a, alpha)
        r = Q(batch.obs, batch.action[None])[:, 0] - to_come
        v0 = (1 - tuning.gamma) * jnp.mean(V[:, len(seen.obs) :])
        middle = jnp.where(terminates, v0, jnp.mean(V - to_come))
        return objective(r[:, len(seen.obs) :], r, middle)

    agent, missed = actor_critic.fit(agent, loss, tuning)
    return actor_critic.follow(agent, tuning), missed


def value(
    Q: Critic, obs: Float32[Array, "batch S"], a: Options, alpha: Float32[Array, ""]
) -> Float32[Array, "twins batch"]:
    """V(s) = E_{a~π}[Q(s,a) − α log π(a|s)] of each twin by itself: theirs has a single critic."""
    return jnp.sum(a.weight * (Q(obs, a.action) - alpha * a.log), axis=1)


def objective(
    r_expert: Float32[Array, "twins shown"],
    r: Float32[Array, "twins batch"],
    middle: Float32[Array, ""],
) -> Float32[Array, ""]:
    """−E_E[r] + the middle term + E_all[r²]/(4·CHI), the mean of the twins."""
    return middle - jnp.mean(r_expert) + jnp.mean(r**2) / (4 * CHI)


init, step = soft.init, soft.stepping(fit)
