"""The rooms that come with the package, move by move."""

import numpy as np
import pytest

from understudy.core.errors import UserError
from understudy.envs import making, wide_grid

STAY, UP, DOWN, LEFT, RIGHT = range(5)


@pytest.mark.parametrize(
    ("cell", "action", "slip", "ends"),
    [
        ((20, 20), STAY, 0, (20, 20)),
        ((20, 20), UP, 0, (16, 20)),  # a tenth of forty cells
        ((20, 20), DOWN, 0, (24, 20)),
        ((20, 20), LEFT, 0, (20, 16)),
        ((20, 20), RIGHT, 0, (20, 24)),
        ((20, 20), STAY, 1, (18, 20)),  # a slip is half a move
        ((20, 20), STAY, 2, (22, 20)),
        ((20, 20), STAY, 3, (20, 18)),
        ((20, 20), RIGHT, 4, (20, 26)),
        ((1, 38), UP, 4, (0, 39)),  # walls stop it
        ((39, 0), DOWN, 3, (39, 0)),
    ],
)
def test_a_move_on_the_wide_grid(cell, action, slip, ends):
    got = wide_grid.land(40, np.array(cell), np.array(action), np.array(slip))
    assert tuple(got) == ends


def test_features_are_the_bilinear_weights_of_where_a_move_leads():
    """Weights of 8×8 knots: they sum to one, and their centre is the place."""
    phi = wide_grid.features(40)
    x = np.array([[0.5, 0.25], [0.0, 1.0]])
    weights = phi.of(x).reshape(2, 5, 8, 8)
    np.testing.assert_allclose(weights.sum((2, 3)), 1)
    rows = weights.sum(3) @ np.arange(8) / 7
    columns = weights.sum(2) @ np.arange(8) / 7
    step = 4 / 39
    moved = np.array([(0, 0), (-step, 0), (step, 0), (0, -step), (0, step)])
    expected = np.clip(x[:, None] + moved, 0, 1)
    np.testing.assert_allclose(np.stack([rows, columns], -1), expected, atol=1e-12)


@pytest.mark.parametrize("n", [0, 19, 30, 1020])
def test_sizes_that_the_wide_grid_cannot_have(n):
    with pytest.raises(UserError, match="multiple of 20"):
        wide_grid.check_size(n)


def test_the_agent_looks_where_it_goes():
    """MiniGrid: 0 right, 1 down, 2 left, 3 up; who stays keeps looking there."""
    env = making.make("understudy/EmptyRoom-v0", size=3)
    env.reset(seed=0)
    looks = []
    for action in (RIGHT, DOWN, STAY, LEFT, UP):
        env.step(action)
        looks.append(env.unwrapped.agent_dir)
    assert looks == [0, 1, 1, 2, 3]
    env.close()


def test_the_picture_of_a_room():
    """Walls around, the goal in the last corner, the agent in the first; nothing is lit up."""
    env = making.make("understudy/EmptyRoom-v0", size=4, render_mode="rgb_array")
    env.reset(seed=0)
    grid, inner = env.unwrapped.grid, env.unwrapped
    assert (grid.width, grid.height) == (6, 6)
    kinds = {(x, y): getattr(grid.get(x, y), "type", None) for x in range(6) for y in range(6)}
    for (x, y), kind in kinds.items():
        edge = x in (0, 5) or y in (0, 5)
        assert kind == ("wall" if edge else "goal" if (x, y) == (4, 4) else None)
    assert (tuple(inner.agent_pos), inner.agent_dir, inner.state) == ((1, 1), 0, 0)
    assert inner.highlight is False
    first = env.render()
    env.step(RIGHT)
    assert (tuple(inner.agent_pos), inner.state) == ((2, 1), 1)
    assert not np.array_equal(first, env.render())
    env.step(DOWN)
    assert (tuple(inner.agent_pos), inner.state) == ((2, 2), 5)
    env.close()
