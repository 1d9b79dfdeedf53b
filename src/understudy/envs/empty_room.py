"""EmptyRoom n×n as in the paper (§5.1): the table, and the four hand-crafted demonstrations.

Start (1,1), goal (n,n), H = 3n, actions stay/up/down/left/right; a wall stops a move. Reward 1 at
the goal and −0.1 elsewhere, for the state in which the action is taken; reaching the goal does not
end the episode. State (i,j), row i and column j from the top left, has the number (i−1)·n + j−1.

`empty_room_env.py` is the same room in MiniGrid; a test plays both side by side.
"""

import itertools

import numpy as np

from understudy.core import mdp as mdps
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.mdp import MDP

MOVES = {"stay": (0, 0), "up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
STAY, UP, DOWN, LEFT, RIGHT = range(5)
GOAL_REWARD, STEP_REWARD = 1.0, -0.1


def successor(n: int, s: int, a: int) -> int:
    """Where action a leads from state s."""
    return moved(n, s, list(MOVES.values())[a])


def moved(n: int, s: int, by: tuple[int, int]) -> int:
    """The state so many rows and columns from state s, walls permitting."""
    i, j = divmod(s, n)
    return min(max(i + by[0], 0), n - 1) * n + min(max(j + by[1], 0), n - 1)


def reward(n: int, s: int) -> float:
    return GOAL_REWARD if s == n * n - 1 else STEP_REWARD


def empty_room(n: int, *, horizon: int | None = None) -> MDP:
    """The n×n room, H = 3n unless given."""
    check_size(n)
    S = n * n
    succ = np.array([[successor(n, s, a) for a in range(len(MOVES))] for s in range(S)])
    return mdps.build(
        succ[None, :, :, None],
        np.ones((1, S, len(MOVES), 1)),
        horizon=3 * n if horizon is None else horizon,
        nu=np.eye(S)[0],
        reward=np.array([reward(n, s) for s in range(S)]),
    )


def check_size(n: int) -> None:
    if not 2 <= n <= 1000:
        raise UserError(f"The room's size is {n}; it must be from 2 to 1,000.")


def demonstrations(n: int, *, horizon: int | None = None) -> Demonstrations:
    """Four shortest ways to the goal, then stay: along either wall, and two staircases."""
    check_size(n)
    H, m = 3 * n if horizon is None else horizon, n - 1
    ways = [
        [RIGHT] * m + [DOWN] * m,
        [DOWN] * m + [RIGHT] * m,
        [RIGHT, DOWN] * m,
        [DOWN, RIGHT] * m,
    ]
    actions = [(way + [STAY] * H)[:H] for way in ways]
    states = [
        list(itertools.accumulate(way, lambda s, a: successor(n, s, a), initial=0))
        for way in actions
    ]
    return Demonstrations(
        observations=[np.array(visited) for visited in states],
        actions=[np.array(way) for way in actions],
        rewards=[np.array([reward(n, s) for s in visited[:-1]]) for visited in states],
        terminated=[False] * len(ways),
    )
