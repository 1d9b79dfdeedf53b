"""The deep learner, top to bottom: the paper's iteration with networks in place of tables.

`step` is practise, recall, reward, evaluate, policy, as in `tabular.step`. The reward is a
discriminator's, the mirror step is MDPO's (Tomar et al. 2022), and evaluation is a critic's; the
window is the same code. Practice happens outside, in the environment (`collect`).
"""

import dataclasses
import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Float32, Int, Key

from understudy.core import window as windows
from understudy.core.errors import UserError
from understudy.core.window import Gauge, Reuse, Shape, Window
from understudy.learners.deep import actor_critic, adam, replay
from understudy.learners.deep import discriminator as discriminators
from understudy.learners.deep import lead as leads
from understudy.learners.deep import turns as taking
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.actor_critic import Agent, Hint, Transitions, Tuning
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.discriminator import Discriminator
from understudy.learners.deep.lead import Judging, Lead
from understudy.learners.deep.networks import toward
from understudy.learners.deep.turns import Turns
from understudy.theory.bounds import largest_window

FIRST_ENTROPY = 0.05  # where its weight is tuned


RewardPlayer = tuple[Discriminator, optax.OptState]  # the reward player, between two of its steps


class Settings(NamedTuple):
    """A config made definite: everything that shapes the compiled step. Hashable."""

    config: DeepConfig
    tuning: Tuning
    fresh: int  # interactions per iteration, of all lanes
    slots: int  # segments kept
    K: int  # iterations in all
    c: float  # N(k) = ⌊c·kᵅ⌋
    alpha: float
    lag: tuple[float, ...]  # given weights by slot, most recent first
    beta: Shape
    adaptive: tuple[int, int] | None
    policy_steps: int  # per iteration
    audition: int  # each so many episodes of a lane; 0: none
    unit: float = 1.0  # of the environment's reward, where a share of it is paid


class State(eqx.Module):
    """Everything a run needs to go on, but for the environment."""

    agent: Agent
    average: Actor  # of the latest policies' weights
    judge: Discriminator
    moments: optax.OptState  # of the discriminator
    window: Window
    gauge: Gauge
    terminates: Bool[Array, ""]  # an episode has ended early
    turns: Turns  # who practises
    lead: Lead  # who is handed out
    key: Key[Array, ""]
    k: Int[Array, ""]  # updates done


class Info(eqx.Module):
    """What one iteration saw: the last of its steps."""

    window: Int[Array, ""]  # N(k)
    drift: Float32[Array, ""]  # E TV(π_k ‖ π_{k−1}), by Pinsker's bound
    discriminator_loss: Float32[Array, ""]
    expert_logit: Float32[Array, ""]
    agent_logit: Float32[Array, ""]
    reward: Float32[Array, ""]
    critic_loss: Float32[Array, ""]
    q: Float32[Array, ""]
    kl: Float32[Array, ""]
    entropy: Float32[Array, ""]
    missed: Float32[Array, ""]  # of the expert's actions
    held: Float32[Array, ""]  # how much the clone's word weighs at what was practised
    lead: Bool[Array, ""]  # the average is handed out, and not the clone
    lead_since: Int[Array, ""]  # the interactions after which that was decided
    clone_earned: Float32[Array, ""]  # learned reward an episode, in its auditions
    earned: Float32[Array, ""]  # the same of the average's latest auditions


def resolve(config: DeepConfig) -> Settings:
    """Make a config definite."""
    adaptive = config.window.strip().lower() == "adaptive"
    # Prop. 4.7 asks N = o(√K), so that is where an adaptive window ends.
    most = largest_window(config.interactions)
    c, alpha = (float(most), 0.0) if adaptive else windows.parse(config.window)
    fresh = config.fresh
    if fresh is None:
        fresh = windows.owed(config.points, c, alpha)
    fresh *= config.envs
    if fresh > config.interactions:  # or more would be practised than was asked for
        raise UserError(
            f"{config.interactions:,} interactions are less than one iteration of {fresh:,} "
            f"({config.envs:,} environments of {fresh // config.envs:,} steps each); allow more "
            f"with --interactions, or use fewer with --envs or --fresh."
        )
    K = max(1, config.interactions // fresh)
    kept = config.interactions if config.replay is None else min(config.replay, config.interactions)
    slots = max(1, min(K, kept // fresh))
    N = windows.largest(c, alpha, K)
    if config.replay is not None and alpha == 0 and not adaptive and N > slots:
        raise UserError(
            f"--replay {config.replay} keeps {slots} policies of {fresh} interactions, fewer than "
            f"the window's {N}; keep more."
        )
    # The floor of an adaptive window, as in the tabular learner: four times the points of an
    # update, and never fewer policies than supply one.
    least = max(1, min(slots, 4 * config.points // fresh))
    return Settings(
        config=config,
        tuning=Tuning(
            actor_hidden=(config.hidden,)
            * (config.clone_depth if config.warm_start == "clone" else 2),
            critic_hidden=(config.hidden, config.hidden),
            norm=config.layer_norm,
            actor_rate=config.actor_rate,
            critic_rate=config.critic_rate,
            gamma=config.gamma,
            tau=config.tau,
            kl=config.kl,
            cloning=config.cloning,
            entropy=FIRST_ENTROPY if config.entropy is None else config.entropy,
        ),
        fresh=fresh,
        slots=slots,
        K=K,
        c=c,
        alpha=alpha,
        lag=tuple(windows.lags(config.beta, config.window, slots)),
        beta=config.beta if isinstance(config.beta, str) else "given",
        adaptive=(least, max(least, min(most, slots))) if adaptive else None,
        policy_steps=fresh if config.policy_steps is None else config.policy_steps,
        # Without a clone the average stands alone, and there is nothing to decide.
        audition=config.audition if config.warm_start == "clone" else 0,
    )


def measured(settings: Settings, expert: Transitions) -> Settings:
    """The settings with the unit of the environment's reward: its mean size in what the expert
    showed."""
    if expert.reward is None:
        return settings
    return settings._replace(unit=float(jnp.mean(jnp.abs(expert.reward))))


def sized(settings: Settings, actions: int, *, discrete: bool) -> Settings:
    """The settings for so many actions, which the entropy to aim at depends on."""
    if settings.config.entropy is not None:
        return settings
    target = actor_critic.usual_entropy(actions, discrete=discrete)
    tuning = dataclasses.replace(settings.tuning, target_entropy=target)
    return settings._replace(tuning=tuning)


def init(
    settings: Settings, observations: int, actions: int, *, discrete: bool, key: Key[Array, ""]
) -> State:
    config = settings.config
    playing, judging, going = jax.random.split(key, 3)
    width = (config.discriminator_hidden,) * 2
    judge = discriminators.discriminator(
        observations + actions, width, spectral=config.spectral_norm, key=judging
    )
    agent = actor_critic.init(
        observations, actions, settings.tuning, discrete=discrete, key=playing
    )
    return State(
        agent=agent,
        average=jax.tree.map(jnp.copy, agent.actor),
        judge=judge,
        moments=adam.moments(judge, config.discriminator_rate),
        window=windows.empty(
            actor_critic.blank(
                observations, actions, settings.fresh, rewarded=config.task_reward > 0
            ),
            settings.slots,
        ),
        gauge=Gauge(drift=jnp.zeros(()), error=jnp.ones(())),
        terminates=jnp.zeros((), bool),
        turns=taking.first(config.envs, every=settings.audition),
        lead=undecided(agent.actor, settings),
        key=going,
        k=jnp.zeros((), jnp.int32),
    )


def undecided(clone: Actor, settings: Settings) -> Lead:
    """A lead of which nothing is known yet."""
    return leads.first(clone, latest=settings.config.heard, alone=not settings.audition)


def begin_with(state: State, clone: Actor, settings: Settings) -> State:
    """A run that begins as this policy."""
    copies = (clone, *(jax.tree.map(jnp.copy, clone) for _ in range(2)))
    state = eqx.tree_at(lambda s: (s.average, s.agent.actor, s.agent.anchor), state, copies)
    return dataclasses.replace(state, lead=undecided(clone, settings))


@functools.partial(jax.jit, static_argnames=("settings", "moving"), donate_argnums=0)
def step(
    state: State,
    practised: Transitions,
    expert: Transitions,
    *,
    settings: Settings,
    ended: Bool[Array, " fresh"],
    moving: bool = True,
) -> tuple[State, Info]:
    """Iteration k on what was just practised; `ended` says where an episode did. Unless `moving`,
    the actor waits for its critics."""
    before = state.agent.actor
    rewarding, improving = jax.random.split(jax.random.fold_in(state.key, state.k + 1))

    state = remember(state, practised)  # practise
    N, beta = recall(state, settings)  # recall
    state, judged = reward(state, beta, expert, settings, key=rewarding)  # reward
    state, played = policy(state, expert, settings, moving, key=improving)  # evaluate, policy
    state = hand_out(state, ended, settings)  # Cor. 4.9

    gauge, drift = measure(state.gauge, before, state.agent.actor, practised, settings)
    lead = state.lead
    told = {"lead": lead.average, "lead_since": settings.fresh * lead.since,
            "clone_earned": lead.clone_earned, "earned": lead.earned}  # fmt: skip
    state = dataclasses.replace(state, gauge=gauge)
    return state, Info(window=N, drift=drift, **judged, **played, **told)


def remember(state: State, practised: Transitions) -> State:
    """The state of iteration k, with what was practised in its window."""
    return dataclasses.replace(
        state,
        window=windows.append(state.window, practised, label=state.k),
        terminates=state.terminates | jnp.any(practised.terminated),
        k=state.k + 1,
    )


def recall(state: State, settings: Settings) -> tuple[Int[Array, ""], Float[Array, " slots"]]:
    """N(k), and the weights of its policies by lag."""
    c, alpha = jnp.asarray(settings.c, float), jnp.asarray(settings.alpha, float)
    recent = Reuse(c, alpha, jnp.asarray(settings.lag))
    N = windows.length(recent, settings.adaptive, state.gauge, state.k)
    return N, windows.weights(recent, settings.beta, N, state.gauge)


def reward(
    state: State, beta: Array, expert: Transitions, settings: Settings, *, key: Key[Array, ""]
) -> tuple[State, dict[str, Array]]:
    """The reward player's steps: m points of the window against m of the expert's."""
    config = settings.config

    def one(judging: RewardPlayer, key: Array) -> tuple[RewardPlayer, Array]:
        judge, moments = judging
        recalling, choosing, losing = jax.random.split(key, 3)
        recalled, _ = windows.recall(state.window, beta, state.k, config.points, key=recalling)
        seen = discriminators.points(recalled, config.absorbing)
        shown = discriminators.points(
            replay.draw(expert, config.points, key=choosing), config.absorbing
        )

        def loss(judge: Discriminator) -> Array:
            return discriminators.objective(
                judge,
                shown,
                seen,
                loss=config.loss,
                mixup=config.mixup,
                penalty=config.penalty,
                centre=config.penalty_centre,
                key=losing,
            )

        value, slope = jax.value_and_grad(loss)(judge)
        told = jnp.stack([value, jnp.mean(judge(shown)), jnp.mean(judge(seen))])
        return adam.descend(judge, slope, moments, config.discriminator_rate), told

    keys = jax.random.split(key, config.reward_steps)
    (judge, moments), told = jax.lax.scan(one, (state.judge, state.moments), keys)
    names = ("discriminator_loss", "expert_logit", "agent_logit")
    state = dataclasses.replace(state, judge=judge, moments=moments)
    return state, dict(zip(names, told[-1], strict=True))


def policy(
    state: State, expert: Transitions, settings: Settings, moving: bool, *, key: Key[Array, ""]
) -> tuple[State, dict[str, Array]]:
    """The policy player's steps, each on a batch relabelled by the reward of now."""
    config, tuning, k = settings.config, settings.tuning, state.k
    of_expert = round(config.demo_share * config.batch)
    steps, slower = settings.policy_steps, pace(settings, k)

    def one(agent: Agent, step: tuple[Array, Array]) -> tuple[Agent, dict[str, Array]]:
        count, key = step
        agent = actor_critic.renewed(agent, count % (config.anchor or steps) == 0)
        drawing, choosing, improving = jax.random.split(key, 3)
        batch = replay.batch(state.window, k, config.batch - of_expert, key=drawing)
        if of_expert:
            shown = replay.draw(expert, of_expert, key=choosing)
            batch = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), batch, shown)
        logit = state.judge(discriminators.points(batch, config.absorbing))
        mu = discriminators.reward(logit, config.reward, state.terminates)
        mu = discriminators.paid(mu, batch.reward, config.task_reward, settings.unit)
        if moving:
            hint, held = known(state, batch, of_expert, slower, settings)
            agent, info = actor_critic.improve(
                agent, batch, mu, tuning, slower, hint, key=improving
            )
            told = {**vars(info), "held": held}
        else:
            agent, loss = actor_critic.evaluate(agent, batch, mu, tuning, key=improving)
            zero = jnp.zeros_like(loss)
            names = ("q", "kl", "entropy", "missed", "held")
            told = {"critic_loss": loss, **dict.fromkeys(names, zero)}
        return agent, {"reward": jnp.mean(mu), **told}

    counts = (k - 1) * steps + jnp.arange(steps)
    agent, told = jax.lax.scan(one, state.agent, (counts, jax.random.split(key, steps)))
    return dataclasses.replace(state, agent=agent), jax.tree.map(lambda x: x[-1], told)


def known(
    state: State,
    batch: Transitions,
    of_expert: int,
    left: Float32[Array, ""],
    settings: Settings,
) -> tuple[Hint | None, Float32[Array, ""]]:
    """What is known of what to do: at the expert's states its own actions, and near them the
    clone's. How near is for the reward player to say: a practised state counts min(1, D/(1−D)) at
    the clone's action there, which is one where that looks like the expert's, and nothing where the
    clone has gone astray. Its word fades with the actor's rate (`left`), for it errs where the
    expert does not. Also how much of the clone's word is left, on average."""
    config, none = settings.config, jnp.zeros((), jnp.float32)
    if not (config.cloning and of_expert):
        return None, none
    hint, practised = actor_critic.shown(batch, of_expert), len(batch.obs) - of_expert
    if config.warm_start == "none":
        return hint, none
    action = state.lead.clone.at(batch.obs).mode()
    there = discriminators.points(dataclasses.replace(batch, action=action), config.absorbing)
    near = left * jnp.minimum(1, jnp.exp(state.judge(there)))  # D/(1−D) is e^ℓ
    theirs = jnp.arange(len(near)) < practised
    weight = jnp.where(theirs, near / len(near), hint.weight)
    action = jnp.where(theirs[:, None], action, hint.action)
    return Hint(action, weight, of_expert), jnp.mean(near[:practised])


def pace(settings: Settings, k: Int[Array, ""] | int) -> Float32[Array, ""]:
    """What is left of the actor's rate, and of the noise in practice, at iteration k."""
    progress = jnp.asarray(k / settings.K, jnp.float32)
    return 1 - (1 - settings.config.final_rate) * progress


def hand_out(state: State, ended: Bool[Array, " fresh"], settings: Settings) -> State:
    """The running average of the policies' weights, as the mixture of Cor. 4.9, for single iterates
    jump about; whose turn it is to practise; and whether clone or average is handed out."""
    config, k = settings.config, state.k
    share = 1 / (1 + config.average * k.astype(jnp.float32))
    average = toward(state.average, state.agent.actor, share)
    lead, every, over = state.lead, settings.audition, ended.reshape(-1, config.envs)
    if every:
        by = Judging(
            state.window, state.judge, state.terminates, config.envs, config.reward,
            config.absorbing, config.points, config.task_reward, settings.unit,
        )  # fmt: skip
        player, begun = taking.during(state.turns, over, k, every=every)
        lead = leads.review(lead, player, begun, over, k, by)
    turns = taking.after(state.turns, over, k, leads.next_heard(lead), every=every)
    return dataclasses.replace(state, average=average, turns=turns, lead=lead)


def measure(
    gauge: Gauge, before: Actor, after: Actor, practised: Transitions, settings: Settings
) -> tuple[Gauge, Float32[Array, ""]]:
    """How far the policy moved, and what an adaptive window makes of it.

    As in the tabular learner, with the effective horizon 1/(1−γ): the drift of occupancies is at
    most 2 E TV/(1−γ) per update (Lemma 4.2), and a segment of n points errs by about 1/√n.
    """
    tv = jnp.mean(after.at(practised.obs).tv(before.at(practised.obs)))
    if settings.adaptive is None and settings.beta != "optimal":
        return gauge, tv
    drift = 2 * tv.astype(float) / (1 - settings.tuning.gamma)
    new = Gauge(drift, jnp.asarray(settings.fresh**-0.5, float))
    return jax.tree.map(lambda old, new: old + (new - old) / 20, gauge, new), tv
