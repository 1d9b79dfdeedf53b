"""MiniGrid's own tasks as tables: their size, and how soon the default is near the optimum.

    python benchmarks/grid_tables.py                # layout 0 of five tasks; some minutes
    python benchmarks/grid_tables.py --layout 1     # the same tasks, otherwise laid out
    python benchmarks/grid_tables.py MiniGrid-Empty-8x8-v0 --layout 3

The optimal policy is imitated with the default settings for 200 interactions, an update after
each. Returns are exact, in the table; `played` is the mean of 20 episodes in MiniGrid itself. `0.95
after` is the first mark, of one every two interactions, from which on the return stays at 0.95 of
the optimum; the AIL regret is that of the whole run.
"""

import argparse
import time

import numpy as np

import understudy
from understudy.envs import catalog
from understudy.experiments.train_tables import play

TASKS = ("FourRooms", "SimpleCrossingS9N1", "LavaGapS5", "DoorKey-5x5", "Unlock")
INTERACTIONS, NEAR = 200, 0.95
COLUMNS = ("task", "states", "H", "optimum", "0.95 after", "return", "played", "AIL regret",
           "exploring", "learning")  # fmt: skip


def row(name: str) -> str:
    """One task, in Markdown."""
    begun = time.perf_counter()
    task = catalog.find(name)
    explored = time.perf_counter() - begun
    config = understudy.Config(interactions=INTERACTIONS)
    result = understudy.train(name, config=config)
    assert result.regret is not None
    best = float(understudy.optimum(task.mdp, task.mdp.reward)[1])
    near = np.flatnonzero(result.returns < NEAR * best)
    first = int(result.interactions[near[-1] + 1]) if len(near) else 0
    played = play(task.name, result.policy.pi, task.mdp.horizon, 20, seed=0)
    told = (
        task.name,
        f"{task.mdp.states:,}",
        task.mdp.horizon,
        f"{best:.4f}",
        first,
        f"{result.returns[-1]:.4f}",
        f"{played.mean():.4f}",
        f"{result.regret['ail'][-1]:.0f}",
        f"{explored:.0f} s",
        f"{result.summary['seconds']:.0f} s",
    )
    return f"| {' | '.join(map(str, told))} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", nargs="*", default=[f"MiniGrid-{task}-v0" for task in TASKS])
    parser.add_argument("--layout", type=int, default=0)
    asked = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |")
    print("|---|" + "---:|" * (len(COLUMNS) - 1))
    for task in asked.tasks:
        print(row(f"{task}-layout{asked.layout}"), flush=True)


if __name__ == "__main__":
    main()
