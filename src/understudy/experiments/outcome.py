"""What is written down of a run: a row a mark, and the regret beside its bounds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from understudy.core import occupancy as occupancies
from understudy.core.model import theory_scale
from understudy.core.precision import double
from understudy.experiments import runs
from understudy.learners import linear
from understudy.learners.finite import AnyProblem, Plan
from understudy.learners.loop import Glimpse
from understudy.theory import bounds
from understudy.theory import verification as check
from understudy.theory.bounds import Sizes
from understudy.theory.ledger import Regret

FLOW_TOLERANCE = 1e-6  # that of a given occupancy


class Outcome(NamedTuple):
    """What came out of a batch of runs, or of one."""

    returns: Any  # (marks,), by seed where it is a batch
    regret: Regret | None
    glimpse: Glimpse | None
    policy: Any
    reward: Any

    def of(self, i: int) -> "Outcome":
        """One run of the batch."""
        return jax.tree.map(lambda x: np.asarray(x[i]), self)


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
    booked = {} if one.regret is None else {"ledger": ledger(one.regret, planned, problem)}
    summary = {**summary, **booked}
    replay = None if one.glimpse is None else vars(one.glimpse)
    with runs.recording(folder, request) as draft:
        runs.append(draft, rows(planned, one.returns, one.regret))
        runs.finish(draft, {"policy": one.policy, "reward": one.reward}, summary, replay)
    return summary


@double
def rows(planned: Plan, returns: np.ndarray, regret: Regret | None) -> list[dict[str, Any]]:
    """A row a mark of one run: interactions, updates, the return, and the regret, term by term."""
    listed = []
    for i, (n, k) in enumerate(zip(planned.interactions, planned.marks, strict=True)):
        row: dict[str, Any] = {
            "interactions": int(n),
            "updates": int(k),
            "return": float(returns[i]),
        }
        if regret is not None:
            account = jax.tree.map(lambda x, i=i: np.asarray(x[i]).tolist(), regret)
            row["regret"] = vars(account)
        listed.append(row)
    return listed


def step_sizes(planned: Plan) -> dict[str, float]:
    """The step sizes in use, by name."""
    mirror = planned.protocol.player == "mirror"
    step = planned.settings.sigma if mirror else planned.settings.ascent
    return {"sigma" if mirror else "ascent": float(step), "eta": float(planned.settings.eta)}


def feasible(problem: AnyProblem) -> bool:
    """Whether the expert that the ledger compares with can be a policy at all."""
    expert = problem.expert if problem.truth is None else problem.truth
    return float(occupancies.flow_gap(problem.mdp, expert)) < FLOW_TOLERANCE


@double
def ledger(regret: Regret, planned: Plan, problem: AnyProblem) -> dict[str, Any]:
    """The regret at the end of one run, each term beside its bounds."""
    H, S, A = problem.mdp.shape
    rewards, whole_bonus = None, theory_scale(H, S, A, planned.iterations)
    if isinstance(problem, linear.Problem):
        of = {"ball": bounds.ball, "box": bounds.box}[problem.rewards]
        rewards = of(problem.linear.d)
    p, settings, K = planned.protocol, planned.settings, planned.iterations
    k = np.arange(1, K + 1)
    c, alpha = float(settings.reuse.c), float(settings.reuse.alpha)
    setting = check.Setting(
        sigma=float(settings.sigma) if p.player == "mirror" else None,
        eta=float(settings.eta),
        windows=np.clip(np.floor(c * k**alpha + 1e-9), 1, k).astype(int),
        trajectories=p.steps == H and p.points is None,
        uniform=p.beta == "uniform",
        adaptive=p.adaptive is not None,
        staged=not p.stationary_reward,
        bonus_scale=None if p.known else float(settings.bonus) / whole_bonus,
        rewards=rewards,
        feasible=feasible(problem),
        corrected=p.correction != "none",
    )
    last = jax.tree.map(lambda x: x[-1], regret)
    size = Sizes(S=S, A=A, H=H, K=K, B=p.lanes)
    return check.beside(last, size, setting)
