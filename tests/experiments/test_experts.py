"""The experts that come with the package are what they are said to be."""

import gymnasium
import numpy as np
import pytest

from understudy.demos import shipped

BARS = {"HalfCheetah-v5": 8_000, "Hopper-v5": 2_800, "Walker2d-v5": 3_000}


@pytest.mark.parametrize("env", BARS)
def test_ten_trajectories_of_a_good_expert(env):
    shown = shipped.find(env)
    assert shown is not None
    assert len(shown) == 10
    assert shown.returns.mean() >= BARS[env]


@pytest.mark.parametrize("env", BARS)
def test_the_simulator_plays_them_again(env):
    """The first steps of an episode, from its seed: the same observations and rewards."""
    shown, world = shipped.find(env), gymnasium.make(env)
    assert shown is not None
    obs, _ = world.reset(seed=10_003)
    for t in range(50):
        np.testing.assert_allclose(obs, shown.observations[3][t], atol=1e-4)
        obs, reward, *_ = world.step(shown.actions[3][t])
        assert reward == pytest.approx(shown.rewards[3][t], abs=1e-4)
    world.close()


def test_there_is_no_expert_of_anything_else():
    assert shipped.find("Pendulum-v1") is None
    assert shipped.find("../../../etc/passwd") is None
