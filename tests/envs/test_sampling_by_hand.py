"""A small world whose numbers begin elsewhere than at zero: as a table, sampled, and played."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from random_mdps import dense

from understudy.core.errors import UserError
from understudy.envs import sampled, toy_text


class Offset(gymnasium.Env):
    """States 5, 6, 7 and actions 2, 3: action 3 goes on, paying the state's number, action 2 stays
    and costs one; 7 ends. Episodes begin in 5, or, one of four times, in 6."""

    observation_space, action_space = Discrete(3, start=5), Discrete(2, start=2)

    def __init__(self):
        self.resets = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets += 1
        self.at = 6 if self.resets % 4 == 0 else 5
        return self.at, {}

    def step(self, action):
        assert self.action_space.contains(action)
        if action == 2:
            return self.at, -1.0, False, False, {}
        gained, self.at = float(self.at), self.at + 1
        return self.at, gained, self.at == 7, False, {}


def test_a_sampled_table_is_the_worlds():
    found = sampled.from_samples(Offset(), horizon=4, seed=0, interactions=2_000)
    P, mdp = dense(found.mdp), found.mdp
    assert (mdp.states, mdp.actions, mdp.horizon) == (3, 2, 4)
    np.testing.assert_array_equal(P[0, 0], [[1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(P[0, 1], [[0, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(P[0, 2], [[0, 0, 1], [0, 0, 1]])  # over, and absorbing
    np.testing.assert_allclose(np.asarray(mdp.reward)[0, :2], [[-1, 5], [-1, 6]])
    np.testing.assert_allclose(mdp.nu, [0.75, 0.25, 0], atol=0.01)
    assert found.visits[:2].min() > 100
    assert found.visits[2].sum() == 0
    assert found.visits.sum() == 2_000
    assert found.coverage == 1  # of the states that it acted in


def test_what_was_never_tried_stays_at_the_worst_reward():
    class Shut(Offset):
        def step(self, action):
            return self.at, 3.0 if action == 2 else -2.0, False, False, {}

    found = sampled.from_samples(Shut(), horizon=4, seed=0, interactions=400)
    np.testing.assert_allclose(np.asarray(found.mdp.reward)[0, 2], [-2, -2])
    np.testing.assert_array_equal(dense(found.mdp)[0, 2], [[0, 0, 1], [0, 0, 1]])


@pytest.mark.parametrize("which", ["observation_space", "action_space"])
def test_both_spaces_must_be_discrete(which):
    world = Offset()
    setattr(world, which, Box(0, 1, (1,)))
    with pytest.raises(UserError, match="needs both Discrete"):
        sampled.from_samples(world, horizon=4, seed=0)


def test_where_episodes_begin_is_counted_from_the_first_state():
    nu = toy_text.initial_distribution(Offset(), 3, resets=400)
    np.testing.assert_allclose(nu, [0.75, 0.25, 0])
    with pytest.raises(UserError, match="begins in state 1"):
        toy_text.initial_distribution(Offset(), 1)


def test_where_the_world_says_where_it_begins_it_is_believed():
    world = Offset()
    world.initial_state_distrib = [0.5, 0.25, 0.25]
    np.testing.assert_array_equal(toy_text.initial_distribution(world, 3), [0.5, 0.25, 0.25])
    assert world.resets == 0
    with pytest.raises(UserError, match=r"shape \(3,\); its P table has 4"):
        toy_text.initial_distribution(world, 4)


def test_a_state_that_is_entered_with_and_without_an_end_has_a_sink():
    """From 0, action 0 goes to 1 and ends, action 1 goes to 1 and goes on; 1 pays 2 for staying."""
    table = {
        0: {0: [(1.0, 1, 1.0, True)], 1: [(1.0, 1, 0.5, False)]},
        1: {a: [(1.0, 1, 2.0, False)] for a in range(2)},
    }
    mdp = toy_text.from_table(table, nu=np.array([1.0, 0]), horizon=3)
    assert (mdp.states, mdp.sink) == (3, 2)
    P = dense(mdp)
    np.testing.assert_array_equal(P[0, 0], [[0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(P[0, 2], [[0, 0, 1], [0, 0, 1]])
    np.testing.assert_allclose(np.asarray(mdp.reward)[0], [[1, 0.5], [2, 2], [0, 0]])
    np.testing.assert_array_equal(mdp.nu, [1, 0, 0])
