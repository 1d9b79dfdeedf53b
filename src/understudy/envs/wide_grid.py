"""WideGrid n×n: a slippery room of S = n² cells with a few features, however large n is.

A cell is seen as its position in [0, 1]². Actions stay, or move a tenth of the side; one move in
five slips by a twentieth to some side. The start is one corner. Features are where the move leads,
by bilinear weights on 8×8 knots: d = 64, and they average, so ‖φ‖ ≤ 1. The task's reward is the
feature of the corner opposite. The same room at every n, only finer.

`table` is the room as a finite MDP, to compute with; the learner on vectors plays `WideGridEnv`.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.core.mdp import MDP
from understudy.core.vector_features import FeatureMap

MOVES = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)])  # stay, up, down, left, right
SLIPS = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)])
CHANCES = np.array([0.8, 0.05, 0.05, 0.05, 0.05])
KNOTS = 8
HORIZON = 40


def check_size(n: int) -> None:
    if not 20 <= n <= 1000 or n % 20:
        raise UserError(f"The grid's size is {n}; it must be a multiple of 20, up to 1,000.")


def land(n: int, cell: np.ndarray, a: np.ndarray, slip: np.ndarray) -> np.ndarray:
    """The cell (…, 2) that a move ends in; walls stop it."""
    return np.clip(cell + n // 10 * MOVES[a] + n // 20 * SLIPS[slip], 0, n - 1)


def features(n: int) -> FeatureMap:
    """φ(x, a): bilinear weights of where a leads from x, if it does not slip."""

    def of(x: np.ndarray) -> np.ndarray:
        target = np.clip(x[:, None] + n // 10 / (n - 1) * MOVES, 0, 1) * (KNOTS - 1)
        knot = np.arange(KNOTS)
        row, column = (np.maximum(1 - np.abs(target[..., i, None] - knot), 0) for i in (0, 1))
        return np.einsum("nai,naj->naij", row, column).reshape(len(x), len(MOVES), -1)

    return FeatureMap(of, len(MOVES), KNOTS**2)


def positions(n: int) -> np.ndarray:
    """Every cell as it is seen, (n², 2)."""
    return np.stack(np.divmod(np.arange(n * n), n), axis=-1) / (n - 1)


def table(n: int, *, horizon: int = HORIZON) -> MDP:
    """The room as a finite MDP."""
    check_size(n)
    cells = np.stack(np.divmod(np.arange(n * n), n), axis=-1)[:, None, None]
    actions, slips = np.arange(len(MOVES))[:, None], np.arange(len(SLIPS))
    ends = land(n, cells, actions, slips) @ (n, 1)
    succ = np.broadcast_to(ends, (n * n, len(MOVES), len(SLIPS))).copy()
    prob = np.broadcast_to(CHANCES, succ.shape).copy()
    for i in range(1, len(SLIPS)):  # at a wall two slips may end alike: one keeps both chances
        for j in range(i):
            same = (succ[..., i] == succ[..., j]) & (prob[..., j] > 0)
            prob[..., j] += np.where(same, prob[..., i], 0)
            prob[..., i] = np.where(same, 0, prob[..., i])
    goal = features(n)(positions(n))[..., -1]
    return mdps.build(succ[None], prob[None], horizon=horizon, nu=np.eye(n * n)[0], reward=goal)


class WideGridEnv(gymnasium.Env):
    """The room to play in. It costs the same per step at every n."""

    def __init__(self, size: int = 100, horizon: int = HORIZON):
        check_size(size)
        self.size, self.horizon = size, horizon
        self.observation_space = spaces.Box(0.0, 1.0, (2,), np.float64)
        self.action_space = spaces.Discrete(len(MOVES))
        self.phi = features(size)
        self.cell, self.age = np.zeros(2, dtype=int), 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.cell, self.age = np.zeros(2, dtype=int), 0
        return self.cell / (self.size - 1), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        a = int(action)
        gained = float(self.phi.of(self.cell[None] / (self.size - 1))[0, a, -1])
        slip = np.array(self.np_random.choice(len(SLIPS), p=CHANCES))
        self.cell, self.age = land(self.size, self.cell, np.array(a), slip), self.age + 1
        return self.cell / (self.size - 1), gained, False, self.age >= self.horizon, {}
