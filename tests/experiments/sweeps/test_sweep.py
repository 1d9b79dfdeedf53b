"""Sweeps: data in, a folder a run, and the same bytes however often they are stopped."""

import json
import random
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from test_cli import understudy

from understudy.core.errors import UserError
from understudy.experiments import runs, stored_runs
from understudy.experiments.sweeps import sweep_file, sweep_run
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners.config import Config

FORTY = """
name = "forty"
envs = ["EmptyRoom-3x3"]
seeds = 5
[config]
interactions = 400
marks = 20
ledger = false
[grid]
window = [1, 2, 4, 8, 16, 32, 64, 128]
"""


def contents(folder):
    """The bytes of every run's results, by folder and file; no draft may be left."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            assert not path.name.startswith("."), path
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A sweep that was never stopped, and how long it took."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "forty.toml").write_text(FORTY)
    done = understudy("sweep", "forty.toml", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_a_sweep_writes_a_folder_a_run(whole):
    folder, document = whole
    assert (document["runs"], document["resumed"]) == (40, 0)
    stored, skipped = stored_runs.load(folder / "runs/forty")
    assert (len(stored), skipped) == (40, [])
    assert {(run.window, run.seed) for run in stored} == {
        (str(2**i), seed) for i in range(8) for seed in range(5)
    }
    for run in stored:
        assert run.interactions[-1] == 400
        assert run.folder.name.endswith(runs.identity(run.request))
        config = json.loads((run.folder / "config.json").read_text())
        assert config["versions"].keys() == {"understudy", "jax", "code"}


def test_a_finished_sweep_does_nothing_again(whole):
    folder, _ = whole
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*.jsonl")}
    done = understudy("sweep", "forty.toml", "--json", cwd=folder)
    assert json.loads(done.stdout)["resumed"] == 40
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*.jsonl")} == before


def test_a_damaged_run_is_run_again_where_that_is_asked_for(whole, tmp_path):
    folder, _ = whole
    again = tmp_path / "again"
    shutil.copytree(folder, again)
    some = sorted((again / "runs/forty").iterdir())
    (some[0] / "policy.safetensors").write_bytes(b"cut")
    (some[7] / "done.json").write_text("{")
    refused = understudy("sweep", "forty.toml", "--json", cwd=again)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "2 of 40 runs failed" in refused.stderr
    assert "--restart" in refused.stderr
    done = understudy("sweep", "forty.toml", "--restart", "--json", cwd=again)
    assert json.loads(done.stdout)["resumed"] == 38
    aside = [path for path in (again / "runs/forty").iterdir() if path not in some]
    assert sorted(path.name.split(".")[0] for path in aside) == [some[0].name, some[7].name]
    assert sorted(len([*path.iterdir()]) for path in aside) == [4, 4]
    for path in aside:
        shutil.rmtree(path)
    assert contents(again / "runs") == contents(folder / "runs")


def test_what_is_listed_twice_is_run_once(tmp_path):
    asked = Sweep(
        "twice",
        ("EmptyRoom-3x3", "understudy/EmptyRoom-3x3-v0"),
        (0,),
        config=Config(interactions=50, marks=2, ledger=False),
        grid={"window": ("4", "4")},
    )
    assert sweep_run.run(asked, tmp_path / "out")["runs"] == 1


# The command line, killed by itself just before it writes or renames its n-th file.
DOOMED = """
import os, signal, sys
from understudy.cli.program import main
left = int(sys.argv.pop())
def count(event, arguments):
    global left
    writes = event == "os.rename" or (event == "open" and arguments[1] in ("w", "a"))
    if writes and "runs/forty" in str(arguments[0]):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
main()
"""


@pytest.mark.slow
def test_killed_ten_times_it_ends_with_the_same_bytes(whole, tmp_path):
    folder, _ = whole
    (tmp_path / "forty.toml").write_text(FORTY)
    moments, done_after = random.Random(0), []
    for _ in range(10):
        command = [sys.executable, "-c", DOOMED, "sweep", "forty.toml", str(moments.randint(1, 35))]
        killed = subprocess.run(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
        assert killed.returncode == -signal.SIGKILL
        found = tmp_path.rglob("done.json")
        done_after.append(sum(not one.parent.name.startswith(".") for one in found))  # no drafts
    assert done_after == sorted(done_after)  # nothing that was done is lost
    assert len({n for n in done_after if 0 < n < 40}) >= 3  # it was caught in the middle
    assert understudy("sweep", "forty.toml", cwd=tmp_path).returncode == 0
    assert contents(tmp_path / "runs") == contents(folder / "runs")


def test_what_is_damaged_or_foreign_is_named_and_the_rest_read(whole, tmp_path):
    folder, _ = whole
    shutil.copytree(folder / "runs/forty", tmp_path / "some")
    torn, cut, odd, listed, *_ = sorted((tmp_path / "some").iterdir())
    config = json.loads((listed / "config.json").read_text())
    marker = json.loads((listed / "done.json").read_text())
    (listed / "config.json").write_text(json.dumps({**config, "seed": [1]}))
    (listed / "done.json").write_text(json.dumps({**marker, "files": {}}))
    lines = (torn / "metrics.jsonl").read_text()
    (torn / "metrics.jsonl").write_text(lines[:-20])
    (cut / "done.json").unlink()
    (odd / "config.json").write_text("[1, 2]")
    foreign = tmp_path / "some" / "zz"
    foreign.mkdir()
    (foreign / "config.json").write_text('{"model": "resnet"}')
    (foreign / "done.json").write_text("{}")
    stored, skipped = stored_runs.load(tmp_path / "some")
    assert len(stored) == 36
    assert len(skipped) == 5
    for bad in (torn, cut, odd, listed, foreign):
        assert sum(str(bad) in sentence for sentence in skipped) == 1


def test_the_identity_is_stable_and_tells_configs_apart():
    request = {"env": "EmptyRoom-3x3", "seed": 0, "config": {"window": "32", "eta": 0.5}}
    same = {"config": {"eta": 0.5, "window": "32"}, "seed": 0, "env": "EmptyRoom-3x3"}
    # By hand: printf '{"config":…}' | sha256sum, keys sorted, no spaces.
    assert runs.identity(request) == runs.identity(same) == "893ebb3b410a"
    other = {**request, "seed": 1}
    assert runs.identity(other) != runs.identity(request)


def test_a_grid_is_every_combination():
    asked = Sweep("x", ("E",), (0,), grid={"window": ("1", "4"), "eta": (0.1, 0.2)})
    assert [(c.window, c.eta) for c in asked.settings()] == [
        ("1", 0.1), ("1", 0.2), ("4", 0.1), ("4", 0.2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "cannot be read"),
        ("name = 'a'", "needs envs"),
        ("envs = ['EmptyRoom-3x3']\nruns = 3", "has 'runs'"),
        ("envs = ['EmptyRoom-3x3']\nseeds = 0", "seeds must be"),
        ("envs = ['EmptyRoom-3x3']\nseeds = [true]", "seeds must be"),
        ("envs = ['EmptyRoom-3x3']\nconfig = 3", "must be tables"),
        ("envs = ['EmptyRoom-3x3']\n[config]\nwidow = '3'", "no option 'widow'"),
        ("envs = ['EmptyRoom-3x3']\n[config]\nsteps = 'big'", "steps = 'big'"),
        ("envs = ['EmptyRoom-3x3']\n[config]\ninteractions = 1.5", "interactions = 1.5"),
        ("envs = ['EmptyRoom-3x3']\n[config]\neta = -1", "--eta is -1"),
        ("envs = ['EmptyRoom-3x3']\n[grid]\nwindow = '3'", "grid.window must be a list"),
        ("envs = ['EmptyRoom-3x3']\n[config]\nwindow = 3\n[grid]\nwindow = [4]", "keep one"),
        ("name = '../out'\nenvs = ['EmptyRoom-3x3']", "must be a folder's name"),
        ("name = ''\nenvs = ['EmptyRoom-3x3']", "must be a folder's name"),
        ("horizon = 0\nenvs = ['EmptyRoom-3x3']", "horizon = 0"),
    ],
)
def test_a_sweep_that_cannot_be_meant_is_refused(tmp_path, text, says):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(UserError, match=says):
        sweep_file.read(tmp_path / "s.toml")


def test_options_keep_their_types(tmp_path):
    (tmp_path / "s.toml").write_text(
        "envs = ['EmptyRoom-3x3']\n[config]\nbeta = [2, 1]\neta = 1\nledger = false\n"
        "[grid]\nwindow = [3, 'all']"
    )
    asked = sweep_file.read(tmp_path / "s.toml")
    assert asked.config == Config(beta=(2.0, 1.0), eta=1.0, ledger=False)
    assert asked.grid == {"window": ("3", "all")}
    assert asked.seeds == (0,)


def test_a_run_between_two_marks(whole):
    folder, _ = whole
    run = stored_runs.load(folder / "runs/forty")[0][0]
    assert run.at(0) == run.returns[0]
    assert run.at(399) == run.returns[-2]
    assert run.at(10**6) == run.returns[-1]
    assert np.isfinite(run.returns).all()


def test_stored_runs_are_drawn_and_reported_by_command(whole, tmp_path):
    folder, _ = whole
    shutil.copytree(folder / "runs/forty", tmp_path / "forty")
    first, *_ = sorted((tmp_path / "forty").iterdir())
    (first / "metrics.jsonl").write_text("torn")
    drawn = understudy("draw", "forty", "--band", "iqm", "--json", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert json.loads(drawn.stdout)["runs"] == 39
    assert first.name in drawn.stderr  # named and skipped
    assert (tmp_path / "forty/curves.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "forty/curves.pdf").read_bytes().startswith(b"%PDF")
    told = understudy("report", "forty", "--out", "page.html", "--json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["runs"] == 39
    assert "<html" in (tmp_path / "page.html").read_text()[:500]
    for command in ("draw", "report"):
        done = understudy(command, "nothing", cwd=tmp_path)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
