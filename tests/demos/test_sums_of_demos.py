"""Small things about demonstrations and those who give them, worked out by hand."""

import gymnasium
import numpy as np
import pytest

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.demos import csv, rollout, scripted
from understudy.demos.reading import read
from understudy.demos.writing import write
from understudy.envs import catalog


class Countdown(gymnasium.Env):
    """Pays 1, 2, 3, and is over."""

    observation_space = gymnasium.spaces.Box(-9, 9, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(4, start=0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1), {}

    def step(self, action):
        self.t += 1
        return np.full(1, float(self.t)), float(self.t), self.t == 3, False, {}


def test_the_return_so_far_is_told_after_every_step():
    told = [*rollout.follow(Countdown(), lambda obs, state, deterministic: (0, state), seed=0)]
    assert told == [0.0, 1.0, 3.0, 6.0]


def test_the_state_of_a_policy_is_handed_on():
    seen = []

    def predict(obs, state, deterministic):
        seen.append((float(obs[0]), state, deterministic))
        return 0, (state or 0) + 1

    [*rollout.follow(Countdown(), predict, seed=0)]
    assert seen == [(0.0, None, True), (1.0, 1, True), (2.0, 2, True)]


def test_hand_written_experts_push_the_right_way():
    """CartPole: under a pole that leans or turns; MountainCar: the way it rolls."""
    assert scripted.balance(np.array([0, 0, 0.1, 0])) == 1
    assert scripted.balance(np.array([0, 0, -0.1, 0])) == 0
    assert scripted.balance(np.array([0, 0, 0, 0.1])) == 1
    assert scripted.balance(np.array([0, 0, 0, -0.1])) == 0
    assert scripted.balance(np.array([1.0, 0, 0, 0])) == 1  # leans back to the middle
    assert scripted.balance(np.array([0, -1.0, 0, 0])) == 0
    assert scripted.balance(np.array([0, 0, 0.03, -0.1])) == 0  # 0.03 − 0.04
    assert scripted.balance(np.array([-1.0, 0, 0.049, 0])) == 0  # 0.049 − 0.05
    assert scripted.balance(np.array([0, 0.5, -0.049, 0])) == 1  # −0.049 + 0.05
    assert [scripted.swing(np.array([0, v])) for v in (-0.01, 0.0, 0.01)] == [0, 2, 2]


@pytest.mark.parametrize("deep", ["observations", "actions"])
def test_a_table_of_text_holds_no_pictures(deep, tmp_path):
    shapes = {"observations": (3, 2), "actions": (2,)}
    shapes[deep] = (*shapes[deep], 4, 4)
    shown = Demonstrations(
        [np.zeros(shapes["observations"])], [np.zeros(shapes["actions"])], [np.zeros(2)], [False]
    )
    with pytest.raises(UserError, match=r"as \.npz"):
        csv.write(tmp_path / "demos.csv", shown)
    assert not [*tmp_path.iterdir()]


def test_random_linear_mdps_have_1_to_256_features():
    for d in (1, 256):
        assert catalog.find(f"RandomLinear-d{d}").linear.d == d
    for d in (0, 257):
        with pytest.raises(UserError, match="1 to 256"):
            catalog.find(f"RandomLinear-d{d}")


def test_horizons_have_limits():
    assert catalog.find("EmptyRoom-3x3", horizon=1).mdp.horizon == 1
    for horizon in (0, 10**6 + 1):
        with pytest.raises(UserError, match="horizon is"):
            catalog.find("EmptyRoom-3x3", horizon=horizon)


@pytest.mark.parametrize("name", ["demos.npz", "demos.csv", "dataset"])
def test_folders_that_are_not_there_are_made(name, tmp_path):
    shown = Demonstrations([np.zeros((3, 2))], [np.zeros(2)], [np.zeros(2)], [False])
    write(tmp_path / "new" / "folder" / name, shown)
    assert len(read(tmp_path / "new" / "folder" / name)) == 1
