"""What a user asks of the deep learner and of the expert. No JAX here: `--help` reads it."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

from understudy.core import memory
from understudy.core.errors import UserError
from understudy.learners.config import check_beta

Preset = Literal["fast", "paper", "paper-swapped"]
MOST_LAYERS = 100


@dataclass(frozen=True)
class DeepConfig:
    """How to learn with networks. The defaults are those of the chosen preset."""

    interactions: int = 100_000
    """Environment steps in all."""
    window: str = "all"
    """Policies to reuse for the reward: 'adaptive', N, 'all', or a growing 'c*k^a'."""
    beta: Literal["uniform", "geometric", "triangular", "optimal"] | tuple[float, ...] = "uniform"
    """Weights of the policies: a shape, or N numbers, most recent first."""
    points: int = 256
    """Data points m of the agent, and as many of the expert, per reward update."""
    fresh: int | None = 8
    """New interactions per iteration, of each environment; None: max(1, m // N), the equal
    estimation budget."""
    replay: int | None = None
    """Interactions kept for the policy's steps; None: all."""
    envs: int = 1
    """Copies of the environment stepped side by side."""
    reward_steps: int = 4
    """Discriminator steps per iteration."""
    policy_steps: int | None = 12
    """MDPO steps per iteration; None: one for each new interaction."""
    batch: int = 64
    """Points per MDPO step."""
    kl: float = 0.5
    """How strongly the policy is held to the one before (1 / step size of the mirror step)."""
    anchor: int | None = None
    """The one before is renewed every so many policy steps; None: with every iteration."""
    cloning: float = 1.0
    """How strongly the policy is held to the expert's actions at the expert's states, those in its
    batches; and, after a clone, to the clone's at practised states where they look like the
    expert's, which falls with the actor's rate."""
    average: float = 0.1
    """The policy that is judged and handed out averages the weights over this latest part of the
    run; 0: it is the last."""
    noise: float = 0.4
    """Spread of the noise on the newest policy's actions in practice, in halves of their range;
    each episode has a share of it, from 0 to 1. Nothing where actions are a list."""
    audition: int = 4
    """After a clone, each so many episodes of practice one is played as it would be handed out,
    without noise; 0: none is, and the average of the newest is handed out unheard."""
    heard: int = 3
    """Episodes of each, the latest, by which clone and average are judged: the clone is handed out
    where each of its own earned more of the learned reward than any of the average's."""
    entropy: float | None = 0.02
    """Weight of the policy's entropy; None: tuned as in SAC, to −1 per action dimension."""
    gamma: float = 0.98
    """Discount."""
    tau: float = 0.02
    """How fast the target critics follow."""
    hidden: int = 256
    """Width of the hidden layers of actor and critics."""
    layer_norm: bool = True
    """Layer norm in the critics."""
    actor_rate: float = 6e-4
    """Adam's rate for the actor."""
    final_rate: float = 0.01
    """What is left of it, of the noise and of the clone's word, at the end, as a share; all three
    fall linearly."""
    critic_rate: float = 6e-4
    """Adam's rate for the critics."""
    discriminator_hidden: int = 64
    """Width of the two hidden layers of the discriminator."""
    discriminator_rate: float = 1e-4
    """Adam's rate for the discriminator."""
    loss: Literal["logistic", "linear"] = "logistic"
    """The discriminator's loss: cross-entropy, or the theory's difference of means."""
    reward: Literal["auto", "logit", "positive", "negative"] = "auto"
    """log D − log(1−D), −log(1−D), log D; auto: positive once an episode ended early, or logit."""
    task_reward: float = 0.0
    """Share of the environment's own reward, in units of the demonstrations' mean size, in what the
    policy is paid; the rest is the learned reward's. 0: it is never learned from."""
    penalty: float = 1.0
    """Weight of the discriminator's gradient penalty."""
    penalty_centre: float = 0.0
    """The slope that the penalty asks for: 0, or the 1 of WGAN-GP."""
    mixup: bool = False
    """Train the discriminator on mixtures of expert and agent."""
    spectral_norm: bool = False
    """Divide each layer of the discriminator by its largest singular value."""
    demo_share: float = 0.25
    """Share of each policy batch drawn from the demonstrations."""
    absorbing: bool = False
    """Give ended episodes a state of their own, which the discriminator sees (DAC)."""
    normalise: bool = True
    """Standardise observations by the demonstrations' mean and deviation."""
    warm_start: Literal["none", "clone"] = "clone"
    """Begin from scratch, or with the actor cloned from the demonstrations."""
    warmup: int = 2_000
    """First interactions, in which discriminator and critics learn and the actor stays."""
    clone_depth: int = 3
    """Hidden layers of an actor that is cloned; of another, two."""
    clone_steps: int = 3
    """Adam steps of cloning for each transition shown."""
    clone_least: int = 4_000
    """Steps of cloning, however few transitions there are."""
    clone_most: int = 20_000
    """Steps of cloning, however many there are; the smaller of the two bounds holds."""
    clone_batch: int = 256
    """Points per step of cloning."""
    clone_rate: float = 1e-3
    """Adam's rate for cloning; it falls to zero as a cosine."""
    clone_blur: float = 0.02
    """Noise on the standardised observations that are cloned."""
    clone_held_out: float = 0.1
    """Share of the transitions that is not cloned, but tells how far the clone misses: its
    spread."""
    marks: int = 20
    """How often the policy is measured along the way."""
    episodes: int = 10
    """Deterministic episodes per measurement."""


PAPER = DeepConfig(
    window="32",
    points=2_048,
    fresh=None,
    reward_steps=1,
    policy_steps=None,
    batch=256,
    kl=0.1,
    anchor=10,
    cloning=0.0,
    average=0.0,
    noise=0.0,
    audition=0,
    entropy=0.0,
    gamma=0.99,
    tau=0.01,
    layer_norm=False,
    actor_rate=1e-3,
    final_rate=1.0,
    critic_rate=1e-5,
    discriminator_hidden=100,
    discriminator_rate=1e-3,
    reward="positive",
    penalty=0.0,
    demo_share=0.0,
    warm_start="none",
    warmup=10_000,
)

PRESETS: dict[str, DeepConfig] = {
    "fast": DeepConfig(),
    "paper": PAPER,
    "paper-swapped": dataclasses.replace(PAPER, actor_rate=1e-5, critic_rate=1e-3),
}


def check_deep(config: DeepConfig) -> None:
    """Refuse what cannot be meant, by name."""
    most = 2**31 - 1
    whole = ("interactions", "points", "fresh", "replay", "envs", "heard", "reward_steps",
             "policy_steps", "batch", "anchor", "hidden", "discriminator_hidden", "clone_depth",
             "clone_steps", "clone_least", "clone_most", "clone_batch", "marks",
             "episodes")  # fmt: skip
    for name in whole:
        value = getattr(config, name)
        if value is not None and not 1 <= value <= most:
            raise UserError(f"--{_flag(name)} is {value}; it must be from 1 to {most:,}.")
    if config.clone_depth > MOST_LAYERS:
        raise UserError(
            f"--clone-depth is {config.clone_depth:,}; it must be at most {MOST_LAYERS}."
        )
    for name in ("warmup", "audition"):
        if not 0 <= getattr(config, name) <= most:
            raise UserError(f"--{name} is {getattr(config, name)}; it must be zero or more.")
    for name in ("noise", "kl", "cloning", "entropy", "penalty", "penalty_centre", "clone_blur"):
        value = getattr(config, name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise UserError(f"--{_flag(name)} is {value}; it must be a finite number, 0 or more.")
    check_beta(config.beta)
    if not 0 < config.gamma < 1:
        raise UserError(f"--gamma is {config.gamma}; it must be above 0 and below 1.")
    shares = ("tau", "actor_rate", "final_rate", "critic_rate", "discriminator_rate", "clone_rate")
    for name in shares:
        value = getattr(config, name)
        if not 0 < value <= 1:
            raise UserError(f"--{_flag(name)} is {value}; it must be above 0 and at most 1.")
    for name in ("demo_share", "average", "clone_held_out"):
        value = getattr(config, name)
        if not 0 <= value < 1:
            raise UserError(f"--{_flag(name)} is {value}; it must be from 0 to below 1.")
    if not 0 <= config.task_reward <= 1:
        raise UserError(f"--task-reward is {config.task_reward}; it must be from 0 to 1.")
    refuse_too_large(config)


def refuse_too_large(config: DeepConfig, observations: int = 1, actions: int = 1) -> None:
    """Refuse what cannot fit into memory: networks, what is kept of practice, the marks."""
    both, width = observations + actions, config.discriminator_hidden
    depth = config.clone_depth if config.warm_start == "clone" else 2
    kept = config.interactions if config.replay is None else config.replay
    kept = max(min(kept, config.interactions), (config.fresh or 1) * config.envs)
    needed = {
        "--hidden and --batch": 3
        * memory.networks(both, 1, (config.hidden,) * depth, config.batch),
        "--discriminator-hidden and --points": memory.networks(
            both, 1, (width, width), config.points
        ),
        "--interactions, --replay, --fresh or --envs": memory.transitions(
            kept, observations, actions
        ),
        "--marks": 24 * config.marks,
    }
    memory.refuse(sum(needed.values()), max(needed, key=lambda name: needed[name]))


def _flag(name: str) -> str:
    return name.replace("_", "-")


@dataclass(frozen=True)
class ExpertConfig:
    """How to train an expert by Soft Actor-Critic."""

    interactions: int = 300_000
    """Environment steps in all."""
    rate: float = 3e-4
    """Adam's rate, for actor, critics and temperature."""
    batch: int = 128
    """Points per update."""
    gamma: float = 0.99
    """Discount."""
    tau: float = 0.005
    """How fast the target critics follow."""
    hidden: int = 256
    """Width of the two hidden layers."""
    layer_norm: bool = False
    """Layer norm in the critics."""
    explore: int = 5_000
    """First interactions, with random actions and no updates."""
    hold: int = 1
    """Steps that a random action is held for: what swings wants a push that lasts."""
    fresh: int = 8
    """Interactions between two rounds of updates."""
    updates: int | None = None
    """Updates in a round; as many as `fresh` if not given. Fewer take less time an interaction: on
    one core an update costs more than ten steps of a simulator."""
    marks: int = 30
    """How often the policy is measured along the way; the best one is kept."""
    enough: float | None = None
    """End early once a measurement reaches this return."""
    episodes: int = 10
    """Episodes per measurement, and demonstrations written."""


def check_expert(config: ExpertConfig) -> None:
    """Refuse what cannot be meant, by name."""
    for name in ("interactions", "batch", "hidden", "fresh", "marks", "episodes"):
        value = getattr(config, name)
        if not 1 <= value <= 2**31 - 1:
            raise UserError(f"--{name} is {value}; it must be at least 1.")
    if config.fresh > config.interactions:  # or more would be practised than was asked for
        raise UserError(
            f"--fresh is {config.fresh:,}; it must be at most --interactions, "
            f"{config.interactions:,}."
        )
    if config.updates is not None and not 1 <= config.updates <= 10_000:
        raise UserError(f"--updates is {config.updates}; it must be from 1 to 10,000.")
    if not 1 <= config.hold <= 1_000:
        raise UserError(f"--hold is {config.hold}; it must be from 1 to 1,000.")
    if not 0 <= config.explore:
        raise UserError(f"--explore is {config.explore}; it must be zero or more.")
    for name in ("rate", "tau", "gamma"):
        value = getattr(config, name)
        if not 0 < value <= 1:
            raise UserError(f"--{name} is {value}; it must be above 0 and at most 1.")
    refuse_too_large_expert(config)


def refuse_too_large_expert(config: ExpertConfig, observations: int = 1, actions: int = 1) -> None:
    """The same as of the learner."""
    hidden = (config.hidden, config.hidden)
    needed = {
        "--hidden and --batch": 3
        * memory.networks(observations + actions, 1, hidden, config.batch),
        "--interactions or --fresh": memory.transitions(
            max(config.interactions, config.fresh), observations, actions
        ),
        "--marks": 24 * config.marks,
    }
    memory.refuse(sum(needed.values()), max(needed, key=lambda name: needed[name]))
