"""What a user asks of the tabular learner. No JAX here: `--help` reads it."""

import functools
import math
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal

from understudy.core import memory
from understudy.core.errors import UserError


@dataclass(frozen=True)
class Config:
    """How to learn. The defaults are those of docs/theory.md, "The default"."""

    interactions: int = 10_000
    """Environment steps in all."""
    rollouts: int | None = None
    """Whole episodes in all, in place of --interactions; with --batch. The paper's and the theory's
    step sizes then go by episodes, for every N."""
    window: str = "1"
    """Policies to reuse: N, 'all', or a growing 'c*k^a' such as '2*k^0.4'."""
    beta: Literal["uniform", "geometric", "triangular"] | tuple[float, ...] = "uniform"
    """Weights of the policies: a shape, or N numbers, most recent first."""
    rewarder: Literal["step", "leader"] | None = None
    """The reward's step: along the window's gradient (Eq. 5), or the best response to all data. If
    not given: the leader where steps adapt, else the step."""
    points: int | None = None
    """Data points m sampled per reward update, of which a window of N policies owes m // N each:
    the paper's equal estimation budget. If not given, the whole window counts."""
    rounds: int | None = None
    """As the authors' code: both players take so many steps on one Q, that of the reward before,
    each against --points state-actions of each stage, drawn from the window without replacement.
    They wait until there are as many."""
    fresh: int | None = None
    """New interactions per iteration; 1 if not given, with --points max(1, m // N)."""
    batch: int | None = None
    """Collect this many whole trajectories per iteration instead."""
    visits: Literal["expected", "sampled"] = "expected"
    """Count all actions of a visited state by the policy's probabilities, or the one taken."""
    handed: Literal["mixture", "last"] = "mixture"
    """The policy handed out and measured: one that realises an average of all, or the last."""
    player: Literal["mirror", "gradient", "reinforce"] = "mirror"
    """The policy's step: mirror descent, the exact policy gradient, or a sampled one."""
    ascent: float = 0.5
    """Policy gradient: the constant step size."""
    steps: Literal["adaptive", "anytime", "paper", "theory"] | None = None
    """Step sizes that adapt to how wrong each player's guesses have been, that fall as 1/√k, of the
    paper's experiments, or of its Theorem 4.5. If not given: adaptive where gradients are exact and
    P is known, else anytime."""
    sigma: float | None = None
    """Policy step size, in place of that of `steps`; with anytime steps, of the first update."""
    eta: float | None = None
    """Reward step size, in place of that of `steps`; with anytime steps, of the first update."""
    model: Literal["known", "learned"] = "known"
    """Evaluate policies with the true transitions, or with counts and an optimistic bonus."""
    counts: Literal["shared", "stage"] = "shared"
    """Learned model: counts shared across stages (stationary environments), or per stage."""
    bonus: float = 1e-4
    """Learned model: the exploration bonus, as a multiple of the theory's."""
    reward: Literal["stage", "stationary"] = "stage"
    """One reward per stage as in the theory, or the same at every stage."""
    correction: Literal["none", "path", "marginal"] = "none"
    """Importance ratios for old samples, per trajectory or marginalised: a comparison."""
    gradients: Literal["sampled", "exact", "modelled"] | None = None
    """Reward gradients from samples, from the true occupancies of the window's policies, or from
    the learned model's of the current one (as OAL). If not given: exact where P is known, else
    modelled; but sampled where --window, --points, --visits, --correction or --player is about
    samples, and with features where P is learned."""
    ledger: bool = True
    """Keep the regret ledger: true regret, split by the theorem, for up to twice the time."""
    marks: int = 100
    """How often the policy is measured along the way."""
    episodes: int = 0
    """Measure by the mean return of this many sampled episodes; 0: the exact return."""
    replay: bool = False
    """Keep what the policy visits and the reward at every mark, for the report's replay."""


@dataclass(frozen=True)
class VectorConfig:
    """How to learn on features of observations that are vectors."""

    interactions: int = 50_000
    """Environment steps in all."""
    horizon: int = 200
    """Steps of an episode in practice; a policy whose stages share weights can go on beyond it."""
    window: str = "4"
    """Policies to reuse: N, 'all', or a growing 'c*k^a' such as '2*k^0.4'."""
    batch: int = 1
    """Episodes per iteration."""
    stages: Literal["shared", "apart"] = "shared"
    """One set of weights for all stages, with discounted values; or one for each, as in theory."""
    gamma: float = 0.98
    """Shared stages: the discount."""
    sweeps: int = 10
    """Shared stages: backups per iteration."""
    sigma: float | None = 0.1
    """Policy step size; None for the theory's, which is some hundred times smaller."""
    eta: float | None = None
    """Reward step size; the theory's if not given."""
    bonus: float = 0.0
    """κ of the exploration bonus κ‖φ‖ in the norm of Λ⁻¹."""


def as_option(name: str, value: Any, of: type = Config) -> Any:
    """A value read from JSON or TOML as the option of that name holds it: a list as a tuple, a
    whole number as a number where one is meant. ValueError if it is of another type."""
    hint = _hints(of)[name]
    read = value
    if isinstance(value, list) and all(type(v) in (int, float) for v in value):
        read = tuple(float(v) for v in value)
    elif type(value) is int and not _fits(value, hint):
        read = float(value)
    if not _fits(read, hint):
        raise ValueError(f"{name} is {value!r}")
    return read


@functools.cache
def _hints(of: type) -> dict[str, Any]:
    return typing.get_type_hints(of)


def _fits(value: Any, hint: Any) -> bool:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return any(_fits(value, one) for one in typing.get_args(hint))
    if typing.get_origin(hint) is Literal:
        return isinstance(value, str) and value in typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(isinstance(v, float) for v in value)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def gradients_of(config: Config, *, features: bool) -> Literal["sampled", "exact", "modelled"]:
    """Where the reward's gradients come from. A learner that knows P knows where its own policy
    goes, and need not sample it; one that counts P has what its model says. Samples are taken where
    they are asked for, and with features, whose regression cannot say where a policy goes."""
    if config.gradients is not None:
        return config.gradients
    asked = (
        config.window.strip() != "1"
        or config.points is not None
        or config.rounds is not None
        or config.visits == "sampled"
        or config.correction != "none"
        or config.player == "reinforce"
    )
    if asked or (features and config.model == "learned"):
        return "sampled"
    return "exact" if config.model == "known" else "modelled"


def steps_of(config: Config, gradients: str) -> Literal["adaptive", "anytime", "paper", "theory"]:
    """Which step sizes. To adapt is to trust a guess of the next payoff; samples are too noisy to
    be guessed, and where P is counted a quick learner explores too little (both measured)."""
    if config.steps is not None:
        return config.steps
    named = config.sigma is not None or config.eta is not None or config.rewarder == "step"
    exact = gradients == "exact" and config.model == "known" and config.window.strip() == "1"
    return "adaptive" if exact and config.player == "mirror" and not named else "anytime"


def check(config: Config) -> None:
    """Refuse what cannot be meant, by name."""
    most = 2**31 - 1  # iterations are counted in 32 bits
    ranges = {
        "interactions": (1, most),
        "points": (0, most),
        "marks": (1, 100_000),
        "episodes": (0, 100_000),
        "fresh": (1, most),
        "batch": (1, most),
        "rollouts": (1, most),
        "rounds": (1, 1_000),
    }
    for name, (least, limit) in ranges.items():
        value = getattr(config, name)
        if value is not None and not least <= value <= limit:
            raise UserError(f"--{name} is {value}; it must be from {least} to {limit:,}.")
    alone = config.window.strip() == "1"
    if config.gradients == "exact" and not config.ledger and not alone:
        raise UserError(
            "Exact gradients of a window need the ledger's occupancies; leave the ledger on."
        )
    if config.gradients == "modelled" and (config.model == "known" or not alone):
        raise UserError(
            "--gradients modelled is the learned model's word on the current policy; it needs "
            "--model learned and --window 1."
        )
    if config.rollouts is not None and config.batch is None:
        raise UserError("--rollouts counts whole episodes; give --batch, or use --interactions.")
    if config.rounds is not None:
        check_rounds(config)
    if config.correction != "none" and (config.batch is None or config.points):
        raise UserError("--correction needs whole trajectories; give --batch and no --points.")
    if config.correction != "none" and config.visits == "expected":
        raise UserError("--correction weighs the actions that were taken; give --visits sampled.")
    if config.steps == "adaptive" and (
        config.player != "mirror"
        or config.rewarder == "step"
        or config.sigma is not None
        or config.eta is not None
        or config.window.strip() != "1"
    ):
        raise UserError(
            "--steps adaptive sets all step sizes itself, of the mirror step and the leader; leave "
            "--player, --rewarder, --window, --sigma and --eta out."
        )
    if config.rewarder == "leader" and config.window.strip() != "1":
        raise UserError(
            f"--window is {config.window}, and the leader weighs everything alike; leave it out."
        )
    if config.fresh is not None and config.batch is not None:
        raise UserError("--fresh and --batch exclude each other; give one of them.")
    if config.player == "gradient" and config.model == "learned":
        raise UserError(
            "--player gradient needs --model known; with a learned model give --player reinforce."
        )
    for name in ("sigma", "eta", "bonus", "ascent"):
        value = getattr(config, name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise UserError(f"--{name} is {value}; it must be a finite number, zero or more.")
    check_beta(config.beta)


def check_rounds(config: Config) -> None:
    """Several steps on one Q are the authors', with all else as they have it."""
    if config.batch is None or not config.points:
        raise UserError("--rounds draws from whole episodes; give --batch and --points.")
    if config.ledger:
        raise UserError(
            "--rounds takes several steps on one Q, and no ledger is kept of them; "
            "give --no-ledger."
        )
    if (
        config.player != "mirror"
        or config.rewarder == "leader"
        or config.model == "learned"
        or config.visits == "expected"
        or config.correction != "none"
        or config.beta != "uniform"
        or config.gradients not in (None, "sampled")
        or config.steps in (None, "adaptive", "anytime")
    ):
        raise UserError(
            "--rounds takes mirror steps and reward steps of one size, P known, along samples that "
            "weigh alike; give --steps paper or theory and --visits sampled, and leave --model, "
            "--player, --rewarder, --beta, --correction and --gradients out."
        )


def check_vectors(config: VectorConfig) -> None:
    """Refuse what cannot be meant, by name."""
    most = 10_000_000
    for name in ("interactions", "horizon", "batch", "sweeps"):
        value = getattr(config, name)
        if not 1 <= value <= most:
            raise UserError(f"--{name} is {value}; it must be from 1 to {most:,}.")
    memory.refuse(
        8 * (config.interactions + config.batch * config.horizon),
        "--interactions, --batch or --horizon",
    )
    if not 0 <= config.gamma < 1:
        raise UserError(f"--gamma is {config.gamma}; it must be from 0 up to, not including, 1.")
    for name in ("sigma", "eta", "bonus"):
        value = getattr(config, name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise UserError(f"--{name} is {value}; it must be a finite number, zero or more.")


def check_beta(beta: str | tuple[float, ...]) -> None:
    """Weights given as numbers must be weights."""
    if not isinstance(beta, str) and not (
        all(math.isfinite(b) and b >= 0 for b in beta) and sum(beta) > 0
    ):
        raise UserError(f"--beta is {beta}; weights must be non-negative and not all zero.")
