"""Whatever a user's environment returns, raises, prints or calls, in whichever method and whenever:
one sentence that names it, no traceback, no hang, no result that is none, nothing half-written."""

import contextlib
import functools
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import gymnasium
import hypothesis
import numpy as np
import odd
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import strategies as st
from odd import Fault

from understudy.cli import program as cli
from understudy.core.errors import UserError
from understudy.demos import npz, reading, recording
from understudy.envs import action_fit as acts
from understudy.envs import catalog, guard, sampled, toy_text
from understudy.experiments import demo_files as demos_of
from understudy.experiments import expert, watch
from understudy.experiments import train_features as linear_train
from understudy.experiments import train_networks as deep_train
from understudy.experiments import train_tables as train
from understudy.learners.config import Config, VectorConfig
from understudy.learners.deep.collect import Collector
from understudy.learners.deep.config import DeepConfig, ExpertConfig
from understudy.learners.deep.scaling import of_spaces

pytestmark = pytest.mark.filterwarnings("ignore")  # Gymnasium has its own words for such worlds
LENGTH = odd.LENGTH
HANG = 20  # seconds; the machine may be busy
TINY = DeepConfig(
    interactions=16, marks=1, episodes=2, hidden=8, discriminator_hidden=8, batch=8, points=8,
    policy_steps=1, reward_steps=1, warmup=0, warm_start="none",
)  # fmt: skip
RUN = ["done.json", "metrics.jsonl", "policy.safetensors", "film.gif", "demos.npz"]


# --- what can be wrong ---------------------------------------------------------------------------

OBSERVATIONS = [
    None, 0.5, np.zeros(1), np.zeros(3), np.zeros((1, 2)), np.zeros(0), {"x": 1.0}, "seen",
    [[0.0], [0.0, 1.0]], np.array([np.nan, 0.0]), np.array([0.0, np.inf]), np.array([1e39, 0.0]),
    np.array([0, 1j]), np.array([None, None]), np.array(["a", "b"]), [10**400, 0], (0.0,), set(),
]  # fmt: skip
STATES = [None, 0.7, -1, 4, 10**30, np.nan, "0", np.zeros(1), [0], {}, 1j, np.inf]
REWARDS = [
    None, "1", np.zeros(2), np.ones(1), [1.0], np.nan, -np.inf, 1e308, 10**400, 1j, {},
    np.array(["x"]), np.float64("nan"), b"1",
]  # fmt: skip
FLAGS = [None, "False", 2, -1, np.nan, np.zeros(2, bool), np.array([True]), [], 0.5]
WHOLES = [None, 3, (), (1, 2, 3), (np.zeros(2), 0.0, False, {}), "what", iter(()), {}]
EXCEPTIONS = [
    ZeroDivisionError("the world\nfell \x1b[31mapart"), KeyError("\x07"), RecursionError(),
    odd.Stranger("from afar"), odd.Mute(), StopIteration(), GeneratorExit(), AssertionError(),
    MemoryError(), OSError(28, "No space left"), UnicodeError("\ud800 \u202e"),
    RuntimeError("long " * 5_000), TimeoutError(), NotImplementedError(), Exception(object()),
]  # fmt: skip
PICTURES = [None, np.zeros(3), np.zeros((0, 0, 3)), "picture", np.zeros((2, 2, 9)), [[1, 2], [3]]]


def one_of(values):
    return st.integers(0, len(values) - 1).map(lambda i: values[i])


def faults(observations):
    """A method, when, and what."""
    leaving = st.tuples(st.just("raise"), one_of(EXCEPTIONS)) | st.tuples(
        st.just("exit"), st.sampled_from([0, None, 1, "bye"])
    )
    of_step = st.one_of(
        leaving,
        st.tuples(st.just("obs"), one_of(observations)),
        st.tuples(st.just("reward"), one_of(REWARDS)),
        st.tuples(st.sampled_from(["terminated", "truncated"]), one_of(FLAGS)),
        st.tuples(st.just("all"), one_of(WHOLES)),
        st.tuples(st.just("endless"), st.none()),
    )
    of_reset = st.one_of(
        leaving,
        st.tuples(st.just("obs"), one_of(observations)),
        st.tuples(st.just("all"), one_of(WHOLES)),
    )
    made = functools.partial(st.builds, lambda method, call, does: Fault(method, call, *does))
    return st.one_of(
        made(st.just("step"), st.integers(1, 9), of_step),
        made(st.just("step"), st.integers(1, 9), of_step),
        made(st.just("reset"), st.integers(1, 3), of_reset),
        made(st.sampled_from(["constructor", "close"]), st.integers(1, 2), leaving),
    )


def drawing():
    does = st.one_of(st.tuples(st.just("picture"), one_of(PICTURES)),
                     st.tuples(st.just("raise"), one_of(EXCEPTIONS)),
                     st.tuples(st.just("exit"), st.just(0)))  # fmt: skip
    return st.builds(lambda n, do: Fault("render", n, *do), st.integers(1, 3), does)


# --- how it is met -------------------------------------------------------------------------------


@contextlib.contextmanager
def watched(limit=HANG):
    """No more than so many seconds of work, nor many times that of waiting, for other programs may
    be at work; and nothing on stdout."""
    hung, said = [], io.StringIO()

    def late(*_):
        hung.append(True)
        raise KeyboardInterrupt

    before = {each: signal.signal(each, late) for each in (signal.SIGALRM, signal.SIGPROF)}
    signal.alarm(10 * limit)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        with contextlib.redirect_stdout(said):
            yield
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for each, handler in before.items():
            signal.signal(each, handler)
        assert not hung, "it hangs"
    assert not said.getvalue()


def refused(action, name):
    """The one sentence, if there is one."""
    with watched():
        try:
            action()
        except UserError as error:
            sentence = str(error)
        else:
            return None
    assert name in sentence or "environment" in sentence.lower(), sentence
    assert sentence.isprintable(), sentence
    assert len(sentence) < 700, sentence
    return sentence


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def misbehave(strategy, route, name, examples, make_out=lambda folder: folder / "run"):
    """Every fault is refused by the route, and leaves nothing that could be taken for a result."""
    met: list[Fault] = []

    @hypothesis.settings(
        max_examples=examples, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(strategy)
    def each(fault):
        with tempfile.TemporaryDirectory() as folder:
            out = make_out(Path(folder))
            odd.set_fault(fault)
            sentence, calls = refused(lambda: route(out), name), odd.calls.get(fault.method, 0)
            if calls < fault.call:  # it never came to that
                assert sentence is None
                return
            assert sentence, "nobody noticed"
            left = files(Path(folder))
            assert not [path for path in left if "draft" in path], left
            # What closes badly closes after the work, which is then whole.
            if fault.method != "close":
                assert not [path for path in left if Path(path).name in RUN[2:] + RUN[:1]], left
            if fault.method != "close" and fault.call == 1 and fault.does != "endless":
                assert not [path for path in left if path.endswith(".json")], left
        met.append(fault)

    each()
    assert len(met) >= examples / 2
    print(f"{route.__name__}: {len(met)} cases", file=sys.stderr)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Demonstrations of the two worlds of vectors, and a run of each that is whole."""
    folder = tmp_path_factory.mktemp("odd")
    for world, player in (("Vector", odd.push), ("Choice", odd.hold)):
        env = catalog.make(f"odd:{world}")
        npz.write(folder / f"{world}.npz", recording.record(env, recording.acting(player), 3))
    deep_train.train("odd:Vector", TINY, demos=str(folder / "Vector.npz"), out=folder / "run")
    return folder


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """An episode without an end, and the sampling of a table, end sooner than at their limits."""
    monkeypatch.setattr(guard, "LONGEST", 200)
    fewer = functools.partial(sampled.from_samples, interactions=200)
    monkeypatch.setattr(catalog.sampled, "from_samples", fewer)
    yield
    odd.set_fault(None)


def test_networks_are_trained_in_it(shown):
    def route(out):
        deep_train.train("odd:Vector", TINY, demos=str(shown / "Vector.npz"), out=out)

    misbehave(faults(OBSERVATIONS), route, "odd:Vector", 60)


def test_features_are_learned_in_it(shown):
    config = VectorConfig(interactions=60, horizon=LENGTH, batch=2)

    def route(out):
        linear_train.train(
            "odd:Choice", "fourier:1", config, demos=str(shown / "Choice.npz"), out=out
        )

    def bounded(fault):  # by --horizon, whatever it says
        return fault.does != "endless"

    misbehave(faults(OBSERVATIONS).filter(bounded), route, "odd:Choice", 60)


def test_a_table_is_sampled_from_it(tmp_path):
    def route(out):
        train.train("odd:Table", Config(interactions=50, marks=1), horizon=LENGTH, out=out)

    def bounded(fault):
        return fault.does != "endless"

    misbehave(faults(STATES).filter(bounded), route, "odd:Table", 60)


def test_it_is_recorded(shown):
    def route(out):
        demos_of.record(
            "odd:Choice", out, player="odd:hold", episodes=3, window=False, seed=0, horizon=None,
            format=None,
        )  # fmt: skip

    misbehave(faults(OBSERVATIONS), route, "odd:Choice", 80, lambda folder: folder / "d.npz")


def test_a_policy_is_evaluated_in_it(shown):
    def route(out):
        deep_train.evaluate(shown / "run", episodes=3, env="odd:Vector")

    misbehave(faults(OBSERVATIONS), route, "odd:Vector", 80)


def test_a_policy_is_filmed_in_it(shown):
    def route(out):
        watch.watch(shown / "run", out, episodes=2, seconds=1, env="odd:Vector")

    misbehave(
        drawing() | faults(OBSERVATIONS), route, "odd:Vector", 60, lambda folder: folder / "f.gif"
    )


# --- one by one ----------------------------------------------------------------------------------


def test_what_was_seen_stays_seen(shown):
    """The world shows the same array every time."""
    read = reading.read(str(shown / "Choice.npz"))
    assert all(len(np.unique(seen[:, 0])) == LENGTH + 1 for seen in read.observations)


def test_whole_numbers_are_sent_as_such(tmp_path):
    """The learner's actions are fractions; the world takes whole numbers within its bounds."""
    world = catalog.make("odd:Whole")
    world.reset(seed=0)
    for given in ([-9.0, 9.0], [0.4, 0.6], np.array([1e30, -1e30]), np.array([-2, 5])):
        world.step(np.asarray(given))
    player = recording.acting(lambda obs: np.array([1, 2]))
    npz.write(tmp_path / "demos.npz", recording.record(world, player, 3))
    out = tmp_path / "run"
    deep_train.train("odd:Whole", TINY, demos=str(tmp_path / "demos.npz"), out=out)
    assert np.isfinite(deep_train.evaluate(out, episodes=2, env="odd:Whole")["return"])


@pytest.mark.parametrize("low", [-0.1, -1 / 3, 0.7])
def test_bounds_that_float32_rounds_outwards_are_kept(low):
    space = gymnasium.spaces.Box(low, low + 0.9, (3,), np.float64)
    fit = acts.fitting(space)
    for bound in (space.low, space.high):
        sent = bound.astype(np.float32)
        assert space.contains(fit(sent) if fit else sent)


SPACES = {
    "no numbers to see": {"observation_space": Box(0, 1, (0,))},
    "no numbers to act by": {"action_space": Box(-1, 1, (0,), np.float32)},
    "an action without an axis": {"action_space": Box(-1, 1, (), np.float32)},
    "no space": {"observation_space": None},
    "a word for a space": {"action_space": "Discrete(2)"},
}


@pytest.mark.parametrize("spaces", SPACES.values(), ids=list(SPACES))
def test_spaces_that_cannot_be(spaces, shown, tmp_path, monkeypatch):
    monkeypatch.setattr(odd, "Spaces", type("Spaces", (odd.Vector,), spaces), raising=False)
    demos = str(shown / "Vector.npz")
    assert refused(
        lambda: deep_train.train("odd:Spaces", TINY, demos=demos, out=tmp_path / "run"),
        "odd:Spaces",
    )
    assert not files(tmp_path)


def good_table():
    return {s: {a: [(1.0, (s + a) % 3, 0.0, False)] for a in range(2)} for s in range(3)}


def without(table, *places):
    for s, a in places:
        del table[s][a]
    return table


def exchanged(outcomes):
    table = good_table()
    table[1][1] = outcomes
    return table


TABLES = [
    without(good_table(), (1, 1)),
    without(good_table(), (2, 0), (2, 1)),
    {**good_table(), 1: {}},
    {0: good_table()[0], 1: good_table()[1], 7: good_table()[2]},
    exchanged([]), exchanged(None), exchanged([(1.0, 0, 0.0)]), exchanged([(1.0, 9, 0.0, False)]),
    exchanged([(1.0, 0.5, 0.0, False)]), exchanged([(np.nan, 0, 0.0, False)]),
    exchanged([(0.5, 0, 0.0, False)]), exchanged([(1.0, 0, None, False)]),
    exchanged([(1.0, 0, np.inf, False)]), exchanged(["what"]), exchanged([(-1.0, 0, 0.0, False)]),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(TABLES)))
def test_tables_that_are_none(i, tmp_path, monkeypatch):
    tabled = {"P": TABLES[i], "observation_space": Discrete(3)}
    monkeypatch.setattr(odd, "Tabled", type("Tabled", (odd.Table,), tabled), raising=False)
    with pytest.raises(UserError):
        train.train("odd:Tabled", Config(interactions=50), horizon=3, out=tmp_path / "run")
    assert not files(tmp_path)


def test_a_good_table_is_none_the_worse():
    nu = np.array([1.0, 0, 0])
    assert toy_text.from_table(good_table(), nu=nu, horizon=4).shape == (4, 3, 2)


def test_no_more_is_practised_than_asked_for(shown, tmp_path):
    demos = str(shown / "Vector.npz")
    for more in ({"envs": 5_000}, {"fresh": 17}):
        config = DeepConfig(**{**vars(TINY), **more})
        with pytest.raises(UserError, match="16 interactions are less than one iteration"):
            deep_train.train("odd:Vector", config, demos=demos, out=tmp_path / "run")
    config = VectorConfig(interactions=160, horizon=LENGTH, batch=5_000)
    with pytest.raises(UserError, match="160 interactions are less than one iteration"):
        linear_train.train(
            "odd:Choice", "fourier:1", config, demos=str(shown / "Choice.npz"), out=tmp_path / "r"
        )
    assert not files(tmp_path)


@pytest.mark.parametrize("steps", [0, 3, LENGTH, LENGTH + 2, 2 * LENGTH, 2 * LENGTH + 1, 40])
@pytest.mark.parametrize("env", ["odd:Vector", "odd:Counting"])
def test_a_world_that_counts_its_resets_is_told_on_resuming(env, steps):
    """Wherever the run was stopped; and a world that does not is restored as before."""

    def collector():
        border = of_spaces(catalog.make(env), env)
        return Collector(lambda: catalog.make(env), border, lanes=2, seed=3, name=env)

    first = collector()
    if steps:
        first.practise(lambda obs, _: np.tanh(obs[:, :1]), steps)
    second = collector()
    if env == "odd:Counting":
        with pytest.raises(UserError, match="did not come to the same rewards"):
            second.restore(first.state())
        return
    second.restore(first.state())
    on, again = (c.practise(lambda obs, _: np.tanh(obs[:, :1]), 9) for c in (first, second))
    assert all(np.array_equal(on[name], again[name]) for name in on)
    assert first.state().keys() == second.state().keys()


@pytest.mark.parametrize("size", [1e13, 1e20, 1e37])
def test_a_far_observation_is_the_worlds_doing(size, shown, tmp_path):
    """And does not mark the run as failed: the same command goes on with the world mended."""
    demos, out = str(shown / "Vector.npz"), tmp_path / "run"
    odd.set_fault(Fault("step", 30, "obs", np.array([size, 0.0])))
    with pytest.raises(UserError, match=r"odd:Vector gave an observation with the number 1e\+"):
        deep_train.train("odd:Vector", TINY, demos=demos, out=out)
    odd.set_fault(None)
    assert deep_train.train("odd:Vector", TINY, demos=demos, out=out)["interactions"] == 16


def test_a_dataset_of_an_unregistered_world(shown, tmp_path):
    """Written by record, convert and expert; it names no code, and is read again."""
    told = demos_of.record(
        "odd:Choice", tmp_path / "recorded", player="odd:hold", episodes=2, window=False, seed=0,
        horizon=None, format=None,
    )  # fmt: skip
    demos_of.convert(
        str(shown / "Vector.npz"), tmp_path / "converted", "minari", "odd:Vector", None
    )
    learned = expert.expert(
        "odd:Vector",
        ExpertConfig(interactions=16, explore=16, marks=1, episodes=2, hidden=8, batch=8),
        out=tmp_path / "run",
    )
    for folder in (told["out"], tmp_path / "converted", learned["demos"]):
        assert len(reading.read(str(folder))) >= 2
        metadata = json.loads(next(Path(folder).rglob("metadata.json")).read_text())
        assert metadata.get("env_spec") is None


def test_spaces_that_minari_has_no_words_for_are_refused_at_once(tmp_path, monkeypatch):
    graph = gymnasium.spaces.Graph(Box(-1, 1, (2,)), None)
    world = type("Graphs", (odd.Choice,), {"observation_space": graph})
    monkeypatch.setattr(odd, "Graphs", world, raising=False)
    with pytest.raises(UserError, match="A Minari dataset cannot hold"):
        demos_of.record("odd:Graphs", tmp_path / "out", player="odd:hold", episodes=2,
                        window=False, seed=0, horizon=None, format=None)  # fmt: skip
    assert odd.calls.get("reset", 0) == 0


# --- the command line ----------------------------------------------------------------------------


class Left(Exception):
    """Where the program would end."""


def command(monkeypatch, *arguments):
    """The program in this process: its code, what it printed, and its last sentence."""

    def leave(sentence, code):
        raise Left(sentence, code)

    said = io.StringIO()
    monkeypatch.setattr(cli, "_leave", leave)
    monkeypatch.setattr(sys, "argv", ["understudy", *map(str, arguments)])
    try:
        with contextlib.redirect_stdout(said):
            cli.main()
    except Left as left:
        return left.args[1], said.getvalue(), left.args[0]
    return 0, said.getvalue(), ""


@pytest.mark.parametrize("method", ["constructor", "reset", "step", "close"])
def test_prints_do_not_spoil_the_document(method, shown, tmp_path, monkeypatch):
    odd.set_fault(Fault(method, 1, "print"))
    code, said, _ = command(
        monkeypatch, "demos", "record", "odd:Choice", "--player", "odd:hold", "--out",
        tmp_path / "d.npz", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(said)["episodes"] == 4
    code, said, _ = command(
        monkeypatch, "evaluate", shown / "run", "--env", "odd:Vector", "--json", "--episodes", 2
    )
    assert code == 0
    assert json.loads(said)["episodes"] == 2


@pytest.mark.parametrize("method", ["constructor", "reset", "step", "close"])
@pytest.mark.parametrize(("does", "value"), [("exit", 0), ("raise", OSError(5, "\x1b[2Jwhat\n"))])
def test_a_world_that_leaves_ends_no_command_well(
    method, does, value, shown, tmp_path, monkeypatch
):
    asked = [
        ["train", "odd:Table", "--horizon", LENGTH, "--out", tmp_path / "table"],
        ["evaluate", shown / "run", "--env", "odd:Vector"],
    ]
    for arguments in asked:
        odd.set_fault(Fault(method, 1, does, value))
        code, said, sentence = command(monkeypatch, *arguments, "--json")
        assert (code, said) == (2, ""), arguments
        assert sentence.isprintable()
        assert "odd:" in sentence
    assert not files(tmp_path)


LEAVING = """
import atexit, os, subprocess, sys
import odd
from odd import *

atexit.register(lambda: print("farewell"))


class Chatty(odd.Choice):
    def reset(self, **options):
        os.write(1, b"{")
        subprocess.run(["echo", "from a child"])
        return super().reset(**options)

class World(odd.Vector):
    def step(self, action):
        print("{")
        os.write(1, b"}")
        sys.exit(0)
"""


def program(folder, *arguments):
    """The program in a process of its own, with the module above beside it."""
    (folder / "leaving.py").write_text(LEAVING)
    return subprocess.run(
        [sys.executable, "-m", "understudy", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def test_what_is_written_past_python_does_not_spoil_the_document(tmp_path):
    done = program(
        tmp_path, "demos", "record", "leaving:Chatty", "--player", "odd:hold", "--json", "--out",
        "demos.npz",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["episodes"] == 4
    assert "from a child" in done.stderr
    assert "farewell" in done.stderr


def test_a_world_that_leaves_ends_no_training_well(shown, tmp_path):
    demos = shown / "Vector.npz"
    done = program(tmp_path, "train", "leaving:World", "--json", "--out", "run", "--demos", demos)
    assert done.returncode == 2, done.stderr
    assert "leaving:World" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not done.stdout
    assert not (tmp_path / "run").exists()


BAD_MODULES = {
    "syntax": "class World(:\n",
    "exit": "import sys\nsys.exit(0)\n",
    "raise": "raise RuntimeError('at once\\n\\x1b[31m')\n",
    "print": "print('{')\nraise ImportError('no')\n",
}


@pytest.mark.parametrize("kind", BAD_MODULES)
def test_a_module_that_cannot_be_imported_is_named(kind, tmp_path, monkeypatch):
    (tmp_path / f"bad_{kind}.py").write_text(BAD_MODULES[kind])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"bad_{kind}"
    code, said, sentence = command(
        monkeypatch, "train", f"{name}:World", "--hidden", "16", "--json"
    )
    assert (code, said) == (2, "")
    assert name in sentence
    assert "cannot be imported" in sentence
    assert sentence.isprintable()
