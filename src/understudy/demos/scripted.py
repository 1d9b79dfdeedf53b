"""Experts written by hand, for environments with discrete actions."""

from collections.abc import Callable

import gymnasium
import numpy as np

from understudy.demos.demonstrations import Demonstrations


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


def record(
    world: gymnasium.Env, act: Callable[[np.ndarray], int], episodes: int, *, seed: int
) -> Demonstrations:
    """Whole episodes of a scripted expert."""
    observations, actions, rewards, ends = [], [], [], []
    for i in range(episodes):
        x, _ = world.reset(seed=seed + 10_000 + i)  # apart from the learner's own
        seen, taken, gained, over, terminated = [x], [], [], False, False
        while not over:
            taken.append(act(x))
            x, r, terminated, truncated, _ = world.step(taken[-1])
            seen.append(x)
            gained.append(float(r))
            over = terminated or truncated
        observations.append(np.array(seen))
        actions.append(np.array(taken))
        rewards.append(np.array(gained))
        ends.append(bool(terminated))
    return Demonstrations(observations, actions, rewards, ends)
