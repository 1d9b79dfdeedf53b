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
from jaxtyping import Array, Bool, Float32, Int, Key

from understudy.core import window as windows
from understudy.core.errors import UserError
from understudy.core.window import Gauge, Reuse, Shape, Window
from understudy.learners.deep import actor_critic, adam, clone, drill, replay
from understudy.learners.deep import discriminator as discriminators
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.actor_critic import Agent, Transitions, Tuning
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.discriminator import Discriminator
from understudy.learners.deep.networks import toward
from understudy.theory.bounds import largest_window

FIRST_ENTROPY = 0.05  # where its weight is tuned
TELLS_APART = 0.2  # in logits, expert and clone: from there on a clone is not worth holding to
PACE = 1 / 16  # of the actor while a clone is held to, and as much tighter the hold
DRILL_PACE = 1 / 4  # the same in a short run, with the clone's stumbles to learn from
LOST = 1.0  # from there on a clone is of no use, nor are batches full of what it cannot do
LOOKED_AT = 2_048  # points of each, to see how far apart they are
ANEW = 50_000  # interactions to learn anew from a poor clone; with fewer it is kept to all the same


Judging = tuple[Discriminator, optax.OptState]  # the reward player, between two of its steps


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


class State(eqx.Module):
    """Everything a run needs to go on, but for the environment."""

    agent: Agent
    average: Actor  # of the latest policies' weights: the one that is measured and kept
    judge: Discriminator
    moments: optax.OptState  # of the discriminator
    window: Window
    gauge: Gauge
    terminates: Bool[Array, ""]  # an episode has ended early
    apart: Float32[Array, ""]  # how well the discriminator tells the clone from the expert
    strayed: Int[Array, " lanes"]  # steps for which practice has been unlike the expert's
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
            actor_hidden=(config.hidden,) * (clone.DEPTH if config.warm_start == "clone" else 2),
            critic_hidden=(config.hidden, config.hidden),
            norm=config.layer_norm,
            actor_rate=config.actor_rate,
            critic_rate=config.critic_rate,
            gamma=config.gamma,
            tau=config.tau,
            kl=config.kl,
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
    )


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
            actor_critic.blank(observations, actions, settings.fresh), settings.slots
        ),
        gauge=Gauge(drift=jnp.zeros(()), error=jnp.ones(())),
        terminates=jnp.zeros((), bool),
        apart=jnp.full((), TELLS_APART, jnp.float32),
        strayed=jnp.zeros(config.envs, jnp.int32),
        key=going,
        k=jnp.zeros((), jnp.int32),
    )


def begin_with(state: State, actor: Actor) -> State:
    """A run that starts from this actor."""
    copies = (actor, *(jax.tree.map(jnp.copy, actor) for _ in range(2)))
    return eqx.tree_at(lambda s: (s.agent.actor, s.agent.anchor, s.average), state, copies)


def step(
    state: State,
    practised: Transitions,
    expert: Transitions,
    *,
    settings: Settings,
    moving: bool = True,
) -> tuple[State, Info]:
    """Iteration k on what π_{k−1} has just practised. Unless `moving`, the actor waits for its
    critics."""
    config = settings.config
    if drilled(config):
        settings = settings._replace(config=drill.drilling(config))
    # Where episodes end early, the expert's points say what staying alive is worth: they stay.
    elif moving and lost(state, config) and not bool(state.terminates):
        state, settings = let_go(state, settings)
    return iterate(state, practised, expert, settings=settings, moving=moving)


def drilled(config: DeepConfig) -> bool:
    """Whether a clone is kept to for want of time, and practises as in `drill`."""
    return config.warm_start == "clone" and config.interactions < ANEW


def lost(state: State, config: DeepConfig) -> bool:
    """Whether a clone is of no use."""
    return config.warm_start == "clone" and float(state.apart) >= LOST


def let_go(state: State, settings: Settings) -> tuple[State, Settings]:
    """Away from a clone that is lost: a weaker pull to the policy before, and that one further
    back, more entropy, batches of the agent's own practice, and twice as many of them."""
    config = settings.config
    config = dataclasses.replace(
        drill.twice_the_steps(config),
        kl=config.kl / 5,
        anchor=10 * config.anchor,
        demo_share=config.demo_share / 8,
    )
    tuning = dataclasses.replace(settings.tuning, kl=config.kl)
    if config.entropy is not None:
        log_alpha = actor_critic.log_of(2.5 * config.entropy)
        state = eqx.tree_at(lambda s: s.agent.log_alpha, state, log_alpha)
    return state, settings._replace(config=config, tuning=tuning)


@functools.partial(jax.jit, static_argnames=("settings", "moving"), donate_argnums=0)
def iterate(
    state: State,
    practised: Transitions,
    expert: Transitions,
    *,
    settings: Settings,
    moving: bool,
) -> tuple[State, Info]:
    """Practise, recall, reward, evaluate, policy."""
    before, k = state.agent.actor, state.k + 1
    rewarding, improving, looking = jax.random.split(jax.random.fold_in(state.key, k), 3)

    state = remember(state, practised)  # practise
    recent = reuse(settings)
    N = windows.length(recent, settings.adaptive, state.gauge, k)
    beta = windows.weights(recent, settings.beta, N, state.gauge)
    state, judged = reward(state, beta, expert, settings, key=rewarding)  # recall, reward
    if settings.config.warm_start == "clone" and not moving:
        apart = tell_apart(state, beta, expert, settings, key=looking)
        state = dataclasses.replace(state, apart=apart)
    if drilled(settings.config):
        state = look_after(state, practised, settings)
    state, played = policy(state, expert, settings, moving, key=improving)  # evaluate, policy

    gauge, drift = measure(state.gauge, before, state.agent.actor, practised, settings)
    # Single iterates jump about; their running mean does not, as the mixture of Cor. 4.9.
    share = 1 / (1 + settings.config.average * k.astype(jnp.float32))
    average = toward(state.average, state.agent.actor, share)
    state = dataclasses.replace(state, gauge=gauge, average=average)
    return state, Info(window=N, drift=drift, **judged, **played)


def remember(state: State, practised: Transitions) -> State:
    """The state of iteration k, with what was practised in its window."""
    return dataclasses.replace(
        state,
        window=windows.append(state.window, practised, label=state.k),
        terminates=state.terminates | jnp.any(practised.terminated),
        k=state.k + 1,
    )


def reuse(settings: Settings) -> Reuse:
    c, alpha = jnp.asarray(settings.c, float), jnp.asarray(settings.alpha, float)
    return Reuse(c, alpha, jnp.asarray(settings.lag))


def reward(
    state: State, beta: Array, expert: Transitions, settings: Settings, *, key: Key[Array, ""]
) -> tuple[State, dict[str, Array]]:
    """The reward player's steps: m points of the window against m of the expert's."""
    config = settings.config

    def one(judging: Judging, key: Array) -> tuple[Judging, Array]:
        judge, moments = judging
        recalling, choosing, losing = jax.random.split(key, 3)
        recalled, _ = windows.recall(state.window, beta, state.k, config.points, key=recalling)
        seen = points(recalled, config.absorbing)
        shown = points(draw(expert, config.points, key=choosing), config.absorbing)

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


def tell_apart(
    state: State, beta: Array, expert: Transitions, settings: Settings, *, key: Key[Array, ""]
) -> Float32[Array, ""]:
    """How far the discriminator tells the window from the expert: the difference of median logits.
    A mean would be ruled by one fall, after which the rest of an episode is unlike the expert."""
    recalling, choosing = jax.random.split(key)
    recalled, _ = windows.recall(state.window, beta, state.k, LOOKED_AT, key=recalling)
    both = draw(expert, LOOKED_AT, key=choosing), recalled
    shown, seen = (state.judge(points(x, settings.config.absorbing)) for x in both)
    return jnp.median(shown) - jnp.median(seen)


def look_after(state: State, practised: Transitions, settings: Settings) -> State:
    """Which lanes have gone astray, and for how long."""
    config = settings.config
    logits = state.judge(points(practised, config.absorbing)).reshape(-1, config.envs)
    return dataclasses.replace(state, strayed=drill.strayed(state.strayed, logits))


def policy(
    state: State, expert: Transitions, settings: Settings, moving: bool, *, key: Key[Array, ""]
) -> tuple[State, dict[str, Array]]:
    """The policy player's steps, each on a batch relabelled by the reward of now."""
    config, tuning, k = settings.config, settings.tuning, state.k
    of_expert = round(config.demo_share * config.batch)
    progress = (k / settings.K).astype(jnp.float32)
    # A clone that the warmed-up discriminator takes for the expert is held to, ever more loosely,
    # for the critics know its surroundings alone; and its steps are small: Adam's are as long as
    # its rate, however strong the KL's pull.
    short = drilled(config)
    held, careful = (state.apart < TELLS_APART) | short, DRILL_PACE if short else PACE
    pace = jnp.where(held, careful, 1) * (1 - (1 - config.final_rate) * progress)
    grip = jnp.where(held, config.loosen**progress / careful, 1)
    renew = (k % config.anchor == 0) & ~held
    agent = state.agent
    anchor = jax.tree.map(lambda old, new: jnp.where(renew, new, old), agent.anchor, agent.actor)
    agent = eqx.tree_at(lambda a: a.anchor, agent, anchor)  # π_{k−1}, one before, or the clone

    def one(agent: Agent, key: Array) -> tuple[Agent, dict[str, Array]]:
        drawing, choosing, improving = jax.random.split(key, 3)
        batch = replay.batch(state.window, k, config.batch - of_expert, key=drawing)
        if of_expert:
            shown = draw(expert, of_expert, key=choosing)
            batch = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), batch, shown)
        logit = state.judge(points(batch, config.absorbing))
        mu = discriminators.reward(logit, config.reward, state.terminates)
        if moving:
            agent, info = actor_critic.improve(agent, batch, mu, tuning, pace, grip, key=improving)
            told = vars(info)
        else:
            agent, loss = actor_critic.evaluate(agent, batch, mu, tuning, key=improving)
            zero = jnp.zeros_like(loss)
            told = {"critic_loss": loss, "q": zero, "kl": zero, "entropy": zero}
        return agent, {"reward": jnp.mean(mu), **told}

    agent, told = jax.lax.scan(one, agent, jax.random.split(key, config.policy_steps))
    return dataclasses.replace(state, agent=agent), jax.tree.map(lambda x: x[-1], told)


def points(batch: Transitions, absorbing: bool) -> Float32[Array, "points X"]:
    """What the discriminator sees: (s, a). In an absorbing state nothing depends on the action."""
    action = batch.action * (1 - batch.obs[:, -1:]) if absorbing else batch.action
    return jnp.concatenate([batch.obs, action], axis=-1)


def draw(expert: Transitions, count: int, *, key: Key[Array, ""]) -> Transitions:
    """Expert points, uniformly."""
    i = jax.random.randint(key, (count,), 0, expert.obs.shape[0])
    return jax.tree.map(lambda x: x[i], expert)


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
