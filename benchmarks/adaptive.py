"""The adaptive window against every fixed N in hindsight, on fourteen problems.

    python benchmarks/adaptive.py trajectories   # one trajectory per iteration: final AIL regret
    python benchmarks/adaptive.py equal          # equal estimation budget: interactions to 0.95

Prints a Markdown table: the best fixed N, what it had, and the adaptive window's ratio to it.
Means over 5 seeds. Some five minutes each on two cores.
"""

import argparse
from collections.abc import Callable

import numpy as np
from problems import problems

from understudy.experiments.sweeps import runner
from understudy.learners.config import Config
from understudy.learners.finite import expert_return, plan
from understudy.learners.loop import Run
from understudy.learners.tabular import Problem

WINDOWS = [*(str(2**i) for i in range(9)), "adaptive"]
SEEDS = (0, 1, 2, 3, 4)
K = 1_000  # updates, one trajectory each
BUDGET = 10_000  # interactions under the equal estimation budget


def compare(
    name: str,
    problem: Problem,
    configs: dict[str, Config],
    score: Callable[[Run, runner.Job], float],
) -> list[str]:
    """One row: best fixed window, its score, the adaptive one's, and the ratio (least is best)."""
    jobs = [runner.Job(name, problem, plan(problem.mdp, c), SEEDS) for c in configs.values()]
    runs = runner.run_jobs(jobs).runs
    scores = {w: score(run, job) for w, run, job in zip(configs, runs, jobs, strict=True)}
    adaptive = scores.pop("adaptive")
    best = min(scores, key=scores.__getitem__)
    return [
        name,
        best,
        f"{scores[best]:,.0f}",
        f"{adaptive:,.0f}",
        f"{adaptive / scores[best]:.3f}",
    ]


def regret(run: Run, job: runner.Job) -> float:
    assert run.regret is not None
    return float(np.asarray(run.regret.ail)[:, -1].mean())


def interactions_to(run: Run, job: runner.Job, share: float = 0.95) -> float:
    """Interactions until the mean return over seeds first has `share` of the expert's."""
    mean = np.asarray(run.returns).mean(0)
    reached = np.flatnonzero(mean >= share * expert_return(job.problem))
    return float(job.plan.interactions[reached[0]]) if len(reached) else float("inf")


def main(protocol: str) -> None:
    steps = ("theory", "paper") if protocol == "trajectories" else ("paper",)
    print("| problem | steps | best fixed N | its score | adaptive | ratio |")
    print("|---|---|---:|---:|---:|---:|")
    worst = 0.0
    for name, problem in problems():
        for step in steps:
            if protocol == "trajectories":
                interactions = K * problem.mdp.horizon
                common = {"batch": 1, "interactions": interactions, "steps": step, "marks": 1}
                score = regret
            else:
                common = {"interactions": BUDGET, "steps": step, "marks": 1000, "ledger": False}
                score = interactions_to
            configs = {w: Config(window=w, **common) for w in WINDOWS}
            row = compare(name, problem, configs, score)
            worst = max(worst, float(row[-1]))
            print(f"| {row[0]} | {step} | {' | '.join(row[1:])} |", flush=True)
    print(f"\nLargest ratio: {worst:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("protocol", choices=["trajectories", "equal"])
    main(parser.parse_args().protocol)
