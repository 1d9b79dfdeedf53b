"""The paper's figures as data, and one for its appendix.

Figures 1 and 3 use the equal estimation budget: every reward update sees m = 32 points; a window of
N policies supplies them, so each iteration owes max(1, 32 // N) interactions.
"""

import dataclasses

from understudy.config import Config
from understudy.experiments.sweep import Sweep

SHOWN = (200, 500, 1_000, 2_000, 5_000, 10_000)  # interactions in the printed table

FIGURE_1 = Sweep(  # mirror descent in three rooms
    name="fig1",
    envs=("EmptyRoom-3x3", "EmptyRoom-5x5", "EmptyRoom-9x9"),
    seeds=(0, 1, 2, 3, 4),
    config=Config(interactions=10_000, points=32, steps="paper", replay=True),
    grid={"window": ("1", "4", "32", "128")},
)

FIGURE_3 = dataclasses.replace(  # the same with policy gradient
    FIGURE_1, name="fig3", config=dataclasses.replace(FIGURE_1.config, player="gradient")
)

H_LINEAR = 6  # stages of RandomLinear

LINEAR = Sweep(  # the appendix's setting, which the paper does not measure: every K its own run
    name="linear",
    envs=("RandomLinear-d4", "RandomLinear-d8", "RandomLinear-d16", "RandomLinear-d32"),
    seeds=(0, 1, 2),
    config=Config(batch=1, steps="theory", marks=20),
    grid={
        "window": ("1", "4", "32", "128"),
        "interactions": tuple(H_LINEAR * K for K in (250, 500, 1_000, 2_000, 4_000, 8_000)),
    },
)

FIGURES = {sweep.name: sweep for sweep in (FIGURE_1, FIGURE_3, LINEAR)}


def quick(sweep: Sweep) -> Sweep:
    """About a minute: two environments, two seeds, and a name of its own."""
    return dataclasses.replace(
        sweep, name=f"{sweep.name}-quick", envs=sweep.envs[:2], seeds=sweep.seeds[:2]
    )
