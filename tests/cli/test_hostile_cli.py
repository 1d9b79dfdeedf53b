"""The command line as a hostile user, a careless file or a poor machine meets it."""

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import probe
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.cli import program as cli
from understudy.core import errors, memory
from understudy.core.errors import UserError
from understudy.envs import catalog
from understudy.experiments import runs
from understudy.experiments import stored_runs as stored
from understudy.experiments.sweeps import cluster, sweep_file, sweep_run, workers
from understudy.learners.config import Config, VectorConfig, check_vectors
from understudy.learners.deep.config import DeepConfig, ExpertConfig, check_deep, check_expert
from understudy.learners.finite import plan

MAIN = "from understudy.cli.program import main; main()"


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """The current folder, with a module in it that nobody should import."""
    folder, before = tmp_path_factory.mktemp("beside"), Path.cwd()
    (folder / "trap.py").write_text("from probe import Point as Env")
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.fixture
def said(monkeypatch, capsys):
    """The command in this process: code, output and errors."""

    def leave(code):
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["understudy", *words])
        try:
            cli.main()
            code = 0
        except SystemExit as left:
            code = left.code
        return code, *capsys.readouterr()

    return call


def subprocess_of(*words, cwd, **options):
    command = [sys.executable, "-c", MAIN, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, **options)


# --- code ----------------------------------------------------------------------------------------

TRAPS = st.sampled_from(["trap:Env", "trap:v1.npz", "trap:1", "trap:Env:x", "./trap:Env"])
TAKING = st.sampled_from(
    ["--demos", "--out", "--window", "--features", "--seed", "--horizon", "--hidden", "--replay",
     "--preset", "--method", "--track", "--beta", "--nope", "--expert", "--rewards", "--envs"]
)  # fmt: skip
GIVEN = st.one_of(
    st.tuples(TAKING, TRAPS).map(list),
    st.tuples(TAKING, TRAPS).map(lambda pair: ["=".join(pair)]),
    st.sampled_from([["--json"], ["--ledger"], ["--no-ledger"], ["--help"], ["--seed", "1"]]),
)
VARIADIC = ("--track", "--beta")  # which take what follows, and leave the last word if they must


@given(st.sampled_from(["EmptyRoom-3x3", "Pendulum-v1", "CartPole-v1"]), st.lists(GIVEN), st.data())
@settings(max_examples=150)
def test_only_the_environments_place_names_code(beside, env, given_, data):
    place = data.draw(st.integers(0, len(given_)))
    words = [word for group in given_[:place] for word in group]
    words += [env, *(word for group in given_[place:] for word in group)]
    with contextlib.suppress(UserError):
        cli._train(words)
    assert "trap" not in sys.modules, words


@given(st.lists(GIVEN, max_size=4), st.sampled_from(["evaluate", "sweep", "report", "demos", "x"]))
@settings(max_examples=30)
def test_other_commands_name_no_code_either(beside, given_, command):
    cli.commands([command, "trap:Env", *(word for group in given_ for word in group)])
    assert "trap" not in sys.modules


def test_an_environment_of_the_users_own_is_found_wherever_it_stands(beside):
    shutil.copy(Path(probe.__file__), beside / "theirs.py")
    for words in (["theirs:Point", "--hidden", "8"], ["--hidden", "8", "--json", "theirs:Point"],
                  ["--replay", "99", "theirs:Point"], ["--out=a:b", "--beta", "1", "2", "--json",
                  "theirs:Point"]):  # fmt: skip
        assert cli._train(words) is cli.TrainDeep
    assert cli._train(["--features", "fourier:2", "CartPole-v1"]) is cli.TrainVectors
    assert cli._train(["--replay", "EmptyRoom-3x3"]) is cli.Train


@pytest.mark.parametrize("env", ["trap:Env", "trap:sub/Env-v0", ":Env", "trap:"])
def test_a_sweeps_file_names_no_code(beside, env):
    (beside / "s.toml").write_text(f"envs = ['EmptyRoom-3x3', '{env}']")
    with pytest.raises(UserError, match="names code to run"):
        sweep_file.read(beside / "s.toml")
    with pytest.raises(UserError, match="names code to run"):
        sweep_file.read(beside / "s.toml", named=["other:Env", "other"])
    assert "trap" not in sys.modules


def test_a_sweeps_file_names_code_that_the_command_line_names_too(beside):
    shutil.copy(Path(probe.__file__), beside / "theirs.py")
    (beside / "s.toml").write_text("envs = ['theirs:Point']")
    assert sweep_file.read(beside / "s.toml", named=["theirs:Point"]).envs == ("theirs:Point",)
    assert sweep_file.read(beside / "s.toml", allow_code=True).envs == ("theirs:Point",)


POINT = "import gymnasium\nclass Env(gymnasium.Env):\n    def __init__(self, **options):\n        "
SPOILT = {
    "syntax": ("def f(:", "invalid syntax"),
    "import": ("import nothing_of_that_name", "nothing_of_that_name"),
    "module": ("raise KeyError('at its import')", "at its import"),
    "constructor": (POINT + "raise RuntimeError('in its\\n\\x1b[31mconstructor')", "constructor"),
    "class": ("Env = 3", "Env"),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_a_spoilt_module_is_the_culprit(kind, beside, said):
    text, names = SPOILT[kind]
    (beside / f"spoilt_{kind}.py").write_text(text)
    before = sorted(beside.rglob("*"))
    code, output, error = said("train", f"spoilt_{kind}:Env", "--hidden", "8", "--envs", "2")
    assert (code, output, len(error.splitlines())) == (2, "", 1)
    assert f"spoilt_{kind}" in error
    assert names in error
    assert "Unrecognized" not in error
    assert "\x1b" not in error
    assert [p for p in sorted(beside.rglob("*")) if "__pycache__" not in str(p)] == [
        p for p in before if "__pycache__" not in str(p)
    ]


# --- sweeps go on --------------------------------------------------------------------------------


def test_tasks_go_on_without_a_worker_that_dies(tmp_path):
    """However a worker ends, its own task is told, and every other is done."""
    deaths = [
        functools.partial(os._exit, 0),
        functools.partial(os._exit, 3),
        functools.partial(signal.raise_signal, signal.SIGKILL),
        functools.partial(signal.raise_signal, signal.SIGSEGV),
        functools.partial(sys.exit, 0),
        functools.partial(int, "no\nnumber"),
    ]
    told = {}
    tasks = [
        task
        for i, death in enumerate(deaths)
        for task in (death, functools.partial(Path.touch, tmp_path / str(i)))
    ]
    workers.work_off(tasks, lambda place, error: told.update({place: error}), lambda: None)
    assert sorted(told) == [*range(len(tasks))]
    assert all(isinstance(told[i], UserError) == (i % 2 == 0) for i in told)
    assert len([*tmp_path.iterdir()]) == len(deaths)
    names = ("code 0", "code 3", "SIGKILL", "SIGSEGV", "SystemExit", "ValueError")
    assert all(name in str(told[2 * i]) for i, name in enumerate(names))


BAD = ["NoSuch-v0", "EmptyRoom-2x3", "CliffWalking-v1", "RandomLinear-d999", "EmptyRoom-0x0"]


@given(st.lists(st.sampled_from(BAD), min_size=1, unique=True), st.integers(0, 5))
@settings(max_examples=4)
def test_a_sweep_goes_on_without_a_bad_environment(tmp_path_factory, bad, place):
    folder = tmp_path_factory.mktemp("sweep")
    envs = [*bad[:place], "EmptyRoom-3x3", *bad[place:]]
    (folder / "s.toml").write_text(f"envs = {envs}\n[config]\ninteractions = 40")
    asked = sweep_file.read(folder / "s.toml")
    with pytest.raises(UserError, match=f"{len(bad)} of {len(envs)} runs failed"):
        sweep_run.run(asked, folder / "out")
    assert len(stored.load(folder / "out")[0]) == 1


def test_a_sweep_of_bad_environments_alone_is_refused(tmp_path):
    (tmp_path / "s.toml").write_text("envs = ['NoSuch-v0', 'Nor-v1']")
    with pytest.raises(UserError, match="NoSuch-v0"):
        sweep_file.read(tmp_path / "s.toml")


def test_a_comparison_goes_on_and_does_not_succeed(tmp_path):
    asked = ("compare", "EmptyRoom-3x3", "--methods", "understudy", "bc", "--budget", "40",
             "--seeds", "2", "--out", "out")  # fmt: skip
    assert subprocess_of(*asked, cwd=tmp_path).returncode == 0
    run = next((tmp_path / "out" / "understudy").iterdir())
    (run / runs.MARKER).unlink()
    runs.fail(run, "It was made to.")
    done = subprocess_of(*asked, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout.startswith("| shown")
    told = f"1 runs failed, and are left out; the first: {run.name}: It was made to."
    assert told in done.stderr


# --- files and numbers without end ---------------------------------------------------------------

DEPTH = st.integers(1_000, 40_000)
ENDLESS = st.one_of(
    DEPTH.map(lambda n: "envs = " + "[" * n + "]" * n),
    DEPTH.map(lambda n: "name = " + "{a = " * n + "1" + "}" * n),
    DEPTH.map(lambda n: "name." + ".".join("a" * n) + " = 1"),
    DEPTH.map(lambda n: "[" + ".".join("a" * n) + "]"),
    st.integers(4_301, 50_000).map(lambda n: "seeds = " + "9" * n),
    st.integers(4_301, 50_000).map(lambda n: "horizon = 0x" + "f" * n),
    st.integers(4_301, 50_000).map(lambda n: "[config]\ninteractions = 0x" + "f" * n),
    st.integers(4_301, 50_000).map(lambda n: "[config]\nsigma = 0x" + "f" * n),
    st.integers(20, 2_000).map(
        lambda n: (
            f"[grid]\nsigma = {[*range(n)]}\neta = {[*range(n)]}\nbonus = {[*range(n)]}\n"
            f"ascent = {[*range(n)]}"
        )
    ),
)


@given(ENDLESS)
@settings(max_examples=60)
def test_a_sweep_without_end_is_one_sentence(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "endless.toml"
    first = "" if text.startswith("envs") else "envs = ['EmptyRoom-3x3']\n"
    path.write_text(first + text)
    begun = time.monotonic()
    with pytest.raises(UserError, match=r"endless.toml") as told:
        sweep_file.read(path)
    assert time.monotonic() - begun < 10
    assert len(str(told.value)) <= errors.LONGEST + 10


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path / "pipe.toml", Path("/dev/zero"), tmp_path):
        with pytest.raises(UserError, match="in place of a file"):
            sweep_file.read(path)


def test_a_sweep_is_read_as_utf_8_whoever_wrote_it(tmp_path):
    (tmp_path / "s.toml").write_bytes("# ±\nenvs = ['EmptyRoom-3x3']".encode("utf-8-sig"))
    assert sweep_file.read(tmp_path / "s.toml").envs == ("EmptyRoom-3x3",)


LARGE = st.sampled_from(["hidden", "discriminator_hidden", "batch", "points", "marks", "envs"])


@given(LARGE, st.integers(2**30, 2**31 - 1))
@settings(max_examples=30)
def test_networks_that_no_machine_holds_are_refused(option, value):
    value = value if option != "marks" else 2**31 - 1
    if (value if option != "hidden" else value**2) * 24 > memory.machine():
        with pytest.raises(UserError, match="GiB of memory"):
            check_deep(DeepConfig(**{option: value}))


def test_what_a_machine_holds_is_not_refused():
    for hidden in (256, 1024, 4096):
        check_deep(DeepConfig(hidden=hidden, discriminator_hidden=hidden, interactions=10**7))
        check_expert(ExpertConfig(hidden=hidden, interactions=10**7))


def test_other_learners_are_counted_too(monkeypatch):
    with pytest.raises(UserError, match="--hidden"):
        check_expert(ExpertConfig(hidden=2**31 - 1))
    with pytest.raises(UserError, match="GiB of memory"):
        check_vectors(VectorConfig(batch=10**7, horizon=10**7))
    room = catalog.find("EmptyRoom-3x3").mdp
    monkeypatch.setattr(memory, "machine", lambda: 2**30)
    with pytest.raises(UserError, match="GiB of memory"):
        plan(room, Config(interactions=2**31 - 1, window="all"))
    with pytest.raises(UserError, match="horizon is 2000000000"):
        catalog.find("EmptyRoom-3x3", horizon=2_000_000_000)


def test_too_large_a_network_leaves_nothing(tmp_path):
    words = ("train", "Pendulum-v1", "--hidden", "2147483647", "--out", "run")
    done = subprocess_of(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "GiB of memory" in done.stderr
    assert [*tmp_path.iterdir()] == []


# --- streams, homes, signals ---------------------------------------------------------------------

ADVISE = ("advise", "--states", "4", "--actions", "3", "--horizon", "3", "--json")


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1), (0, 1, 2), (1, 2)])
def test_closed_streams(closed, tmp_path):
    closing = " ".join(f"{number}>&-" for number in closed)
    command = ["bash", "-c", f'exec "$@" {closing}', "-", sys.executable, "-c", MAIN, *ADVISE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == (2 if 1 in closed else 0)
    assert "Traceback" not in done.stderr
    if 1 in closed and 2 not in closed:
        assert "stdout is closed" in done.stderr
    if 1 not in closed:
        assert json.loads(done.stdout)["S"] == 4


@pytest.mark.parametrize("home", [None, "", "relative", "/proc/nowhere"])
def test_without_a_home(home, tmp_path):
    about = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    about = {k: v for k, v in about.items() if not k.startswith("JAX_")}
    about |= {} if home is None else {"HOME": home}
    nobody = "import pwd, os; pwd.getpwuid = lambda uid: {}[uid]; "  # an id that nobody has
    done = subprocess.run(
        [sys.executable, "-c", nobody + MAIN, *ADVISE],
        cwd=tmp_path, env=about, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not [*tmp_path.rglob("understudy")]


LOUD = """
import os
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
print("imported")
class Env(FrozenLakeEnv):
    def __init__(self, **options):
        print("made")
        os.write(1, b"by the system\\n")
        os.system("echo by another process")
        super().__init__(**options)
"""


def test_stdout_is_the_documents(tmp_path):
    (tmp_path / "loud.py").write_text(LOUD)
    words = ("train", "loud:Env", "--horizon", "4", "--interactions", "40", "--json")
    done = subprocess_of(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["env"] == "loud:Env"
    assert all(f"{by}\n" in done.stderr for by in ("imported", "made", "system", "process"))


def test_ctrl_c_is_heard_where_python_loses_it(tmp_path):
    deaf = (
        "import time\nfrom understudy.cli import interrupts\ninterrupts.PATIENCE = 0.3\n"
        "with interrupts.heard():\n    while True:\n"
        "        try:\n            print('ready', flush=True)\n            time.sleep(60)\n"
        "        except KeyboardInterrupt: pass"
    )
    going = subprocess.Popen(
        [sys.executable, "-c", deaf], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert going.stdout.readline() == "ready\n"
    going.send_signal(signal.SIGINT)
    _, error = going.communicate(timeout=10)
    assert (going.returncode, error) == (130, "understudy: stopped.\n")


def test_ctrl_c_in_the_first_seconds(tmp_path):
    for i, moment in enumerate((0.1, 0.4, 0.8, 1.3)):
        going = subprocess.Popen(
            [sys.executable, "-m", "understudy", "train", "EmptyRoom-9x9", "--interactions",
             "9000000", "--out", str(i)],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(moment)
        going.send_signal(signal.SIGINT)
        going.communicate(timeout=15)
        assert going.returncode in (130, -signal.SIGINT)
        assert not (tmp_path / str(i) / runs.MARKER).exists()


@given(st.text(st.characters(codec=None), max_size=3_000))
def test_a_sentence_is_one_plain_line(text):
    told = str(UserError(f"It says {text}."))
    assert told.isprintable()
    assert len(told.splitlines()) == 1
    told.encode()
    assert str(UserError(told)) == told
    assert len(told) <= errors.LONGEST + 10


def test_escape_codes_are_taken_out_whole():
    text = "a\x1b[31;1mred\x1b[0m b\x1b]0;title\x07c\x1b]8;;http://x\x1b\\d\x9b31m\u202eé — ok\r\n"
    assert str(UserError(text)) == "ared bcd31mé — ok  "


# --- Ray -----------------------------------------------------------------------------------------


def test_ray_is_tried_twice_and_told():
    tried = []

    def late(**options):
        tried.append(options)
        if len(tried) < 2:
            raise Exception("The current node timed out during startup.\nThis could happen.")

    pytest.importorskip("ray")
    cluster._start(SimpleNamespace(init=late, shutdown=lambda: None), {"num_cpus": 1})
    assert len(tried) == 2

    def never(**options):
        raise Exception("The current node timed out during startup.\nThis could happen.")

    with pytest.raises(UserError, match=r"did not start .* timed out during startup; try again"):
        cluster._start(SimpleNamespace(init=never, shutdown=lambda: None), {})


def test_rays_node_is_waited_for_longer_than_ray_does(monkeypatch):
    services = pytest.importorskip("ray._private.services")
    asked = []

    def slow(*about):
        asked.append(about)
        if len(asked) < 3:
            raise RuntimeError("No node yet")
        return "the node"

    monkeypatch.setattr(services, "get_node", slow)
    with cluster._patiently():
        assert services.get_node("gcs", "id") == "the node"
    assert (len(asked), services.get_node) == (3, slow)
    monkeypatch.setattr(cluster, "LONG", -1)
    asked.clear()
    with cluster._patiently(), pytest.raises(RuntimeError, match="No node yet"):
        services.get_node("gcs", "id")
