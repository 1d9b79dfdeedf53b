"""Reuse as it is, against importance-corrected reuse: what correction costs in variance.

    python benchmarks/importance.py     # prints a table, draws docs/figures/importance.png

EmptyRoom 5×5, the paper's step sizes, one trajectory per iteration, 2,000 updates, 10 seeds.
"""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from understudy.config import Config
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.experiments.figures import STYLE
from understudy.imitation import imitate

WINDOWS = (1, 2, 4, 8, 16, 32, 64)
LABELS = {"none": "reused as it is", "path": "path ratios", "marginal": "true marginal ratios"}
COLOURS = {"none": "#0072B2", "path": "#D55E00", "marginal": "#009E73"}


def main() -> None:
    room, shown = empty_room(5), demonstrations(5)
    print("| N | correction | AIL regret | ± over seeds | shift | estimation |")
    print("|---:|---|---:|---:|---:|---:|")
    curves: dict[str, list[tuple[float, float]]] = {kind: [] for kind in LABELS}
    for N in WINDOWS:
        for kind in LABELS:
            config = Config(
                window=str(N), batch=1, interactions=2_000 * 15, correction=kind, marks=1
            )
            regret = imitate(room, shown, config, seeds=range(10)).regret
            ail = regret.ail[:, -1]
            curves[kind].append((ail.mean(), ail.std()))
            print(
                f"| {N} | {LABELS[kind]} | {ail.mean():,.0f} | {ail.std():,.0f} | "
                f"{regret.shift[:, -1].mean():,.0f} | {regret.estimation[:, -1].mean():,.0f} |",
                flush=True,
            )
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 3.4), layout="constrained")
        panel = figure.subplots()
        for i, (kind, points) in enumerate(curves.items()):
            mean, std = np.array(points).T
            side_by_side = np.array(WINDOWS) * 2 ** ((i - 1) / 12)
            panel.errorbar(
                side_by_side,
                mean,
                std,
                color=COLOURS[kind],
                marker="o",
                ms=3,
                capsize=2,
                label=LABELS[kind],
            )
        panel.set_xscale("log", base=2)
        panel.set_xticks(WINDOWS, [str(N) for N in WINDOWS])
        panel.set_xlabel("policies reused, N")
        panel.set_ylabel("AIL regret after 2,000 updates")
        panel.set_title("EmptyRoom 5×5: mean ± standard deviation of 10 seeds", fontsize=10)
        panel.legend()
        figure.savefig(Path(__file__).parent.parent / "docs/figures/importance.png", dpi=160)


if __name__ == "__main__":
    main()
