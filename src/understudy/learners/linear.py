"""The same learner on features (the paper's appendix): linear MDPs whose states can be listed.

`step` is `tabular.step` with r = φᵀμ, line by line: practise, recall, reward, evaluate, policy. The
reward ascends on feature expectations, on the ball ‖μ_h‖ ≤ √d; θ_h is known, or regressed.

Deviation: on the ball rewards lie in [−√d, √d], so Q_h does in (H−h+1)·[−√d, √d]. The paper writes
0 ≤ Q ≤ H√d, which the ball does not give. Both ends are kept here, and the bounds use the range.
"""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from understudy.core import adaptive, features, regression
from understudy.core import mdp as mdps
from understudy.core import mixture as mixtures
from understudy.core import occupancy as occupancies
from understudy.core import window as windows
from understudy.core.adaptive import Rewards, Surprise
from understudy.core.errors import UserError
from understudy.core.linear_mdp import LinearMDP
from understudy.core.mdp import MDP
from understudy.core.mixture import Mixture
from understudy.core.model import Known, Model, evaluate
from understudy.core.occupancy import Points
from understudy.core.regression import Regressed, Regression
from understudy.core.types import Logits, Occupancy, Policy, Reward
from understudy.core.updates import (
    best_in_ball,
    best_in_box,
    best_in_cube,
    pace,
    policy,
)
from understudy.core.window import Window
from understudy.learners import loop
from understudy.learners.practice import RunShape, Walkers, draw, practise
from understudy.learners.tabular import (
    Info,
    Segment,
    Settings,
    account,
    audit,
    descend,
    estimate,
    respond,
    weighed,
)
from understudy.theory import ledger as ledgers
from understudy.theory.ledger import Ledger


class Problem(eqx.Module):
    """What to imitate, where, and among which rewards: μ_h in the ball of radius √d, in the box
    [0, 1]ᵈ (with one-hot features, the tabular learner's), or in the cube [−1, 1]ᵈ of the authors'
    code, with features of any length."""

    linear: LinearMDP
    expert: Occupancy
    truth: Occupancy | None = None
    rewards: Rewards = eqx.field(static=True, default="ball")

    @property
    def mdp(self) -> MDP:
        return self.linear.mdp

    @property
    def span(self) -> tuple[float | Array, float | Array]:
        """What φᵀμ can be."""
        if self.rewards == "box":
            return 0.0, 1.0
        if self.rewards == "ball":
            return -math.sqrt(self.linear.d), math.sqrt(self.linear.d)
        most = jnp.max(jnp.sum(jnp.abs(self.linear.phi.value), axis=-1))
        return -most, most

    @property
    def reach(self) -> float | Array:
        """The largest value."""
        return self.mdp.horizon * self.span[1]

    def table(self, mu: Float[Array, "R d"]) -> Reward:
        """r_h(s,a) = φ(s,a)ᵀμ_h."""
        return features.dot(self.linear.phi, mu)

    def best(self, gain: Reward) -> Reward:
        """φᵀμ*, μ* in closed form."""
        most = {"ball": best_in_ball, "box": best_in_box, "cube": best_in_cube}
        return self.table(most[self.rewards](features.collect(self.linear.phi, gain)))


def check_rewards(linear: LinearMDP, rewards: Rewards) -> None:
    """On the box φᵀμ is in [0, 1] only for features that average; the ball is the theory's."""
    value = linear.phi.value
    if rewards == "ball" and float(features.norms(linear.phi).max()) > 1 + 1e-6:
        raise UserError("Rewards in the ball need features φ with ‖φ‖ ≤ 1; use the cube.")
    averages = float(value.min()) >= 0 and float(value.sum(-1).max()) <= 1 + 1e-9
    if rewards == "box" and not averages:
        raise UserError(
            "Rewards in the box need features φ that are non-negative and sum to at most one; "
            "use the ball, or other features."
        )


class State(eqx.Module):
    """Everything a run needs to go on."""

    pi: Policy
    logits: Logits
    mu: Float[Array, "R d"]
    gain: Float[Array, "R d"] | None  # Ĝ, of the leader alone
    surprise: Surprise | None  # None where step sizes are set
    window: Window
    walkers: Walkers
    regression: Regression | None  # None where θ is known
    V: Float[Array, "H S"]  # of the last iteration, which new transitions are regressed on
    mixture: Mixture | None
    ledger: Ledger | None
    k: Int[Array, ""]


def init(problem: Problem, protocol: RunShape, *, key: Key[Array, ""]) -> State:
    """π⁰ uniform, μ⁰ = 0, nothing seen."""
    linear, mdp = problem.linear, problem.mdp
    H, S, A = mdp.shape
    point = jnp.zeros(protocol.fresh, jnp.int32)
    mu = jnp.zeros((1 if protocol.stationary_reward else H, linear.d))
    return State(
        pi=mdps.uniform(mdp),
        logits=jnp.zeros((H, S, A)),
        mu=mu,
        gain=mu if protocol.rewarder == "leader" else None,
        surprise=adaptive.none_yet(mdps.uniform(mdp), mu, problem.rewards)
        if protocol.adaptive
        else None,
        window=windows.empty(
            Segment(
                Points(point, point, point),
                None,
                jnp.zeros((protocol.fresh, A)) if protocol.expected else None,
            ),
            protocol.slots,
        ),
        walkers=Walkers(
            h=jnp.zeros(protocol.lanes, jnp.int32),
            s=draw(mdp.nu, jax.random.uniform(key, (protocol.lanes,))),
        ),
        regression=None
        if protocol.known
        else regression.nothing(linear, shared=protocol.shared_counts),
        V=jnp.zeros((H, S)),
        mixture=mixtures.empty(mdp.shape) if protocol.mixture else None,
        ledger=account(mdp, problem.table(mu), protocol) if protocol.ledger else None,
        k=jnp.zeros((), jnp.int32),
    )


def step(
    state: State, problem: Problem, settings: Settings, protocol: RunShape, *, key: Key[Array, ""]
) -> tuple[State, Info]:
    """Iteration k: π_{k−1}, μ_{k−1} → π_k, μ_k."""
    practising, recalling = jax.random.split(key)
    k, linear = state.k + 1, problem.linear

    points, slot, walkers = practise(
        problem.mdp, state.pi, state.walkers, protocol, settings.owed, key=practising
    )
    chances = state.pi[points.h, points.s] if protocol.expected else None
    segment = Segment(points, None, chances)
    window = windows.append(state.window, segment, label=state.k)
    learned = state.regression
    if learned is not None:
        learned = regression.observe(learned, linear, points, slot, state.V, problem.reach)

    N = jnp.minimum(windows.reach(settings.reuse, k), protocol.slots)
    beta = windows.weights(settings.reuse, protocol.beta, N)
    r = problem.table(state.mu)
    d, worth = mdps.meet(problem.mdp, state.pi, r)  # where nothing asks for it, it is not compiled
    mixture = state.mixture
    if mixture is not None:
        # A regression of values is no model of where a policy goes; its samples are.
        each = jnp.full(protocol.fresh, 1 / protocol.fresh)
        visited = occupancies.estimate(*weighed(segment, each), problem.mdp.shape)
        mixture = mixtures.extend(mixture, d if learned is None else visited, k)
    told = estimate(
        d, state.pi, window, beta, k, problem.mdp, protocol, settings.owed, key=recalling
    )
    ledger, true_mix = audit(state.ledger, r, d, worth, mixture, told, beta, N, k, protocol)
    d_mix = true_mix if told is None else told  # Σₙ βₙ d̂ᵏ⁻ⁿ

    gradient = features.collect(linear.phi, problem.expert - d_mix)  # E_dE φ − E_mix φ
    eta = pace(settings.eta, k, anytime=protocol.anytime)
    gain, mu, surprise = respond(state, gradient, eta, problem.rewards)  # Eq. 5, or the leader
    Q = evaluate(believe(problem, settings, learned), state.pi, problem.table(mu), problem.span)
    logits, surprise = descend(state, surprise, Q, settings, protocol)  # Eq. 4
    pi = policy(logits)
    V = jnp.sum(state.pi * Q, axis=-1)
    ledger = None if ledger is None else ledgers.note_step(ledger, state.pi, pi)
    state = State(pi, logits, mu, gain, surprise, window, walkers, learned, V, mixture, ledger, k)
    return state, Info(N, beta, d_mix)


def believe(problem: Problem, settings: Settings, learned: Regression | None) -> Model:
    """The transitions that the policy is evaluated with: the truth, or what was regressed."""
    if learned is None:
        return Known(problem.mdp)
    return Regressed(problem.linear, learned.theta, learned.inverse, settings.bonus)


def foresee(state: State, problem: Problem) -> Occupancy | None:
    """Where the current policy goes, where θ is known; a regression cannot tell."""
    return mdps.occupancy(problem.mdp, state.pi) if state.regression is None else None


LEARNER = loop.Learner(init, step, foresee)
run = functools.partial(loop.run, LEARNER)
