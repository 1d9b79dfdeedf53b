"""The border of the demonstrations: odd files are read whole or refused, never in part; and what
the networks get of them is what NumPy says by hand."""

import dataclasses
import os

import gymnasium
import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.demos import csv, npz, recording
from understudy.demos.reading import read
from understudy.demos.writing import write
from understudy.experiments import runs
from understudy.experiments import train_networks as deep_train
from understudy.experiments.sweeps import sweep_file
from understudy.learners.deep import expert_points, scaling
from understudy.learners.deep import policy as policies
from understudy.learners.deep.collect import Collector
from understudy.learners.deep.config import DeepConfig

HEAD = ["episode", "observation_0", "observation_1", "action", "reward", "terminated"]


def episodes(*lengths, ends=None, at=0.0, size=1.0):
    rng = np.random.default_rng(0)
    return Demonstrations(
        [at + size * rng.normal(size=(n + 1, 4)) for n in lengths],
        [rng.integers(2, size=n) for n in lengths],
        [np.ones(n) for n in lengths],
        list(ends or [False] * len(lengths)),
    )


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["demos.npz", "demos.csv", "demos"])
def test_only_regular_files_are_opened(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match="pipe"):
        read(tmp_path / name)
    (tmp_path / f"zero-{name}").symlink_to("/dev/zero")
    with pytest.raises(UserError, match="device"):
        read(tmp_path / f"zero-{name}")


def test_policies_and_sweeps_are_regular_files_too(tmp_path):
    for name in ("policy.json", "sweep.toml"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match="pipe"):
        policies.load(tmp_path)
    with pytest.raises(UserError, match="pipe"):
        sweep_file.read(tmp_path / "sweep.toml")


def test_files_and_what_they_unpack_to_are_bounded(tmp_path, monkeypatch):
    zeros = Demonstrations([np.zeros((5_001, 2))], [np.zeros(5_000)], [np.zeros(5_000)], [False])
    write(tmp_path / "demos.npz", zeros)
    packed = (tmp_path / "demos.npz").stat().st_size
    for most in (packed - 1, packed + 1):
        monkeypatch.setattr("understudy.core.files.DATA", most)
        with pytest.raises(UserError, match="at most"):
            npz.read(tmp_path / "demos.npz")


@settings(max_examples=30)
@given(st.lists(st.integers(1, 2**62), min_size=4, max_size=6))
def test_lengths_are_added_without_wrapping(tmp_path_factory, lengths):
    """One more of them makes their sum two steps, in 64 bits."""
    lengths = [*lengths, (2 - sum(lengths)) % 2**64]
    path = tmp_path_factory.mktemp("wraps") / "demos.npz"
    np.savez(
        path,
        observations=np.zeros((2 + len(lengths), 1)),
        actions=np.zeros(2),
        rewards=np.zeros(2),
        terminations=np.zeros(2, bool),
        lengths=np.array(lengths, np.uint64),
    )
    with pytest.raises(UserError, match=r"call for|without a step"):
        npz.read(path)


@settings(max_examples=16)
@given(st.sampled_from(["npz", "csv"]), st.integers(0, 3), st.booleans())
def test_an_episode_that_goes_on_after_its_end_is_refused(tmp_path_factory, format, at, cut):
    folder = tmp_path_factory.mktemp("marks")
    if format == "npz":
        write(folder / "good.npz", episodes(5, 2))
        with np.load(folder / "good.npz") as file:
            arrays = dict(file)
        arrays["truncations" if cut else "terminations"][at] = True
        np.savez(folder / "demos.npz", **arrays)
    else:
        rows = [["0", "1", "2", "0", "1", str(int(i == at))] for i in range(5)]
        (folder / "demos.csv").write_text("\n".join(map(",".join, [HEAD, *rows])))
    with pytest.raises(UserError, match="goes on after that"):
        read(folder / f"demos.{format}")


ODD = st.sampled_from(["observation_1", "observation_3", "action", "Reward", "", "observation",
                       "observation_00", "action_0", "truncated", " reward"])  # fmt: skip


@settings(max_examples=40)
@given(st.integers(0, len(HEAD)), ODD)
def test_no_column_is_left_out_in_silence(tmp_path_factory, place, name):
    path = tmp_path_factory.mktemp("columns") / "demos.csv"
    names, row = [*HEAD[:place], name, *HEAD[place:]], ["0"] * (len(HEAD) + 1)
    path.write_text("\n".join(map(",".join, [names, row, row])))
    with pytest.raises(UserError, match="column"):
        csv.read(path)


@settings(max_examples=20)
@given(st.sampled_from(["maybe", "2", "yes", "-1", "nan", "0.5", "t"]), st.integers(0, 2))
def test_a_truth_is_a_truth_in_every_row(tmp_path_factory, word, place):
    path = tmp_path_factory.mktemp("truths") / "demos.csv"
    rows = [["0", "1", "2", "0", "1", word if i == place else "0"] for i in range(3)]
    path.write_text("\n".join(map(",".join, [HEAD, *rows])))
    with pytest.raises(UserError, match="in place of 0 or 1"):
        csv.read(path)


def test_a_spreadsheets_mark_is_no_part_of_the_first_name(tmp_path):
    path = write(tmp_path / "demos.csv", episodes(3))
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8-sig")
    np.testing.assert_array_equal(read(path).observations[0], episodes(3).observations[0])


@pytest.mark.parametrize("how", ["external", "soft", "storage", "virtual"])
def test_a_dataset_reads_no_other_file(how, tmp_path):
    folder = write(tmp_path / "set", episodes(3), "minari")
    (file,) = folder.rglob("*.hdf5")
    with h5py.File(tmp_path / "other.hdf5", "w") as other:
        other["x"] = np.zeros(3)
    np.zeros(3).tofile(tmp_path / "raw")
    with h5py.File(file, "a") as opened:
        group = opened["episode_0"]
        group["kept"] = group["rewards"]
        del group["rewards"]
        if how == "external":
            group["rewards"] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), "/x")
        elif how == "soft":
            group["rewards"] = h5py.SoftLink("/episode_0/kept")
        elif how == "storage":
            group.create_dataset("rewards", (3,), float, external=[(str(tmp_path / "raw"), 0, 24)])
        else:
            layout = h5py.VirtualLayout((3,), float)
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.hdf5"), "x", (3,))
            group.create_virtual_dataset("rewards", layout)
    with pytest.raises(UserError, match=r"link at|in other files"):
        read(folder)


# --- units, by hand --------------------------------------------------------------------------


def points(shown, **options):
    with gymnasium.make("CartPole-v1") as world:
        border = scaling.of_spaces(world, "CartPole-v1")
        config = DeepConfig(**options)
        return expert_points.expert_points(shown, world, border, config, "CartPole-v1")


@pytest.mark.parametrize(("at", "size"), [(0, 1), (1.7e9, 1), (0, 1e-8), (1e39, 1e38), (0, 1e-40)])
def test_points_of_the_expert_are_standardised_once(at, size):
    shown = episodes(5, 3, ends=[True, False], at=at, size=size)
    expert, border = points(shown)
    before = np.concatenate([o[:-1] for o in shown.observations])
    after = np.concatenate([o[1:] for o in shown.observations])
    mean, std = before.mean(0), before.std(0)
    np.testing.assert_allclose(expert.obs, (before - mean) / std, atol=2e-3)
    np.testing.assert_allclose(expert.next_obs, (after - mean) / std, atol=2e-3)
    np.testing.assert_array_equal(expert.terminated, [0, 0, 0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(np.argmax(expert.action, 1), np.concatenate(shown.actions))
    assert border.obs(before).dtype == np.float32


def test_ordinary_units_stay_in_float32():
    shown = episodes(9)
    _, border = points(shown)
    before = shown.observations[0][:-1]
    np.testing.assert_array_equal(border.mean, before.mean(0).astype(np.float32))
    assert border.mean.dtype == border.std.dtype == np.float32


def test_what_never_varies_keeps_its_unit():
    shown = episodes(9)
    shown.observations[0][:, 2] = 1.7e9
    assert points(shown)[1].std[2] == 1


def test_demonstrations_that_are_too_large_are_named():
    with pytest.raises(UserError, match="demonstrations of CartPole-v1 have an observation"):
        points(episodes(5, at=1e39), normalise=False)
    with pytest.raises(UserError, match="Demonstration 0 has an observation of size"):
        episodes(5, at=1e300)


def test_practice_is_scaled_once_and_cuts_are_no_ends():
    """Two episodes of three steps, cut by the limit, against the environment asked by hand."""
    border = points(episodes(20))[1]

    def make():
        return gymnasium.make("CartPole-v1", max_episode_steps=3)

    collector = Collector(make, border, lanes=1, seed=5, name="CartPole-v1")
    got = collector.practise(lambda obs, _: np.array([[0.0, 1.0]], np.float32), 6)
    collector.close()
    raw, after = [], []
    with make() as world:
        for episode in range(2):
            seed = np.random.SeedSequence([5, 0, episode]).generate_state(1)[0]
            obs, _ = world.reset(seed=int(seed))
            for _ in range(3):
                raw.append(obs)
                obs = world.step(1)[0]
                after.append(obs)
    np.testing.assert_array_equal(got["obs"], (np.array(raw) - border.mean) / border.std)
    np.testing.assert_array_equal(got["next_obs"], (np.array(after) - border.mean) / border.std)
    assert not got["terminated"].any()


def test_a_recorded_cut_is_no_end():
    for limit, ended in ((3, False), (500, True)):
        with gymnasium.make("CartPole-v1", max_episode_steps=limit) as world:
            shown = recording.record(world, recording.acting(lambda obs: 1), 2)
        assert shown.terminated == [ended, ended]


# --- rewards ---------------------------------------------------------------------------------


def test_other_rewards_are_another_run_and_old_runs_keep_their_names(tmp_path):
    shown = episodes(4)
    other = dataclasses.replace(shown, rewards=[r + 1 for r in shown.rewards])
    asked, changed = (
        deep_train.request("CartPole-v1", DeepConfig(), x, "mdpo", None, None, None, None, 0)
        for x in (shown, other)
    )
    old = {name: value for name, value in asked.items() if name != "shown_rewards"}
    assert runs.identity(asked) == runs.identity(old)
    runs.begin(tmp_path / "new", asked)
    assert runs.same(tmp_path / "new", asked)
    assert not runs.same(tmp_path / "new", changed)
    runs.begin(tmp_path / "old", old)
    assert runs.same(tmp_path / "old", asked)
