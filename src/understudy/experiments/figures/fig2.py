"""Figure 2: networks in three MuJoCo tasks.

The equal estimation budget again: N policies supply the m points of a reward update, so each owes
m // N of them. With our settings m is 256, and an iteration has at least 8 interactions, for its
steps are what a run costs, and as many steps whatever N is. With the paper's m is 2,048, and there
is a step of the policy player for each interaction. With `fresh` every N updates equally often.
"""

import dataclasses
import functools
from typing import Any

from understudy.experiments.figures import drawing
from understudy.experiments.figures.claims import Curves, decide, difference, spread
from understudy.experiments.figures.figure import Figure, on_curves, return_table
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners.deep.config import PRESETS, DeepConfig, Preset

OURS = DeepConfig(  # nothing of the warm start, whose terms would blur what a window does
    interactions=100_000, marks=20, warm_start="none", warmup=1_000, cloning=0.0, noise=0.0,
    audition=0, demo_share=0.5, policy_steps=6, batch=128,
)  # fmt: skip
WINDOWS = ("1", "4", "32", "256", "all")
LEAST = 8  # new interactions of an iteration


def sweep(preset: Preset = "fast", fresh: int | None = None) -> Sweep:
    """Every N by the equal estimation budget, or with so many new interactions an iteration."""
    like_ours = dataclasses.replace(PRESETS[preset], interactions=100_000, marks=20)
    config = OURS if preset == "fast" else like_ours
    owed = [0 if N == "all" else config.points // int(N) for N in WINDOWS]
    each = [max(LEAST, n) if fresh is None else fresh for n in owed]
    words = ["fig2", *([preset] if preset != "fast" else []), *([f"fresh{fresh}"] if fresh else [])]
    return Sweep(
        name="-".join(words),
        envs=("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5"),
        seeds=(0, 1, 2),
        config=config,
        grid={"window, fresh": tuple(zip(WINDOWS, each, strict=True))},
    )


SWEEP = sweep()


def claims(curves: Curves) -> list[dict[str, Any]]:
    """Networks in three MuJoCo tasks: every N > 1 beats N = 1, and a very large one adds little."""
    reused = [N for N in curves.windows if N != "1"]
    large = [N for N in reused if N == "all" or int(N) > 32]
    small_ones = [N for N in reused if N not in large]
    found = []
    for task in curves.rooms:
        by = {N: curves.shares(task, N) for N in curves.windows}
        gains = {N: difference(by[N], by["1"]) for N in reused}
        found.append(
            decide(
                f"Every N > 1 beats N = 1 in {task}",
                ", ".join(f"N = {N}: {spread(y)}" for N, y in by.items()),
                all(gain > 0 for gain, _ in gains.values()),
                "the share of the expert's return, averaged over the run, is above N = 1's in the "
                "mean over seeds",
            )
        )
        least = min(small_ones, key=int)
        gain, error = gains[least]
        found.append(
            decide(
                f"A small N already helps in {task}",
                f"N = {least} is {gain:+.2f} ± {error:.2f} of the expert above N = 1",
                gain > 2 * error,
                f"N = {least} is above N = 1 by more than two standard errors of the difference",
            )
        )
        if not large:
            continue
        best, top = (max(some, key=lambda N: by[N].mean()) for some in (small_ones, large))
        gain, error = difference(by[top], by[best])
        found.append(
            decide(
                f"A very large N gains nothing significant in {task}",
                f"N = {top} against N = {best}: {gain:+.2f} ± {error:.2f} of the expert",
                gain <= 2 * error,
                "the best of the large windows is not above the best of N ≤ 32 by more than two "
                "standard errors of the difference",
            )
        )
    return found


FIGURE = Figure(
    SWEEP, functools.partial(drawing.curves, band="stderr"), on_curves(claims), return_table
)
