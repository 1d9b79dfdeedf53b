"""Datasets of robot learning: LeRobot, robomimic, D4RL and Minari's published ones. No writer of
the first three installs without PyTorch or MuJoCo's old bindings, so each file is made here to its
published layout, by the library beneath (h5py; `datasets`, with which LeRobot itself writes)."""

import json
import warnings

import gymnasium
import numpy as np
import pytest
from camera import Camera
from test_cli import understudy
from test_formats import NUMBERS, VECTORS, cut, same

from understudy.core.errors import UserError
from understudy.demos import reading
from understudy.demos.reading import format_of, read
from understudy.demos.writing import write

rng = np.random.default_rng(3)


# --- D4RL ----------------------------------------------------------------------------------------


def d4rl(path, **changes):
    """Two episodes, of 3 and 2 steps, and the beginning of a third; with what else such files
    hold. None leaves an array out."""
    import h5py

    arrays = {
        "observations": rng.normal(size=(6, 4)).astype(np.float32),
        "actions": rng.normal(size=(6, 2)).astype(np.float32),
        "rewards": np.arange(6, dtype=np.float32),
        "terminals": np.array([0, 0, 1, 0, 0, 0], bool),
        "timeouts": np.array([0, 0, 0, 0, 1, 0], bool),
        "next_observations": rng.normal(size=(6, 4)).astype(np.float32),
        "infos/qpos": np.zeros((6, 5)),
        "metadata/algorithm": b"SAC",
        **changes,
    }
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            if array is not None:
                file[name] = array
    return arrays


def test_d4rl_episodes_end_at_terminals_and_at_timeouts(tmp_path):
    told = d4rl(tmp_path / "hopper.hdf5")
    shown = read(tmp_path / "hopper.hdf5")
    assert format_of(tmp_path / "hopper.hdf5") == "d4rl"
    assert [r.tolist() for r in shown.rewards] == [[0, 1, 2], [3, 4]]  # the sixth step has no end
    assert shown.terminated == [True, False]
    np.testing.assert_array_equal(shown.observations[0][:3], told["observations"][:3])
    np.testing.assert_array_equal(shown.observations[0][3], told["next_observations"][2])
    np.testing.assert_array_equal(shown.observations[1][2], told["next_observations"][4])
    np.testing.assert_array_equal(shown.actions[1], told["actions"][3:5])
    assert shown.observations[0].dtype == np.float32


def test_d4rl_without_next_observations_repeats_the_last(tmp_path):
    told = d4rl(tmp_path / "old.hdf5", next_observations=None, rewards=np.ones((6, 1)))
    shown = read(tmp_path / "old.hdf5")
    np.testing.assert_array_equal(shown.observations[1], told["observations"][[3, 4, 4]])
    assert shown.returns.tolist() == [3, 2]


def test_d4rl_without_timeouts_is_cut_where_it_jumps(tmp_path):
    seen = np.arange(12.0).reshape(6, 2)
    after = np.append(seen[1:], [[9, 9]], axis=0)
    after[4] = 7  # and the sixth observation is another one
    d4rl(tmp_path / "v0.hdf5", observations=seen, next_observations=after, timeouts=None)
    shown = read(tmp_path / "v0.hdf5")
    assert [len(a) for a in shown.actions] == [3, 2]
    assert shown.terminated == [True, False]
    assert shown.observations[1][-1].tolist() == [7, 7]
    d4rl(tmp_path / "v0.hdf5", next_observations=None, timeouts=None)
    with pytest.raises(UserError, match="does not say where episodes are cut off"):
        read(tmp_path / "v0.hdf5")


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"actions": None}, "lacks the array '/actions'"),
        ({"actions": np.zeros((5, 2))}, "6 observations and 5 actions"),
        ({"rewards": np.zeros((6, 2))}, "one number a step"),
        ({"rewards": np.array([b"a"] * 6)}, "'/rewards' of type"),
        ({"terminals": np.full(6, 2)}, "'terminals' of 2"),
        ({"timeouts": np.zeros(4, bool)}, "4 timeouts"),
        ({"terminals": np.zeros(6), "timeouts": np.zeros(6)}, "says nowhere that an episode ends"),
        ({"next_observations": np.zeros((6, 3))}, "next_observations of shape"),
        ({"observations": np.full((6, 4), np.nan)}, "not finite"),
        ({"observations": np.float64(1)}, "which it cannot be"),
    ],
)
def test_bad_files_of_d4rl_are_refused(change, names, tmp_path):
    d4rl(tmp_path / "bad.hdf5", **change)
    with pytest.raises(UserError, match=names):
        read(tmp_path / "bad.hdf5")


# --- robomimic -----------------------------------------------------------------------------------


def robomimic(path, *, lengths=(3, 2, 2), images=False, without=(), **changes):
    """Demonstrations in an order that is not that of the alphabet, with what else such files
    hold."""
    import h5py

    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["total"], data.attrs["env_args"] = sum(lengths), json.dumps({"env_name": "Lift"})
        for i, n in zip((10, 2, 0), lengths, strict=True):
            demo = data.create_group(f"demo_{i}")
            demo.attrs["num_samples"], demo.attrs["model_file"] = n, "<mujoco/>"
            arrays = {
                "actions": np.full((n, 2), float(i)),
                "states": np.zeros((n, 32)),
                "rewards": np.arange(n, dtype=float),
                "dones": np.array([0] * (n - 2) + [1, 1 if i else 0]),
                "obs/robot0_eef_pos": np.full((n, 3), 1.0 + i),
                "obs/object": np.full((n, 2), 5.0),
                "next_obs/robot0_eef_pos": np.full((n, 3), 2.0 + i),
                "next_obs/object": np.full((n, 2), 6.0),
                **changes,
            }
            if images:
                arrays["obs/agentview_image"] = np.zeros((n, 84, 84, 3), np.uint8)
                arrays["next_obs/agentview_image"] = np.zeros((n, 84, 84, 3), np.uint8)
            for name, array in arrays.items():
                if not name.startswith(tuple(without)) or not without:
                    demo[name] = array
        file["mask/train"] = np.array([b"demo_0"])


def test_robomimic_episodes_in_their_order_and_parts_by_name(tmp_path):
    robomimic(tmp_path / "lift.hdf5")
    shown = read(tmp_path / "lift.hdf5")
    assert format_of(tmp_path / "lift.hdf5") == "robomimic"
    assert [a[0, 0] for a in shown.actions] == [0, 2, 10]  # demo_10 comes after demo_2
    assert shown.observations[2].tolist() == [[5, 5, 11, 11, 11]] * 3 + [[6, 6, 12, 12, 12]]
    assert shown.terminated == [False, True, True]
    assert shown.returns.tolist() == [1, 1, 3]


def test_robomimic_parts_that_were_chosen_in_their_order(tmp_path):
    robomimic(tmp_path / "lift.hdf5", images=True)
    with pytest.raises(UserError, match=r"agentview_image.*--keys.*object robot0_eef_pos"):
        read(tmp_path / "lift.hdf5")
    with pytest.raises(UserError, match="agentview_image"):
        read(tmp_path / "lift.hdf5", ["object", "agentview_image"])
    shown = read(tmp_path / "lift.hdf5", ["robot0_eef_pos", "object"])
    assert shown.observations[0][0].tolist() == [1, 1, 1, 5, 5]
    assert read(tmp_path / "lift.hdf5", ["object"]).observations[0].shape == (3, 2)
    with pytest.raises(UserError, match=r"no 'objects'; --keys chooses among: agentview_image"):
        read(tmp_path / "lift.hdf5", ["objects"])
    with pytest.raises(UserError, match="object twice"):
        read(tmp_path / "lift.hdf5", ["object", "object"])


def test_robomimic_without_what_is_not_always_there(tmp_path):
    robomimic(tmp_path / "lift.hdf5", without=("next_obs", "rewards", "dones"))
    shown = read(tmp_path / "lift.hdf5", ["robot0_eef_pos"])
    assert shown.observations[1].tolist() == [[3, 3, 3]] * 3  # the last stands in for the final one
    assert not any(shown.terminated)
    assert not shown.returns.any()


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"without": ("obs", "next_obs")}, "dataset_states_to_obs"),
        ({"without": ("actions",)}, "lacks the array '/data/demo_0/actions'"),
        ({"actions": np.zeros((4, 2))}, "2 observations and 4 actions"),
        ({"obs/object": np.zeros((4, 2))}, "not as many of each observation"),
        ({"obs/object": np.array([b"a", b"b"])}, "'/data/demo_0/obs/object' of type"),
        ({"rewards": np.zeros((2, 2))}, "one number a step"),
        ({"dones": np.array([0.5, 0.5])}, "'dones' of 0.5"),
        ({"next_obs/object": np.zeros((2, 3))}, "do not fit the others"),
    ],
)
def test_bad_files_of_robomimic_are_refused(change, names, tmp_path):
    robomimic(tmp_path / "bad.hdf5", lengths=(2, 2, 2), **change)
    with pytest.raises(UserError, match=names):
        read(tmp_path / "bad.hdf5")


def test_robomimic_without_an_episode_is_refused(tmp_path):
    import h5py

    with h5py.File(tmp_path / "none.hdf5", "w") as file:
        file.create_group("data/episode")
    with pytest.raises(UserError, match="no episode 'data/demo_0'"):
        read(tmp_path / "none.hdf5")


# --- both, written and read ----------------------------------------------------------------------


@pytest.mark.parametrize("format", ["d4rl", "robomimic"])
@pytest.mark.parametrize("demos", [VECTORS, NUMBERS], ids=["vectors", "numbers"])
def test_an_hdf5_format_keeps_everything(format, demos, tmp_path):
    target = write(tmp_path / "demos.hdf5", demos, format)
    assert format_of(target) == format
    same(read(target), demos)
    assert [p.name for p in tmp_path.iterdir()] == ["demos.hdf5"]
    with pytest.raises(UserError, match=r"ends in \.hdf5"):
        write(tmp_path / "demos.npz", demos, format)
    cut(target)
    with pytest.raises(UserError, match="cannot be read"):
        read(target)


def test_robomimic_is_told_of_which_environment_it_is(tmp_path):
    import h5py

    with gymnasium.make("Pendulum-v1") as world:
        write(tmp_path / "demos.hdf5", VECTORS, "robomimic", world)
    with h5py.File(tmp_path / "demos.hdf5") as file:
        about = json.loads(file["data"].attrs["env_args"])
        assert about == {"env_name": "Pendulum-v1", "type": 2, "env_kwargs": {}}
        assert file["data"].attrs["total"] == 6
        assert file["data/demo_1"].attrs["num_samples"] == 2
        assert file["data/demo_0/dones"][()].tolist() == [0, 0, 0, 1]


def test_hdf5_of_another_kind_is_refused(tmp_path):
    import h5py

    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["weights"] = np.zeros(3)
    with pytest.raises(UserError, match="lacks the array '/observations'"):
        read(tmp_path / "other.hdf5")
    (tmp_path / "text.hdf5").write_text("observations")
    with pytest.raises(UserError, match=r"not a readable \.npz"):
        read(tmp_path / "text.hdf5")
    with h5py.File(tmp_path / "link.hdf5", "w") as file:
        file["observations"] = h5py.ExternalLink("/etc/passwd", "/")
    with pytest.raises(UserError, match="a link at /observations"):
        read(tmp_path / "link.hdf5")


# --- LeRobot -------------------------------------------------------------------------------------


def lerobot(folder, version="v3.0", *, features=None, columns=None, info=None):
    """Three episodes, of 3, 2 and 4 frames, as LeRobot lays them out; its tables are written by
    `datasets`, as its own are."""
    import datasets

    lengths = [3, 2, 4]
    rows = sum(lengths)
    known = {
        "observation.state": {"dtype": "float32", "shape": [2], "names": {"motors": ["a", "b"]}},
        "observation.goal": {"dtype": "float32", "shape": [1], "names": None},
        "action": {"dtype": "float32", "shape": [2], "names": {"motors": ["a", "b"]}},
        "next.reward": {"dtype": "float32", "shape": [1], "names": None},
        "next.done": {"dtype": "bool", "shape": [1], "names": None},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        "frame_index": {"dtype": "int64", "shape": [1], "names": None},
        "episode_index": {"dtype": "int64", "shape": [1], "names": None},
        "index": {"dtype": "int64", "shape": [1], "names": None},
        "task_index": {"dtype": "int64", "shape": [1], "names": None},
        **(features or {}),
    }
    frames = np.concatenate([np.arange(n) for n in lengths])
    values = {
        "observation.state": np.arange(2.0 * rows).reshape(rows, 2),
        "observation.goal": -np.arange(float(rows)),
        "action": np.arange(2.0 * rows).reshape(rows, 2) + 100,
        "next.reward": np.ones(rows),
        "next.done": np.isin(np.arange(rows), (2, 8)),
        "timestamp": frames / 10,
        "frame_index": frames,
        "episode_index": np.repeat(np.arange(3), lengths),
        "index": np.arange(rows),
        "task_index": np.zeros(rows, int),
        **(columns or {}),
    }
    values = {name: value for name, value in values.items() if value is not None}
    kinds = {
        name: datasets.Sequence(datasets.Value(known[name]["dtype"]), known[name]["shape"][0])
        if len(known[name]["shape"]) == 1 and known[name]["shape"] != [1]
        else datasets.Array2D(tuple(known[name]["shape"]), known[name]["dtype"])
        if len(known[name]["shape"]) == 2
        else datasets.Value(known[name]["dtype"])
        for name in values
    }
    listed = {name: np.asarray(value).tolist() for name, value in values.items()}
    table = datasets.Dataset.from_dict(listed, datasets.Features(kinds))
    chunk = folder / "data" / "chunk-000"
    chunk.mkdir(parents=True)
    if version == "v3.0":  # episodes in files by their size, not in their order here
        path = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
        parts = {"file-000": range(5, rows), "file-001": range(5)}
    else:
        path = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
        parts = {f"episode_{i:06d}": np.flatnonzero(values["episode_index"] == i)
                 for i in range(3)}  # fmt: skip
    datasets.disable_progress_bars()
    for name, at in parts.items():
        table.select(at).to_parquet(chunk / f"{name}.parquet")
    told = {
        "codebase_version": version, "robot_type": "aloha", "total_episodes": 3,
        "total_frames": rows, "total_tasks": 1, "chunks_size": 1000, "fps": 10,
        "splits": {"train": "0:3"}, "data_path": path, "video_path": None, "features": known,
        **(info or {}),
    }  # fmt: skip
    (folder / "meta").mkdir()
    (folder / "meta" / "info.json").write_text(json.dumps(told))
    return folder


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_lerobot_datasets_of_both_layouts(version, tmp_path):
    folder = lerobot(tmp_path / "pusht", version)
    shown = read(folder)
    assert format_of(folder) == "lerobot"
    assert [len(a) for a in shown.actions] == [3, 2, 4]
    # The goal comes before the state, by name; the last observation stands in for the final one.
    assert shown.observations[1].tolist() == [[-3, 6, 7], [-4, 8, 9], [-4, 8, 9]]
    assert shown.actions[1].tolist() == [[106, 107], [108, 109]]
    assert shown.terminated == [True, False, True]
    assert shown.returns.tolist() == [3, 2, 4]
    assert shown.actions[0].dtype == shown.observations[0].dtype == np.float32
    state = read(folder, ["observation.state", "observation.goal"])
    assert state.observations[1][0].tolist() == [6, 7, -3]


def test_lerobot_without_rewards_and_with_choices_and_grids(tmp_path):
    folder = lerobot(
        tmp_path / "grid",
        features={"observation.state": {"dtype": "float32", "shape": [2, 3], "names": None},
                  "action": {"dtype": "int64", "shape": [1], "names": None}},
        columns={"observation.state": np.arange(54.0).reshape(9, 2, 3), "action": np.arange(9),
                 "next.reward": None, "next.done": None},
        info={"total_frames": None},
    )  # fmt: skip
    told = json.loads((folder / "meta/info.json").read_text())
    del told["features"]["next.reward"], told["features"]["next.done"]
    (folder / "meta/info.json").write_text(json.dumps(told))
    shown = read(folder, ["observation.state"])
    assert shown.observations[0][1].tolist() == [6, 7, 8, 9, 10, 11]
    assert [a.tolist() for a in shown.actions] == [[0, 1, 2], [3, 4], [5, 6, 7, 8]]
    assert not shown.returns.any()
    assert not any(shown.terminated)


@pytest.mark.parametrize("kind", ["image", "video"])
def test_lerobot_films_are_refused_unless_others_are_chosen(kind, tmp_path):
    film = {"dtype": kind, "shape": [96, 96, 3], "names": ["height", "width", "channel"]}
    folder = lerobot(tmp_path / "pusht", features={"observation.images.top": film})
    with pytest.raises(UserError, match=r"images \(observation.images.top\).*observation.state"):
        read(folder)
    with pytest.raises(UserError, match="images"):
        read(folder, ["observation.images.top"])
    assert read(folder, ["observation.state"]).observations[0].shape == (4, 2)


@pytest.mark.parametrize(
    ("spoilt", "names"),
    [
        ({"info": {"total_episodes": 5}}, "says that it has 5 episodes, and 3 are there"),
        ({"info": {"total_frames": 12}}, "says that it has 12 frames, and 9 are there"),
        ({"info": {"features": {}}}, "no observations"),
        ({"info": {"features": 3}}, "cannot be read"),
        ({"columns": {"action": None}}, "lacks the column 'action'"),
        ({"columns": {"frame_index": [0, 1, 1, 0, 1, 0, 1, 2, 3]}}, "without its frame 2"),
        ({"columns": {"action": np.full((9, 2), np.nan)}}, "not finite"),
        ({"columns": {"next.done": [True] * 9}}, "Episode 0 .*goes on after that"),
        (
            {"features": {"observation.state": {"dtype": "float32", "shape": [3], "names": None}},
             "columns": {"observation.state": np.zeros((9, 3))},
             "info": {"features": {
                 "observation.state": {"dtype": "float32", "shape": [2]},
                 "action": {"dtype": "float32", "shape": [2]}}}},
            "cannot reshape",
        ),
    ],
)  # fmt: skip
def test_bad_datasets_of_lerobot_are_refused(spoilt, names, tmp_path):
    folder = lerobot(tmp_path / "bad", **spoilt)
    with pytest.raises(UserError, match=names):
        read(folder)


def test_damaged_datasets_of_lerobot_are_refused(tmp_path):
    folder = lerobot(tmp_path / "bad")
    cut(folder / "data/chunk-000/file-001.parquet")
    with pytest.raises(UserError, match="cannot be read"):
        read(folder)
    (folder / "data/chunk-000/file-001.parquet").unlink()
    with pytest.raises(UserError, match="3 episodes, and 1 are there"):
        read(folder)
    (folder / "data/chunk-000/file-000.parquet").unlink()
    with pytest.raises(UserError, match="there are no files data/chunk"):
        read(folder)
    (folder / "meta/info.json").write_text("[")
    with pytest.raises(UserError, match="cannot be read"):
        read(folder)


# --- Minari's published sets ---------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Minari's drafts
def test_a_published_dataset_by_its_id(tmp_path, monkeypatch):
    """As the Minari project makes them: by its own collector, from a MuJoCo task, below its
    folder of datasets."""
    import minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    with pytest.raises(UserError, match="minari download mujoco/hopper/expert-v0"):
        read("mujoco/hopper/expert-v0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would like an author
        with minari.DataCollector(gymnasium.make("Hopper-v5")) as world:
            world.action_space.seed(0)
            for seed in (0, 1):
                world.reset(seed=seed)
                while not any(world.step(world.action_space.sample())[2:4]):
                    pass
            made = world.create_dataset("mujoco/hopper/expert-v0", algorithm_name="SAC")
    shown = read("mujoco/hopper/expert-v0")
    assert format_of("mujoco/hopper/expert-v0") == "minari"
    assert shown.terminated == [True, True]
    for mine, theirs in zip(shown.observations, made.iterate_episodes(), strict=True):
        np.testing.assert_array_equal(mine, theirs.observations)
    main = tmp_path / "mujoco/hopper/expert-v0/data/main_data.hdf5"
    with pytest.raises(UserError, match="part of a Minari dataset"):
        read(main)
    assert not reading.has_names("mujoco/hopper/expert-v0")
    with pytest.raises(UserError, match="nothing by name"):
        read("mujoco/hopper/expert-v0", ["observation"])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_minari_parts_that_were_chosen(tmp_path, monkeypatch):
    import minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with minari.DataCollector(Camera()) as world:
            world.action_space.seed(0)
            world.reset(seed=0)
            while not any(world.step(world.action_space.sample())[2:4]):
                pass
            world.create_dataset("told/camera-v0")
    with pytest.raises(UserError, match=r"images \(camera\).*--keys, such as: door place"):
        read("told/camera-v0")
    shown = read("told/camera-v0", ["place", "door"])
    assert shown.observations[0].shape == (9, 5)
    assert shown.observations[0][1, 2:].tolist() == [0, 1, 0]
    assert shown.actions[0].shape == (8, 2)


# --- on the command line -------------------------------------------------------------------------


def test_commands_know_them(tmp_path):
    robomimic(tmp_path / "lift.hdf5", images=True)
    lerobot(tmp_path / "pusht")
    d4rl(tmp_path / "old.hdf5")
    told = understudy("demos", "info", "pusht", "--json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    document = json.loads(told.stdout)
    assert (document["format"], document["episodes"], document["steps"]) == ("lerobot", 3, 9)
    told = understudy("demos", "info", "lift.hdf5", cwd=tmp_path)
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert "--keys" in told.stderr
    keys = ("--keys", "robot0_eef_pos", "object")
    told = understudy("demos", "convert", "lift.hdf5", "lift.npz", *keys, "--json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["from"] == "robomimic"
    same(read(tmp_path / "lift.npz"), read(tmp_path / "lift.hdf5", keys[1:]))
    told = understudy(
        "demos", "convert", "old.hdf5", "new.hdf5", "--format", "robomimic", cwd=tmp_path
    )
    assert told.returncode == 0, told.stderr
    same(read(tmp_path / "new.hdf5"), read(tmp_path / "old.hdf5"))
    told = understudy("demos", "check", "old.hdf5", "Pendulum-v1", cwd=tmp_path)
    assert "observations have shape (4,); the environment has (3,)" in told.stderr
    told = understudy("demos", "info", "new.hdf5", "--keys", "pixels", cwd=tmp_path)
    assert "no 'pixels'; --keys chooses among: flat" in told.stderr
