"""Figure 1's code reading beside what the authors' own code gave and took on one machine.

    python benchmarks/authors.py                # five draws of features and demonstrations
    python benchmarks/authors.py --draws 40     # more of them, a run each

The reference: one run a setting of github.com/fairytale9/off_policy_ail_minigrid, whose features,
demonstrations and practice are drawn anew in each, so that its spread is that over our draws.
"""

import argparse
import dataclasses
import time
from collections.abc import Iterable

import jax
import numpy as np

from understudy.envs import catalog
from understudy.experiments.figures.readings import CODE, SMOOTHED
from understudy.learners.config import Config
from understudy.learners.finite import imitate

AT = (200, 500, 1_000, 2_000, 5_000, 10_000)
REFERENCE = {  # (n, N): returns at AT, CPU seconds of one run where they were taken
    (3, 1): ((0.31, 0.36, 1.76, 4.90, 5.26, 5.23), 6),
    (3, 4): ((0.56, 3.92, 5.06, 5.18, 4.78, 4.83), None),
    (3, 32): ((5.47, 5.24, 5.54, 5.56, 5.57, 5.39), 23),
    (3, 128): ((5.45, 5.52, 4.84, 5.01, 5.58, 5.47), 80),
    (5, 1): ((0.03, 0.07, 0.43, 5.66, 6.71, 6.44), None),
    (5, 4): ((0.09, 5.99, 7.05, 7.07, 7.13, 7.12), None),
    (5, 32): ((6.99, 0.00, 2.66, 4.83, 6.53, 6.72), 66),
    (9, 32): ((4.01, 9.75, 9.53, 8.67, 9.80, 9.29), 278),
}


def row(values: Iterable[float]) -> str:
    return "  ".join(f"{v:6.2f}" for v in values)


def main(draws: int) -> None:
    settings = {c.window: c for c in CODE.sweep.settings() if isinstance(c, Config)}
    print("room  N        " + "  ".join(f"@{at:>5,}" for at in AT))
    for (n, N), (theirs, took) in REFERENCE.items():
        config = dataclasses.replace(settings[str(N)], handed="last")
        found, seconds = [], []
        for draw in range(draws):
            task = catalog.find(f"SlipperyRoom-{n}x{n}-seed{draw}")
            assert task.linear is not None
            begun = time.process_time()
            run = imitate(task.linear, task.demonstrations, config, rewards="cube", seeds=[draw])
            seconds.append(time.process_time() - begun)
            episodes = run.interactions // task.mdp.horizon
            found.append(
                [run.returns[0, (episodes > at - SMOOTHED) & (episodes <= at)].mean() for at in AT]
            )
        y = np.array(found)
        inside = sum(a <= v <= b for a, v, b in zip(y.min(0), theirs, y.max(0), strict=True))
        print(f"{n}×{n} {N:4}  theirs {row(theirs)}")
        print(f"          mean   {row(y.mean(0))}")
        print(f"          least  {row(y.min(0))}")
        print(f"          most   {row(y.max(0))}   {inside} of {len(AT)} between")
        cpu = min(seconds[1:])  # the first one compiles
        beside = "" if took is None else f", theirs {took}: {took / cpu:.0f} times"
        print(f"          CPU seconds of a run {cpu:.2f}{beside}", flush=True)
        jax.clear_caches()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The code's reading beside the code")
    parser.add_argument("--draws", type=int, default=5, help="two at least: the first one compiles")
    main(parser.parse_args().draws)
