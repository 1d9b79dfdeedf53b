"""Files of demonstrations as other people's programs leave them, just right and just wrong."""

import json
import os
import types
import zipfile

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from understudy.core import files
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.demos import arrow, csv, hdf5, inspection, minari, npz, sb2, sb3
from understudy.demos.reading import format_of, read
from understudy.demos.writing import write

TWO = Demonstrations(
    [np.array([4, 5, 6]), np.array([6, 7])],
    [np.array([2, 3]), np.array([3])],
    [np.array([1.0, 0.5]), np.array([2.0])],
    [False, True],
)

# --- text ----------------------------------------------------------------------------------------


def from_text(tmp_path, text):
    (tmp_path / "demos.csv").write_text(text)
    return csv.read(tmp_path / "demos.csv")


def test_a_table_of_text_to_the_letter(tmp_path):
    csv.write(tmp_path / "demos.csv", TWO)
    assert (tmp_path / "demos.csv").read_text() == (
        "episode,observation,action,reward,terminated\n"
        "0,4,2,1.0,0\n0,5,3,0.5,0\n0,6,,,0\n1,6,3,2.0,0\n1,7,,,1\n"
    )
    shown = Demonstrations(
        [np.array([[True, False], [False, True]])], [np.array([[0.1]])], [np.zeros(1)], [True]
    )
    csv.write(tmp_path / "other.csv", shown)
    assert (tmp_path / "other.csv").read_text() == (
        "episode,observation_0,observation_1,action_0,reward,terminated\n"
        "0,1,0,0.1,0.0,0\n0,0,1,,,1\n"
    )


@pytest.mark.parametrize("deep", ["observations", "actions"])
def test_a_table_of_text_holds_vectors_and_nothing_deeper(deep, tmp_path):
    sizes = {"observations": (3, 2), "actions": (2, 2)}

    def shown(**shapes):
        of = {name: np.zeros(shape) for name, shape in (sizes | shapes).items()}
        return Demonstrations([of["observations"]], [of["actions"]], [np.zeros(2)], [False])

    csv.write(tmp_path / "vectors.csv", shown())
    with pytest.raises(UserError, match=r"as \.npz"):
        csv.write(tmp_path / "pictures.csv", shown(**{deep: (*sizes[deep], 2)}))


@pytest.mark.parametrize("word", ["1", " 1.0", "TRUE", "true "])
def test_ends_in_words(word, tmp_path):
    head = "episode,observation,action,terminated\n"
    assert from_text(tmp_path, f"{head}0,1,1,0\n0,1,1,{word}\n").terminated == [True]
    for no in ("", "0", "0.0", "False"):
        assert from_text(tmp_path, f"{head}0,1,1,0\n0,1,1,{no}\n").terminated == [False]
    with pytest.raises(UserError, match="in step 1 of 2"):
        from_text(tmp_path, f"{head}0,1,1,{word}\n0,1,1,0\n")


def test_numbers_without_a_point_are_whole_as_far_as_64_bits_go(tmp_path):
    head = "episode,observation,action,reward\n"
    shown = from_text(tmp_path, f"{head}0,{2**62},1,3\n0,-7,0,4\n")
    assert shown.observations[0].dtype == np.int64
    assert shown.observations[0].tolist() == [2**62, -7, -7]
    assert (shown.rewards[0].dtype, shown.rewards[0].tolist()) == (np.float64, [3, 4])
    shown = from_text(tmp_path, f"{head}0,{2**70},1,3\n0,-7,0,4\n")
    assert shown.observations[0].tolist() == [2.0**70, -7, -7]
    assert from_text(tmp_path, f"{head}0,1.5,1,3\n0,-7,0,4\n").actions[0].dtype == np.int64


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('episode,observation,action\n0,"1"2,3\n', "cannot be read"),
        ("episode,observation,action\n0,1,1\n0,1\n", "line 3 has not as many values"),
        ("episode,observation,action,action\n0,1,1,1\n", "the column 'action' twice"),
        ("episode,observation_0,observation_2,action\n0,1,1,1\n", "lacks the column 'observation'"),
        ("episode,observation_0,observation_9,action\n0,1,1,1\n", "column 'observation_9' beside"),
        ("episode,observation,action,speed\n0,1,1,1\n", "column 'speed' beside episode,"),
        ("episode,observation,action\n0,1,1\n0,1,\n1,1,1\n", "some episodes end with"),
        ("episode,observation,action\n0,1,1\n1,1,1\n0,1,1\n", "not one below another"),
        ("episode,observation,action\n0,1,1\n0,1,\n1,2,\n", "an episode without a step"),
    ],
)
def test_tables_of_text_that_are_refused(text, says, tmp_path):
    with pytest.raises(UserError, match=says):
        from_text(tmp_path, text)


def test_final_rows_belong_to_their_episode(tmp_path):
    head = "episode,observation_0,observation_1,action_0,action_1\n"
    shown = from_text(tmp_path, f"{head}a,1,2,3,4\na,5,6,,\nb,7,8,9,9\nb,1,1,8,8\nb,0,0, ,\n")
    assert [o.tolist() for o in shown.observations] == [[[1, 2], [5, 6]], [[7, 8], [1, 1], [0, 0]]]
    assert [a.tolist() for a in shown.actions] == [[[3, 4]], [[9, 9], [8, 8]]]


# --- arrays --------------------------------------------------------------------------------------

PLAIN = {
    "observations": np.arange(5),
    "actions": np.arange(3),
    "rewards": np.arange(3.0),
    "terminations": np.array([False, True, False]),
    "lengths": np.array([2, 1]),
}


def saved(tmp_path, **change):
    arrays = {k: v for k, v in {**PLAIN, **change}.items() if v is not None}
    np.savez(tmp_path / "demos.npz", **arrays)
    return npz.read(tmp_path / "demos.npz")


def test_arrays_are_cut_into_episodes(tmp_path):
    shown = saved(tmp_path)
    assert [o.tolist() for o in shown.observations] == [[0, 1, 2], [3, 4]]
    assert [a.tolist() for a in shown.actions] == [[0, 1], [2]]
    assert [r.tolist() for r in shown.rewards] == [[0, 1], [2]]
    assert shown.terminated == [True, False]
    assert saved(tmp_path, truncations=np.array([False, False, True])).terminated == [True, False]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lengths": np.array([3, 0])}, "or one without a step"),
        ({"lengths": np.array([[2, 1]])}, "'lengths' of type int64 and shape"),
        ({"observations": np.arange(4)}, "has 4 observations"),
        ({"observations": np.array(4)}, "'observations' of type int64 and shape"),
        ({"actions": np.arange(4)}, "has 4 actions"),
        ({"rewards": np.arange(2.0)}, "has 2 rewards"),
        ({"rewards": np.zeros((3, 1))}, "'rewards' of type float64 and shape"),
        ({"truncations": np.zeros(2, bool)}, "has 2 truncations"),
        ({"truncations": np.array([True, False, False])}, "Episode 0 of .* is truncated in step 1"),
    ],
)
def test_arrays_that_are_refused(change, says, tmp_path):
    with pytest.raises(UserError, match=says):
        saved(tmp_path, **change)


def test_an_archive_as_it_is_written(tmp_path):
    npz.write(tmp_path / "demos.npz", TWO)
    with np.load(tmp_path / "demos.npz") as file:
        told = {name: file[name].tolist() for name in file.files}
    assert told == {
        "observations": [4, 5, 6, 6, 7],
        "actions": [2, 3, 3],
        "rewards": [1.0, 0.5, 2.0],
        "terminations": [False, False, True],
        "truncations": [False, True, False],
        "lengths": [2, 1],
    }
    assert npz.holds(tmp_path / "demos.npz", ("actions", "lengths"))
    assert not npz.holds(tmp_path / "demos.npz", ("actions", "obs"))
    np.save(tmp_path / "one.npy", np.zeros(3))
    assert not npz.holds(tmp_path / "one.npy", ())


def expert(tmp_path, **change):
    arrays = {
        "obs": np.arange(6.0).reshape(3, 2),
        "actions": np.array([[1], [0], [4]]),
        "rewards": np.array([[1.0], [2.0], [3.0]]),
        "episode_starts": np.array([1.0, 0.0, 1.0]),
    } | change
    np.savez(tmp_path / "expert.npz", **arrays)
    return sb2.read(tmp_path / "expert.npz")


def test_columns_of_stable_baselines(tmp_path):
    shown = expert(tmp_path)
    assert [a.tolist() for a in shown.actions] == [[1, 0], [4]]
    assert [r.tolist() for r in shown.rewards] == [[1, 2], [3]]
    assert [o.tolist() for o in shown.observations] == [[[0, 1], [2, 3], [2, 3]], [[4, 5], [4, 5]]]
    floats = expert(tmp_path, actions=np.array([[1.0], [0.5], [4.0]]))
    assert [a.tolist() for a in floats.actions] == [[[1], [0.5]], [[4]]]
    pairs = expert(tmp_path, actions=np.array([[1, 2], [0, 5], [4, 4]]))
    assert [a.tolist() for a in pairs.actions] == [[[1, 2], [0, 5]], [[4, 4]]]
    ends = np.array([[9.0, 9.0], [8.0, 8.0]])
    told = expert(tmp_path, final_obs=ends, terminated=np.array([False, True]))
    assert [o[-1].tolist() for o in told.observations] == ends.tolist()
    assert told.terminated == [False, True]
    assert format_of(tmp_path / "expert.npz") == "sb2"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"episode_starts": np.array([1, 0, 2])}, "episode_starts of 2"),
        ({"episode_starts": np.array([0, 1, 1])}, "does not begin with an episode"),
        ({"episode_starts": np.array([1, 0])}, "3 obs and 2 episode_starts"),
        ({"actions": np.zeros((2, 1))}, "3 obs and 2 actions"),
        ({"rewards": np.zeros((3, 2))}, "3 obs and 6 rewards"),
        ({"final_obs": np.zeros((2, 2)), "terminated": np.zeros(1, bool)}, "not as many final_obs"),
        ({"final_obs": np.zeros((1, 2)), "terminated": np.zeros(2, bool)}, "not as many final_obs"),
    ],
)
def test_columns_of_stable_baselines_that_are_refused(change, says, tmp_path):
    with pytest.raises(UserError, match=says):
        expert(tmp_path, **change)


@pytest.mark.parametrize("ragged", [[[1.0, 2.0], [3.0]], [[1.0, 2.0, 3.0], [4.0]], [[1.0], None]])
def test_ragged_episodes_are_refused(ragged):
    import pyarrow as pa

    kind = pa.list_(pa.list_(pa.float64()))
    with pytest.raises(ValueError, match="ragged"):
        arrow.dense(pa.array([ragged], kind)[0].values)
    with pytest.raises(ValueError, match="ragged"):
        arrow.dense(pa.array([[]], kind)[0].values)
    whole = arrow.dense(pa.array([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]], kind)[0].values)
    assert whole.tolist() == [[1, 2], [3, 4], [5, 6]]


# --- where it goes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "format", "says"),
    [
        ("demos.txt", None, "ends in no known format"),
        ("demos", "npz", r"ends in \.npz or \.csv"),
        ("demos.txt", "csv", r"ends in \.npz or \.csv"),
        ("demos.npz", "csv", "does not fit the format csv"),
        ("demos.csv", "npz", "does not fit the format npz"),
        ("demos.csv", "imitation", "does not fit the format imitation"),
    ],
)
def test_names_that_do_not_fit_a_format(name, format, says, tmp_path):
    with pytest.raises(UserError, match=says):
        write(tmp_path / name, TWO, format)
    assert not [*tmp_path.iterdir()]


def test_what_is_there_stays(tmp_path):
    (tmp_path / "demos.npz").write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        write(tmp_path / "demos.npz", TWO)
    assert (tmp_path / "demos.npz").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "found"), [("demos.npz", "npz"), ("demos.csv", "csv"), ("any.file", "npz")]
)
def test_formats_are_told_by_what_is_there(name, found, tmp_path):
    npz.write(tmp_path / "demos.npz", TWO)
    if name == "demos.csv":
        csv.write(tmp_path / name, TWO)
    if name == "any.file":
        (tmp_path / "demos.npz").rename(tmp_path / name)
    assert format_of(tmp_path / name) == found
    assert read(tmp_path / name).terminated == TWO.terminated


# --- Minari --------------------------------------------------------------------------------------


def metadata(folder):
    return json.loads((folder / "data" / "metadata.json").read_text())


def test_a_dataset_says_what_it_is_of(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", "elsewhere")
    rng = np.random.default_rng(0)
    cart = Demonstrations(
        [rng.normal(size=(3, 4)).astype(np.float32)] * 2,
        [np.array([0, 1])] * 2,
        [np.ones(2)] * 2,
        [True, False],
    )
    with gymnasium.make("CartPole-v1") as env:
        folder = minari.write(
            tmp_path, "cart/two-v0", cart, env, algorithm="hand", description="two", seeds=[7, 8]
        )
    assert os.environ["MINARI_DATASETS_PATH"] == "elsewhere"
    monkeypatch.delenv("MINARI_DATASETS_PATH")
    told = metadata(folder)
    assert (told["algorithm_name"], told["description"]) == ("hand", "two")
    assert told["author"] == ["understudy"] or told["author"] == "understudy"
    assert (told["total_episodes"], told["total_steps"], told["data_format"]) == (2, 4, "hdf5")
    assert json.loads(told["env_spec"])["id"] == "CartPole-v1"
    import minari as theirs

    episodes = [*theirs.MinariDataset(folder / "data").iterate_episodes()]
    assert [e.terminations.tolist() for e in episodes] == [[False, True], [False, False]]
    assert [e.truncations.tolist() for e in episodes] == [[False, False], [False, True]]
    again = minari.write(tmp_path, "cart/two-v0", cart.first(1), arrow=True)  # in its place
    assert metadata(again)["total_episodes"] == 1
    assert metadata(again)["data_format"] == "arrow"
    assert "MINARI_DATASETS_PATH" not in os.environ
    assert [p.name for p in tmp_path.iterdir()] == ["cart"]


@pytest.mark.parametrize(
    ("values", "space"),
    [
        ([[4, 5, 6], [3, 9]], spaces.Discrete(7, start=3)),
        ([np.zeros((3, 2), np.float32)] * 2, spaces.Box(-np.inf, np.inf, (2,), np.float32)),
        ([np.zeros((3, 2), np.uint8)] * 2, spaces.Box(0, 255, (2,), np.uint8)),
        ([np.zeros(3)] * 2, spaces.Box(-np.inf, np.inf, (1,), np.float64)),
    ],
)
def test_spaces_are_those_that_hold_what_was_shown(values, space):
    assert minari._space_of([np.asarray(x) for x in values]) == space


class Odd(spaces.Space):
    """A space of the user's own."""


def test_what_minari_has_no_words_for_is_refused():
    env = gymnasium.Env()
    env.observation_space, env.action_space = spaces.Discrete(2), spaces.Discrete(2)
    minari.refuse_unwritable(env)
    for name in ("observation_space", "action_space"):
        setattr(env, name, Odd())
        with pytest.raises(UserError, match="cannot hold"):
            minari.refuse_unwritable(env)
        setattr(env, name, spaces.Discrete(2))


def test_only_registered_worlds_are_named_in_a_dataset():
    with gymnasium.make("CartPole-v1") as env:
        assert minari.named(env)
    own = gymnasium.Env()
    assert not minari.named(own)
    own.spec = gymnasium.envs.registration.EnvSpec("Mine-v0")
    assert not minari.named(own)
    own.spec = gymnasium.envs.registration.EnvSpec("CartPole-v1", entry_point=World)
    assert not minari.named(own)


@pytest.mark.parametrize("left_out", ["observation_space", "action_space", None])
def test_a_dataset_must_say_what_its_spaces_are(left_out, tmp_path):
    folder = minari.write(tmp_path, "two/two-v0", TWO)
    told = metadata(folder)
    told = {k: v for k, v in told.items() if k != left_out} if left_out else [told]
    (folder / "data" / "metadata.json").write_text(json.dumps(told))
    with pytest.raises(UserError, match="does not say what its spaces are"):
        minari.read(folder)


def test_what_a_dataset_holds_is_bounded_to_the_byte(tmp_path, monkeypatch):
    import h5py

    with h5py.File(tmp_path / "data.hdf5", "w") as file:
        file["a"], file["b/c"] = np.zeros(4), np.zeros(6)
        file["again"] = file["a"]  # another name for the same, counted once
    monkeypatch.setattr(files, "DATA", 80)
    monkeypatch.setattr(files, "regular", lambda path: path)  # the file itself is larger
    hdf5.refuse_what_is_elsewhere(tmp_path / "data.hdf5")
    monkeypatch.setattr(files, "DATA", 79)
    with pytest.raises(UserError, match="has 80 bytes; at most 79"):
        hdf5.refuse_what_is_elsewhere(tmp_path / "data.hdf5")


# --- what is told of them ------------------------------------------------------------------------


class World(gymnasium.Env):
    action_space = spaces.Discrete(2)


@pytest.mark.parametrize(("bound", "off"), [(0.5, 1e-5), (40.0, 40e-5)])
def test_values_may_lie_beyond_a_bound_by_rounding(bound, off):
    world = World()
    world.observation_space = spaces.Box(-bound, bound, (1,), np.float64)
    for sign in (1, -1):
        for share, count in ((0.9, 0), (1.5, 1)):
            seen = np.array([[0.0], [sign * (bound + share * off)]])
            demos = Demonstrations([seen], [np.array([1])], [np.ones(1)], [True])
            assert len(inspection.misfits(demos, world)) == count


@pytest.mark.parametrize(("still", "listed"), [(5, "0, 1, 2, 3, 4"), (6, "0, 1, 2, 3, 4 …")])
def test_at_most_five_dimensions_that_never_change_are_named(still, listed):
    seen = np.zeros((3, 7))
    seen[:, still:] = np.arange(3)[:, None]
    demos = Demonstrations([seen], [np.array([0, 1])], [np.ones(2)], [True])
    (told,) = inspection.oddities(demos)
    assert told == f"Dimension {listed} of each observation never changes."


# --- policies of Stable-Baselines3 ---------------------------------------------------------------


class Policy:
    """Keeps what it was built of."""

    def __init__(self, seen, acted, rate, **options):
        self.built = seen, acted, rate(1.0), options
        self.training = True

    def load_state_dict(self, weights):
        self.weights = weights

    def set_training_mode(self, mode):
        self.training = mode

    def predict(self, observation, state, episode_start, deterministic):
        return observation, state


def archive(tmp_path, *, kind="stable_baselines3.sac.policies", **options):
    about = {"policy_class": {"__module__": kind}, "policy_kwargs": options}
    with zipfile.ZipFile(tmp_path / "expert.zip", "w") as file:
        file.writestr("data", json.dumps(about))
        file.writestr("policy.pth", "weights")
    return tmp_path / "expert.zip"


@pytest.fixture
def library(monkeypatch):
    """In place of PyTorch and Stable-Baselines3, which the fast tests do without."""
    asked = []

    def load(file, *, map_location, weights_only):
        assert (map_location, weights_only) == ("cpu", True)
        return file.read()

    def build(module, name):
        asked.append((module, name))
        return Policy

    torch = types.SimpleNamespace(load=load, nn=types.SimpleNamespace(Tanh="tanh", ReLU="relu"))
    monkeypatch.setattr(sb3, "_library", lambda: (torch, build))
    return asked


def test_a_policy_is_built_of_what_its_archive_says_in_json(library, tmp_path):
    tanh = "<class 'torch.nn.modules.activation.Tanh'>"
    file = archive(tmp_path, net_arch=[8, 8], activation_fn=tanh, optimizer_class="x")
    with gymnasium.make("Pendulum-v1") as world:
        policy = sb3.load(file, world)
        options = {"net_arch": [8, 8], "activation_fn": "tanh"}
        assert policy.built == (world.observation_space, world.action_space, 0.0, options)
    assert library == [("stable_baselines3.sac.policies", "SACPolicy")]
    assert (policy.weights, policy.training) == (b"weights", False)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kind": "sbx.ppo"}, "holds a policy of sbx.ppo"),
        ({"kind": ""}, "an unknown kind"),
        ({"features_extractor_class": "x"}, "a features extractor of its own"),
        ({"activation_fn": "<class 'os.system'>"}, "has the activation"),
        ({"activation_fn": "<class 'torch.nn.modules.activation.Softmax'>"}, "has the activation"),
    ],
)
def test_a_policy_with_classes_of_its_own_is_refused(options, says, library, tmp_path):
    with gymnasium.make("Pendulum-v1") as world, pytest.raises(UserError, match=says):
        sb3.load(archive(tmp_path, **options), world)


def test_an_archive_that_is_none_is_refused(library, tmp_path):
    (tmp_path / "none.zip").write_text("no archive")
    with gymnasium.make("Pendulum-v1") as world:
        with pytest.raises(UserError, match=r"cannot be read for Pendulum-v1: File is not a zip"):
            sb3.load(tmp_path / "none.zip", world)
        with pytest.raises(UserError, match="does not exist"):
            sb3.load(tmp_path / "missing.zip", world)
