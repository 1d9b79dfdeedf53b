"""One policy step on a batch, for the learner (MDPO) and for the expert (SAC) alike.

The actor minimises E_{a~π}[ λ (log π − log π_old) + α log π − Q ]. With λ > 0 it is mirror
descent policy optimisation, Eq. 3: stay near π_old while Q rises. With λ = 0 and α tuned to a
target entropy it is Soft Actor-Critic. The learner adds c times how far π's mode misses what is
known of what to do: the expert's action at the expert's states, the clone's near them (`Hint`).
Nothing else differs.

MDPO as published (Tomar et al. 2022) samples the first term too. We take its closed form, the KL of
two normals: at π = π_old, where every iteration begins, the sampled one has a gradient of λ ε/σ per
sample whose mean is zero, noise that grows as the policy becomes sure of itself.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float32, Key

from understudy.learners.deep import adam
from understudy.learners.deep.actor import Actor, actor
from understudy.learners.deep.critic import Critic, critic
from understudy.learners.deep.networks import toward


@dataclass(frozen=True)
class Tuning:
    """The numbers of the policy step."""

    actor_hidden: tuple[int, ...] = (256, 256)
    critic_hidden: tuple[int, ...] = (256, 256)
    norm: bool = True  # layer norm in the critics
    actor_rate: float = 3e-4
    critic_rate: float = 3e-4
    gamma: float = 0.99
    tau: float = 0.005
    kl: float = 0.0  # λ
    cloning: float = 0.0  # c
    entropy: float = 0.05  # α; where it is tuned, its start
    target_entropy: float | None = None  # None: α stays


class Transitions(eqx.Module):
    """Points (s, a, s′). `terminated` says that the task ended there; a cut-off episode goes on.
    The learner's reward changes, and is asked for anew each time; the environment's own is kept
    where a share of it is paid."""

    obs: Float32[Array, "*points S"]
    action: Float32[Array, "*points A"]
    next_obs: Float32[Array, "*points S"]
    terminated: Bool[Array, "*points"]
    reward: Float32[Array, "*points"] | None = None


def transitions(practised: Mapping[str, np.ndarray], *, rewarded: bool = False) -> Transitions:
    """What was practised, without its reward unless that is asked for."""
    names = ("obs", "action", "next_obs", "terminated", *(("reward",) if rewarded else ()))
    return Transitions(**{name: jnp.asarray(practised[name]) for name in names})


def blank(observations: int, actions: int, count: int, *, rewarded: bool = False) -> Transitions:
    """Points of nothing, the shape of a segment."""
    obs = jnp.zeros((count, observations), jnp.float32)
    action = jnp.zeros((count, actions), jnp.float32)
    reward = jnp.zeros(count, jnp.float32) if rewarded else None
    return Transitions(obs, action, obs, jnp.zeros(count, bool), reward)


class Agent(eqx.Module):
    """Everything that the policy step moves."""

    actor: Actor
    anchor: Actor  # π_old
    critic: Critic
    target: Critic
    log_alpha: Float32[Array, ""]
    actor_moments: optax.OptState
    critic_moments: optax.OptState
    alpha_moments: optax.OptState


class Hint(NamedTuple):
    """What is known of what to do: an action at each point of a batch, and how much missing it
    costs; the last `of_expert` points are the expert's."""

    action: Float32[Array, "batch A"]
    weight: Float32[Array, " batch"]
    of_expert: int


class Info(eqx.Module):
    critic_loss: Float32[Array, ""]
    q: Float32[Array, ""]
    kl: Float32[Array, ""]  # E log π − log π_old
    entropy: Float32[Array, ""]  # −E log π
    missed: Float32[Array, ""]  # how far the mode is from the expert's actions, at its states


def init(
    observations: int, actions: int, tuning: Tuning, *, discrete: bool, key: Key[Array, ""]
) -> Agent:
    acting, judging = jax.random.split(key)
    pi = actor(observations, actions, tuning.actor_hidden, discrete=discrete, key=acting)
    Q = critic(observations, actions, tuning.critic_hidden, norm=tuning.norm, key=judging)
    log_alpha = log_of(tuning.entropy)
    return Agent(
        actor=pi,
        anchor=jax.tree.map(jnp.copy, pi),  # buffers of their own, as the step gives them away
        critic=Q,
        target=jax.tree.map(jnp.copy, Q),
        log_alpha=log_alpha,
        actor_moments=adam.moments(pi, tuning.actor_rate),
        critic_moments=adam.moments(Q, tuning.critic_rate),
        alpha_moments=adam.moments(log_alpha, tuning.actor_rate),
    )


def log_of(entropy: float) -> Float32[Array, ""]:
    """log α of a weight of the entropy, finite where that is zero."""
    return jnp.log(jnp.asarray(max(entropy, 1e-8), jnp.float32))


def renewed(agent: Agent, now: Bool[Array, ""]) -> Agent:
    """π_old is the policy of now, where it is time."""
    anchor = jax.tree.map(lambda old, new: jnp.where(now, new, old), agent.anchor, agent.actor)
    return eqx.tree_at(lambda a: a.anchor, agent, anchor)


def shown(batch: Transitions, of_expert: int) -> Hint:
    """At the expert's states of a batch, which are its last, the expert's own actions."""
    theirs = jnp.arange(len(batch.obs)) >= len(batch.obs) - of_expert
    return Hint(batch.action, theirs.astype(jnp.float32) / max(of_expert, 1), of_expert)


def improve(
    agent: Agent,
    batch: Transitions,
    reward: Float32[Array, " batch"],
    tuning: Tuning,
    pace: Float32[Array, ""] | float = 1.0,
    hint: Hint | None = None,
    *,
    key: Key[Array, ""],
) -> tuple[Agent, Info]:
    """One step of the critics and their targets, then of the actor and the temperature. `pace`
    shortens the actor's step."""
    looking, acting = jax.random.split(key)
    agent, critic_loss = evaluate(agent, batch, reward, tuning, key=looking)
    return ascend(agent, batch, critic_loss, tuning, pace, hint, key=acting)


def evaluate(
    agent: Agent,
    batch: Transitions,
    reward: Float32[Array, " batch"],
    tuning: Tuning,
    *,
    key: Key[Array, ""],
) -> tuple[Agent, Float32[Array, ""]]:
    """One step of the critics alone: the actor stays."""
    y = backup(agent, batch, reward, tuning, key=key)

    def loss(Q: Critic) -> Array:
        return jnp.mean((Q(batch.obs, batch.action[None])[:, 0] - y) ** 2)

    agent, value = fit(agent, loss, tuning)
    return follow(agent, tuning), value


def backup(
    agent: Agent,
    batch: Transitions,
    reward: Float32[Array, " batch"],
    tuning: Tuning,
    *,
    key: Key[Array, ""],
) -> Float32[Array, " batch"]:
    """r + γ E_{a′~π}[min Q′(s′, a′) − α log π(a′|s′)], nothing beyond a termination."""
    a = agent.actor.at(batch.next_obs).options(key=key)
    soft = agent.target.least(batch.next_obs, a.action) - jnp.exp(agent.log_alpha) * a.log
    V = jnp.sum(a.weight * soft, axis=0)
    return reward + tuning.gamma * jnp.where(batch.terminated, 0, V)


def fit(
    agent: Agent, loss: Callable[[Critic], Array], tuning: Tuning
) -> tuple[Agent, Float32[Array, ""]]:
    """A step of both critics down a loss."""
    value, slope = jax.value_and_grad(loss)(agent.critic)
    Q, moments = adam.descend(agent.critic, slope, agent.critic_moments, tuning.critic_rate)
    return eqx.tree_at(lambda a: (a.critic, a.critic_moments), agent, (Q, moments)), value


def follow(agent: Agent, tuning: Tuning) -> Agent:
    """The target critics, a little nearer to the critics."""
    target = toward(agent.target, agent.critic, tuning.tau)
    return eqx.tree_at(lambda a: a.target, agent, target)


def ascend(
    agent: Agent,
    batch: Transitions,
    critic_loss: Float32[Array, ""],
    tuning: Tuning,
    pace: Float32[Array, ""] | float,
    hint: Hint | None = None,
    *,
    key: Key[Array, ""],
) -> tuple[Agent, Info]:
    """A step of the actor, then of the temperature."""
    alpha, before = jnp.exp(agent.log_alpha), agent.anchor.at(batch.obs)

    def loss(pi: Actor) -> tuple[Array, tuple[Array, ...]]:
        here = pi.at(batch.obs)
        a = here.options(key=key)
        Q = agent.critic.least(batch.obs, a.action)
        kl = jnp.mean(here.kl(before)) if tuning.kl else jnp.zeros_like(alpha)
        missed = hinted = jnp.zeros_like(alpha)
        if hint is not None:
            each = here.miss(hint.action)
            missed, hinted = jnp.mean(each[-hint.of_expert :]), jnp.sum(hint.weight * each)

        def expect(x: Array) -> Array:
            return jnp.mean(jnp.sum(a.weight * x, axis=0))

        cost = tuning.kl * kl + expect(alpha * a.log - Q)  # Eq. 3
        return cost + tuning.cloning * hinted, (expect(Q), kl, -expect(a.log), missed)

    slope, (q, kl, entropy, missed) = jax.grad(loss, has_aux=True)(agent.actor)
    rate = pace * tuning.actor_rate
    pi, moments = adam.descend(agent.actor, slope, agent.actor_moments, rate)
    agent = eqx.tree_at(lambda a: (a.actor, a.actor_moments), agent, (pi, moments))
    return temper(agent, entropy, tuning), Info(critic_loss, q, kl, entropy, missed)


def usual_entropy(actions: int, *, discrete: bool) -> float:
    """What SAC aims at: −1 per dimension of a squashed Gaussian; of a choice, 0.3 log A."""
    return 0.3 * math.log(actions) if discrete else -float(actions)


def temper(agent: Agent, entropy: Float32[Array, ""], tuning: Tuning) -> Agent:
    """Where a target entropy is set, α rises while the policy's entropy is below it."""
    if tuning.target_entropy is None:
        return agent
    slope = entropy - tuning.target_entropy
    log_alpha, moments = adam.descend(
        agent.log_alpha, slope, agent.alpha_moments, tuning.actor_rate
    )
    return eqx.tree_at(lambda a: (a.log_alpha, a.alpha_moments), agent, (log_alpha, moments))
