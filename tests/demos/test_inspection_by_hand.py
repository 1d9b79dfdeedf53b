"""What is told of demonstrations, number by number."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from understudy.core.demonstrations import Demonstrations
from understudy.demos import inspection, keys


class World(gymnasium.Env):
    def __init__(self, seen, taken, limit=None):
        self.observation_space, self.action_space = seen, taken
        if limit is not None:
            self.spec = gymnasium.envs.registration.EnvSpec("World-v0", max_episode_steps=limit)


def shown(observations, actions, rewards=None, terminated=None):
    observations = [np.asarray(x) for x in observations]
    actions = [np.asarray(x) for x in actions]
    rewards = rewards or [np.ones(len(a)) for a in actions]
    return Demonstrations(observations, actions, rewards, terminated or [False] * len(actions))


BOXED = shown([[[0.0, 1], [2, 1], [4, 1]], [[1.0, 1], [1, 1]]], [[0, 1], [1]])


def test_every_number_of_a_description():
    told = inspection.describe(
        shown([[0.0, 1, 3], [2.0, 3]], [[1, 0], [1]], [np.array([1.0, 2]), np.array([6.0])],
              [True, False])
    )  # fmt: skip
    assert (told["episodes"], told["steps"]) == (2, 3)
    assert told["lengths"] == {"mean": 1.5, "std": 0.5, "min": 1, "max": 2}
    assert told["returns"] == {"mean": 4.5, "std": 1.5, "min": 3, "max": 6}
    assert (told["terminated"], told["truncated"]) == (1, 1)
    assert told["observations"] == {"shape": [], "type": "float64", "low": [0], "high": [3]}
    assert told["actions"]["high"] == [1]
    assert (told["repeated_episodes"], told["distinct_observations"]) == (0, 4)
    assert "coverage" not in told


def test_coverage_is_the_share_of_each_side_that_has_ends():
    """Sides of 8 and 5: half of the first, none of the second; 4 / 2 counts as all of it."""
    two = World(Box(np.array([-4, 0]), np.array([4, 5]), dtype=np.float64), Discrete(4))
    assert inspection.coverage(BOXED, two)["coverage"] == {"observations": 0.25, "actions": 0.5}
    short = World(Box(np.array([0, 0]), np.array([2, np.inf]), dtype=np.float64), Discrete(2))
    assert inspection.coverage(BOXED, short)["coverage"] == {"observations": 1, "actions": 1}
    other = World(Box(0, 1, (3,)), Discrete(2))
    assert inspection.coverage(BOXED, other)["coverage"] == {"actions": 1}
    endless = World(Box(-np.inf, np.inf, (2,)), Discrete(2))
    assert "observations" not in inspection.coverage(BOXED, endless)["coverage"]


def test_copies_are_counted():
    assert inspection.repeated(shown([[0, 1], [0, 1], [0, 2], [0, 1]], [[1], [1], [1], [1]])) == 2


@pytest.mark.parametrize(
    ("world", "says"),
    [
        (World(Box(0, 4, (2,)), Discrete(2)), None),
        (World(Box(0, 4, (3,)), Discrete(2)), r"observations have shape \(2,\)"),
        (World(Box(0, 3, (2,)), Discrete(2)), "1 of 5 observations are outside.* dimension 0"),
        (World(Box(0, np.array([4, 0.9], np.float32)), Discrete(2)), "5 of 5 .* in dimension 1"),
        (World(Box(0, 4, (2,)), Discrete(1)), "actions go from 0 to 1"),
        (World(Box(0, 4, (2,)), Discrete(2, start=1)), "actions go from 0 to 1"),
        (World(Discrete(5), Discrete(2)), "observations are not whole numbers"),
        (World(Dict({}), Discrete(2)), "not compared"),
        (World(Box(0, 4, (2,)), Discrete(2), limit=2), None),
        (World(Box(0, 4, (2,)), Discrete(2), limit=1), "has 2 steps; .* after 1"),
    ],
)
def test_what_cannot_be_of_a_world(world, says):
    told = inspection.misfits(BOXED, world)
    assert (told == []) if says is None else len(told) == 1
    if says:
        with pytest.raises(ValueError, match=says):
            raise ValueError(told[0])


def test_oddities_are_told_and_only_they():
    world = World(Box(0, 4, (2,)), Discrete(2), limit=2)
    told = inspection.oddities(BOXED, world)
    assert len(told) == 2
    assert told[0].startswith("Dimension 1 of each observation never changes")
    assert "Episode 1 has 1 of 2 steps" in told[1]
    assert "(1 such)" in told[1]
    unpaid = shown([[0.0, 1.0]], [[1]], [np.zeros(1)], [True])
    (only,) = inspection.oddities(unpaid, world)
    assert "no rewards" in only


@pytest.mark.parametrize(
    ("id", "actions"),
    [
        ("FrozenLake-v1", {"left": 0, "down": 1, "right": 2, "up": 3}),
        ("CliffWalking-v1", {"up": 0, "right": 1, "down": 2, "left": 3}),
        ("CartPole-v1", {"left": 0, "right": 1}),
        ("MountainCar-v0", {"left": 0, "space": 1, "right": 2}),
        ("LunarLander-v3", {"space": 0, "left": 1, "up": 2, "right": 3}),
    ],
)
def test_arrows_are_what_gymnasium_says_of_its_actions(id, actions):
    """By its documentation: LunarLander's 1 fires the left engine, 2 the main one, 3 the right."""
    world = World(Box(0, 1, (1,)), Discrete(len(actions)))
    world.spec = gymnasium.envs.registration.EnvSpec(id)
    digits = {str(a): a for a in actions.values()}
    assert keys.keys_of(world) == digits | actions
