"""The paper's figures as data, and one for its appendix.

Figures 1 and 3 use the equal estimation budget: every reward update sees m = 32 points; a window of
N policies supplies them, so each iteration owes max(1, 32 // N) interactions.

So does Figure 2, with m = 256 and networks; an iteration there has at least 8 interactions, for its
steps are what a run costs, and as many steps whatever N is.
"""

import dataclasses

from understudy.core.errors import UserError
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners.config import Config, check
from understudy.learners.deep.config import DeepConfig, check_deep

# Interactions in the printed table.
SHOWN = (200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)

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

FIGURE_2 = Sweep(  # networks in three MuJoCo tasks
    name="fig2",
    envs=("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5"),
    seeds=(0, 1, 2),
    config=DeepConfig(interactions=100_000, points=256, marks=20, warm_start="none"),
    grid={"window, fresh": (("1", 256), ("4", 64), ("32", 8), ("256", 8), ("all", 8))},
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

FIGURES = {sweep.name: sweep for sweep in (FIGURE_1, FIGURE_2, FIGURE_3, LINEAR)}


def quick(sweep: Sweep) -> Sweep:
    """About a minute: two environments, two seeds, and a name of its own. With networks some
    minutes: the beginning of one task, one seed."""
    if isinstance(sweep.config, DeepConfig):
        return dataclasses.replace(
            sweep,
            name=f"{sweep.name}-quick",
            envs=sweep.envs[1:2],
            seeds=sweep.seeds[:1],
            config=dataclasses.replace(sweep.config, interactions=15_000, marks=15),
        )
    return dataclasses.replace(
        sweep, name=f"{sweep.name}-quick", envs=sweep.envs[:2], seeds=sweep.seeds[:2]
    )


def part(sweep: Sweep, windows: tuple[str, ...], seeds: int | None, episodes: int | None) -> Sweep:
    """Only these windows, so many seeds, and measured by so many episodes, where they are given."""
    if windows:
        if not isinstance(sweep.config, DeepConfig):
            raise UserError(f"--windows is for fig2; the claims of {sweep.name} need all its N.")
        ((together, pairs),) = sweep.grid.items()
        known = [N for N, _ in pairs]
        unknown = [N for N in windows if N not in known]
        if unknown:
            raise UserError(f"{sweep.name} has no N = {unknown[0]}; it has {', '.join(known)}.")
        if "1" not in windows or not {"4", "32"} & set(windows):
            raise UserError("--windows needs 1, and 4 or 32: the claims compare them.")
        kept = tuple(pair for pair in pairs if pair[0] in windows)
        sweep = dataclasses.replace(sweep, grid={together: kept})
    if seeds is not None:
        if not 1 <= seeds <= 100:
            raise UserError(f"--seeds is {seeds}; it must be from 1 to 100.")
        sweep = dataclasses.replace(sweep, seeds=tuple(range(seeds)))
    if episodes is not None:
        config = dataclasses.replace(sweep.config, episodes=episodes)
        check_deep(config) if isinstance(config, DeepConfig) else check(config)
        sweep = dataclasses.replace(sweep, config=config)
    return sweep
