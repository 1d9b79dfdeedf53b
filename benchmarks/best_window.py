"""The best fixed N, measured, beside N* by the paper and by the sharper bound.

    python benchmarks/best_window.py

The paper's algorithm, one trajectory per iteration and the actions that were taken. Rooms of
growing S; random MDPs of growing A (S = 12, H = 8, mean over three MDPs). K = 1,000, 5 seeds.
Prints a Markdown table: the N of least final AIL regret, all N within 1 % of it, the regret of
N = 1 and N = 256 relative to the best, and both formulas.
"""

import numpy as np
from problems import random_mdp

from understudy.envs.empty_room import demonstrations, empty_room
from understudy.experiments.sweeps import runner
from understudy.learners.config import Config
from understudy.learners.finite import expert_occupancy, plan
from understudy.learners.tabular import Problem
from understudy.theory import bounds
from understudy.theory.bounds import Sizes

WINDOWS = [2**i for i in range(9)]
K, SEEDS = 1_000, (0, 1, 2, 3, 4)


def regrets(name: str, problem: Problem, steps: str) -> np.ndarray:
    common = {
        "batch": 1, "interactions": K * problem.mdp.horizon, "steps": steps, "marks": 1,
        "visits": "sampled", "handed": "last",
    }  # fmt: skip
    plans = [plan(problem.mdp, Config(window=str(N), **common)) for N in WINDOWS]
    runs = runner.run_jobs([runner.Job(name, problem, p, SEEDS) for p in plans]).runs
    return np.array([np.asarray(run.regret.ail)[:, -1].mean() for run in runs])


def main() -> None:
    print("| problem | steps | best N | within 1 % | N = 1 | N = 256 | N* paper | N* sharper |")
    print("|---|---|---:|---|---:|---:|---:|---:|")
    cases: list[tuple[str, list[Problem]]] = []
    for n in (3, 5, 7, 9):
        room = empty_room(n)
        cases.append(
            (f"room, S = {n * n}", [Problem(room, expert_occupancy(room, demonstrations(n)))])
        )
    for A in (2, 4, 8, 16):
        mdps = [random_mdp(seed, S=12, A=A, H=8) for seed in range(3)]
        cases.append((f"random, A = {A}", [Problem(m, expert_occupancy(m, None)) for m in mdps]))
    for name, problems in cases:
        H, S, A = problems[0].mdp.shape
        size = Sizes(S=S, A=A, H=H, K=K)
        stars = [bounds.best_window(size, sharp=sharp) for sharp in (False, True)]
        for steps in ("theory", "paper"):
            found = np.mean(
                [regrets(f"{name}{i}", p, steps) for i, p in enumerate(problems)], axis=0
            )
            share = found / found.min()
            near = ", ".join(str(N) for N, s in zip(WINDOWS, share, strict=True) if s <= 1.01)
            print(
                f"| {name} | {steps} | {WINDOWS[int(found.argmin())]} | {near} | {share[0]:.3f} | "
                f"{share[-1]:.3f} | {stars[0]:.2f} | {stars[1]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
