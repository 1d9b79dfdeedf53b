"""From names, tables and objects to tasks: sizes, limits and where they begin."""

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.wrappers import TimeLimit
from random_mdps import dense

from understudy.core.errors import UserError
from understudy.envs import catalog, empty_room, making, sampled, toy_text, wide_grid
from understudy.envs.given import given
from understudy.envs.registration import SPECS


def test_random_linear_mdps_by_name():
    """Twelve states, three actions, six stages unless it is said otherwise; each seed its own."""
    one, two, other = (catalog.find(f"RandomLinear-d4{s}") for s in ("", "-seed0", "-seed7"))
    assert one.mdp.shape == (6, 12, 3)
    assert (one.linear.d, one.name) == (4, "RandomLinear-d4")
    np.testing.assert_array_equal(one.mdp.reward, two.mdp.reward)
    assert np.abs(np.asarray(one.mdp.reward - other.mdp.reward)).max() > 0.1
    assert catalog.find("RandomLinear-d4", horizon=2).mdp.horizon == 2


def test_rooms_by_name():
    for name, n in (("EmptyRoom-4x4", 4), ("understudy/EmptyRoom-v0", 5), ("EmptyRoom-3x3-v0", 3)):
        assert catalog.room_size(name) == n
    assert catalog.room_size("EmptyRoom-4") is None
    with pytest.raises(UserError, match="not square"):
        catalog.room_size("EmptyRoom-4x5")
    task = catalog.find("EmptyRoom-4x4", horizon=7)
    assert (task.mdp.shape, task.name) == ((7, 16, 5), "understudy/EmptyRoom-4x4-v0")
    assert [len(a) for a in task.demonstrations.actions] == [7] * 4
    assert {f"understudy/EmptyRoom-{n}x{n}-v0" for n in (3, 5, 9)} < set(SPECS)


@pytest.mark.parametrize(
    ("name", "horizon", "states", "steps"),
    [
        ("EmptyRoom-4x4", None, 16, 12),
        ("EmptyRoom-4x4", 5, 16, 5),
        ("understudy/EmptyRoom-v0", None, 25, 15),
    ],
)
def test_rooms_to_play_in_are_as_long_as_their_tables(name, horizon, states, steps):
    env = catalog.make(name, horizon=horizon)
    assert (env.observation_space.n, env.action_space.n) == (states, 5)
    env.reset(seed=0)
    cut = [env.step(0)[3] for _ in range(steps)]
    assert cut == [False] * (steps - 1) + [True]
    env.close()


@pytest.mark.parametrize(("n", "fits"), [(1, False), (2, True), (1000, True), (1001, False)])
def test_rooms_have_sides_of_2_to_1000(n, fits):
    if fits:
        assert len(empty_room.demonstrations(n, horizon=1)) == 4
        return
    for make in (empty_room.demonstrations, empty_room.empty_room):
        with pytest.raises(UserError, match="from 2 to 1,000"):
            make(n, horizon=1)


def test_four_ways_through_a_room_of_three_and_then_they_stay():
    """Numbers of states: 0 1 2 / 3 4 5 / 6 7 8. One at the goal, −0.1 elsewhere."""
    shown = empty_room.demonstrations(3, horizon=6)
    assert [o.tolist() for o in shown.observations] == [
        [0, 1, 2, 5, 8, 8, 8],
        [0, 3, 6, 7, 8, 8, 8],
        [0, 1, 4, 5, 8, 8, 8],
        [0, 3, 4, 7, 8, 8, 8],
    ]
    assert [a[4:].tolist() for a in shown.actions] == [[0, 0]] * 4
    np.testing.assert_allclose(shown.rewards, [[-0.1] * 4 + [1, 1]] * 4)
    assert shown.terminated == [False] * 4


def test_every_move_in_a_room_of_three():
    moves = {0: (0, 0), 1: (-1, 0), 2: (1, 0), 3: (0, -1), 4: (0, 1)}
    mdp = empty_room.empty_room(3)
    assert mdp.shape == (9, 9, 5)
    for i, j, a in np.ndindex(3, 3, 5):
        down, right = moves[a]
        to = i + down, j + right
        to = to if 0 <= to[0] < 3 and 0 <= to[1] < 3 else (i, j)
        assert int(mdp.succ[0, 3 * i + j, a, 0]) == 3 * to[0] + to[1]
    np.testing.assert_allclose(mdp.reward[0], [[-0.1] * 5] * 8 + [[1.0] * 5])


def test_horizons_up_to_a_million():
    assert catalog.find("FrozenLake-v1", horizon=10**6).mdp.horizon == 10**6
    assert catalog.find("FrozenLake-v1").mdp.horizon == 100  # Gymnasium's own


class Steps(gymnasium.Env):
    """States 2 … 5, each step one on; actions 1 and 2, which do the same. No table, no spec."""

    observation_space, action_space = Discrete(4, start=2), Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 2 + int(self.np_random.integers(2))
        return self.at, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.at = min(self.at + 1, 5)
        return self.at, 1.0, False, False, {}


def test_an_environment_without_a_table_is_sampled_and_says_so():
    task = catalog.of_env(Steps(), "Steps", horizon=3)
    assert (task.mdp.shape, task.first) == ((3, 4, 2), (2, 1))
    assert task.note.startswith("no P table: sampled 50,000 steps, 100.0%")
    np.testing.assert_array_equal(dense(task.mdp)[0, :, 0, 1:], np.eye(4)[[1, 2, 3, 3]][:, 1:])
    np.testing.assert_allclose(task.mdp.nu[:2], 0.5, atol=0.02)
    first, again, other = (
        sampled.from_samples(Steps(), horizon=3, interactions=500, seed=seed).mdp.nu
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_time_limits_by_wrapper_and_by_spec():
    assert catalog.time_limit(Steps()) is None
    assert catalog.time_limit(gymnasium.wrappers.OrderEnforcing(TimeLimit(Steps(), 7))) == 7
    with pytest.raises(UserError, match="sets no time limit"):
        catalog.of_env(Steps(), "Steps")
    lake = gymnasium.make("FrozenLake-v1")
    assert catalog.time_limit(lake) == 100
    assert catalog.of_env(TimeLimit(lake.unwrapped, 3), "Lake").mdp.horizon == 3
    named = Steps()
    named.spec = gymnasium.envs.registration.EnvSpec("Steps-v0", max_episode_steps=9)
    assert catalog.time_limit(named) == 9


def test_more_states_than_sampling_can_tell_about_are_refused():
    world = Steps()
    world.observation_space, world.action_space = Discrete(1_000_001), Discrete(2)
    with pytest.raises(UserError, match="at most 2,000,000 pairs"):
        sampled.from_samples(world, horizon=3)


def test_where_a_world_begins_is_asked_a_thousand_times_and_alike_every_time():
    nu = [toy_text.initial_distribution(Steps(), 4) for _ in range(2)]
    np.testing.assert_array_equal(nu[0], nu[1])
    np.testing.assert_allclose(nu[0] * 1000, np.round(nu[0] * 1000))
    np.testing.assert_allclose(nu[0], [0.5, 0.5, 0, 0], atol=0.05)


# --- tables --------------------------------------------------------------------------------------


def table(**change):
    """Two states, an action: 0 goes to 1, 1 stays; 0's outcome is changed."""
    told = {"p": 1.0, "to": 1, "r": 0.5, "over": False} | change
    return {0: {0: [tuple(told.values())]}, 1: {0: [(1, 1, 0, False)]}}


@pytest.mark.parametrize(
    "change", [{}, {"to": 0}, {"to": 1.0}, {"p": 1 + 9e-7}, {"r": -5}, {"over": 1}]
)
def test_outcomes_that_are_taken(change):
    mdp = toy_text.from_table(table(**change), nu=np.array([1.0, 0]), horizon=2)
    to = int(change.get("to", 1))
    assert float(dense(mdp)[0, 0, 0, to]) == pytest.approx(1)
    assert float(mdp.reward[0, 0, 0]) == pytest.approx(change.get("r", 0.5))


@pytest.mark.parametrize(
    "change",
    [
        {"p": -0.1}, {"p": 1 + 1.5e-6}, {"p": "x"}, {"to": -1}, {"to": 2}, {"to": 0.5},
        {"to": np.inf}, {"r": np.inf}, {"r": np.nan}, {"r": None},
    ],
)  # fmt: skip
def test_outcomes_that_are_refused(change):
    with pytest.raises(UserError, match="at state 0 and action 0, lists"):
        toy_text.from_table(table(**change), nu=np.array([1.0, 0]), horizon=2)


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        ({0: {0: [(1.0, 1, 0.0)]}, 1: {0: [(1, 1, 0, False)]}}, "lists a tuple of 3"),
        ({0: {0: [(1, 0, 0, False)]}, 2: {0: []}}, "at state 1 and action 0, has no entry"),
        ({0: {0: [(1, 0, 0, 0)]}, 1: {1: [(1, 0, 0, 0)]}}, "at state 1 and action 0, has no entry"),
        (
            {0: {0: [(1, 0, 0, 0)]}, 1: {0: [(1, 0, 0, 0)], 1: [(1, 0, 0, 0)]}},
            "has 1 actions, but 2 in state 1",
        ),
    ],
)
def test_tables_that_are_refused(spoilt, says):
    with pytest.raises(UserError, match=says):
        toy_text.from_table(spoilt, nu=np.array([1.0, 0]), horizon=2)


def test_an_end_that_cannot_happen_is_none():
    """State 1 ends by an outcome of probability zero alone, and 2 is reached by none: no sink."""
    never = {
        0: {0: [(1.0, 1, 1.0, False), (0.0, 0, 0.0, True), (0.0, 2, 0.0, False)]},
        1: {0: [(1.0, 0, 1.0, False)]},
        2: {0: [(1.0, 1, 1.0, True)]},
    }
    mdp = toy_text.from_table(never, nu=np.array([1.0, 0, 0]), horizon=2)
    assert (mdp.states, mdp.sink) == (3, None)
    np.testing.assert_array_equal(dense(mdp)[0, :2, 0], [[0, 1, 0], [1, 0, 0]])


def test_a_table_is_a_mapping_from_zero_on():
    world = Steps()
    for P, found in (({0: {}}, True), ({1: {}}, False), ([[]], False), (None, False)):
        world.P = P
        assert (toy_text.table_of(world) is not None) is found
    with pytest.raises(UserError, match="Steps has no P table"):
        toy_text.from_env(Steps(), horizon=3)


# --- the wide grid -------------------------------------------------------------------------------


def test_the_wide_grids_table_cell_by_cell():
    """Two cells a move, one a slip; one move in five slips, to each side alike."""
    n, sides = 20, [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]
    mdp = wide_grid.table(n)
    assert mdp.shape == (40, 400, 5)
    succ, prob = np.asarray(mdp.succ[0]), np.asarray(mdp.prob[0])
    for i, j, a in [*np.ndindex(3, 3, 5), (10, 10, 1), (19, 19, 2), (19, 0, 4), (7, 18, 4)]:
        by_hand = np.zeros(n * n)
        for slip, (down, right) in enumerate(sides):
            row = min(max(i + 2 * sides[a][0] + down, 0), n - 1)
            column = min(max(j + 2 * sides[a][1] + right, 0), n - 1)
            by_hand[n * row + column] += 0.8 if slip == 0 else 0.05
        found = np.zeros(n * n)
        np.add.at(found, succ[n * i + j, a], prob[n * i + j, a])
        np.testing.assert_allclose(found, by_hand, atol=1e-12)
        landing = min(max(i + 2 * sides[a][0], 0), 19), min(max(j + 2 * sides[a][1], 0), 19)
        bilinear = np.prod([max(1 - abs(7 * x / 19 - 7), 0) for x in landing])
        assert float(mdp.reward[0, n * i + j, a]) == pytest.approx(bilinear, abs=1e-12)
    assert float(mdp.nu[0]) == 1
    assert float(mdp.reward[0, -1, 0]) == 1
    some = wide_grid.positions(n)[[0, 1, 20, 399]] * 19
    np.testing.assert_allclose(some, [[0, 0], [0, 1], [1, 0], [19, 19]])
    assert wide_grid.table(n, horizon=3).horizon == 3


@pytest.mark.parametrize("n", [20, 1000])
def test_sizes_that_the_wide_grid_can_have(n):
    wide_grid.check_size(n)


def test_playing_on_the_wide_grid():
    env = making.make("understudy/WideGrid-v0", size=20, horizon=30)
    np.testing.assert_array_equal(env.reset(seed=0)[0], [0, 0])
    ends, gains, at = [], [], np.zeros(2)
    for t in range(30):
        action = 2 if t < 12 else 4 if t < 24 else 0
        before, (at, gained, over, cut, _) = at, env.step(action)
        assert (over, cut) == (False, t == 29)
        step = np.zeros(2)
        step[0 if action == 2 else 1] = 2 if action else 0
        ends.append(np.abs((at - before) * 19 - step).sum())
        gains.append(gained)
    assert (at > 0.8).all()
    assert gains[0] == 0
    assert max(gains) > 0.5
    assert env.observation_space.contains(at)
    first = env.reset(seed=1)[0]
    np.testing.assert_array_equal(first, [0, 0])
    env.close()
    whole = making.make("understudy/WideGrid-v0")
    assert (whole.unwrapped.size, whole.unwrapped.horizon) == (100, 40)
    slips = []
    for episode in range(10):
        at = whole.reset(seed=episode)[0]
        for _ in range(40):
            before, (at, *_, cut, _) = at, whole.step(0)
            slips.append(np.abs(at - before).sum() > 1e-9)
        assert cut
    assert np.mean(slips) == pytest.approx(0.17, abs=0.07)  # 0.2, fewer at a wall
    whole.close()


# --- objects and names ---------------------------------------------------------------------------


class Parts(Steps):
    observation_space = Dict(a=Box(-1, 1, (2,)), b=Discrete(3))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return {"a": np.zeros(2, np.float32), "b": 1}, {}


def test_what_is_seen_in_parts_is_made_a_vector():
    env = making.guarded_vectors(Parts(), "Parts")
    assert env.observation_space.shape == (5,)
    np.testing.assert_array_equal(env.reset()[0], [0, 0, 0, 1, 0])
    assert making.guarded_vectors(Steps(), "Steps").observation_space == Discrete(4, start=2)


@pytest.mark.parametrize(
    ("name", "vectors"),
    [
        ("CartPole-v1", True),
        ("FrozenLake-v1", False),
        ("understudy/WideGrid-v0", True),
        ("understudy/EmptyRoom-3x3-v0", False),
        ("EmptyRoom-3x3", False),
        ("probe:Point", True),
        ("no such thing", False),
    ],
)
def test_who_is_for_networks(name, vectors):
    assert making.continuous(name) is vectors


def test_an_object_is_copied_and_a_function_is_called():
    own = Steps()
    by_object, by_class, by_name = given(own), given(Steps), given("CartPole-v1")
    assert given(by_object) is by_object
    where = f"{__name__}:Steps"
    assert (by_object.name, by_class.name, by_name.name) == (where, where, "CartPole-v1")
    assert by_name.named() == {}
    assert by_class.named() == {"given": where}
    assert by_object.named()["given"].startswith("<Steps")
    for one in (by_object, by_class):
        made = one.make(4)
        assert made.unwrapped is not own
        made.reset(seed=0)
        assert [made.step(1)[3] for _ in range(4)] == [False] * 3 + [True]
        endless = one.make(None)
        endless.reset(seed=0)
        assert not any(endless.step(1)[3] for _ in range(20))
    assert by_name.make(3).spec.max_episode_steps == 3
    with pytest.raises(UserError, match="The environment is int"):
        given(3)
    with pytest.raises(UserError, match=r"gave int in place of a Gymnasium environment"):
        given(lambda: 3).make(None)


def test_an_object_that_cannot_be_copied_is_named():
    own = Steps()
    own.lock = (x for x in ())
    with pytest.raises(UserError, match="cannot be copied"):
        given(own).make(None)


def test_a_module_beside_the_user_comes_first(tmp_path, monkeypatch):
    for place in ("here", "elsewhere"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "some_world_of_mine.py").write_text(f"PLACE = {place!r}\n")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "elsewhere"), *sys.path])
    assert making.imported("some_world_of_mine").PLACE == "here"
    assert sys.path.count(str(tmp_path / "here")) == 1
    making.imported("some_world_of_mine")
    assert sys.path.count(str(tmp_path / "here")) == 1
    with pytest.raises(UserError, match=r"cannot be imported: .*; give 'module:Class'"):
        making.imported("no_such_world_of_mine")
