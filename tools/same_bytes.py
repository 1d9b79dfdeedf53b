"""Whether two commits learn the same: short runs of each kind by both, compared byte by byte.

    python tools/same_bytes.py OLD [NEW]     # NEW: HEAD if not given

Every run's `policy.safetensors` and `metrics.jsonl` are compared; what differs is listed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPARED = ("policy.safetensors", "metrics.jsonl")
FEW = ("--interactions", "400", "--marks", "2", "--episodes", "1")
RUNS = {
    "a table": ("train", "EmptyRoom-5x5", "--interactions", "1000"),
    "a table, P learned": (
        "train", "EmptyRoom-3x3", "--batch", "1", "--window", "4", "--model", "learned",
        "--interactions", "900",
    ),
    "a table, policy gradient": (
        "train", "FrozenLake-v1", "--horizon", "20", "--player", "gradient", "--interactions",
        "600",
    ),
    "features of a table": (
        "train", "EmptyRoom-3x3", "--features", "onehot", "--interactions", "600",
    ),
    "a linear MDP": ("train", "RandomLinear-d4", "--interactions", "600", "--window", "all"),
    "features of vectors": (
        "train", "CartPole-v1", "--features", "fourier:1", "--interactions", "2000", "--horizon",
        "50",
    ),
    "networks, cloned": ("train", "Hopper-v5", *FEW),
    "networks, from scratch": ("train", "HalfCheetah-v5", "--warm-start", "none", *FEW),
    "SQIL": ("train", "Hopper-v5", "--method", "sqil", *FEW),
    "cloning alone": ("train", "Hopper-v5", "--method", "bc", "--marks", "1", "--episodes", "1"),
    "an expert": (
        "expert", "Pendulum-v1", "--interactions", "600", "--explore", "200", "--marks", "2",
        "--episodes", "1",
    ),
}  # fmt: skip


def learn(commit: str, work: Path) -> dict[str, dict[str, bytes]]:
    """The files of every run, by the code of a commit."""
    tree, found = work / "tree", {}
    subprocess.run(["git", "worktree", "add", "-q", "--detach", tree, commit], cwd=ROOT, check=True)
    try:
        for name, words in RUNS.items():
            out = work / name.replace(" ", "-").replace(",", "")
            subprocess.run(
                [sys.executable, "-m", "understudy", *words, "--out", out],
                env={**os.environ, "PYTHONPATH": str(tree / "src")},
                cwd=work,
                capture_output=True,
                check=True,
            )
            found[name] = {file: (out / file).read_bytes() for file in COMPARED}
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    return found


def main() -> int:
    asked = argparse.ArgumentParser(description="Whether two commits learn the same.")
    asked.add_argument("old")
    asked.add_argument("new", nargs="?", default="HEAD")
    asked = asked.parse_args()
    with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
        old, new = learn(asked.old, Path(a)), learn(asked.new, Path(b))
    differ = 0
    for name in RUNS:
        others = [file for file in COMPARED if old[name][file] != new[name][file]]
        differ += bool(others)
        print(f"{name}: {'the same' if not others else 'differs in ' + ', '.join(others)}")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
