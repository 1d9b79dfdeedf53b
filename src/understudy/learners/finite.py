"""`imitate`: from an MDP and an expert to a policy, in one call.

A `Config` says what a user wants; `plan` turns it into the learner's `RunShape` (shapes) and
`Settings` (numbers).
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from understudy.core import mdp as mdps
from understudy.core import memory, regression, updates
from understudy.core import occupancy as occupancies
from understudy.core import window as windows
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.linear_mdp import LinearMDP
from understudy.core.mdp import MDP
from understudy.core.model import theory_scale
from understudy.core.precision import double
from understudy.core.types import Occupancy
from understudy.learners import linear, loop, rounds, tabular
from understudy.learners.config import Config, check, gradients_of, steps_of
from understudy.learners.linear import Rewards
from understudy.learners.loop import Glimpse, Measured
from understudy.learners.practice import RunShape
from understudy.learners.seeds import keys_of
from understudy.learners.tabular import Problem, Settings
from understudy.theory.ledger import Regret

AnyProblem = Problem | linear.Problem


@dataclass(frozen=True)
class Plan:
    """A config made definite for one MDP."""

    protocol: RunShape
    settings: Settings  # of one run, no batch axis
    iterations: int
    interactions: np.ndarray  # where the policy is measured
    marks: np.ndarray  # the same in updates done


@dataclass(frozen=True)
class Batch:
    """A batch of runs, a row a seed."""

    interactions: np.ndarray
    """Where the runs were measured: (marks,)."""
    expert_return: float
    """What the expert's occupancy is worth."""
    policy: np.ndarray
    """The one handed out at the end: (seeds, H, S, A)."""
    last_policy: np.ndarray
    """The last iterate."""
    reward: np.ndarray
    """The last: (seeds, R, S, A), or with features (seeds, R, d)."""
    measured: Measured
    """What the marks saw; leaves (seeds, marks, …)."""
    seeds: tuple[int, ...]
    """One a row."""

    @property
    def returns(self) -> np.ndarray:
        """Exact, of the policy handed out at each mark: (seeds, marks)."""
        return np.asarray(self.measured.returns)

    @property
    def gap(self) -> np.ndarray:
        """Its imitation gap sup_μ L(π, μ): (seeds, marks)."""
        return np.asarray(self.measured.gap)

    @property
    def last_returns(self) -> np.ndarray:
        """Of the last iterate."""
        return np.asarray(self.measured.last_returns)

    @property
    def last_gap(self) -> np.ndarray:
        """Of the last iterate."""
        return np.asarray(self.measured.last_gap)

    @property
    def regret(self) -> Regret | None:
        """Of the ledger, if it was kept; leaves (seeds, marks)."""
        return self.measured.regret

    @property
    def certificate(self) -> np.ndarray | None:
        """What the AIL regret cannot exceed, where steps adapt: (seeds, marks)."""
        told = self.measured.certificate
        return None if told is None else np.asarray(told)

    @property
    def glimpse(self) -> Glimpse | None:
        """For a replay, if it was asked for; leaves (seeds, marks, S, A)."""
        return self.measured.glimpse


@double
def imitate(
    mdp: MDP | LinearMDP,
    expert: Demonstrations | Occupancy | np.ndarray | None = None,
    config: Config = Config(),  # noqa: B008 (frozen)
    *,
    truth: Occupancy | None = None,
    rewards: Rewards = "ball",
    seeds: Sequence[int] = (0,),
    progress: Callable[[int], object] | None = None,
) -> Batch:
    """Learn to act like `expert`: demonstrations, an occupancy, or (None) the optimal policy.

    In a linear MDP the reward is φᵀμ, with μ in the set `rewards`; elsewhere it is a table.

    `truth`, the expert's true occupancy where demonstrations stand for it, lets the ledger tell
    their sampling error apart. `progress` is called now and then with the interactions done.
    """
    problem = pose(mdp, expert, truth, rewards)
    p = plan(mdp, config)
    settings = stack(p.settings, len(seeds))
    done = loop.run(
        learner_of(problem, p.protocol),
        problem,
        settings,
        p.protocol,
        p.marks,
        keys=keys_of(seeds),
        pieces=20 if progress else 1,
        progress=(lambda k: progress(k * p.protocol.fresh)) if progress else lambda k: None,
    )
    return Batch(
        interactions=p.interactions,
        measured=jax.tree.map(np.asarray, done.measured),
        expert_return=expert_return(problem),
        policy=np.asarray(done.policy),
        last_policy=np.asarray(done.state.pi),
        reward=np.asarray(done.state.mu),
        seeds=tuple(seeds),
    )


@double
def pose(
    mdp: MDP | LinearMDP,
    expert: Demonstrations | Occupancy | np.ndarray | None,
    truth: Occupancy | None = None,
    rewards: Rewards = "ball",
) -> AnyProblem:
    """What to imitate, and where."""
    if isinstance(mdp, LinearMDP):
        linear.check_rewards(mdp, rewards)
        return linear.Problem(mdp, expert_occupancy(mdp.mdp, expert), truth, rewards)
    return Problem(mdp, expert_occupancy(mdp, expert), truth)


def learner_of(problem: AnyProblem, protocol: RunShape) -> loop.Learner:
    if protocol.rounds is not None:
        return rounds.LEARNER
    return linear.LEARNER if isinstance(problem, linear.Problem) else tabular.LEARNER


@double
def stack(settings: Settings, runs: int) -> Settings:
    """The same settings for a batch of runs."""
    many = jax.tree.map(lambda x: jnp.stack([x] * runs), settings)
    return dataclasses.replace(many, owed=settings.owed)


@double
def expert_return(problem: AnyProblem) -> float:
    """J(π_E, r) = Σ_h ⟨d_E, r⟩: for demonstrations, the mean return that they show."""
    return float(jnp.sum(problem.expert * problem.mdp.reward))


@double
def expert_occupancy(mdp: MDP, expert: Demonstrations | Occupancy | np.ndarray | None) -> Occupancy:
    """d_E of whatever stands for the expert."""
    if expert is None:
        return mdps.occupancy(mdp, mdps.optimum(mdp, mdp.reward)[0])
    if isinstance(expert, Demonstrations):
        return occupancies.of_demonstrations(
            _whole(expert.observations, "state"),
            _whole(expert.actions, "action"),
            expert.terminated,
            mdp.shape,
            sink=mdp.sink,
        )
    d = np.asarray(expert, dtype=float)
    if d.shape != mdp.shape:
        raise UserError(f"The expert's occupancy has shape {d.shape}, not {mdp.shape} (H, S, A).")
    if not np.isfinite(d).all() or (d < 0).any() or np.abs(d.sum((1, 2)) - 1).max() > 1e-6:
        raise UserError("The expert's occupancy must be non-negative and sum to one per stage.")
    return jnp.asarray(d)


def _whole(episodes: list[np.ndarray], name: str) -> list[np.ndarray]:
    for i, values in enumerate(episodes):
        if values.ndim != 1 or not np.array_equal(values, np.round(values)):
            raise UserError(
                f"Demonstration {i} has {name}s of shape {values.shape}, type {values.dtype}; "
                f"a finite MDP needs one whole number per step."
            )
    return [values.astype(np.int64) for values in episodes]


# --- from wishes to numbers ----------------------------------------------------------------


@double
def plan(mdp: MDP | LinearMDP, config: Config) -> Plan:
    """Check a config and make it definite."""
    features = mdp if isinstance(mdp, LinearMDP) else None
    mdp = mdp.mdp if isinstance(mdp, LinearMDP) else mdp
    H, S, A = mdp.shape
    check(config)
    if features is not None and (
        config.player != "mirror" or config.correction != "none" or config.gradients == "modelled"
    ):
        raise UserError(
            "With features the policy takes mirror steps and samples are reused as they are; "
            "leave --player, --correction and --gradients modelled out."
        )
    if features is None and config.rounds is not None:
        raise UserError("--rounds is for features; give some, such as --features onehot.")
    points = config.points or None
    c, alpha = windows.parse(config.window)
    lanes, steps = 1, config.fresh
    if config.batch is not None:
        lanes, steps = config.batch, H
    elif steps is None:
        steps = windows.owed(points or 1, c, alpha)  # the equal estimation budget, or one
    fresh = lanes * steps
    practice = config.interactions if config.rollouts is None else config.rollouts * H
    K = practice // fresh
    if K < 1:
        raise UserError(
            f"{practice} interactions are less than one iteration of {fresh}; "
            f"allow more with --interactions."
        )
    # Step sizes follow the paper's K: updates where each is a whole batch, as in the theory, and
    # interactions under the equal estimation budget, so that all N share one step size. Who counts
    # in episodes, as the authors' code, means these.
    horizon_of_learning = K if config.batch is not None else practice
    if config.rollouts is not None:
        horizon_of_learning = config.rollouts
    gradients = gradients_of(config, features=features is not None)
    paces = steps_of(config, gradients)
    if paces in ("adaptive", "anytime"):
        sigma, eta = updates.anytime_steps(H, A, fresh)
    elif paces == "paper":
        sigma, eta = updates.paper_steps(H, horizon_of_learning)
    elif features is not None:
        sigma, eta = updates.linear_steps(H, A, features.d, horizon_of_learning)
    else:
        sigma, eta = updates.theory_steps(H, S, A, horizon_of_learning)
    slots = min(K, windows.largest(c, alpha, K))
    # A point kept is a stage, a state and an action, and the chances of all actions where they
    # count; one that is sampled is made of such.
    each = 12 + (8 * A if config.visits == "expected" else 0)
    memory.refuse(
        each * (slots * fresh + (points or 0)) + 8 * H * S * A,
        "--interactions, --window, --points, --batch, --fresh or --horizon",
    )
    lag = np.array(windows.lags(config.beta, config.window, slots))
    if not config.model == "known" and config.counts == "shared" and mdp.prob.shape[0] != 1:
        raise UserError(
            "This MDP's transitions differ between stages; count per stage (counts='stage')."
        )
    scale = theory_scale(H, S, A, K)
    if features is not None and config.model == "learned":
        stages = 1 if config.counts == "shared" else H
        seen = -(-K * fresh // stages)  # transitions that a stage is regressed from
        if stages * features.p**2 > regression.MOST**2:
            most = math.isqrt(regression.MOST**2 // stages)
            raise UserError(
                f"The transitions have {features.p:,} features, more than the {most:,} that can be "
                f"regressed; give --model known, or use fewer features."
            )
        if features.p > seen:
            raise UserError(
                f"The transitions have {features.p} features, and a stage sees {seen} of them in "
                f"{practice} interactions; allow more, or use fewer features."
            )
        scale = regression.theory_scale(features.p, H, seen, regression.largest(features.psi))
    settings = Settings(
        sigma=jnp.asarray(sigma if config.sigma is None else config.sigma, float),
        eta=jnp.asarray(eta if config.eta is None else config.eta, float),
        ascent=jnp.asarray(config.ascent, float),
        bonus=jnp.asarray(config.bonus * scale, float),
        reuse=windows.Reuse(jnp.asarray(c, float), jnp.asarray(alpha, float), jnp.asarray(lag)),
    )
    protocol = RunShape(
        lanes=lanes,
        steps=steps,
        slots=slots,
        points=points,
        rounds=config.rounds,
        player=config.player,
        known=config.model == "known",
        shared_counts=config.counts == "shared",
        stationary_reward=config.reward == "stationary",
        beta=config.beta if isinstance(config.beta, str) else "given",
        keeps_all=c == alpha == 1,
        ledger=config.ledger,
        correction=config.correction,
        gradients=gradients,
        rewarder=config.rewarder or ("leader" if paces == "adaptive" else "step"),
        anytime=paces == "anytime",
        adaptive=paces == "adaptive",
        expected=config.visits == "expected",
        mixture=config.handed == "mixture",
        episodes=config.episodes,
        replay=config.replay,
    )
    interactions = np.unique(np.linspace(0, practice, config.marks + 1).round().astype(int))
    # The policy in use after t interactions is the one of the last whole iteration.
    return Plan(protocol, settings, K, interactions, interactions // fresh)


@double
def together(plans: Sequence[Plan]) -> tuple[RunShape, list[Settings]]:
    """One protocol for plans that differ only in numbers, in the slots of their windows and, where
    that may be a number, in what they collect; and the settings of each, widened to the largest."""
    slots = max(p.protocol.slots for p in plans)
    each = {p.protocol.steps for p in plans}
    steps = max(each)
    protocols = {dataclasses.replace(p.protocol, slots=slots, steps=steps) for p in plans}
    if len(protocols) > 1 or not (len(each) == 1 or all(counts(p.protocol) for p in plans)):
        raise ValueError("plans of different shapes cannot share a program")

    def widen(p: Plan) -> Settings:
        lag = p.settings.reuse.lag
        padded = jnp.pad(lag, (0, slots - len(lag)))  # no weight beyond a run's own window
        reuse = dataclasses.replace(p.settings.reuse, lag=padded)
        owed = None if len(each) == 1 else jnp.asarray(p.protocol.steps, jnp.int32)
        return dataclasses.replace(p.settings, reuse=reuse, owed=owed)

    return protocols.pop(), [widen(p) for p in plans]


def counts(protocol: RunShape) -> bool:
    """Whether what is collected an iteration may be a number, and not a shape: where all that is
    done with it is to sample some points."""
    return (
        protocol.lanes == 1
        and protocol.points is not None
        and protocol.rounds is None
        and protocol.known
        and protocol.player != "reinforce"
        and protocol.correction == "none"
    )
