"""AIL regret against K, and its exponent: is it sublinear, and where the paper has no guarantee?

    python benchmarks/rates.py     # prints a Markdown table, draws docs/figures/rates.png

The paper's algorithm, and the leader in place of its reward player: known transitions, one
trajectory per iteration, the actions that were taken, 3 seeds, K = 500, 2,000 and 8,000. Three
problems: EmptyRoom 3×3 with its demonstrations, a random MDP and a linear one with optimal experts.
"""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import ticker
from matplotlib.figure import Figure
from problems import random_mdp

from understudy.core.linear_mdp import LinearMDP
from understudy.core.mdp import MDP
from understudy.envs import catalog
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.experiments.figures.drawing import STYLE
from understudy.experiments.figures.palette import colour, line_style
from understudy.experiments.sweeps import runner
from understudy.learners.config import Config
from understudy.learners.finite import AnyProblem, plan, pose

KS = (500, 2_000, 8_000)
WINDOWS = ("1", "all")
STEPS = ("paper", "theory")
SEEDS = (0, 1, 2)
ROWS = {
    **{f"N = {w}": {"window": w} for w in WINDOWS},
    "leader": {"rewarder": "leader"},
}


def cases() -> dict[str, tuple[MDP | LinearMDP, AnyProblem]]:
    """Where, and what to imitate there."""
    room, random = empty_room(3), random_mdp(0)
    H, S, A = random.shape
    linear = catalog.find("RandomLinear-d8").linear
    assert linear is not None
    return {
        "room 3×3": (room, pose(room, demonstrations(3))),
        f"random, S = {S}, A = {A}, H = {H}": (random, pose(random, None)),
        "RandomLinear-d8": (linear, pose(linear, None)),
    }


def regrets(
    name: str, where: MDP | LinearMDP, problem: AnyProblem, steps: str
) -> dict[str, np.ndarray]:
    """Mean AIL regret by row, an entry a K. Every K is a run of its own: steps depend on it."""
    found: dict[str, list[float]] = {row: [] for row in ROWS}
    for K in KS:
        common = {
            "batch": 1, "interactions": K * problem.mdp.horizon, "steps": steps, "marks": 1,
            "visits": "sampled", "handed": "last",
        }  # fmt: skip
        jobs = [  # a name each: shared programs would give every window the slots of the longest
            runner.Job((name, row), problem, plan(where, Config(**common, **asked)), SEEDS)
            for row, asked in ROWS.items()
        ]
        for row, run in zip(ROWS, runner.run_jobs(jobs).runs, strict=True):
            found[row].append(float(np.asarray(run.regret.ail)[:, -1].mean()))
    return {row: np.array(values) for row, values in found.items()}


def exponent(values: np.ndarray) -> float:
    return float(np.polyfit(np.log(KS), np.log(values), 1)[0])


def look(row: str) -> dict[str, str]:
    if row == "leader":
        return {"color": "black", "linestyle": "-"}
    window = row.removeprefix("N = ")
    return {"color": colour(window), "linestyle": line_style(window)}


def main() -> None:
    listed = cases()
    print("| problem | steps | reward | " + " | ".join(f"K = {K:,}" for K in KS) + " | exponent |")
    print("|---|---|---|" + "---:|" * (len(KS) + 1))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.4, 6.4), layout="constrained")
        panels = figure.subplots(len(STEPS), len(listed))
        for column, (name, (where, problem)) in enumerate(listed.items()):
            for panel, steps in zip(panels[:, column], STEPS, strict=True):
                found = regrets(name, where, problem, steps)
                for row, values in found.items():
                    rate = exponent(values)
                    cells = " | ".join(f"{v:,.0f}" for v in values)
                    print(f"| {name} | {steps} | {row} | {cells} | {rate:.2f} |", flush=True)
                    label = f"{row}: K^{rate:.2f}"
                    panel.loglog(KS, values, marker="o", ms=3, label=label, **look(row))
                root = found["N = 1"][0] * np.sqrt(np.array(KS) / KS[0])
                panel.loglog(KS, root, "k:", lw=1, label="√K")
                panel.set_title(f"{name}, {steps}'s step sizes", fontsize=9)
                panel.xaxis.minorticks_off()
                panel.set_xticks(KS, [f"{K:,}" for K in KS])
                panel.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:,.0f}"))
                panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
                panel.yaxis.minorticks_off()
                panel.legend(fontsize=7)
        for panel in panels[-1]:
            panel.set_xlabel("updates, K")
        for panel in panels[:, 0]:
            panel.set_ylabel("AIL regret")
        figure.savefig(Path(__file__).parent.parent / "docs/figures/rates.png", dpi=160)


if __name__ == "__main__":
    main()
