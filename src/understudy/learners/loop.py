"""A whole run of a learner in a finite MDP, in one compiled loop, for a batch of seeds at once.

The loop knows no learner: it is handed `init` and `step`, and a problem that says what its rewards
mean in the table.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, Key

from understudy.core import adaptive
from understudy.core import mdp as mdps
from understudy.core import mixture as mixtures
from understudy.core.mdp import MDP
from understudy.core.precision import double
from understudy.core.types import Occupancy, Policy, Reward
from understudy.learners import devices, practice
from understudy.learners.practice import sampled_return
from understudy.theory import ledger as ledgers
from understudy.theory.ledger import Regret


@runtime_checkable
class Problem(Protocol):
    """What to imitate, and where, as far as a run must know."""

    @property
    def mdp(self) -> MDP: ...
    @property
    def expert(self) -> Occupancy: ...
    @property
    def truth(self) -> Occupancy | None: ...

    def table(self, mu: Any) -> Reward:
        """r_h(s,a) of the reward's parameters."""
        ...

    def best(self, gain: Reward) -> Reward:
        """The reward of the largest ⟨r, gain⟩."""
        ...


class Learner(NamedTuple):
    """An algorithm: its first state, its iteration, and where it thinks that its policy goes."""

    init: Callable[..., Any]
    step: Callable[..., tuple[Any, Any]]
    foresee: Callable[..., Occupancy | None]


class Glimpse(eqx.Module):
    """The two players at one mark, for a replay. Single precision: it is to be looked at."""

    visits: Float32[Array, "*batch S A"]  # Σ_h d_h(s,a) of the policy, H in all
    reward: Float32[Array, "*batch S A"]  # μ_h(s,a), the mean over stages


class Measured(eqx.Module):
    """What is seen at each mark: of the policy handed out, of the last iterate, of the regret."""

    returns: Float[Array, "*marks"]
    gap: Float[Array, "*marks"]  # sup_μ L(π, μ)
    last_returns: Float[Array, "*marks"]
    last_gap: Float[Array, "*marks"]
    regret: Regret | None  # of the ledger, leaves (batch, marks)
    certificate: Float[Array, "*marks"] | None  # what it cannot exceed, where steps adapt
    glimpse: Glimpse | None  # where asked for, leaves (batch, marks, S, A)


class Run(eqx.Module):
    """A batch of runs: the states reached, the policies handed out, and what the marks saw."""

    state: Any
    policy: Float[Array, "batch H S A"]
    measured: Measured

    @property
    def returns(self) -> Float[Array, "batch marks"]:
        return self.measured.returns

    @property
    def regret(self) -> Regret | None:
        return self.measured.regret


def imitation_gap(
    problem: Problem, d: Occupancy, *, stationary: bool, truth: bool = False
) -> Float[Array, ""]:
    """sup_μ L(π, μ) = sup_μ ⟨μ, d_E − d⟩ in closed form; the expert as shown, or the true one."""
    expert = problem.truth if truth and problem.truth is not None else problem.expert
    return _most(problem, expert - d, stationary=stationary)


def misshown(problem: Problem, *, stationary: bool) -> Float[Array, ""]:
    """sup_μ ⟨μ, d̂_E − d_E⟩ of demonstrations that stand for a known truth. The bounds of the whole
    regret pair π_k with μ_{k+1}, the ledger's term of the demonstrations has μ_k: ⟨μ_K, d̂_E − d_E⟩
    is what lies between."""
    if problem.truth is None:
        return jnp.zeros(())
    return _most(problem, problem.expert - problem.truth, stationary=stationary)


def _most(problem: Problem, gain: Occupancy, *, stationary: bool) -> Float[Array, ""]:
    gain = jnp.sum(gain, axis=0, keepdims=True) if stationary else gain
    return jnp.sum(problem.best(gain) * gain)


def hand_out(learner: Learner, state: Any, problem: Problem, protocol: practice.RunShape) -> Policy:
    """The policy that a user is handed: of the two averages and the last iterate the one of the
    least gap, as far as the learner can tell (see `core.mixture`)."""
    if state.mixture is None:
        return state.pi
    policies = jnp.concatenate([mixtures.policies(state.mixture, state.pi), state.pi[None]])
    told = mixtures.averages(state.mixture)
    last = learner.foresee(state, problem)
    known = told if last is None else jnp.concatenate([told, last[None]])
    stationary = protocol.stationary_reward
    gaps = jax.vmap(lambda d: imitation_gap(problem, d, stationary=stationary))(known)
    return policies[jnp.where(state.k > 0, jnp.argmin(gaps), 2)]


def glance(problem: Problem, pi: Policy, state: Any) -> Glimpse:
    """Where the policy goes and what the reward says, summed up over stages."""
    visits = jnp.sum(mdps.occupancy(problem.mdp, pi), axis=0)
    reward = jnp.mean(problem.table(state.mu), axis=0)
    return Glimpse(visits.astype(jnp.float32), reward.astype(jnp.float32))


@double
@eqx.filter_jit
def start(
    learner: Learner, problem: Problem, protocol: practice.RunShape, *, keys: Key[Array, " batch"]
) -> Any:
    """The state of each run before its first update. All runs share one k."""

    def first(key: Array) -> Any:
        return learner.init(problem, protocol, key=jax.random.fold_in(key, 0))

    axes = one_clock(jax.eval_shape(first, keys[0]))
    return jax.vmap(first, out_axes=axes)(keys)


def one_clock(state: Any) -> Any:
    """Batch axes of a state: the first of everything, none of k."""
    return eqx.tree_at(lambda s: s.k, jax.tree.map(lambda _: 0, state), None)


def numbers(settings: Any) -> Any:
    """Batch axes of settings: the first of everything, none of what is one number for all."""
    return jax.tree.map(lambda x: 0 if jnp.ndim(x) else None, settings)


class Terms(NamedTuple):
    """What a batch of runs goes on with, beside its state."""

    learner: Learner
    problem: Problem
    settings: Any
    protocol: practice.RunShape
    marks: Int[Array, " marks"]
    keys: Key[Array, " batch"]


@double
def advance(
    learner: Learner,
    state: Any,
    problem: Problem,
    settings: Any,
    protocol: practice.RunShape,
    marks: Int[Array, " marks"],
    *,
    keys: Key[Array, " batch"],
) -> Run:
    """Iterate to the last of `marks` (updates done, ascending), measuring at each.

    One compiled program: a scan over the marks, around a loop over iterations, around the step,
    batched over seeds and settings. Iteration k draws from `fold_in(key, k)`, so a run depends
    neither on where it was stopped nor on what shares its batch.

    `state` is used up: the program goes on in its memory, of which the rings of a long window need
    much.
    """
    return _advance(Terms(learner, problem, settings, protocol, marks, keys), state)


@eqx.filter_jit(donate="all-except-first")
def _advance(terms: Terms, state: Any) -> Run:
    learner, problem, settings, protocol, marks, keys = terms

    # All runs of a batch are at the same k. Saying so to vmap keeps the rings' writes in place; a
    # k of each run's own would copy whole rings every iteration.
    axes = one_clock(state)

    @functools.partial(jax.vmap, in_axes=(axes, numbers(settings), 0), out_axes=axes)
    def iterate(state: Any, settings: Any, key: Array) -> Any:
        here = jax.random.fold_in(key, state.k + 1)
        return learner.step(state, problem, settings, protocol, key=here)[0]

    @functools.partial(jax.vmap, in_axes=(axes, 0))
    def measure(state: Any, key: Array) -> Measured:
        return at_a_mark(learner, state, problem, protocol, key=key)

    def to_mark(state: Any, mark: Array) -> tuple[Any, Measured]:
        state = jax.lax.fori_loop(
            state.k, mark, lambda _, state: iterate(state, settings, keys), state
        )
        return state, measure(state, keys)

    state, measured = jax.lax.scan(to_mark, state, marks)
    handing = jax.vmap(lambda s: hand_out(learner, s, problem, protocol), in_axes=(axes,))
    return Run(state, handing(state), jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), measured))


def at_a_mark(
    learner: Learner,
    state: Any,
    problem: Problem,
    protocol: practice.RunShape,
    *,
    key: Key[Array, ""],
) -> Measured:
    """Return and gap of the policy handed out and of the last iterate, the regret so far and, where
    asked for, a glimpse."""
    mdp = problem.mdp

    def worth(pi: Policy) -> tuple[Array, Array]:
        d = mdps.occupancy(mdp, pi)
        gap = imitation_gap(problem, d, stationary=protocol.stationary_reward, truth=True)
        if protocol.episodes:  # drawn apart from the run, which goes on as if not measured
            here = jax.random.fold_in(jax.random.fold_in(key, 2**32 - 1), state.k)
            return sampled_return(mdp, pi, protocol, key=here), gap
        return jnp.sum(d * mdp.reward), gap

    pi = hand_out(learner, state, problem, protocol)
    last = worth(state.pi)
    handed = last if state.mixture is None else worth(pi)
    glimpse = glance(problem, pi, state) if protocol.replay else None
    if state.ledger is None:
        return Measured(*handed, *last, None, None, glimpse)
    regret = regret_of(state, problem)
    told = None
    if state.surprise is not None and protocol.known and protocol.gradients == "exact":
        expert = problem.expert if problem.truth is None else problem.truth
        told = adaptive.certificate(state.surprise, expert) + regret.demonstrations
        told = told + misshown(problem, stationary=protocol.stationary_reward)
    return Measured(*handed, *last, regret, told, glimpse)


def regret_of(state: Any, problem: Problem) -> Regret:
    """What the ledger of a run has booked so far."""
    return ledgers.regret_of(
        state.ledger,
        problem.mdp,
        state.k,
        mean=None if state.mixture is None else state.mixture.mean,
        shown=problem.expert,
        expert=problem.expert if problem.truth is None else problem.truth,
        best=problem.best,
    )


@double
def run(
    learner: Learner,
    problem: Problem,
    settings: Any,
    protocol: practice.RunShape,
    marks: np.ndarray,
    *,
    keys: Key[Array, " batch"],
    pieces: int = 1,
    progress: Callable[[int], object] = lambda done: None,
) -> Run:
    """A whole run, in `pieces` calls of one compiled program; `progress(updates)` after each.

    More than one piece lets a progress bar move and Ctrl-C through; the results are the same. The
    batch is dealt out over all devices.
    """
    runs = len(keys)
    keys, settings = devices.deal((keys, settings), runs)
    problem = devices.copy_to_all(problem)
    size = -(-len(marks) // pieces)
    state, measured = start(learner, problem, protocol, keys=keys), []
    policy = state.pi
    for first in range(0, len(marks), size):
        piece = marks[first : first + size]
        padded = np.pad(piece, (0, size - len(piece)), mode="edge")  # same shape, same program
        done = advance(
            learner, state, problem, settings, protocol, jnp.asarray(padded, jnp.int32), keys=keys
        )
        state, policy = jax.block_until_ready((done.state, done.policy))
        measured.append(jax.tree.map(operator.itemgetter(np.s_[:, : len(piece)]), done.measured))
        progress(int(piece[-1]))
    whole = Run(state, policy, jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), *measured))
    return devices.gather(whole, runs)
