"""The provable learner in finite MDPs, top to bottom (§4.1).

`step` is the paper's iteration in five lines: practise, recall, reward, evaluate, policy.
`run` is that step in the compiled loop of `loop.py`.
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from understudy.core import adaptive
from understudy.core import mdp as mdps
from understudy.core import mixture as mixtures
from understudy.core import occupancy as occupancies
from understudy.core import window as windows
from understudy.core.adaptive import PROJECT, Rewards, Surprise
from understudy.core.importance import marginal_log, path_log
from understudy.core.mdp import MDP
from understudy.core.mixture import Mixture
from understudy.core.model import Counted, Counts, Known, Model, evaluate, no_counts, observe
from understudy.core.model import occupancy as modelled
from understudy.core.occupancy import Points
from understudy.core.types import Logits, Occupancy, Policy, Reward, Values
from understudy.core.updates import (
    ascend,
    best_in_box,
    climb,
    lead,
    mirror,
    pace,
    policy,
    policy_gradient,
    reinforce,
    returns_to_go,
)
from understudy.core.window import Reuse, Window
from understudy.learners import loop
from understudy.learners.practice import RunShape, Walkers, draw, practise
from understudy.theory import ledger as ledgers
from understudy.theory.ledger import Ledger


class Problem(eqx.Module):
    """What to imitate, and where: an MDP and the expert's (empirical) occupancy d_E.

    `truth` is the expert's true occupancy, where it is known; only the ledger looks at it.
    """

    mdp: MDP
    expert: Occupancy
    truth: Occupancy | None = None

    def table(self, mu: Reward) -> Reward:
        return mu

    def best(self, gain: Reward) -> Reward:
        return best_in_box(gain)


class Settings(eqx.Module):
    """The numbers of a run. A leading axis on each makes a batch of runs."""

    sigma: Float[Array, "*batch"]  # policy step size, Eq. 3
    ascent: Float[Array, "*batch"]  # policy step size of the gradient players
    eta: Float[Array, "*batch"]  # reward step size, Eq. 5
    bonus: Float[Array, "*batch"]  # scale of b_h = bonus/√n, unused where P is known
    reuse: Reuse  # N(k) and β
    # Interactions an iteration, where that is no shape: one number for all runs of a batch.
    owed: Int[Array, ""] | None = None


class Segment(eqx.Module):
    """What one policy collected. `log` is its own log-probability of each point, where samples are
    to be importance-corrected later; `chances` are its π(·|s), where all actions are to count."""

    points: Points
    log: Float[Array, "*points"] | None
    chances: Float[Array, "*points A"] | None


def weighed(
    segment: Segment, weights: Float[Array, "*points"]
) -> tuple[Points, Float[Array, "..."]]:
    """The points with their weights; where the policy's chances are known, a point for each action
    that it might have taken. The mean is the same, and the luck of the draw is gone: the learner
    knows its own policy, and need not estimate it."""
    if segment.chances is None:
        return segment.points, weights
    at, chances = segment.points, segment.chances
    a = jnp.broadcast_to(jnp.arange(chances.shape[-1], dtype=jnp.int32), chances.shape)
    h, s = (jnp.broadcast_to(x[..., None], chances.shape) for x in (at.h, at.s))
    return Points(h, s, a), weights[..., None] * chances


class State(eqx.Module):
    """Everything a run needs to go on."""

    pi: Policy  # softmax of the logits
    logits: Logits
    mu: Reward
    gain: Reward | None  # Ĝ, of the leader alone
    surprise: Surprise | None  # None where step sizes are set
    window: Window
    walkers: Walkers
    counts: Counts | None  # None where P is known
    mixture: Mixture | None  # of the policies that have acted; None where the last is handed out
    ledger: Ledger | None  # None where it is not kept
    k: Int[Array, ""]  # updates done


class Info(eqx.Module):
    """What one iteration saw."""

    N: Int[Array, ""]
    beta: Float[Array, " slots"]
    d_mix: Occupancy


def init(problem: Problem, protocol: RunShape, *, key: Key[Array, ""]) -> State:
    """π⁰ uniform, μ⁰ = 0, nothing seen. (μ⁰ = ½ learns half as fast; see docs/tabular.md.)"""
    mdp = problem.mdp
    H, S, A = mdp.shape
    point = jnp.zeros(protocol.fresh, jnp.int32)
    start = draw(mdp.nu, jax.random.uniform(key, (protocol.lanes,)))
    mu = jnp.zeros((1 if protocol.stationary_reward else H, S, A))
    return State(
        pi=mdps.uniform(mdp),
        logits=jnp.zeros((H, S, A)),
        mu=mu,
        gain=mu if protocol.rewarder == "leader" else None,
        surprise=adaptive.none_yet(mdps.uniform(mdp), mu, "box") if protocol.adaptive else None,
        window=windows.empty(
            Segment(
                Points(point, point, point),
                None if protocol.correction == "none" else jnp.zeros(protocol.fresh),
                jnp.zeros((protocol.fresh, A)) if protocol.expected else None,
            ),
            protocol.slots,
        ),
        walkers=Walkers(h=jnp.zeros(protocol.lanes, jnp.int32), s=start),
        counts=None if protocol.known else no_counts(mdp, shared=protocol.shared_counts),
        mixture=mixtures.empty(mdp.shape) if protocol.mixture else None,
        ledger=account(mdp, mu, protocol) if protocol.ledger else None,
        k=jnp.zeros((), jnp.int32),
    )


def step(
    state: State, problem: Problem, settings: Settings, protocol: RunShape, *, key: Key[Array, ""]
) -> tuple[State, Info]:
    """Iteration k: π_{k−1}, μ_{k−1} → π_k, μ_k."""
    practising, recalling = jax.random.split(key)
    k = state.k + 1

    points, slot, walkers = practise(
        problem.mdp, state.pi, state.walkers, protocol, settings.owed, key=practising
    )
    chances = state.pi[points.h, points.s] if protocol.expected else None
    log = log_probability(problem.mdp, state.pi, points, protocol)
    segment = Segment(points, log, chances)
    window = windows.append(state.window, segment, label=state.k)
    counts = None if state.counts is None else observe(state.counts, points, slot)

    model = believe(problem, settings, counts)
    # Where nothing asks for them, they are not compiled.
    d, worth = mdps.meet(problem.mdp, state.pi, state.mu)
    foreseen = modelled(model, state.pi) if isinstance(model, Counted) else d
    mixture = state.mixture
    if mixture is not None:
        mixture = mixtures.extend(mixture, foreseen, k)  # Cor. 4.9
    N = jnp.minimum(windows.reach(settings.reuse, k), protocol.slots)
    beta = windows.weights(settings.reuse, protocol.beta, N)
    told = estimate(
        foreseen, state.pi, window, beta, k, problem.mdp, protocol, settings.owed, key=recalling
    )
    ledger, true_mix = audit(state.ledger, state.mu, d, worth, mixture, told, beta, N, k, protocol)
    d_mix = true_mix if told is None else told  # Σₙ βₙ d̂ᵏ⁻ⁿ

    eta = pace(settings.eta, k, anytime=protocol.anytime)
    gain, mu, surprise = respond(state, problem.expert - d_mix, eta)  # Eq. 5, or the leader
    Q = evaluate(model, state.pi, mu)  # §4.1
    logits, surprise = improve(state, surprise, problem, settings, protocol, points, mu, Q)  # Eq. 4
    pi = policy(logits)
    ledger = None if ledger is None else ledgers.note_step(ledger, state.pi, pi)
    state = State(pi, logits, mu, gain, surprise, window, walkers, counts, mixture, ledger, k)
    return state, Info(N, beta, d_mix)


def estimate(
    foreseen: Occupancy,
    pi: Policy,
    window: Window,
    beta: Float[Array, " slots"],
    k: Int[Array, ""],
    mdp: MDP,
    protocol: RunShape,
    owed: Int[Array, ""] | None = None,
    *,
    key: Key[Array, ""],
) -> Occupancy | None:
    """What the mixture of the window's policies is taken for, a case a kind of gradient: what they
    have sampled; what the counted model makes of the newest, as OAL has it; None, as it is."""
    match protocol.gradients:
        case "sampled":
            segments, weights = windows.recall(window, beta, k, protocol.points, owed, key=key)
            points = weighed(segments, weights * ratio(mdp, pi, segments, protocol))
            return occupancies.estimate(*points, mdp.shape)
        case "modelled":
            return foreseen
        case "exact":
            return None


def respond(
    state: Any,
    gradient: Float[Array, "H *features"],
    eta: Float[Array, ""],
    rewards: Rewards = "box",
) -> tuple[Any, Any, Surprise | None]:
    """The reward player's (Ĝ_k, μ_k): a step along the gradient (Eq. 5), or the leader's, with a
    step size that is set or one that adapts."""
    project = PROJECT[rewards]
    if state.gain is None:
        return None, ascend(state.mu, gradient, eta, project), None
    if state.surprise is None:
        return *lead(state.gain, gradient, eta, project), None
    return adaptive.answer(state.surprise, state.gain, gradient, rewards)


def log_probability(
    mdp: MDP, pi: Policy, points: Points, protocol: RunShape
) -> Float[Array, "*points"] | None:
    """log-probability of each point under π, of the kind that the correction asks for."""
    if protocol.correction == "none":
        return None
    if protocol.correction == "path":
        return path_log(pi, points, protocol.steps)
    return marginal_log(mdps.occupancy(mdp, pi), points)


def ratio(
    mdp: MDP, pi: Policy, recalled: Segment, protocol: RunShape
) -> Float[Array, "*points"] | float:
    """Importance ratios of the recalled points; one where samples are reused as they are."""
    now = log_probability(mdp, pi, recalled.points, protocol)
    return 1.0 if now is None or recalled.log is None else jnp.exp(now - recalled.log)


def account(mdp: MDP, mu: Reward, protocol: RunShape) -> Ledger:
    """An empty ledger of what this run has to book."""
    sums = protocol.keeps_all and protocol.beta == "uniform"
    return ledgers.empty(
        mdp,
        mu,
        ledgers.ring_size(protocol.slots, sums),
        shares=protocol.mixture and protocol.known,
        reuses=protocol.slots > 1,
        exact=protocol.gradients == "exact",
    )


def audit(
    ledger: Ledger | None,
    mu: Reward,
    d: Occupancy,
    worth: Float[Array, ""],
    mixture: Mixture | None,
    told: Occupancy | None,
    beta: Float[Array, " slots"],
    N: Int[Array, ""],
    k: Int[Array, ""],
    protocol: RunShape,
) -> tuple[Ledger | None, Occupancy]:
    """Enter the pair that update k began with in the ledger, if one is kept: its reward, its
    policy's occupancy, what the window's mixture was taken for. Also, that mixture, of which only a
    ledger knows more than the newest policy."""
    if ledger is None:
        return None, d
    mean, uniform = None if mixture is None else mixture.mean, protocol.beta == "uniform"
    return ledgers.book(ledger, mu, d, worth, told, mean=mean, beta=beta, N=N, k=k, uniform=uniform)


def believe(problem: Problem, settings: Settings, counts: Counts | None) -> Model:
    """The transitions that the policy is evaluated with: the truth, or what was counted."""
    if counts is None:
        return Known(problem.mdp)
    return Counted(problem.mdp, counts, settings.bonus)


def improve(
    state: State,
    surprise: Surprise | None,
    problem: Problem,
    settings: Settings,
    protocol: RunShape,
    points: Points,
    mu: Reward,
    Q: Values,
) -> tuple[Logits, Surprise | None]:
    """The policy player's step: mirror descent (Eq. 4), or ascent on J(π_θ, μ_k) with the exact
    gradient or with one sampled from the points that π_{k−1} has just collected (Figure 3)."""
    if protocol.player == "mirror":
        return descend(state, surprise, Q, settings, protocol)
    if protocol.player == "gradient":
        slope = policy_gradient(mdps.occupancy(problem.mdp, state.pi), state.pi, Q)
    else:
        G = returns_to_go(points, mu, Q, lanes=protocol.lanes)
        slope = reinforce(points, G, state.pi, Q)
    return climb(state.logits, slope, settings.ascent), None


def descend(
    state: Any, surprise: Surprise | None, Q: Values, settings: Settings, protocol: RunShape
) -> tuple[Logits, Surprise | None]:
    """Eq. 4 with the step size of update k = state.k + 1, or with one that adapts."""
    if surprise is not None:
        return adaptive.turn(surprise, state.pi, Q)
    k = state.k + 1
    fade = jnp.sqrt(state.k / (k * 1.0)) if protocol.anytime else 1.0  # whole ones give float32
    sigma = pace(settings.sigma, k, anytime=protocol.anytime)
    return mirror(state.logits, Q, sigma, fade), None


# --- a whole run ---------------------------------------------------------------------------


def foresee(state: State, problem: Problem) -> Occupancy:
    """Where the current policy goes: by the true transitions where they are known, else by those
    counted."""
    if state.counts is None:
        return mdps.occupancy(problem.mdp, state.pi)
    return modelled(Counted(problem.mdp, state.counts, jnp.zeros(())), state.pi)


LEARNER = loop.Learner(init, step, foresee)
start = functools.partial(loop.start, LEARNER)
advance = functools.partial(loop.advance, LEARNER)
run = functools.partial(loop.run, LEARNER)
