"""The provable learner in finite MDPs, top to bottom (§4.1).

`step` is the paper's iteration in five lines: practise, recall, reward, evaluate, policy.
`run` is that step in one compiled loop, for a batch of seeds and settings at once.
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from understudy import mdp as mdps
from understudy import occupancy as occupancies
from understudy import window as windows
from understudy.mdp import MDP
from understudy.model import Counted, Counts, Known, Model, evaluate, no_counts, observe
from understudy.occupancy import Points
from understudy.types import Logits, Occupancy, Policy, Reward
from understudy.updates import ascend, mirror, policy
from understudy.window import Reuse, Window


class Problem(eqx.Module):
    """What to imitate, and where: an MDP and the expert's (empirical) occupancy d_E."""

    mdp: MDP
    expert: Occupancy


class Settings(eqx.Module):
    """The numbers of a run. A leading axis on each makes a batch of runs."""

    sigma: Float[Array, "*batch"]  # policy step size, Eq. 3
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
    known: bool  # P known, or counted
    shared_counts: bool  # counts shared across stages
    stationary_reward: bool

    @property
    def fresh(self) -> int:
        """Interactions per iteration."""
        return self.lanes * self.steps


class Walkers(eqx.Module):
    """Where each lane's episode stands."""

    h: Int[Array, " lanes"]
    s: Int[Array, " lanes"]


class State(eqx.Module):
    logits: Logits
    mu: Reward
    window: Window
    walkers: Walkers
    counts: Counts | None  # None where P is known
    k: Int[Array, ""]  # updates done


class Info(eqx.Module):
    """What one iteration saw."""

    beta: Float[Array, " slots"]
    d_mix: Occupancy


def init(problem: Problem, protocol: Protocol, *, key: Key[Array, ""]) -> State:
    """π⁰ uniform, μ⁰ = 0, nothing seen. (μ⁰ = ½ learns half as fast; see docs/tabular.md.)"""
    mdp = problem.mdp
    H, S, A = mdp.shape
    point = jnp.zeros(protocol.fresh, jnp.int32)
    start = _draw(mdp.nu, jax.random.uniform(key, (protocol.lanes,)))
    return State(
        logits=jnp.zeros((H, S, A)),
        mu=jnp.zeros((1 if protocol.stationary_reward else H, S, A)),
        window=windows.empty(Points(point, point, point), protocol.slots),
        walkers=Walkers(h=jnp.zeros(protocol.lanes, jnp.int32), s=start),
        counts=None if protocol.known else no_counts(mdp, shared=protocol.shared_counts),
        k=jnp.zeros((), jnp.int32),
    )


def step(
    state: State, problem: Problem, settings: Settings, protocol: Protocol, *, key: Key[Array, ""]
) -> tuple[State, Info]:
    """Iteration k: π_{k−1}, μ_{k−1} → π_k, μ_k."""
    practising, recalling = jax.random.split(key)
    k = state.k + 1
    pi = policy(state.logits)

    segment, slot, walkers = practise(problem.mdp, pi, state.walkers, protocol, key=practising)
    window = windows.append(state.window, segment, label=state.k)
    counts = None if state.counts is None else observe(state.counts, segment, slot)

    beta = windows.weights(settings.reuse, k)
    points, weights = windows.recall(window, beta, k, protocol.points, key=recalling)
    d_mix = occupancies.estimate(points, weights, problem.mdp.shape)  # Σₙ βₙ d̂ᵏ⁻ⁿ

    mu = ascend(state.mu, problem.expert - d_mix, settings.eta)  # Eq. 5
    Q = evaluate(believe(problem, settings, counts), pi, mu)  # optimistic backup, §4.1
    logits = mirror(state.logits, Q, settings.sigma)  # Eq. 4
    return State(logits, mu, window, walkers, counts, k), Info(beta, d_mix)


def believe(problem: Problem, settings: Settings, counts: Counts | None) -> Model:
    """The transitions that the policy is evaluated with: the truth, or what was counted."""
    if counts is None:
        return Known(problem.mdp)
    return Counted(problem.mdp, counts, settings.bonus)


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


class Run(eqx.Module):
    """A batch of runs: the states reached and, at each mark, the exact return of the policy."""

    state: State
    returns: Float[Array, "batch marks"]


@eqx.filter_jit
def start(problem: Problem, protocol: Protocol, *, keys: Key[Array, " batch"]) -> State:
    """The state of each run before its first update."""
    return jax.vmap(lambda key: init(problem, protocol, key=jax.random.fold_in(key, 0)))(keys)


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

    def iterate(state: State, settings: Settings, key: Array) -> State:
        here = jax.random.fold_in(key, state.k + 1)
        return step(state, problem, settings, protocol, key=here)[0]

    def to_mark(state: State, mark: Array) -> tuple[State, Array]:
        state = jax.lax.fori_loop(
            state.k[0], mark, lambda _, state: jax.vmap(iterate)(state, settings, keys), state
        )
        return state, jax.vmap(lambda x: mdps.value(mdp, policy(x), mdp.reward))(state.logits)

    mdp = problem.mdp
    state, returns = jax.lax.scan(to_mark, state, marks)
    return Run(state, returns.T)


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
    state, returns = start(problem, protocol, keys=keys), []
    for first in range(0, len(marks), size):
        piece = marks[first : first + size]
        padded = np.pad(piece, (0, size - len(piece)), mode="edge")  # same shape, same program
        done = advance(
            state, problem, settings, protocol, jnp.asarray(padded, jnp.int32), keys=keys
        )
        state = jax.block_until_ready(done.state)
        returns.append(done.returns[:, : len(piece)])
        progress(int(piece[-1]))
    return Run(state, jnp.concatenate(returns, axis=1))
