"""MiniGrid's own tasks as tables, beside MiniGrid itself: random actions step by step, and the best
return by a search in plain Python."""

import copy
import functools
import sys
from collections import deque

import gymnasium
import minigrid  # noqa: F401 (it registers its tasks)
import numpy as np
import pytest

from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.envs import catalog, layouts, making, numbered
from understudy.envs.layouts import Layout

TASKS = {"LavaGapS5": None, "DoorKey-5x5": 13, "SimpleCrossingS9N1": 15}  # and their horizons


@functools.cache
def table(task):
    return numbered.make(Layout(f"MiniGrid-{task}-v0"), TASKS[task]).found


def told(world):
    """MiniGrid's state in its own words: where, which way, with what; and every cell."""
    held = None if world.carrying is None else world.carrying.encode()
    return (*map(int, world.agent_pos), int(world.agent_dir), held, world.grid.encode().tobytes())


@pytest.mark.parametrize("task", TASKS)
def test_random_actions_are_as_in_the_table(task):
    """The same number for the same state, and another for another; rewards and ends alike."""
    found, rng = table(task), np.random.default_rng(0)
    best = np.asarray(mdps.optimum(found.mdp(), found.reward)[0]).argmax(-1)  # lest none ends
    world = gymnasium.make(f"MiniGrid-{task}-v0").unwrapped
    number_of, state_of, ends = {}, {}, 0
    for _ in range(40):
        world.reset(seed=0)
        s = 0
        for stage in range(min(found.horizon, 60)):
            assert number_of.setdefault(told(world), s) == s
            assert state_of.setdefault(s, told(world)) == told(world)
            a = int(rng.integers(7) if rng.random() < 0.2 else best[stage, s])
            _, gained, over, cut, _ = world.step(a)
            assert gained == found.gain(stage, s, a)
            assert not cut
            s = int(found.succ[s, a])
            assert over is (s == found.sink)
            if over:
                ends += 1
                break
    assert ends > 0
    assert len(number_of) > 10


def shortest(world):
    """Steps of the shortest way to a reward, by breadth in copies of the simulator."""
    world.reset(seed=0)
    seen, waiting = {told(world)}, deque([(world, 0)])
    while waiting:
        at, steps = waiting.popleft()
        for a in range(6):
            to = copy.deepcopy(at)
            _, gained, over, _, _ = to.step(a)
            if gained > 0:
                return steps + 1
            if not over and told(to) not in seen:
                seen.add(told(to))
                waiting.append((to, steps + 1))
    raise AssertionError("no way")


@pytest.mark.parametrize("task", TASKS)
def test_the_optimum_is_that_of_the_shortest_way(task):
    """MiniGrid pays 1 − 0.9 t/T for success after t of T steps."""
    found = table(task)
    world = gymnasium.make(f"MiniGrid-{task}-v0").unwrapped
    T = world.max_steps
    assert found.horizon == found.reward.shape[0] == (TASKS[task] or T)
    best = float(mdps.optimum(found.mdp(), found.reward)[1])
    assert best == pytest.approx(1 - 0.9 * shortest(world) / T, abs=1e-12)


def test_the_numbered_world_is_the_real_one():
    """Whatever seed it is reset with, and after any number of actions."""
    world = catalog.make("MiniGrid-DoorKey-5x5-v0", horizon=13)
    best = np.asarray(mdps.optimum(world.mdp, world.mdp.reward)[0]).argmax(-1)
    rng, own, ends = np.random.default_rng(2), {}, 0
    for episode in range(30):
        s = world.reset(seed=episode)[0]
        assert s == 0
        for stage in range(13):
            a = int(rng.integers(7) if rng.random() < 0.2 else best[stage, s])
            s, gained, over, _, _ = world.step(a)
            if over:
                ends += 1
                assert (s, gained > 0) == (world.found.sink, True)
                break
            assert own.setdefault(s, told(world.unwrapped)) == told(world.unwrapped)
    assert len(own) > 15
    assert ends > 0
    world.close()


def test_layouts_are_part_of_the_name():
    first, other = (
        catalog.find("MiniGrid-LavaGapS5-v0"),
        catalog.find("MiniGrid-LavaGapS5-v0-layout1"),
    )
    assert (first.name, first.mdp.shape) == ("MiniGrid-LavaGapS5-v0-layout0", (100, 17, 7))
    assert other.name == "MiniGrid-LavaGapS5-v0-layout1"
    assert first.explored != other.explored
    assert first.note == "explored 17 states; every episode has layout 0"
    for name, layout in {
        "MiniGrid-Empty-5x5-v0": Layout("MiniGrid-Empty-5x5-v0"),
        "minigrid:MiniGrid-Empty-5x5-v0-layout7": Layout("MiniGrid-Empty-5x5-v0", 7),
        "BabyAI-OpenDoor-v0-layout12": Layout("BabyAI-OpenDoor-v0", 12),
        "mine:World-layout3": Layout("mine:World", 3),
    }.items():
        assert layouts.find(name) == layout
        assert not making.continuous(name)
    for name in ("CartPole-v1", "mine:World", "EmptyRoom-5x5", "MiniGrid-Empty", "World-layout"):
        assert (layouts.find(name) is None) is (name != "MiniGrid-Empty")


def test_a_shorter_episode_is_a_smaller_table_of_the_same_rewards():
    short, whole = catalog.find("MiniGrid-LavaGapS5-v0", horizon=4), table("LavaGapS5")
    assert short.mdp.horizon == 4
    assert short.mdp.states < whole.states
    assert float(mdps.optimum(short.mdp, short.mdp.reward)[1]) == 0  # the goal is six steps away
    enough = catalog.find("MiniGrid-LavaGapS5-v0", horizon=10)
    assert float(mdps.optimum(enough.mdp, enough.mdp.reward)[1]) == pytest.approx(1 - 0.9 * 6 / 100)


def test_a_task_of_babyai_is_a_table_where_it_is_small():
    """Its mission is kept by objects beside the grid; the red ball is behind a few steps."""
    task = catalog.find("BabyAI-GoToRedBallNoDists-v0", horizon=4)
    world = gymnasium.make("BabyAI-GoToRedBallNoDists-v0").unwrapped
    steps, T = shortest(world), world.max_steps
    best = 1 - 0.9 * steps / T if steps <= 4 else 0
    assert float(mdps.optimum(task.mdp, task.mdp.reward)[1]) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "horizon", "says"),
    [
        ("MiniGrid-Dynamic-Obstacles-5x5-v0", None, r"5x5-v0 is random: action \d in its state 0"),
        ("MiniGrid-LavaGapS5-v0", 101, r"cuts its episodes off after 100 steps; give a --horizon"),
        ("MiniGrid-FourRoms-v0", None, "did you mean MiniGrid-FourRooms-v0"),
        ("MiniGrid-Nothing-v0-layout3", None, "Unknown environment 'MiniGrid-Nothing-v0'"),
    ],
)
def test_what_cannot_be_a_table_is_one_sentence(name, horizon, says):
    with pytest.raises(UserError, match=says):
        catalog.find(name, horizon=horizon)


def test_too_many_states_are_one_sentence(monkeypatch):
    world = making.bare("BabyAI-GoToObj-v0")
    with pytest.raises(UserError, match=r"GoToObj-v0 has more than 50 states .* in 64 steps"):
        numbered.number(world, Layout("BabyAI-GoToObj-v0"), most=50)


def test_without_minigrid_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(gymnasium.registry, "MiniGrid-Empty-6x6-v0")
    monkeypatch.setitem(sys.modules, "minigrid", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"MiniGrid-Empty-6x6-v0' needs .*understudy\[minigrid\]"):
        catalog.find("MiniGrid-Empty-6x6-v0")
