"""The rooms that come with the package, move by move."""

import numpy as np
import pytest
from random_mdps import dense

from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.envs import catalog, making, slippery_room, wide_grid

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


def test_the_slippery_room_moves_slips_and_rewards_as_its_docstring_says():
    """Every cell of a 3×3 room: nine moves in ten succeed, walls stop them, and what ends at the
    goal earns one."""
    room = catalog.find("SlipperyRoom-3x3")
    assert room.mdp.shape == (9, 9, 4)
    P = dense(room.mdp)[0]
    ways = [(-1, 0), (0, 1), (1, 0), (0, -1)]  # up, right, down, left
    for s, a in np.ndindex(9, 4):
        row, column = s // 3 + ways[a][0], s % 3 + ways[a][1]
        expected = np.zeros(9)
        expected[min(max(row, 0), 2) * 3 + min(max(column, 0), 2)] += 0.9
        expected[s] += 0.1
        np.testing.assert_allclose(P[s, a], expected)
        assert room.mdp.reward[0, s, a] == pytest.approx(expected[8])


def test_what_is_shown_in_the_slippery_room():
    """Right or down, and on to the goal; by the seed of the name, which the features go by too."""
    rooms = {seed: catalog.find(f"SlipperyRoom-5x5-seed{seed}") for seed in (0, 1)}
    assert catalog.find("SlipperyRoom-5x5").name == "SlipperyRoom-5x5"
    phi = [np.asarray(one.linear.phi.value) for one in rooms.values()]
    assert np.abs(phi[0] - phi[1]).min() > 0
    assert np.abs(phi[0]).max() <= 2
    apart = phi[0] - phi[0][:1]  # x_s + y_a: the same step from state to state for each action
    np.testing.assert_allclose(apart, np.broadcast_to(apart[:, :1], apart.shape), atol=1e-12)
    for one in rooms.values():
        assert len(one.demonstrations.observations) == 4
        for s, a in zip(one.demonstrations.observations, one.demonstrations.actions, strict=True):
            assert len(a) == 15
            assert s[0] == 0
            assert set(a) <= {1, 2}
            assert set(np.diff(s)) <= {0, 1, 5}
            assert (a[s[:-1] % 5 == 4] == 2).all()
            assert (a[(s[:-1] // 5 == 4) & (s[:-1] % 5 < 4)] == 1).all()
    exact = mdps.value(room := rooms[0].mdp, slippery_room.expert(5), room.reward)
    rng, gained = np.random.default_rng(0), []
    for _ in range(20_000):  # two coins of each kind decide all: how long eight moves take
        left = 8
        gained.append(0)
        for _ in range(15):
            left -= left > 0 and rng.random() < 0.9
            gained[-1] += left == 0
    assert float(exact) == pytest.approx(np.mean(gained), abs=0.05)


@pytest.mark.parametrize("name", ["SlipperyRoom-3x4", "SlipperyRoom-1x1", "SlipperyRoom-3"])
def test_slippery_rooms_that_there_are_not(name):
    with pytest.raises(UserError):
        catalog.find(name)
