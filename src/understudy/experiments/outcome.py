"""What is written down of a run: a row a mark, and the regret beside its bounds."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from understudy.core import occupancy as occupancies
from understudy.core import window as windows
from understudy.core.model import theory_scale
from understudy.core.precision import double
from understudy.experiments import runs
from understudy.learners import linear
from understudy.learners.finite import AnyProblem, Plan
from understudy.learners.loop import Measured, misshown
from understudy.theory import linear_bounds
from understudy.theory import verification as check
from understudy.theory.bounds import Sizes

FLOW_TOLERANCE = 1e-6  # that of a given occupancy


class Outcome(NamedTuple):
    """What came out of a batch of runs, or of one."""

    measured: Measured  # leaves (marks,), by seed where it is a batch
    policy: Any  # handed out
    last_policy: Any
    reward: Any

    def of(self, i: int) -> "Outcome":
        """One run of the batch."""
        return jax.tree.map(lambda x: np.asarray(x[i]), self)

    @classmethod
    def unpractised(cls, policy: np.ndarray, value: float, gap: float, marks: int) -> "Outcome":
        """Of a method that learns nothing from practice: the same at every mark."""
        flat, level = np.full(marks, value), np.full(marks, gap)
        both = jnp.asarray(flat), jnp.asarray(level)
        seen = Measured(both[0], both[1], both[0], both[1], None, None, None)
        return cls(seen, policy, policy, np.zeros((1, 1, 1)))


@double
def record(
    folder: Path,
    request: Mapping[str, Any],
    summary: Mapping[str, Any],
    planned: Plan,
    problem: AnyProblem,
    one: Outcome,
) -> dict[str, Any]:
    """Write a run's folder; return its summary, with the ledger where one was kept."""
    seen = one.measured
    if not feasible(problem):  # no policy has that occupancy, and so no regret is bounded
        seen = dataclasses.replace(seen, certificate=None)
    booked = {} if seen.regret is None else {"ledger": ledger(seen, planned, problem)}
    summary = {**summary, **booked}
    replay = None if seen.glimpse is None else vars(seen.glimpse)
    learned = {"policy": one.policy, "reward": one.reward}
    if planned.protocol.mixture:
        learned["last_policy"] = one.last_policy
    with runs.recording(folder, request) as draft:
        runs.append(draft, rows(planned, seen))
        runs.finish(draft, learned, summary, replay)
    return summary


def ends(planned: Plan, seen: Measured) -> dict[str, float]:
    """Return and imitation gap at the last mark: of the policy handed out and, where that is
    another, of the last iterate."""
    return at_mark(planned, seen, -1)


def at_mark(planned: Plan, seen: Measured, i: int) -> dict[str, float]:
    """The same at any mark."""
    of_it = {"return": float(seen.returns[i]), "gap": float(seen.gap[i])}
    if not planned.protocol.mixture:
        return of_it
    return {
        **of_it,
        "last_return": float(seen.last_returns[i]),
        "last_gap": float(seen.last_gap[i]),
    }


@double
def rows(planned: Plan, seen: Measured) -> list[dict[str, Any]]:
    """A row a mark of one run: interactions, updates, returns, gaps, and the regret by term."""
    listed = []
    for i, (n, k) in enumerate(zip(planned.interactions, planned.marks, strict=True)):
        row: dict[str, Any] = {
            "interactions": int(n),
            "updates": int(k),
            **at_mark(planned, seen, i),
        }
        if seen.regret is not None:
            account = jax.tree.map(lambda x, i=i: np.asarray(x[i]).tolist(), seen.regret)
            row["regret"] = vars(account)
        if seen.certificate is not None:
            row["certificate"] = float(seen.certificate[i])
        listed.append(row)
    return listed


def step_sizes(planned: Plan) -> dict[str, float]:
    """The step sizes that were set, by name."""
    if planned.protocol.adaptive:
        return {}
    mirror = planned.protocol.player == "mirror"
    step = planned.settings.sigma if mirror else planned.settings.ascent
    return {"sigma" if mirror else "ascent": float(step), "eta": float(planned.settings.eta)}


def feasible(problem: AnyProblem) -> bool:
    """Whether the expert that the ledger compares with can be a policy at all."""
    expert = problem.expert if problem.truth is None else problem.truth
    return float(occupancies.flow_gap(problem.mdp, expert)) < FLOW_TOLERANCE


def mean_lags(beta: str, lag: np.ndarray, N: np.ndarray) -> np.ndarray:
    """Σ_n (n−1) β_n of each update: how old, in updates, what its window holds is in the mean."""
    if beta == "uniform":
        return (N - 1) / 2
    each = {}
    reuse = windows.Reuse(jnp.ones(()), jnp.ones(()), jnp.asarray(lag))  # one shape: compiled once
    for size in np.unique(N):
        shares = np.asarray(windows.weights(reuse, beta, jnp.asarray(size)))  # type: ignore
        each[size] = float(shares @ np.arange(len(lag)))
    return np.array([each[n] for n in N])


@double
def ledger(seen: Measured, planned: Plan, problem: AnyProblem) -> dict[str, Any]:
    """The regret at the end of one run whose ledger was kept, each term beside its bounds."""
    assert seen.regret is not None
    H, S, A = problem.mdp.shape
    rewards, whole_bonus = None, theory_scale(H, S, A, planned.iterations)
    covered = not (isinstance(problem, linear.Problem) and problem.rewards == "cube")
    if isinstance(problem, linear.Problem) and problem.rewards != "cube":
        of = {"ball": linear_bounds.ball, "box": linear_bounds.box}[problem.rewards]
        rewards = of(problem.linear.d)
    p, settings, K = planned.protocol, planned.settings, planned.iterations
    k = np.arange(1, K + 1)
    c, alpha = float(settings.reuse.c), float(settings.reuse.alpha)
    pace = k**-0.5 if p.anytime else np.ones(K)
    N = np.clip(np.floor(c * k**alpha + 1e-9), 1, k).astype(int)
    setting = check.Setting(
        sigma=float(settings.sigma) * pace if p.player == "mirror" else None,
        eta=float(settings.eta) * pace,
        windows=N,
        lags=mean_lags(p.beta, np.asarray(settings.reuse.lag), N),
        leader=p.rewarder == "leader",
        trajectories=p.steps == H and p.points is None,
        uniform=p.beta == "uniform",
        staged=not p.stationary_reward,
        bonus_scale=None if p.known else float(settings.bonus) / whole_bonus,
        rewards=rewards,
        covered=covered,
        feasible=feasible(problem),
        corrected=p.correction != "none",
        modelled=p.gradients == "modelled",
        exact=p.gradients == "exact",
        features=problem.linear.d if isinstance(problem, linear.Problem) else None,
        adaptive=p.adaptive,
        certificate=None if seen.certificate is None else float(seen.certificate[-1]),
        misshown=float(misshown(problem, stationary=p.stationary_reward)),
    )
    last = jax.tree.map(lambda x: x[-1], seen.regret)
    size = Sizes(S=S, A=A, H=H, K=K, B=p.lanes)
    return check.beside(last, size, setting)
