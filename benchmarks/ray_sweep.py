"""Sixty short runs on this machine's cores, by our own runner and on a Ray started for them.

    python benchmarks/ray_sweep.py

Both begin with compiled programs on the disk. What Ray costs besides the runs: its start, and its
overhead per run.
"""

import dataclasses
import os
import tempfile
import time
from pathlib import Path

from understudy.experiments import console
from understudy.experiments.sweeps import cluster, sweep_file, sweep_run, workers

ASKED = """
envs = ["Hopper-v5"]
seeds = 30
[config]
interactions = 1600
marks = 4
episodes = 1
warmup = 160
hidden = 32
warm_start = "none"
[grid]
window = ["32", "all"]
"""


def main() -> None:
    console.err.quiet = True
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", f"{folder}/compiled")
        (out / "asked.toml").write_text(ASKED)
        asked = sweep_file.read(out / "asked.toml")
        begun = time.perf_counter()
        with cluster.joined(cluster.Cluster("ray")):
            started = time.perf_counter() - begun
        seconds = {}
        sweep_run.run(dataclasses.replace(asked, seeds=(0,)), out / "compiling")
        for name, on in (("local", None), ("ray", cluster.Cluster("ray"))):
            done = sweep_run.run(asked, out / name, on)
            seconds[name] = done["seconds"]
            print(f"{name:8} {done['runs']} runs in {done['seconds']:6.1f} s")
    cores = len(workers.cores())
    more = (seconds["ray"] - started - seconds["local"]) * cores / 60
    print(f"Ray's start alone: {started:.1f} s")
    print(f"throughput, Ray / local: {seconds['local'] / seconds['ray']:.2f}")
    each = seconds["local"] * cores / 60
    print(f"overhead per run, start apart: {more:+.2f} s of a core, where a run takes {each:.1f}")


if __name__ == "__main__":
    main()
