"""How runs with networks went: who was handed out, who practised, and what decided.

    python tools/draw_lead.py results/one --seed 1 --out docs/figures/lead

A column a task: above, the return as a share of the expert's, of the policy handed out and of
practice; below, what the clone and the average earned of the learned reward, an episode, when they
were auditioned.
"""

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from understudy.experiments import stored_runs
from understudy.experiments.comparison import share
from understudy.experiments.figures import drawing

HANDED, PRACTICE, CLONE, AVERAGE = "#D55E00", "#0072B2", "#009E73", "#CC79A7"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="without its ending")
    asked = parser.parse_args()
    found = [run for run in stored_runs.load(asked.runs)[0] if run.seed == asked.seed]
    if not found:
        parser.error(f"{asked.runs} has no finished run of seed {asked.seed}")
    with matplotlib.rc_context(drawing.STYLE):
        figure = Figure(figsize=(2.6 * len(found) + 0.6, 4.2), layout="constrained")
        axes = figure.subplots(2, len(found), squeeze=False, sharex="col")
        for column, run in zip(axes.T, sorted(found, key=lambda run: run.env), strict=True):
            draw(column, run)
        axes[0, 0].set_ylabel("return / expert's")
        axes[1, 0].set_ylabel("learned reward an episode")
        drawing.legend(figure, axes.T[0], columns=5)
        drawing.save(figure, asked.out)


def draw(column: Any, run: stored_runs.StoredRun) -> None:
    above, below = column
    lines = (run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    above.plot(run.interactions, share(run, run.returns), color=HANDED, label="handed out")
    seen = [row for row in rows if row.get("practice_return") is not None]
    gained = np.array([row["practice_return"] for row in seen])
    x = [row["interactions"] for row in seen]
    above.plot(x, share(run, gained), color=PRACTICE, lw=1, ls="--", label="practice")
    above.axhline(1, color="black", ls=(0, (3, 3)), lw=1, label="expert")
    above.set_title(run.env)
    heard = [row for row in rows if row.get("earned")]
    x = [row["interactions"] for row in heard]
    below.plot(x, [row["clone_earned"] for row in heard], color=CLONE, lw=1, ls="--", label="clone")
    below.plot(x, [row["earned"] for row in heard], color=AVERAGE, label="average")
    judged = [row for row in rows if "lead" in row]
    for before, after in itertools.pairwise(judged):
        if after["lead"] != before["lead"]:
            above.axvline(after["lead_since"], color=HANDED, alpha=0.15, lw=3)
    below.set_xlabel("interactions")
    below.xaxis.set_major_formatter(drawing.thousands(int(run.interactions[-1])))


if __name__ == "__main__":
    main()
