"""Sweeps: data in, a folder a run, and the same bytes however often they are stopped."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from test_cli import understudy

from understudy.config import Config
from understudy.errors import UserError
from understudy.experiments import runs, sweep
from understudy.experiments.sweep import Sweep

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


def written(folder):
    return sum(len(names) for _, _, names in os.walk(folder))


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
    stored, skipped = runs.load(folder / "runs/forty")
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


def test_killed_ten_times_it_ends_with_the_same_bytes(whole, tmp_path):
    folder, _ = whole
    (tmp_path / "forty.toml").write_text(FORTY)
    command = [sys.executable, "-c", "from understudy.cli import main; main()"]
    command += ["sweep", "forty.toml"]
    moments, done_after = random.Random(0), []
    for attempt in range(10):
        running = subprocess.Popen(
            command, cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True
        )
        # Every other one while it starts, the others once some more files are there.
        before = written(tmp_path)
        enough = before + moments.randint(1, 30) if attempt % 2 else 10**6
        until = time.monotonic() + (60 if attempt % 2 else moments.uniform(0.5, 4))
        while time.monotonic() < until and running.poll() is None:
            if written(tmp_path) >= enough:
                break
        os.killpg(running.pid, signal.SIGKILL) if running.poll() is None else None
        running.wait()
        done_after.append(len(list(tmp_path.rglob("done.json"))))
    assert done_after == sorted(done_after)  # nothing that was done is lost
    assert len({n for n in done_after if 0 < n < 40}) >= 3  # it was caught in the middle
    assert understudy("sweep", "forty.toml", cwd=tmp_path).returncode == 0
    assert contents(tmp_path / "runs") == contents(folder / "runs")


def test_what_is_damaged_or_foreign_is_named_and_the_rest_read(whole, tmp_path):
    folder, _ = whole
    shutil.copytree(folder / "runs/forty", tmp_path / "some")
    torn, cut, odd, *_ = sorted((tmp_path / "some").iterdir())
    lines = (torn / "metrics.jsonl").read_text()
    (torn / "metrics.jsonl").write_text(lines[:-20])
    (cut / "done.json").unlink()
    (odd / "config.json").write_text("[1, 2]")
    foreign = tmp_path / "some" / "zz"
    foreign.mkdir()
    (foreign / "config.json").write_text('{"model": "resnet"}')
    (foreign / "done.json").write_text("{}")
    stored, skipped = runs.load(tmp_path / "some")
    assert len(stored) == 37
    assert len(skipped) == 4
    for bad in (torn, cut, odd, foreign):
        assert sum(str(bad) in sentence for sentence in skipped) == 1


def test_the_identity_is_stable_and_tells_configs_apart():
    request = {"env": "EmptyRoom-3x3", "seed": 0, "config": {"window": "32", "eta": 0.5}}
    same = {"config": {"eta": 0.5, "window": "32"}, "seed": 0, "env": "EmptyRoom-3x3"}
    # By hand: printf '{"config":…}' | sha256sum, keys sorted, no spaces.
    assert runs.identity(request) == runs.identity(same) == "893ebb3b410a"
    other = {**request, "seed": 1}
    assert runs.identity(other) != runs.identity(request)


def test_a_grid_is_every_combination():
    asked = Sweep("x", ("E",), (0,), Config(), {"window": ("1", "4"), "eta": (0.1, 0.2)})
    assert [(c.window, c.eta) for c in asked.settings()] == [
        ("1", 0.1), ("1", 0.2), ("4", 0.1), ("4", 0.2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "cannot be read"),
        ("name = 'a'", "needs envs"),
        ("envs = ['E']\nruns = 3", "has 'runs'"),
        ("envs = ['E']\nseeds = 0", "seeds must be"),
        ("envs = ['E']\nseeds = [true]", "seeds must be"),
        ("envs = ['E']\nconfig = 3", "must be tables"),
        ("envs = ['E']\n[config]\nwidow = '3'", "no option 'widow'"),
        ("envs = ['E']\n[config]\nsteps = 'big'", "steps = 'big'"),
        ("envs = ['E']\n[config]\ninteractions = 1.5", "interactions = 1.5"),
        ("envs = ['E']\n[config]\neta = -1", "--eta is -1"),
        ("envs = ['E']\n[grid]\nwindow = '3'", "grid.window must be a list"),
    ],
)
def test_a_sweep_that_cannot_be_meant_is_refused(tmp_path, text, says):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(UserError, match=says):
        sweep.read(tmp_path / "s.toml")


def test_options_keep_their_types(tmp_path):
    (tmp_path / "s.toml").write_text(
        "envs = ['E']\n[config]\nbeta = [2, 1]\neta = 1\nledger = false\n"
        "[grid]\nwindow = [3, 'all']"
    )
    asked = sweep.read(tmp_path / "s.toml")
    assert asked.config == Config(beta=(2.0, 1.0), eta=1.0, ledger=False)
    assert asked.grid == {"window": ("3", "all")}
    assert asked.seeds == (0,)


def test_a_run_between_two_marks(whole):
    folder, _ = whole
    run = runs.load(folder / "runs/forty")[0][0]
    assert run.at(0) == run.returns[0]
    assert run.at(399) == run.returns[-2]
    assert run.at(10**6) == run.returns[-1]
    assert np.isfinite(run.returns).all()
