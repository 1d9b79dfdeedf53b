"""The provable learner in finite MDPs, top to bottom (§4.1).

`step` is the paper's iteration in five lines: practise, recall, reward, evaluate, policy.
`run` is that step in one compiled loop, for a batch of seeds and settings at once.
"""

import dataclasses
import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, Key

from understudy import mdp as mdps
from understudy import occupancy as occupancies
from understudy import window as windows
from understudy.importance import Correction, marginal_log, path_log
from understudy.mdp import MDP
from understudy.model import Counted, Counts, Known, Model, evaluate, no_counts, observe
from understudy.occupancy import Points
from understudy.theory import ledger as ledgers
from understudy.theory.ledger import Ledger, Regret
from understudy.types import Logits, Occupancy, Policy, Reward, Values
from understudy.updates import (
    Player,
    ascend,
    climb,
    mirror,
    policy,
    policy_gradient,
    reinforce,
    returns_to_go,
)
from understudy.window import Gauge, Reuse, Shape, Window


class Problem(eqx.Module):
    """What to imitate, and where: an MDP and the expert's (empirical) occupancy d_E.

    `truth` is the expert's true occupancy, where it is known; only the ledger looks at it.
    """

    mdp: MDP
    expert: Occupancy
    truth: Occupancy | None = None


class Settings(eqx.Module):
    """The numbers of a run. A leading axis on each makes a batch of runs."""

    sigma: Float[Array, "*batch"]  # policy step size, Eq. 3
    ascent: Float[Array, "*batch"]  # policy step size of the gradient players
    eta: Float[Array, "*batch"]  # reward step size, Eq. 5
    bonus: Float[Array, "*batch"]  # scale of b_h = bonus/√n, unused where P is known
    reuse: Reuse  # N(k) and β


@dataclass(frozen=True)
class Protocol:
    """The shapes of a run: what is collected and kept. Runs of one batch share them.

    Each iteration, `lanes` walkers take `steps` steps each, starting anew whenever an episode
    ends. B whole trajectories are B lanes of H steps; `fresh` interactions are one lane of
    `fresh` steps, whose episode then goes on under the next policies.
    """

    lanes: int
    steps: int
    slots: int  # segments kept, at least the largest N(k)
    points: int | None  # m sampled per reward update; None: all
    player: Player  # how the policy moves
    known: bool  # P known, or counted
    shared_counts: bool  # counts shared across stages
    stationary_reward: bool
    beta: Shape  # the shape of β
    adaptive: tuple[int, int] | None  # N(k) from drift and error, within these; None: a schedule
    keeps_all: bool  # no policy ever leaves the window
    ledger: bool  # keep the regret ledger
    correction: Correction  # importance ratios for old samples, a comparison
    exact: bool  # the true mixture in place of its estimate; needs the ledger
    episodes: int  # sampled per measurement; 0: returns are exact
    replay: bool  # keep a glimpse at every mark

    @property
    def fresh(self) -> int:
        """Interactions per iteration."""
        return self.lanes * self.steps


class Segment(eqx.Module):
    """What one policy collected. `log` is its own log-probability of each point, where samples are
    to be importance-corrected later."""

    points: Points
    log: Float[Array, "*points"] | None


class Walkers(eqx.Module):
    """Where each lane's episode stands."""

    h: Int[Array, " lanes"]
    s: Int[Array, " lanes"]


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


def init(problem: Problem, protocol: Protocol, *, key: Key[Array, ""]) -> State:
    """π⁰ uniform, μ⁰ = 0, nothing seen. (μ⁰ = ½ learns half as fast; see docs/tabular.md.)"""
    mdp = problem.mdp
    H, S, A = mdp.shape
    point = jnp.zeros(protocol.fresh, jnp.int32)
    start = _draw(mdp.nu, jax.random.uniform(key, (protocol.lanes,)))
    mu = jnp.zeros((1 if protocol.stationary_reward else H, S, A))
    ring = ledgers.ring_size(protocol.slots, protocol.keeps_all)
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
    state: State, problem: Problem, settings: Settings, protocol: Protocol, *, key: Key[Array, ""]
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
        ledger, true_mix = audit(ledger, state, problem, protocol, beta, N, sampled)
        d_mix = true_mix if protocol.exact else d_mix

    mu = ascend(state.mu, problem.expert - d_mix, settings.eta)  # Eq. 5
    Q = evaluate(believe(problem, settings, counts), state.pi, mu)  # §4.1
    logits = improve(state, problem, settings, protocol, points, mu, Q)  # Eq. 4
    pi = policy(logits)
    ledger = None if ledger is None else ledgers.note_step(ledger, state.pi, pi)
    gauge = measure(state.gauge, protocol, state.pi, pi, sampled, d_mix)
    state = State(pi, logits, mu, window, walkers, counts, ledger, gauge, k)
    return state, Info(N, beta, d_mix)


def log_probability(
    mdp: MDP, pi: Policy, points: Points, protocol: Protocol
) -> Float[Array, "*points"] | None:
    """log-probability of each point under π, of the kind that the correction asks for."""
    if protocol.correction == "none":
        return None
    if protocol.correction == "path":
        return path_log(pi, points, protocol.steps)
    return marginal_log(mdps.occupancy(mdp, pi), points)


def ratio(
    mdp: MDP, pi: Policy, recalled: Segment, protocol: Protocol
) -> Float[Array, "*points"] | float:
    """Importance ratios of the recalled points; one where samples are reused as they are."""
    now = log_probability(mdp, pi, recalled.points, protocol)
    return 1.0 if now is None or recalled.log is None else jnp.exp(now - recalled.log)


def measure(
    gauge: Gauge,
    protocol: Protocol,
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
    state: State,
    problem: Problem,
    protocol: Protocol,
    beta: Float[Array, " slots"],
    N: Int[Array, ""],
    sampled: tuple[Points, Float[Array, "*points"]],
) -> tuple[Ledger, Occupancy]:
    """Enter the pair (π_{k−1}, μ_{k−1}) in the ledger; also, the window's true mixture."""
    d = mdps.occupancy(problem.mdp, state.pi)
    uniform = protocol.beta == "uniform"
    ledger, d_mix = ledgers.follow(ledger, d, beta, N, state.k, uniform=uniform)
    booked = None if protocol.exact else sampled
    return ledgers.book(ledger, state.mu, d=d, d_mix=d_mix, sampled=booked), d_mix


def believe(problem: Problem, settings: Settings, counts: Counts | None) -> Model:
    """The transitions that the policy is evaluated with: the truth, or what was counted."""
    if counts is None:
        return Known(problem.mdp)
    return Counted(problem.mdp, counts, settings.bonus)


def improve(
    state: State,
    problem: Problem,
    settings: Settings,
    protocol: Protocol,
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


def practise(
    mdp: MDP, pi: Policy, walkers: Walkers, protocol: Protocol, *, key: Key[Array, ""]
) -> tuple[Points, Int[Array, " fresh"], Walkers]:
    """Act with π: the points visited, the place of each successor in its row, and who is where."""
    u = jax.random.uniform(key, (protocol.steps, 3, protocol.lanes))

    def move(at: Walkers, u: Array) -> tuple[Walkers, tuple[Points, Array]]:
        a = _draw(pi[at.h, at.s], u[0])
        row = (jnp.zeros_like(at.h) if mdp.prob.shape[0] == 1 else at.h, at.s, a)
        slot = _draw(mdp.prob[row], u[1])
        over = at.h + 1 == mdp.horizon
        s = jnp.where(over, _draw(mdp.nu, u[2]), mdp.succ[(*row, slot)])
        return Walkers(jnp.where(over, 0, at.h + 1), s), (Points(at.h, at.s, a), slot)

    walkers, (points, slot) = jax.lax.scan(move, walkers, u)
    flat = jax.tree.map(lambda x: x.reshape(-1), (points, slot))
    return *flat, walkers


def _draw(p: Float[Array, "*lanes n"], u: Float[Array, " lanes"]) -> Int[Array, " lanes"]:
    """Sample from each row of p (or from the one p) by inverse transform."""
    ends = jnp.cumsum(p, axis=-1)
    return jnp.sum(ends <= (u * ends[..., -1])[:, None], axis=-1, dtype=jnp.int32)


# --- a whole run ---------------------------------------------------------------------------


class Glimpse(eqx.Module):
    """The two players at one mark, for a replay. Single precision: it is to be looked at."""

    visits: Float32[Array, "*batch S A"]  # Σ_h d_h(s,a) of the policy, H in all
    reward: Float32[Array, "*batch S A"]  # μ_h(s,a), the mean over stages


Measured = tuple[Array, Regret | None, Glimpse | None]


class Run(eqx.Module):
    """A batch of runs: the states reached and, at each mark, the return of the policy."""

    state: State
    returns: Float[Array, "batch marks"]
    regret: Regret | None  # of the ledger, leaves (batch, marks)
    glimpse: Glimpse | None  # where asked for, leaves (batch, marks, S, A)

    @property
    def measured(self) -> Measured:
        return self.returns, self.regret, self.glimpse


def sampled_return(mdp: MDP, pi: Policy, protocol: Protocol, *, key: Array) -> Array:
    """The mean return of some episodes, as the paper measures."""
    episodes = protocol.episodes
    starting, acting = jax.random.split(key)
    s = _draw(mdp.nu, jax.random.uniform(starting, (episodes,)))
    walkers = Walkers(h=jnp.zeros(episodes, jnp.int32), s=s)
    whole = dataclasses.replace(protocol, lanes=episodes, steps=mdp.horizon)
    points, _, _ = practise(mdp, pi, walkers, whole, key=acting)
    stage = points.h if mdp.reward.shape[0] > 1 else 0
    return jnp.sum(mdp.reward[stage, points.s, points.a]) / episodes


def glance(mdp: MDP, state: State) -> Glimpse:
    """Where the policy goes and what the reward says, summed up over stages."""
    visits, reward = jnp.sum(mdps.occupancy(mdp, state.pi), axis=0), jnp.mean(state.mu, axis=0)
    return Glimpse(visits.astype(jnp.float32), reward.astype(jnp.float32))


@eqx.filter_jit
def start(problem: Problem, protocol: Protocol, *, keys: Key[Array, " batch"]) -> State:
    """The state of each run before its first update. All runs share one k."""

    def first(key: Array) -> State:
        return init(problem, protocol, key=jax.random.fold_in(key, 0))

    axes = one_clock(jax.eval_shape(first, keys[0]))
    return jax.vmap(first, out_axes=axes)(keys)


def one_clock(state: State) -> State:
    """Batch axes of a state: the first of everything, none of k."""
    return eqx.tree_at(lambda s: s.k, jax.tree.map(lambda _: 0, state), None)


@eqx.filter_jit
def advance(
    state: State,
    problem: Problem,
    settings: Settings,
    protocol: Protocol,
    marks: Int[Array, " marks"],
    *,
    keys: Key[Array, " batch"],
) -> Run:
    """Iterate to the last of `marks` (updates done, ascending), measuring at each.

    One compiled program: a scan over the marks, around a loop over iterations, around the step,
    batched over seeds and settings. Iteration k draws from `fold_in(key, k)`, so a run depends
    neither on where it was stopped nor on what shares its batch.
    """

    # All runs of a batch are at the same k. Saying so to vmap keeps the rings' writes in place; a
    # k of each run's own would copy whole rings every iteration.
    axes = one_clock(state)

    @functools.partial(jax.vmap, in_axes=(axes, 0, 0), out_axes=axes)
    def iterate(state: State, settings: Settings, key: Array) -> State:
        here = jax.random.fold_in(key, state.k + 1)
        return step(state, problem, settings, protocol, key=here)[0]

    @functools.partial(jax.vmap, in_axes=(axes, 0))
    def account(state: State, key: Array) -> Measured:
        if protocol.episodes:  # drawn apart from the run, which goes on as if not measured
            here = jax.random.fold_in(jax.random.fold_in(key, 2**32 - 1), state.k)
            returns = sampled_return(mdp, state.pi, protocol, key=here)
        else:
            returns = mdps.value(mdp, state.pi, mdp.reward)
        glimpse = glance(mdp, state) if protocol.replay else None
        if state.ledger is None:
            return returns, None, glimpse
        truth = problem.expert if problem.truth is None else problem.truth
        regret = ledgers.settle(
            state.ledger,
            mdp,
            state.k,
            shown=problem.expert,
            expert=truth,
            exact=protocol.exact,
        )
        return returns, regret, glimpse

    def to_mark(state: State, mark: Array) -> tuple[State, Measured]:
        state = jax.lax.fori_loop(
            state.k, mark, lambda _, state: iterate(state, settings, keys), state
        )
        return state, account(state, keys)

    mdp = problem.mdp
    state, measured = jax.lax.scan(to_mark, state, marks)
    return Run(state, *jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), measured))


def run(
    problem: Problem,
    settings: Settings,
    protocol: Protocol,
    marks: np.ndarray,
    *,
    keys: Key[Array, " batch"],
    pieces: int = 1,
    progress: Callable[[int], object] = lambda done: None,
) -> Run:
    """A whole run, in `pieces` calls of one compiled program; `progress(updates)` after each.

    More than one piece lets a progress bar move and Ctrl-C through; the results are the same.
    """
    size = -(-len(marks) // pieces)
    state, measured = start(problem, protocol, keys=keys), []
    for first in range(0, len(marks), size):
        piece = marks[first : first + size]
        padded = np.pad(piece, (0, size - len(piece)), mode="edge")  # same shape, same program
        done = advance(
            state, problem, settings, protocol, jnp.asarray(padded, jnp.int32), keys=keys
        )
        state = jax.block_until_ready(done.state)
        measured.append(jax.tree.map(operator.itemgetter(np.s_[:, : len(piece)]), done.measured))
        progress(int(piece[-1]))
    return Run(state, *jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), *measured))
