"""Experts of ours, for environments with discrete actions: written by hand, or the optimum."""

from collections.abc import Callable

import numpy as np

from understudy.core import mdp as mdps
from understudy.core.demonstrations import Demonstrations
from understudy.demos import rollout
from understudy.envs import wide_grid


def balance(x: np.ndarray) -> int:
    """CartPole: push to the side the pole falls to, leaning back to the middle; it never falls."""
    position, speed, angle, turning = x
    return int(angle + 0.4 * turning + 0.05 * position + 0.1 * speed > 0)


def swing(x: np.ndarray) -> int:
    """MountainCar: push the way the car rolls."""
    return 2 if x[1] >= 0 else 0


EXPERTS: dict[str, Callable[[np.ndarray], int]] = {
    "CartPole-v1": balance,
    "MountainCar-v0": swing,
}


def across_the_wide_grid(
    n: int, episodes: int, *, seed: int, horizon: int = wide_grid.HORIZON
) -> Demonstrations:
    """Episodes of WideGrid's optimal policy, states as positions."""
    mdp = wide_grid.table(n, horizon=horizon)
    pi = np.asarray(mdps.optimum(mdp, mdp.reward)[0])
    shown, seen = rollout.sample(mdp, pi, episodes, seed=seed), wide_grid.positions(n)
    return Demonstrations(
        [seen[s] for s in shown.observations], shown.actions, shown.rewards, shown.terminated
    )
