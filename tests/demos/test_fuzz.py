"""Whatever a reader is handed, it answers with what it read or with one sentence of ours: never
another exception, never a hang, never a line of somebody else's code.

Each input begins as a good file and is spoilt: bytes exchanged, cut, doubled, or put in from a list
of what has tripped parsers before. A few hundred inputs in CI; `make fuzz` takes 50,000 and more.
"""

import contextlib
import io
import json
import os
import pickle
import shutil
import signal
import sys
from pathlib import Path

import gymnasium
import hypothesis
import jax
import numpy as np
import probe
import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from test_deep_runs import scripted
from test_robot_formats import lerobot

from understudy.core import window as windows
from understudy.core.errors import UserError
from understudy.demos import csv, d4rl, minari, npz, reading, robomimic, sb2, trajectories
from understudy.experiments import runs, store, stored_runs
from understudy.experiments.sweeps import sweep_file
from understudy.learners.deep import actor, checkpoint, scaling
from understudy.learners.deep import policy as policies

EACH = int(os.environ.get("UNDERSTUDY_FUZZ", "40"))  # inputs a reader
MOST = 20  # seconds an input
FOUND = Path(__file__).parent / "found"

# --- nothing of theirs is run ---------------------------------------------------------------------

WATCHED = ("pickle.find_class", "os.system", "subprocess.Popen", "os.exec", "os.posix_spawn")
watching, seen = False, []


def _watch(event, arguments):
    if watching and event in WATCHED:
        seen.append((event, arguments))


sys.addaudithook(_watch)


class Payload:
    """What a pickle would run."""

    def __reduce__(self):
        return os.system, ("touch pwned",)


@contextlib.contextmanager
def on_guard():
    """No code of theirs, no more than so many seconds, no exception but ours."""
    global watching

    def late(*_):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(MOST)
    watching = True
    try:
        yield
    except UserError:
        pass
    finally:
        watching = False
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert not seen


# --- how a file is spoilt -------------------------------------------------------------------------

TOKENS = [
    b"", b"\0", b"nan", b"NaN", b"inf", b"-1", b"0", b"1e999", b"9" * 40, b"[]", b"{}", b"[[[[",
    b'""', b"null", b"true", b"..", b"/", b"../../x", b"\xff\xfe", "\u202e".encode(), b"\r\n",
    b",,,", b'"', b"__import__('os')", b"\x93NUMPY", b"PK\x03\x04", b"a" * 300, b"1.5", b"-0.0",
    b"adaptive", b"=",
]  # fmt: skip

edits = st.lists(
    st.tuples(
        st.sampled_from(["put", "flip", "cut", "drop", "twice", "replace"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 255),
        st.sampled_from(TOKENS),
    ),
    min_size=1,
    max_size=6,
)


def spoilt(good: bytes, changes) -> bytes:
    data = bytearray(good)
    for kind, where, number, token in changes:
        at = int(where * len(data))
        if kind == "put":
            data[at:at] = token
        elif kind == "flip" and data:
            data[at] ^= number or 1
        elif kind == "cut":
            del data[at:]
        elif kind == "drop":
            del data[at : at + number]
        elif kind == "twice":
            data[at:at] = data[at : at + number]
        elif kind == "replace":
            data[at : at + max(1, len(token))] = token
    return bytes(data)


def words(good: str):
    """A text with some of its words exchanged for others, its own among them."""
    parts = good.replace("\n", " \n ").split(" ")
    others = st.one_of(
        st.sampled_from(parts),
        st.sampled_from([t.decode("latin-1") for t in TOKENS]),
        st.text(max_size=8),
        st.integers().map(str),
    )
    changes = st.lists(st.tuples(st.integers(0, len(parts) - 1), others), min_size=1, max_size=4)

    def change(made):
        fresh = list(parts)
        for place, word in made:
            fresh[place] = word
        return " ".join(fresh)

    return changes.map(change)


def fuzz(strategy):
    """A test that is given so many inputs of this kind, the same ones every time."""
    return lambda test: hypothesis.given(strategy)(
        hypothesis.settings(
            max_examples=EACH,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )(test)
    )


def one_spoilt(files, *readers):
    """Readers of several files, one of which is spoilt."""
    good = {path: path.read_bytes() for path in files}

    @fuzz(st.tuples(st.sampled_from(files), edits))
    def read(asked):
        path, changes = asked
        path.write_bytes(spoilt(good[path], changes))
        try:
            for reader in readers:
                with on_guard():
                    reader()
        finally:
            path.write_bytes(good[path])

    read()


# --- the readers ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where the good files are, one of each kind."""
    folder = tmp_path_factory.mktemp("fuzz")
    shown = probe.straight(episodes=2)
    npz.write(folder / "ours.npz", shown)
    sb2.write(folder / "sb2.npz", shown)
    csv.write(folder / "demos.csv", shown)
    d4rl.write(folder / "d4rl.hdf5", shown)
    robomimic.write(folder / "robomimic.hdf5", shown)
    trajectories.write(folder / "imitation", shown)
    lerobot(folder / "lerobot")
    world = gymnasium.make("Pendulum-v1")
    minari.write(folder, "fuzz/good-v0", scripted("Pendulum-v1"), world)
    minari.write(folder, "fuzz/arrow-v0", scripted("Pendulum-v1"), world, arrow=True)
    world.close()
    checkpoint.save(folder / "checkpoint.safetensors", {"a": np.arange(3.0)}, {"interactions": 7})
    run = folder / "run"
    runs.begin(run, REQUEST)
    runs.append(run, [{"interactions": n, "updates": n, "return": 1.0} for n in (0, 8)])
    runs.finish(run, {"policy": np.full((1, 2, 2), 0.5)}, {"expert_return": 1.0, "return": 1.0})
    return folder


REQUEST = {
    "env": "EmptyRoom-3x3", "horizon": 9, "seed": 0, "demos": None, "expert": None,
    "demonstrations": None, "config": {"window": "4", "interactions": 8, "beta": "uniform"},
}  # fmt: skip


FILES = ["ours.npz", "sb2.npz", "demos.csv", "d4rl.hdf5", "robomimic.hdf5"]


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_demonstrations(name, place, tmp_path):
    path = shutil.copy(place / name, tmp_path / name)
    one_spoilt([path], lambda: reading.read(path))


arrays = st.sampled_from(
    [
        np.zeros(0), np.array(3), np.array("x"), np.array(["a", "b"]), np.array([np.nan] * 4),
        np.arange(40.0), np.arange(41.0), np.arange(80.0).reshape(40, 2), np.ones((42, 2)),
        np.array([0, 20]), np.array([0, 40]), np.array([-1, 2**62]), np.array([True, False]),
        np.ones((2, 3, 4)), np.array([1 + 2j]), np.zeros(3, dtype="V8"), np.ones((0, 5)),
        np.array([Payload()], dtype=object), np.array(["2026-01-01"], dtype="datetime64[D]"),
        np.full(40, 1e308), np.array([b"bytes"]), np.ones(2, dtype=[("a", float), ("b", int)]),
    ]
)  # fmt: skip


@pytest.mark.parametrize("name", ["ours.npz", "sb2.npz"])
def test_arrays_of_another_kind_than_demonstrations(name, place, tmp_path):
    with np.load(place / name) as file:
        good = dict(file)

    @fuzz(st.dictionaries(st.sampled_from([*good, "other"]), arrays, max_size=4))
    def read(changed):
        np.savez(tmp_path / name, **{**good, **changed})
        with on_guard():
            reading.read(tmp_path / name)
        assert not (tmp_path / "pwned").exists()

    read()


@pytest.mark.parametrize("name", ["imitation", "lerobot", "fuzz/good-v0", "fuzz/arrow-v0"])
def test_a_folder_of_demonstrations(name, place, tmp_path):
    shutil.copytree(place / name, tmp_path / name)
    files = sorted(p for p in (tmp_path / name).rglob("*") if p.is_file())
    one_spoilt(files, lambda: reading.read(tmp_path / name))


def test_a_checkpoint(place, tmp_path):
    path = shutil.copy(place / "checkpoint.safetensors", tmp_path / "checkpoint.safetensors")
    one_spoilt([path], lambda: checkpoint.load(path))


def test_a_run(place, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(place / "run", run)
    one_spoilt(
        sorted(run.iterdir()),
        lambda: stored_runs.read(run),
        lambda: runs.tensors(run / "policy.safetensors", "The policy"),
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def test_a_run_that_says_something_else(place, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(place / "run", run)
    marker = json.loads((run / "done.json").read_text())
    names = st.sampled_from(
        [*REQUEST, *marker, "window", "interactions", "beta", "method", "files"]
    )

    @fuzz(st.dictionaries(names, json_values, min_size=1, max_size=3))
    def read(changed):
        within = {k: v for k, v in changed.items() if k in REQUEST["config"]}
        config = {**REQUEST, **changed}
        if "config" not in changed:
            config["config"] = {**REQUEST["config"], **within}
        (run / "config.json").write_text(json.dumps(config))
        (run / "done.json").write_text(json.dumps({**marker, **changed}))
        with on_guard():
            stored_runs.read(run)

    read()


def test_a_policy(tmp_path):
    border = scaling.of_spaces(probe.Point(), "probe:Point")
    net = actor.actor(
        border.observations, border.actions, (4,), discrete=False, key=jax.random.key(0)
    )
    policies.save(tmp_path, policies.Policy(net, border, "probe:Point", (2,), (2,), False))
    store.write_json(tmp_path / "config.json", {"env": "probe:Point"})
    one_spoilt(sorted(tmp_path.iterdir()), lambda: policies.load(tmp_path))


SWEEP = """name = "windows"
envs = [ "EmptyRoom-3x3" , "EmptyRoom-5x5" ]
seeds = 5
horizon = 9
trajectories = 2
[config]
interactions = 2000
sigma = 0.5
beta = "uniform"
[grid]
window = [ "1" , "4" , "32" ]
[vary]
eta = [ 0.01 , 0.1 ]
"batch, beta" = [ [ 1 , "uniform" ] , [ 4 , "geometric" ] ]
"""


@pytest.mark.parametrize("how", ["words", "bytes"])
def test_a_sweep(how, tmp_path):
    path = tmp_path / "sweep.toml"
    strategy = words(SWEEP).map(str.encode) if how == "words" else edits

    @fuzz(strategy)
    def read(given):
        path.write_bytes(given if how == "words" else spoilt(SWEEP.encode(), given))
        with on_guard():
            asked = sweep_file.read(path)
            assert asked.settings()
            # Whatever it asks for stays below the output folder.
            for config in asked.settings():
                for env in asked.envs:
                    request = {"env": env, "seed": 0, "config": vars(config)}
                    assert (tmp_path / runs.name(request)).parent == tmp_path

    read()


def test_a_window():
    shaped = st.from_regex(r"[0-9.e+\-]{0,6}(\*k\^)?[0-9.e+\-]{0,6}", fullmatch=True)

    @fuzz(st.one_of(st.text(max_size=12), shaped))
    def read(text):
        with on_guard():
            c, alpha = windows.parse(text)
            assert 0 < c < float("inf")
            assert 0 <= alpha <= 1

    read()


def test_a_name_of_a_run_is_one_folder(tmp_path):
    @fuzz(st.tuples(st.text(max_size=20), st.text(max_size=8), st.integers(0, 9)))
    def name(asked):
        env, window, seed = asked
        request = {"env": env, "seed": seed, "config": {"window": window}}
        assert (tmp_path / runs.name(request)).resolve().parent == tmp_path.resolve()

    name()


@pytest.mark.parametrize("found", sorted(FOUND.iterdir()), ids=lambda path: path.name)
def test_what_was_found_stays_found(found):
    """Each of these once ended the process."""
    with on_guard():
        reading.read(found)


def test_the_guard_would_notice(tmp_path, monkeypatch):
    """A reader that unpickles is caught: the test above it can fail."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError), on_guard():
        pickle.load(io.BytesIO(pickle.dumps(Payload())))
    assert (tmp_path / "pwned").exists()
    seen.clear()
