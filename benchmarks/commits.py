"""What an interaction costs by two commits: CPU time of one core, in turns, in one run.

    taskset -c 0 python benchmarks/commits.py OLD [NEW]     # NEW: HEAD if not given

Each learns HalfCheetah from one trajectory for 4,000 and for 12,000 interactions with each commit's
own defaults; the difference of the two is 8,000 interactions without cloning, compiling and most of
the measuring. Told are CPU seconds per 1,000 interactions, and the ratio of new to old.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEMOS = ROOT / "src/understudy/demos/data/medium/HalfCheetah-v5.npz"
FEW, MANY, ROUNDS = 4_000, 12_000, 3


def spent(tree: Path, interactions: int, task: str, demos: Path) -> float:
    """CPU seconds of one run by the code of a tree."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(
            [
                sys.executable, "-m", "understudy", "train", task, "--demos", demos,
                "--trajectories", "1", "--interactions", str(interactions), "--marks", "1",
                "--episodes", "1", "--out", Path(work) / "run",
            ],
            env={**os.environ, "PYTHONPATH": str(tree / "src")},
            cwd=work,
            capture_output=True,
            check=True,
        )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("old")
    asked.add_argument("new", nargs="?", default="HEAD")
    asked.add_argument("--task", default="HalfCheetah-v5")
    asked = asked.parse_args()
    demos = DEMOS.with_name(f"{asked.task}.npz")
    with tempfile.TemporaryDirectory() as made:
        trees = {name: Path(made) / name for name in ("old", "new")}
        costs: dict[str, list[float]] = {name: [] for name in trees}
        try:
            for name, commit in (("old", asked.old), ("new", asked.new)):
                command = ["git", "worktree", "add", "-q", "--detach", trees[name], commit]
                subprocess.run(command, cwd=ROOT, check=True)
            for _ in range(ROUNDS):
                for name, tree in trees.items():
                    few, many = (spent(tree, n, asked.task, demos) for n in (FEW, MANY))
                    costs[name].append(1_000 * (many - few) / (MANY - FEW))
                    print(f"{name}: {costs[name][-1]:.2f} s per 1,000 interactions", flush=True)
        finally:
            for tree in trees.values():
                subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT)
    old, new = (statistics.median(costs[name]) for name in ("old", "new"))
    print(f"median: old {old:.2f} s, new {new:.2f} s, ratio {new / old:.2f}")


if __name__ == "__main__":
    main()
