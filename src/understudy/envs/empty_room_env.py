"""EmptyRoom as a MiniGrid environment: real grid, real rendering, the paper's five moves."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Goal
from minigrid.minigrid_env import MiniGridEnv

from understudy.envs.empty_room import DOWN, LEFT, MOVES, RIGHT, UP, reward

FACING = {RIGHT: 0, DOWN: 1, LEFT: 2, UP: 3}  # MiniGrid's directions; stay keeps the last


class EmptyRoomEnv(MiniGridEnv):
    """The n×n room inside MiniGrid's walls. Observations are state numbers, 0 … n²−1.

    MiniGrid turns and walks; the paper moves in four directions, so `step` moves the agent
    itself. An episode is truncated after H steps and never terminates.
    """

    def __init__(self, size: int = 5, horizon: int | None = None, **kwargs: Any):
        self.size, self.horizon = size, 3 * size if horizon is None else horizon
        super().__init__(
            mission_space=MissionSpace(lambda: "reach the green square and stay"),
            grid_size=size + 2,
            max_steps=self.horizon,
            see_through_walls=True,
            **{"highlight": False, **kwargs},
        )
        self.action_space = spaces.Discrete(len(MOVES))
        self.observation_space = spaces.Discrete(size * size)

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        self.put_obj(Goal(), width - 2, height - 2)
        self.agent_pos, self.agent_dir = (1, 1), 0

    @property
    def state(self) -> int:
        x, y = self.agent_pos
        return int((y - 1) * self.size + (x - 1))

    def gen_obs(self) -> Any:
        return self.state

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise gymnasium.error.InvalidAction(f"Action {action} is not in {self.action_space}.")
        gained = reward(self.size, self.state)  # r(s, a) of the state acted in, as in the table
        self.agent_dir = FACING.get(int(action), self.agent_dir)
        dy, dx = list(MOVES.values())[int(action)]
        target = (int(self.agent_pos[0]) + dx, int(self.agent_pos[1]) + dy)
        cell = self.grid.get(*target)
        if cell is None or cell.can_overlap():
            self.agent_pos = np.array(target)
        self.step_count += 1
        if self.render_mode == "human":
            self.render()
        return self.gen_obs(), gained, False, self.step_count >= self.max_steps, {}
