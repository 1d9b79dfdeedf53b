"""Memory and files of a run of a million interactions: resident memory at every mark.

    python benchmarks/memory.py [INTERACTIONS]

Small networks and sixteen environments side by side, so that it takes minutes: what could grow
(replay, metrics, what the environments and compiled programs leave behind) is as in any run.
"""

import dataclasses
import sys
import tempfile
from pathlib import Path

from understudy.experiments import console
from understudy.experiments import train_networks as deep_train
from understudy.learners.deep import rehearsal
from understudy.learners.deep.config import PRESETS


def resident() -> float:
    """Megabytes of this process in memory."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def main() -> None:
    interactions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    console.err.quiet = True
    config = dataclasses.replace(
        PRESETS["fast"], interactions=interactions, envs=16, marks=20, episodes=2, hidden=16,
        batch=16, points=32, policy_steps=1, reward_steps=1, warm_start="none",
    )  # fmt: skip
    rows: list[tuple[int, float]] = []
    measure = rehearsal.evaluate

    def noted(place, *rest):  # pyright: ignore
        rows.append((place.interactions, resident()))
        print(f"{rows[-1][0]:>9,} interactions: {rows[-1][1]:,.0f} MB", flush=True)
        return measure(place, *rest)

    rehearsal.evaluate = noted
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        deep_train.train("Hopper-v5", config, out=run)
        sizes = {path.name: path.stat().st_size for path in sorted(run.iterdir())}
    quarter, end = (rows[len(rows) // 4][1], rows[-1][1])
    print(f"from a quarter to the end: {end - quarter:+,.0f} MB ({end / quarter - 1:+.1%})")
    print("files: " + ", ".join(f"{name} {size:,}" for name, size in sizes.items()))


if __name__ == "__main__":
    main()
