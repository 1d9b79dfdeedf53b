"""Gymnasium's toy-text tasks: how close to the expert, and what a learned model or few
demonstrations cost.

    python benchmarks/toy_text.py      # prints the table, draws docs/figures/frozen_lake.png

The learner as it is by default; returns are those of the policy handed out.
"""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from understudy.core import mdp as mdps
from understudy.demos.rollout import sample
from understudy.envs import catalog
from understudy.experiments.figures.drawing import STYLE
from understudy.learners.config import Config
from understudy.learners.finite import imitate

SEEDS = range(5)
LAKE = ("FrozenLake-v1", 60)
ROWS = [
    ("known transitions", LAKE, None, Config(interactions=20_000)),
    ("learned, shared counts", LAKE, None, Config(interactions=20_000, model="learned")),
    (
        "learned, counts per stage",
        LAKE,
        None,
        Config(interactions=120_000, model="learned", counts="stage"),
    ),
    ("known, 20 demonstrations", LAKE, 20, Config(interactions=20_000)),
    ("known transitions", ("CliffWalking-v1", 30), None, Config(interactions=20_000)),
    (
        "learned, shared counts",
        ("CliffWalking-v1", 30),
        None,
        Config(interactions=20_000, model="learned"),
    ),
]


def main() -> None:
    print(
        f"{'task':16} {'setting':28} {'interactions':>12} {'return':>8} {'worst':>8} {'optimum':>8}"
    )
    curves = {}
    for label, (name, horizon), demonstrations, config in ROWS:
        mdp = catalog.find(name, horizon=horizon).mdp
        best = float(mdps.optimum(mdp, mdp.reward)[1])
        if demonstrations is None:
            result = imitate(mdp, None, config, seeds=SEEDS)
            returns, at = result.returns, result.interactions
        else:  # each seed has demonstrations of its own
            expert = np.asarray(mdps.optimum(mdp, mdp.reward)[0])
            each = [
                imitate(mdp, sample(mdp, expert, demonstrations, seed=seed), config, seeds=[seed])
                for seed in SEEDS
            ]
            returns, at = np.concatenate([r.returns for r in each]), each[0].interactions
        final = returns[:, -1]
        print(
            f"{name:16} {label:28} {config.interactions:12,d} {final.mean():8.3f} "
            f"{final.min():8.3f} {best:8.3f}"
        )
        if name == LAKE[0]:
            curves[label], best_of_lake = (at, returns), best
    draw(curves, best_of_lake, Path(__file__).parent.parent / "docs/figures/frozen_lake.png")


def draw(curves: dict, best: float, path: Path) -> None:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.6, 3.4), layout="constrained")
        panel = figure.subplots()
        for (label, (at, returns)), colour in zip(
            curves.items(), ("#0072B2", "#009E73", "#E69F00", "#CC79A7"), strict=True
        ):
            mean, std = returns.mean(0), returns.std(0)
            panel.fill_between(at, mean - std, mean + std, color=colour, alpha=0.2, lw=0)
            panel.plot(at, mean, color=colour, label=label)
        panel.axhline(best, color="black", linestyle="--", linewidth=1, label="optimal expert")
        panel.set_xscale("symlog", linthresh=1000)
        panel.set_xlim(0, 120_000)
        panel.set_xticks([0, 1_000, 10_000, 100_000], ["0", "1,000", "10,000", "100,000"])
        panel.set_xlabel("interactions (linear to 1,000, then logarithmic)")
        panel.set_ylabel("success within 60 steps")
        panel.set_title("FrozenLake-v1 4×4, slippery", fontsize=10)
        panel.legend(loc="lower right")
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, dpi=160)


if __name__ == "__main__":
    main()
