"""A small sweep, and its runs as one table of pandas: a line for each run and mark."""

import tempfile
from pathlib import Path

import pandas as pd

from understudy.experiments import stored_runs
from understudy.experiments.sweeps import sweep_run
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners.config import Config

# A sweep is data: environments, seeds, the settings of all runs, and a grid of those that vary.
# Every update sees 32 points; a window of N policies supplies them, so each owes 32 / N new ones.
PAPERS = {"points": 32, "steps": "paper", "visits": "sampled", "handed": "last"}
sweep = Sweep(
    name="windows",
    envs=("EmptyRoom-3x3", "EmptyRoom-5x5"),
    seeds=(0, 1, 2),
    config=Config(interactions=2_000, marks=10, **PAPERS),
    grid={"window": ("1", "32")},
)

# Runs go to a folder each, and the same call skips those that are there: keep yours.
with tempfile.TemporaryDirectory() as folder:
    sweep_run.run(sweep, Path(folder))
    runs, skipped = stored_runs.load(Path(folder))  # whatever cannot be read is told, not raised
assert not skipped, skipped

table = pd.concat(
    pd.DataFrame({"env": run.env, "N": int(run.window), "seed": run.seed,
                  "interactions": run.interactions, "updates": run.updates,
                  "share": run.returns / run.expert_return, "regret": run.regret["ail"]})
    for run in runs
)  # fmt: skip
print(f"{len(runs)} runs, {len(table)} lines")
last = table[table["interactions"] == table["interactions"].max()]
# Regret is a sum over updates, and a larger N makes more of them: only the mean can be compared.
last = last.assign(regret_per_update=last["regret"] / last["updates"])
print(last.groupby(["env", "N"])[["share", "regret_per_update"]].agg(["mean", "std"]).round(3))
