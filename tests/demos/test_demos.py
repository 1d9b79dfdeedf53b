"""Demonstrations: what is kept, what is refused, and that nothing loaded can run."""

import numpy as np
import pytest

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.demos import npz
from understudy.envs.empty_room import demonstrations


def test_npz_keeps_everything(tmp_path):
    shown = demonstrations(3)
    ended = Demonstrations(
        [*shown.observations, np.array([0, 1])],
        [*shown.actions, np.array([4])],
        [*shown.rewards, np.array([-0.1])],
        [*shown.terminated, True],
    )
    npz.write(tmp_path / "demos.npz", ended)
    back = npz.read(tmp_path / "demos.npz")
    assert back.terminated == ended.terminated
    for name in ("observations", "actions", "rewards"):
        for a, b in zip(getattr(back, name), getattr(ended, name), strict=True):
            np.testing.assert_array_equal(a, b)
    with np.load(tmp_path / "demos.npz") as file:  # the layout that others read
        assert file["truncations"].sum() == 4
        assert file["terminations"].sum() == 1


class Malice:
    def __reduce__(self):
        return (pytest.fail, ("a loaded file ran code",))


GOOD = {
    "observations": np.zeros(3, int),
    "actions": np.zeros(2, int),
    "rewards": np.zeros(2),
    "terminations": np.zeros(2, bool),
    "lengths": np.array([2]),
}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"observations": np.array([Malice()], dtype=object)}, "not a readable .npz"),
        ({"actions": None}, "lacks the array 'actions'"),
        ({"lengths": np.array([5])}, "3 observations; its lengths, 5 steps in 1 episodes"),
        ({"lengths": np.array(2)}, "'lengths' of type"),
        ({"lengths": np.array([2.5])}, "'lengths' of type float64"),
        ({"lengths": np.array([], int)}, "no episode"),
        ({"terminations": np.array(["no", "no"])}, "'terminations' of type"),
        ({"terminations": np.zeros(1, bool)}, "1 terminations"),
        ({"observations": np.zeros(3, complex)}, "'observations' of type complex"),
    ],
)
def test_bad_files_are_refused(tmp_path, change, names):
    arrays = {name: array for name, array in {**GOOD, **change}.items() if array is not None}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(UserError, match=names):
        npz.read(tmp_path / "bad.npz")


def test_missing_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        npz.read(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name in ("text.npz", "array.npy"):
        with pytest.raises(UserError, match="not a readable"):
            npz.read(tmp_path / name)


@pytest.mark.parametrize(
    ("observations", "actions", "rewards", "names"),
    [
        ([], [], [], "no demonstrations"),
        ([np.zeros(2)], [np.zeros(2)], [np.zeros(2)], "2 observations, 2 actions"),
        ([np.array([0.0, np.nan])], [np.zeros(1)], [np.zeros(1)], "observation.*not finite"),
    ],
)
def test_bad_demonstrations_are_refused(observations, actions, rewards, names):
    with pytest.raises(UserError, match=names):
        Demonstrations(observations, actions, rewards, [False] * len(actions))
