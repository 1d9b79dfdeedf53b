"""The provable learner in finite MDPs, top to bottom (§4.1).

`step` is the paper's iteration in five lines: practise, recall, reward, evaluate, policy.
`run` is that step in the compiled loop of `loop.py`.
"""

import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from understudy.core import mdp as mdps
from understudy.core import occupancy as occupancies
from understudy.core import window as windows
from understudy.core.importance import marginal_log, path_log
from understudy.core.mdp import MDP
from understudy.core.model import Counted, Counts, Known, Model, evaluate, no_counts, observe
from understudy.core.model import occupancy as modelled
from understudy.core.occupancy import Points
from understudy.core.types import Logits, Occupancy, Policy, Reward, Values
from understudy.core.updates import (
    ascend,
    best_in_box,
    climb,
    mirror,
    policy,
    policy_gradient,
    reinforce,
    returns_to_go,
)
from understudy.core.window import Gauge, Reuse, Window
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


class Segment(eqx.Module):
    """What one policy collected. `log` is its own log-probability of each point, where samples are
    to be importance-corrected later."""

    points: Points
    log: Float[Array, "*points"] | None


class State(eqx.Module):
    """Everything a run needs to go on."""

    pi: Policy  # softmax of the logits
    logits: Logits
    mu: Reward
    window: Window
    walkers: Walkers
    counts: Counts | None  # None where P is known
    ledger: Ledger | None  # None where it is not kept
    gauge: Gauge  # drift and estimation error, for an adaptive window
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
    sums = protocol.keeps_all and protocol.beta == "uniform"
    ring = ledgers.ring_size(protocol.slots, sums)
    return State(
        pi=mdps.uniform(mdp),
        logits=jnp.zeros((H, S, A)),
        mu=mu,
        window=windows.empty(
            Segment(
                Points(point, point, point),
                None if protocol.correction == "none" else jnp.zeros(protocol.fresh),
            ),
            protocol.slots,
        ),
        walkers=Walkers(h=jnp.zeros(protocol.lanes, jnp.int32), s=start),
        counts=None if protocol.known else no_counts(mdp, shared=protocol.shared_counts),
        ledger=ledgers.empty(mdp, mu, ring) if protocol.ledger else None,
        gauge=Gauge(drift=jnp.zeros(()), error=jnp.ones(())),
        k=jnp.zeros((), jnp.int32),
    )


def step(
    state: State, problem: Problem, settings: Settings, protocol: RunShape, *, key: Key[Array, ""]
) -> tuple[State, Info]:
    """Iteration k: π_{k−1}, μ_{k−1} → π_k, μ_k."""
    practising, recalling = jax.random.split(key)
    k = state.k + 1

    points, slot, walkers = practise(problem.mdp, state.pi, state.walkers, protocol, key=practising)
    segment = Segment(points, log_probability(problem.mdp, state.pi, points, protocol))
    window = windows.append(state.window, segment, label=state.k)
    counts = None if state.counts is None else observe(state.counts, points, slot)

    N = windows.length(settings.reuse, protocol.adaptive, state.gauge, k)
    beta = windows.weights(settings.reuse, protocol.beta, N, state.gauge)
    recalled, weights = windows.recall(window, beta, k, protocol.points, key=recalling)
    sampled = recalled.points, weights * ratio(problem.mdp, state.pi, recalled, protocol)
    d_mix = occupancies.estimate(*sampled, problem.mdp.shape)  # Σₙ βₙ d̂ᵏ⁻ⁿ
    ledger = state.ledger
    if ledger is not None:
        ledger, true_mix = audit(ledger, state, state.mu, problem.mdp, protocol, beta, N, sampled)
        d_mix = true_mix if protocol.gradients == "exact" else d_mix
    model = believe(problem, settings, counts)
    if protocol.gradients == "modelled":  # as OAL
        assert isinstance(model, Counted)
        d_mix = modelled(model, state.pi)

    mu = ascend(state.mu, problem.expert - d_mix, settings.eta)  # Eq. 5
    Q = evaluate(model, state.pi, mu)  # §4.1
    logits = improve(state, problem, settings, protocol, points, mu, Q)  # Eq. 4
    pi = policy(logits)
    ledger = None if ledger is None else ledgers.note_step(ledger, state.pi, pi)
    gauge = measure(state.gauge, protocol, state.pi, pi, sampled, d_mix)
    state = State(pi, logits, mu, window, walkers, counts, ledger, gauge, k)
    return state, Info(N, beta, d_mix)


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


def measure(
    gauge: Gauge,
    protocol: RunShape,
    before: Policy,
    after: Policy,
    sampled: tuple[Points, Float[Array, "*points"]],
    d_mix: Occupancy,
) -> Gauge:
    """Drift and estimation error, from the recalled points alone, smoothed over some 20 updates.

    Drift is the bound of Lemma 4.2 summed over stages, 2 Σ_i (H−i+1) E_{s~ν_i} TV_i(s). The error
    of one trajectory is Σ_{h,s,a} √(d(1−d)) = Σ_h E_{d_h} √((1−d)/d), times √(H/fresh) for a
    segment of `fresh` points; the window's own estimate stands for d.
    """
    if protocol.adaptive is None and protocol.beta != "optimal":
        return gauge
    points, weights = sampled
    H = before.shape[0]
    mass = H * weights  # one per stage
    tv = jnp.sum(jnp.abs(after[points.h, points.s] - before[points.h, points.s]), axis=-1) / 2
    drift = 2 * jnp.sum(mass * (H - points.h) * tv)
    d = jnp.clip(d_mix[points.h, points.s, points.a], 1e-12, 1)
    error = math.sqrt(H / protocol.fresh) * jnp.sum(mass * jnp.sqrt((1 - d) / d))
    return jax.tree.map(lambda old, new: old + (new - old) / 20, gauge, Gauge(drift, error))


def audit(
    ledger: Ledger,
    state: Any,
    mu: Reward,
    mdp: MDP,
    protocol: RunShape,
    beta: Float[Array, " slots"],
    N: Int[Array, ""],
    sampled: tuple[Points, Float[Array, "*points"]],
) -> tuple[Ledger, Occupancy]:
    """Enter the pair (π_{k−1}, μ_{k−1}) in the ledger; also, the window's true mixture."""
    d = mdps.occupancy(mdp, state.pi)
    uniform = protocol.beta == "uniform"
    ledger, d_mix = ledgers.follow(ledger, d, beta, N, state.k, uniform=uniform)
    booked = None if protocol.gradients == "exact" else sampled
    return ledgers.book(ledger, mu, d=d, d_mix=d_mix, sampled=booked), d_mix


def believe(problem: Problem, settings: Settings, counts: Counts | None) -> Model:
    """The transitions that the policy is evaluated with: the truth, or what was counted."""
    if counts is None:
        return Known(problem.mdp)
    return Counted(problem.mdp, counts, settings.bonus)


def improve(
    state: State,
    problem: Problem,
    settings: Settings,
    protocol: RunShape,
    points: Points,
    mu: Reward,
    Q: Values,
) -> Logits:
    """The policy player's step: mirror descent (Eq. 4), or ascent on J(π_θ, μ_k) with the exact
    gradient or with one sampled from the points that π_{k−1} has just collected (Figure 3)."""
    if protocol.player == "mirror":
        return mirror(state.logits, Q, settings.sigma)
    if protocol.player == "gradient":
        slope = policy_gradient(mdps.occupancy(problem.mdp, state.pi), state.pi, Q)
    else:
        G = returns_to_go(points, mu, Q, lanes=protocol.lanes)
        slope = reinforce(points, G, state.pi, Q)
    return climb(state.logits, slope, settings.ascent)


# --- a whole run ---------------------------------------------------------------------------

LEARNER = loop.Learner(init, step)
start = functools.partial(loop.start, LEARNER)
advance = functools.partial(loop.advance, LEARNER)
run = functools.partial(loop.run, LEARNER)
