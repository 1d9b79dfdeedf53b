"""What a run survives: another process, a full disk, a flipped bit."""

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import sys
import time

import jax.numpy as jnp
import numpy as np
import probe
import pytest
from safetensors.numpy import load_file, save_file
from test_cli import understudy
from test_deep_runs import SMALL, results

from understudy.core.errors import UserError
from understudy.demos import npz
from understudy.experiments import deep_run, runs, store, stored_runs
from understudy.experiments import train_networks as deep_train
from understudy.experiments.sweeps import sweep_file, sweep_run
from understudy.learners.deep import checkpoint, learner

HOLD = """
import sys, time
from pathlib import Path
from understudy.experiments import store
with store.workplace(Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(600)
"""


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path):
    folder = tmp_path / "run"
    asked = ("train", "EmptyRoom-3x3", "--interactions", "40", "--out", "run")
    holding = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(holding, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "in\n"
        second = understudy(*asked, cwd=tmp_path)
        left = [*folder.iterdir()]
        first.send_signal(signal.SIGKILL)
    assert (second.returncode, second.stdout, left) == (2, "", [])
    assert "Another process is at work in run" in second.stderr
    with store.workplace(folder):  # the dead hold nothing
        pass


def test_a_process_does_not_stand_in_its_own_way(tmp_path):
    for _ in range(2):
        with store.workplace(tmp_path / "run"), store.workplace(tmp_path / "run" / "inner"):
            pass


# --- the disk ------------------------------------------------------------------------------------


@contextlib.contextmanager
def disk(folder, size):
    """A disk of so many bytes; yields a function that makes it larger."""
    folder.mkdir()

    def mount(options):
        return subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True
        )

    if mount(f"size={size}").returncode:
        pytest.skip("this user may not mount a disk")
    try:
        yield lambda size: mount(f"remount,size={size}")
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_stops_a_run_and_the_same_command_goes_on(tmp_path, monkeypatch):
    npz.write(tmp_path / "demos.npz", probe.straight())
    sizes, keep = [], deep_run.Folder.keep

    def noted(folder, *rest):
        keep(folder, *rest)
        sizes.append((folder.path / deep_run.CHECKPOINT).stat().st_size)

    def learn(out):
        demos = str(tmp_path / "demos.npz")
        config = dataclasses.replace(SMALL, hidden=64)  # a checkpoint beside which files are small
        deep_train.train("probe:Point", config, demos=demos, out=out, checkpoint=0.0)

    monkeypatch.setattr(deep_run.Folder, "keep", noted)
    learn(tmp_path / "whole")
    # Room for one checkpoint, and not for another beside it.
    with disk(tmp_path / "small", int(1.5 * max(sizes))) as enlarge:
        run = tmp_path / "small" / "run"
        with pytest.raises(UserError, match=r"No space left.*last checkpoint is intact"):
            learn(run)
        told, _ = checkpoint.load(run / deep_run.CHECKPOINT)
        assert told["interactions"] == 0  # the one of the beginning
        assert not [path for path in run.iterdir() if path.name.startswith(".")]  # no draft
        enlarge(2**24)
        learn(run)
        assert results(run) == results(tmp_path / "whole")


def test_a_flipped_bit_in_a_checkpoint_is_noticed(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    rng = np.random.default_rng(0)
    kept = {"a": rng.normal(size=(3, 4)), "b": np.arange(5), "c": np.array(True)}
    checkpoint.save(path, kept, {"interactions": 7})
    about, arrays = checkpoint.load(path)
    assert about == {"interactions": 7}
    assert all(np.array_equal(arrays[name], x) for name, x in kept.items())
    good = path.read_bytes()
    for place in rng.permutation(8 * len(good))[:400]:
        spoilt = bytearray(good)
        spoilt[place // 8] ^= 1 << (place % 8)
        path.write_bytes(spoilt)
        # Spaces that pad the header may flip into other spaces; nothing else may pass.
        with contextlib.suppress(UserError):
            about, arrays = checkpoint.load(path)
            assert about == {"interactions": 7}
            assert arrays.keys() == kept.keys()
            assert all(np.array_equal(arrays[name], x) for name, x in kept.items())


def test_a_checkpoint_of_an_older_format_is_refused_by_name(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save(path, {"a": np.zeros(2)}, {})
    save_file(load_file(path), path, metadata={"format": "1", "about": "{}"})
    with pytest.raises(UserError, match="format '1'; this version of understudy reads '2'"):
        checkpoint.load(path)


def test_a_changed_number_in_the_metrics_is_noticed(tmp_path):
    rows = [{"interactions": n, "return": 0.1 * n, "regret": {"ail": None}} for n in range(4)]
    runs.append(tmp_path, rows[:3])
    runs.append(tmp_path, rows[3:])
    assert runs.metrics(tmp_path) == rows
    path = tmp_path / "metrics.jsonl"
    good = path.read_text()
    path.write_text(good.replace('"return": 0.2,', '"return": 0.3,'))
    with pytest.raises(UserError, match=r"line 3 of its metrics\.jsonl does not fit"):
        runs.metrics(tmp_path)
    path.write_text(re.sub(r', "crc32": \d+', "", good))  # as older versions wrote it
    assert runs.metrics(tmp_path) == rows


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    """Read-only for root too, as a file system is."""
    with disk(tmp_path / "fixed", 2**20):
        remount = ["mount", "-o", "remount,ro", str(tmp_path / "fixed")]
        subprocess.run(remount, check=True)
        asked = ("train", "EmptyRoom-3x3", "--interactions", "40", "--out", "fixed/run")
        done = understudy(*asked, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Cannot write to the output folder fixed/run: Read-only file system" in done.stderr


# --- NaN -----------------------------------------------------------------------------------------


@pytest.fixture
def poisoned(monkeypatch):
    """The learner's loss becomes NaN in its seventh iteration."""
    step = learner.step

    def spoil(state, *rest, **options):
        state, info = step(state, *rest, **options)
        bad = jnp.where(state.k == 7, jnp.nan, info.critic_loss)
        return state, dataclasses.replace(info, critic_loss=bad)

    monkeypatch.setattr(learner, "step", spoil)


def test_nan_is_caught_in_its_iteration_and_the_state_before_it_kept(tmp_path, poisoned):
    npz.write(tmp_path / "demos.npz", probe.straight())

    def learn(every):
        demos = str(tmp_path / "demos.npz")
        deep_train.train("probe:Point", SMALL, demos=demos, out=tmp_path / "run", checkpoint=every)

    with pytest.raises(UserError, match=r"critic loss became NaN.*in iteration 7; .*48 inter"):
        learn(0.0)
    told, arrays = checkpoint.load(tmp_path / "run" / deep_run.CHECKPOINT)
    assert told["interactions"] == 6 * SMALL.fresh
    assert all(np.isfinite(x).all() for x in arrays.values() if x.dtype.kind == "f")
    assert not runs.done(tmp_path / "run")
    with pytest.raises(UserError, match=r"has failed before: .*iteration 7"):
        learn(60.0)
    with pytest.raises(UserError, match=r"run failed: .*iteration 7"):
        stored_runs.read(tmp_path / "run")


def test_a_sweep_goes_on_without_a_run_that_fails(tmp_path):
    """One of two settings leads to NaN; the other ends, and the first is told."""
    (tmp_path / "asked.toml").write_text(
        'envs = ["EmptyRoom-3x3"]\n[config]\ninteractions = 40\n[grid]\nsigma = [1e308, 0.5]\n'
    )
    asked = sweep_file.read(tmp_path / "asked.toml")
    for _ in range(2):  # what failed is not tried again
        with pytest.raises(UserError, match=r"1 of 2 runs failed; .*NaN between updates"):
            sweep_run.run(asked, tmp_path / "out")
    stored, skipped = stored_runs.load(tmp_path / "out")
    assert [run.request["config"]["sigma"] for run in stored] == [0.5]
    assert len(skipped) == 1
    assert "failed: The policy became NaN" in skipped[0]


# --- the clock -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_clock_that_goes_back_changes_nothing(tmp_path, monkeypatch):
    npz.write(tmp_path / "demos.npz", probe.straight())
    demos, hour = str(tmp_path / "demos.npz"), 3600
    now = iter(range(10**9, 0, -hour))
    monkeypatch.setattr(time, "time", lambda: next(now))
    summary = deep_train.train(
        "probe:Point", SMALL, demos=demos, out=tmp_path / "run", checkpoint=0.0
    )
    assert 0 < summary["seconds"] < hour
    assert os.path.getsize(tmp_path / "run" / "metrics.jsonl") > 0
