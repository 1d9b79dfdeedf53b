"""Formats of demonstrations: each keeps everything, reads what its own library wrote, and refuses
what is broken, with nothing run."""

import json
import pickle
import shutil
import warnings
import zipfile

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from test_cli import understudy

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.demos import csv, sb2, shipped, trajectories
from understudy.demos.reading import format_of, read
from understudy.demos.writing import write

FORMATS = {"npz": ".npz", "csv": ".csv", "sb2": ".npz", "imitation": "", "minari": "",
           "minari-arrow": ""}  # fmt: skip
rng = np.random.default_rng(0)
VECTORS = Demonstrations(
    [rng.normal(size=(5, 3)).astype(np.float32), rng.normal(size=(3, 3)).astype(np.float32)],
    [rng.normal(size=(4, 2)), rng.normal(size=(2, 2))],
    [rng.normal(size=4), rng.normal(size=2)],
    [True, False],
)
NUMBERS = Demonstrations(
    [np.array([3, 1, 2]), np.array([0, 1])],
    [np.array([1, 0]), np.array([4])],
    [np.ones(2), np.zeros(1)],
    [False, True],
)
ARRAYS = ("observations", "actions", "rewards")


def same(a, b, *, types=True):
    assert a.terminated == b.terminated
    for name in ARRAYS:
        for x, y in zip(getattr(a, name), getattr(b, name), strict=True):
            np.testing.assert_array_equal(x, y)
            assert not types or x.dtype == y.dtype


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("demos", [VECTORS, NUMBERS], ids=["vectors", "numbers"])
def test_a_format_keeps_everything(format, demos, tmp_path):
    target = write(tmp_path / f"demos{FORMATS[format]}", demos, format)
    assert format.startswith(format_of(target))
    same(read(target), demos, types=format != "csv")  # text says nothing of float32
    assert [p.name for p in tmp_path.iterdir()] == [target.name]  # no drafts left


# --- what others wrote ---------------------------------------------------------------------------


class Told(gymnasium.Env):
    """A dictionary to see: a place, and which of three doors is open."""

    observation_space = spaces.Dict({"place": spaces.Box(-9, 9, (2,)), "door": spaces.Discrete(3)})
    action_space = spaces.Box(-1, 1, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.place = 0, np.zeros(2, np.float32)
        return {"place": self.place, "door": 1}, {}

    def step(self, action):
        self.t, self.place = self.t + 1, (self.place + action).astype(np.float32)
        return {"place": self.place, "door": self.t % 3}, float(self.t), self.t == 4, False, {}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its own drafts
@pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
def test_minari_datasets_collected_by_minari(data_format, tmp_path, monkeypatch):
    import minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would like an author
        with minari.DataCollector(Told(), data_format=data_format) as world:
            for seed in (0, 1):
                world.reset(seed=seed)
                for _ in range(4):
                    world.step(np.array([0.5, seed], np.float32))
            world.create_dataset("told/doors-v0")
    for source in ("told/doors-v0", tmp_path / "told/doors-v0"):
        shown = read(source)
        assert shown.terminated == [True, True]
        assert shown.rewards[0].tolist() == [1, 2, 3, 4]
        # As FlattenObservation has it: keys in order, the door as one of three.
        flat = gymnasium.wrappers.FlattenObservation(Told())
        first, _ = flat.reset()
        np.testing.assert_array_equal(shown.observations[1][0], first)
        assert shown.observations[1][-1].tolist() == [0, 1, 0, 2, 4]


@pytest.mark.parametrize("rewarded", [True, False])
def test_trajectories_saved_by_datasets(rewarded, tmp_path):
    """As `imitation` saves them: nested lists, and infos encoded by jsonpickle."""
    import datasets

    datasets.disable_progress_bars()
    evil = json.dumps({"py/reduce": [{"py/function": "os.system"}, {"py/tuple": ["exit 1"]}]})
    columns = {
        "obs": VECTORS.observations,
        "acts": VECTORS.actions,
        "infos": [[evil] * len(a) for a in VECTORS.actions],
        "terminal": VECTORS.terminated,
    }
    if rewarded:
        columns["rews"] = VECTORS.rewards
    datasets.Dataset.from_dict(columns).save_to_disk(tmp_path / "saved")
    shown = read(tmp_path / "saved")
    if rewarded:
        same(shown, VECTORS)
    else:
        assert not any(r.any() for r in shown.rewards)


def test_datasets_reads_the_trajectories_that_we_write(tmp_path):
    import datasets

    trajectories.write(tmp_path / "ours", VECTORS)
    rows = datasets.load_from_disk(str(tmp_path / "ours")).with_format("numpy")
    np.testing.assert_array_equal(np.stack(rows[0]["obs"]), VECTORS.observations[0])
    assert rows[0]["obs"][0].dtype == np.float32
    assert [bool(row["terminal"]) for row in rows] == VECTORS.terminated
    assert rows[1]["infos"].tolist() == ["{}", "{}"]


class Malice:
    def __reduce__(self):
        return (pytest.fail, ("a loaded file ran code",))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_expert_files_of_stable_baselines_2(tmp_path):
    """Discrete numbers as columns, no final observations, and a ragged array that is pickled."""
    ragged = np.empty(2, object)
    ragged[:] = [np.zeros(2), Malice()]
    np.savez(
        tmp_path / "expert.npz",
        obs=np.array([[0.0], [1.0], [2.0]]),
        actions=np.array([[1], [0], [4]]),
        rewards=np.array([1.0, 2.0, 3.0]),
        episode_returns=np.array([3.0, 3.0]),
        episode_starts=np.array([True, False, True]),
        infos=ragged,
    )
    shown = read(tmp_path / "expert.npz")
    assert [a.tolist() for a in shown.actions] == [[1, 0], [4]]
    assert [o.ravel().tolist() for o in shown.observations] == [[0, 1, 1], [2, 2]]
    assert shown.returns.tolist() == [3, 3]
    assert shown.terminated == [False, False]


def test_a_csv_by_hand(tmp_path):
    (tmp_path / "hand.csv").write_text(
        "episode,observation_0,observation_1,action\na,0.5,1,2\na,1.5,1,0\nb,0,0,1\n"
    )
    shown = read(tmp_path / "hand.csv")
    assert shown.observations[0].tolist() == [[0.5, 1], [1.5, 1], [1.5, 1]]
    assert [a.tolist() for a in shown.actions] == [[2, 0], [1]]
    assert shown.rewards[0].tolist() == [0, 0]


# --- what is broken ------------------------------------------------------------------------------


def cut(path):
    """Without its second half."""
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize("format", FORMATS)
def test_truncated_files_are_refused(format, tmp_path):
    target = write(tmp_path / f"demos{FORMATS[format]}", shipped.find("Hopper-v5").first(2), format)
    files = [target] if target.is_file() else [*target.rglob("*.arrow"), *target.rglob("*.hdf5")]
    for file in files:
        cut(file)
    with pytest.raises(UserError):
        read(target)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"obs": np.array([Malice()] * 3, dtype=object)}, "not a readable .npz"),
        ({"actions": None}, "lacks the array 'actions'"),
        ({"rewards": np.zeros(2)}, "3 obs and 2 rewards"),
        ({"rewards": np.array(["a", "b", "c"])}, "'rewards' of type"),
        ({"episode_starts": np.zeros(3, bool)}, "does not begin with an episode"),
        ({"obs": np.zeros((0, 2)), "actions": np.zeros(0), "rewards": np.zeros(0),
          "episode_starts": np.zeros(0, bool)}, "does not begin"),
        ({"obs": np.full((3, 2), np.nan)}, "not finite"),
        ({"final_obs": np.zeros((5, 2)), "terminated": np.zeros(5, bool)}, "not as many final_obs"),
        ({"final_obs": np.zeros((1, 9)), "terminated": np.zeros(1, bool)}, "do not fit"),
    ],
)  # fmt: skip
def test_bad_files_of_stable_baselines_are_refused(change, names, tmp_path):
    good = {
        "obs": np.zeros((3, 2)),
        "actions": np.zeros(3, int),
        "rewards": np.zeros(3),
        "episode_starts": np.array([True, False, False]),
    }
    arrays = {name: array for name, array in {**good, **change}.items() if array is not None}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(UserError, match=names):
        sb2.read(tmp_path / "bad.npz")


HEAD = "episode,observation_0,action,reward,terminated\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", "lacks the column 'observation'"),
        (HEAD, "no rows"),
        ("observation,action\n1,2\n", "lacks the column 'episode'"),
        ("episode,observation_1,action\n1,2,3\n", "lacks the column 'observation'"),
        (HEAD + "0,1,2\n", "line 2 has not as many values"),
        (HEAD + "0,1,2,3,0,9\n", "line 2 has not as many values"),
        (HEAD + "0,one,2,3,0\n", "could not convert"),
        (HEAD + "0,nan,2,3,0\n", "not finite"),
        (HEAD + "0,1,2,3,perhaps\n", "'terminated' is 'perhaps'"),
        (HEAD + "0,1,2,3,0\n1,1,2,3,0\n0,1,2,3,0\n", "not one below another"),
        (HEAD + "0,1,2,3,0\n0,1,,,1\n1,1,2,3,0\n", "some episodes end with"),
        (HEAD + "0,1,,,1\n", "without a step"),
    ],
)
def test_bad_csv_is_refused(text, names, tmp_path):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(UserError, match=names):
        csv.read(tmp_path / "bad.csv")


def test_a_csv_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "bad.csv").write_bytes(bytes(range(128, 256)))
    with pytest.raises(UserError, match="cannot be read"):
        csv.read(tmp_path / "bad.csv")
    with pytest.raises(UserError, match="does not exist"):
        csv.read(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"acts": None}, "lacks the column 'acts'"),
        ({"obs": [[[0.0], [1.0], [2.0, 3.0]]]}, "ragged"),
        ({"obs": [[[0.0], [None], [2.0]]]}, "empty values"),
        ({"obs": [[["a"], ["b"], ["c"]]]}, "in place of numbers"),
        ({"obs": [[[0.0], [1.0], [float("nan")]]]}, "not finite"),
        ({"obs": [None]}, "without a list"),
        ({"obs": [[[0.0], [1.0]]]}, "2 observations, 2 actions"),
        ({"terminal": [None]}, "'terminal' is None"),
        ({"obs": [], "acts": [], "terminal": []}, "no demonstrations"),
    ],
)
def test_bad_trajectories_are_refused(columns, names, tmp_path):
    import pyarrow as pa

    good = {"obs": [[[0.0], [1.0], [2.0]]], "acts": [[0, 1]], "terminal": [True]}
    table = pa.table({k: v for k, v in {**good, **columns}.items() if v is not None})
    trajectories.write(tmp_path / "bad", NUMBERS)
    file = tmp_path / "bad" / trajectories.TABLE
    with pa.OSFile(str(file), "wb") as to, pa.ipc.new_stream(to, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(UserError, match=names):
        read(tmp_path / "bad")


@pytest.mark.parametrize(
    ("state", "names"),
    [
        ("no json", "cannot be read"),
        ("{}", "_data_files"),
        ('{"_data_files": []}', "must name files"),
        ('{"_data_files": [{"filename": "../other.arrow"}]}', "must name files of this folder"),
    ],
)
def test_a_dataset_cannot_name_files_elsewhere(state, names, tmp_path):
    trajectories.write(tmp_path / "bad", NUMBERS)
    shutil.copy(tmp_path / "bad" / trajectories.TABLE, tmp_path / "other.arrow")
    (tmp_path / "bad" / trajectories.STATE).write_text(state)
    with pytest.raises(UserError, match=names):
        read(tmp_path / "bad")


def test_pickles_are_never_opened(tmp_path):
    """Whatever the name of the file."""
    for name in ("demos.npz", "demos.pkl", "demos.csv", "demos"):
        (tmp_path / name).write_bytes(pickle.dumps(Malice()))
        with pytest.raises(UserError):
            read(tmp_path / name)


@pytest.mark.torch
def test_an_sb3_archive_is_never_unpickled(tmp_path):
    pytest.importorskip("stable_baselines3")
    import base64

    from understudy.demos import sb3

    evil = base64.b64encode(pickle.dumps(Malice())).decode()
    for kind, said in (("stable_baselines3.common.policies", "cannot be read"), ("sbx.ppo", "sbx")):
        data = {"policy_class": {":serialized:": evil, "__module__": kind},
                "policy_kwargs": {":serialized:": evil}}  # fmt: skip
        with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
            archive.writestr("data", json.dumps(data))
            archive.writestr("policy.pth", pickle.dumps(Malice()))
        with gymnasium.make("CartPole-v1") as world, pytest.raises(UserError, match=said):
            sb3.load(tmp_path / "evil.zip", world)


# --- on the command line -------------------------------------------------------------------------


def test_demos_are_described_converted_drawn_and_checked(tmp_path):
    told = understudy("demos", "convert", "Hopper-v5", "two.csv", "--episodes", "2", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    told = understudy("demos", "info", "two.csv", "--env", "Hopper-v5", "--json", cwd=tmp_path)
    document = json.loads(told.stdout)
    shown = shipped.find("Hopper-v5").first(2)
    assert document["steps"] == sum(len(a) for a in shown.actions)
    assert document["returns"]["mean"] == pytest.approx(shown.returns.mean())
    assert document["actions"]["high"] == np.concatenate(shown.actions).max(0).tolist()
    assert (document["terminated"], document["repeated_episodes"]) == (sum(shown.terminated), 0)
    assert 0 < document["coverage"]["actions"] <= 1
    assert understudy("demos", "plot", "two.csv", cwd=tmp_path).returncode == 0
    assert (tmp_path / "demos.png").stat().st_size > 10_000
    wrong = understudy("demos", "check", "two.csv", "Walker2d-v5", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "observations have shape (11,); the environment has (17,)" in wrong.stderr
    again = understudy("demos", "convert", "Hopper-v5", "two.csv", cwd=tmp_path)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)


def test_what_is_odd_is_told():
    from understudy.demos import inspection

    twice = Demonstrations(
        *([x, x] for x in (np.zeros((3, 2)), np.array([0, 7]), np.zeros(2), False))
    )
    with gymnasium.make("CartPole-v1") as world:
        wrong = " ".join(inspection.misfits(twice, world))
        odd = " ".join(inspection.oddities(twice, world))
    for words in ("shape (2,); the environment has (4,)", "go from 0 to 7"):
        assert words in wrong
    for words in ("1 of 2 episodes", "no rewards", "Dimension 0, 1 of each", "2 of 500 steps"):
        assert words in odd
    ten = shipped.find("HalfCheetah-v5")
    with gymnasium.make("HalfCheetah-v5") as world:
        assert inspection.misfits(ten, world) == inspection.oddities(ten, world) == []
