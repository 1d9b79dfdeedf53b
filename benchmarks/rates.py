"""AIL regret against K, and its exponent: is it sublinear, and where the paper has no guarantee?

    python benchmarks/rates.py     # prints a Markdown table, draws docs/figures/rates.png

EmptyRoom 3×3, known transitions, one trajectory per iteration, 3 seeds, K from 500 to 16,000.
"""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from understudy.envs.empty_room import demonstrations, empty_room
from understudy.experiments.figures import STYLE, colour, line_style
from understudy.experiments.sweeps import runner
from understudy.learners.config import Config
from understudy.learners.finite import expert_occupancy, plan
from understudy.learners.tabular import Problem

KS = (500, 1_000, 2_000, 4_000, 8_000, 16_000)
WINDOWS = ("1", "4", "32", "k^0.4", "all", "adaptive")
SEEDS = (0, 1, 2)


def regrets(steps: str) -> dict[str, np.ndarray]:
    """Mean AIL regret by window, an entry a K. Every K is a run of its own: steps depend on it."""
    room = empty_room(3)
    problem = Problem(room, expert_occupancy(room, demonstrations(3)))
    found: dict[str, list[float]] = {w: [] for w in WINDOWS}
    for K in KS:
        jobs = [
            runner.Job(
                0,
                problem,
                plan(
                    room,
                    Config(window=w, batch=1, interactions=K * room.horizon, steps=steps, marks=1),
                ),
                SEEDS,
            )
            for w in WINDOWS
        ]
        for w, run in zip(WINDOWS, runner.run_jobs(jobs).runs, strict=True):
            found[w].append(float(np.asarray(run.regret.ail)[:, -1].mean()))
    return {w: np.array(values) for w, values in found.items()}


def exponent(values: np.ndarray) -> float:
    return float(np.polyfit(np.log(KS), np.log(values), 1)[0])


def main() -> None:
    print("| steps | window | " + " | ".join(f"K = {K:,}" for K in KS) + " | exponent |")
    print("|---|---|" + "---:|" * (len(KS) + 1))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 3.5), layout="constrained")
        panels = figure.subplots(1, 2)
        for panel, steps in zip(panels, ("theory", "paper"), strict=True):
            found = regrets(steps)
            for w, values in found.items():
                rate = exponent(values)
                cells = " | ".join(f"{v:,.0f}" for v in values)
                print(f"| {steps} | {w} | {cells} | {rate:.2f} |", flush=True)
                label, style = f"N = {w}: K^{rate:.2f}", f"o{line_style(w)}"
                panel.loglog(KS, values, style, ms=3, color=colour(w), label=label)
            panel.loglog(KS, found["1"][0] * np.sqrt(np.array(KS) / KS[0]), "k:", lw=1, label="√K")
            panel.set_title(f"{steps}'s step sizes", fontsize=10)
            panel.set_xlabel("updates, K")
            panel.legend(fontsize=7)
        panels[0].set_ylabel("AIL regret")
        figure.savefig(Path(__file__).parent.parent / "docs/figures/rates.png", dpi=160)


if __name__ == "__main__":
    main()
