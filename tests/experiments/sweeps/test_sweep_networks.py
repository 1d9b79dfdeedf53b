"""Sweeps of deep runs: a process a core, a folder a run, tabulated and drawn like any other."""

import dataclasses
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import probe
import pytest
from test_cli import understudy

from understudy.core.errors import UserError
from understudy.demos import npz
from understudy.experiments import reproduce, runs, stored_runs, tables
from understudy.experiments import train_networks as deep_train
from understudy.experiments.figures import fig1, fig2, figure
from understudy.experiments.report import page
from understudy.experiments.sweeps import sweep_file
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners.deep.config import PRESETS, DeepConfig

TINY = DeepConfig(
    interactions=96, marks=3, episodes=2, hidden=8, discriminator_hidden=8, batch=16, points=16,
    policy_steps=1, reward_steps=1, warmup=0, warm_start="none",
)  # fmt: skip
FILE = """
name = "tiny"
envs = ["probe:Point"]
demos = "point.npz"
seeds = 1
[config]
interactions = 96
marks = 3
episodes = 2
hidden = 8
discriminator_hidden = 8
batch = 16
points = 16
policy_steps = 1
reward_steps = 1
warmup = 0
warm_start = "none"
[grid]
"window, fresh" = [["1", 16], ["all", 8]]
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A sweep by the command line, in a folder with the environment beside it."""
    folder = tmp_path_factory.mktemp("whole")
    prepare(folder)
    done = understudy("sweep", "tiny.toml", "--allow-code", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def prepare(folder):
    (folder / "probe.py").write_text(Path(probe.__file__).read_text())
    npz.write(folder / "point.npz", probe.straight())
    (folder / "tiny.toml").write_text(FILE)


@pytest.mark.slow
def test_a_deep_sweep_writes_a_folder_a_run(whole):
    folder, document = whole
    assert (document["runs"], document["resumed"]) == (2, 0)
    stored, skipped = stored_runs.load(folder / "runs/tiny")
    assert (len(stored), skipped) == (2, [])
    windows = {(run.window, run.request["config"]["fresh"]) for run in stored}
    assert windows == {("1", 16), ("all", 8)}
    for run in stored:
        assert run.folder.name == runs.name(run.request)
        assert run.interactions.tolist() == [0, 32, 64, 96]


@pytest.mark.slow
def test_a_deep_sweep_writes_what_train_writes(whole, tmp_path, monkeypatch):
    folder, _ = whole
    (same,) = (run for run in stored_runs.load(folder / "runs/tiny")[0] if run.window == "1")
    monkeypatch.chdir(folder)
    config = dataclasses.replace(TINY, window="1", fresh=16)
    deep_train.train("probe:Point", config, demos="point.npz", out=tmp_path / "alone")
    alone = stored_runs.read(tmp_path / "alone")
    assert same.request == alone.request
    np.testing.assert_allclose(same.returns, alone.returns, rtol=1e-3)  # threads add in any order


@pytest.mark.slow
def test_a_finished_deep_sweep_does_nothing_again(whole):
    folder, _ = whole
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*.jsonl")}
    done = understudy("sweep", "tiny.toml", "--allow-code", "--json", cwd=folder)
    assert json.loads(done.stdout)["resumed"] == 2
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*.jsonl")} == before


@pytest.mark.slow
def test_deep_runs_are_tabulated(whole):
    folder, _ = whole
    told = understudy("table", "runs/tiny", cwd=folder)
    assert told.returncode == 0, told.stderr
    head, _, *rows = told.stdout.splitlines()
    assert [line.count("|") for line in rows] == [head.count("|")] * 2
    assert "fresh 16, window 1" in rows[0]
    assert "fresh 8, window all" in rows[1]
    assert "hidden 8" in told.stderr  # what all share
    assert understudy("table", "nothing", cwd=folder).returncode == 2


def stored_run(shares, seed, expert=50.0, **config):
    """A run of four marks."""
    request = {"env": "E", "seed": seed, "config": {"window": "all", **config}}
    marks = np.array([0, 10, 20, 40])
    returns = expert * np.array(shares)
    return stored_runs.StoredRun(
        Path(), request, {"expert_return": expert}, marks, marks, returns, None
    )


def test_a_row_says_what_its_runs_did():
    low = [
        stored_run([0.1, 0.2, 0.95, 0.5], seed=0, kl=1),
        stored_run([0.3, 0.9, 0.4, 0.7], 1, kl=1),
    ]
    first, second = tables.rows([*low, stored_run([0, 0, 0, 0], 0, kl=2)])
    assert (first.setting, second.setting) == ("kl 1", "kl 2")
    varied = [stored_run([0, 0, 0, 0], 0, **one) for one in ({}, {"kl": 2}, {"tau": 0.1})]
    assert {row.setting for row in tables.rows(varied)} == {"", "kl 2", "tau 0.1"}
    assert (first.seeds, first.interactions) == (2, 40)
    assert first.began == pytest.approx(0.2)
    # A tenth of 40 is 4: the mark at 0. A quarter is 10.
    assert first.along == pytest.approx((0.2, 0.55, 0.675, 0.675, 0.6))
    assert (first.worst, first.lowest) == pytest.approx((0.5, 0.4))
    assert (first.near, second.near) == ((20, 10), (None,))
    assert "| 15 |" in tables.markdown([first])
    assert "never" in tables.markdown([second])


def test_a_row_of_an_expert_below_zero_has_returns():
    (row,) = tables.rows([stored_run([10, 3, 1.05, 0.5], 0, expert=-100.0)])
    assert (row.began, row.worst, row.expert) == (-1000, -50, -100)
    assert row.near == (20,)  # −105 is within a tenth of −100, −300 is not
    assert "| E (returns; expert -100) |" in tables.markdown([row])


def test_each_of_vary_changes_alone():
    asked = Sweep(
        "x", ("E",), (0,), config=TINY, vary={"kl": (1.0, 2.0), "window, fresh": (("1", 4),)}
    )
    assert [(c.kl, c.window, c.fresh) for c in asked.settings()] == [
        (TINY.kl, "all", 8), (1.0, "all", 8), (2.0, "all", 8), (TINY.kl, "1", 4),
    ]  # fmt: skip


def test_a_deep_sweep_is_read_with_its_presets_defaults(tmp_path):
    (tmp_path / "s.toml").write_text(
        "envs = ['Hopper-v5']\npreset = 'paper'\ntrajectories = 2\n"
        "[config]\nentropy = 'none'\nkl = 1\n[vary]\nwindow = [1]\nabsorbing = [true]"
    )
    asked = sweep_file.read(tmp_path / "s.toml")
    assert asked.config == dataclasses.replace(PRESETS["paper"], entropy=None, kl=1.0)
    assert asked.vary == {"window": ("1",), "absorbing": (True,)}
    assert asked.trajectories == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("envs = ['Hopper-v5', 'FrozenLake-v1']", "make it two sweeps"),
        ("envs = ['Hopper-v5']\npreset = 'quick'", "not one of fast, paper"),
        ("envs = ['Hopper-v5']\ntrajectories = 0", "trajectories = 0"),
        ("envs = ['Hopper-v5']\ndemos = 3", "demos must be"),
        ("envs = ['FrozenLake-v1']\npreset = 'paper'", "continuous observations"),
        ("envs = ['Hopper-v5']\n[grid]\n'window, kl' = [['1']]", "lists of 2 values"),
        ("envs = ['Hopper-v5']\n[grid]\n'window, kl' = [['1', 'x']]", "kl = 'x'"),
        ("envs = ['Hopper-v5']\n[config]\nkl = 1\n[grid]\n'window, kl' = [['1', 2]]", "keep one"),
        ("envs = ['Hopper-v5']\n[config]\nledger = true", "no option 'ledger'"),
        ("envs = ['Hopper-v5']\n[config]\ngamma = 2", "--gamma is 2"),
        ("envs = ['Hopper-v5']\n[vary]\nkl = 3", "vary.kl must be a list"),
    ],
)
def test_a_deep_sweep_that_cannot_be_meant_is_refused(tmp_path, text, says):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(UserError, match=says):
        sweep_file.read(tmp_path / "s.toml")


def test_what_a_figure_can_be_cut_down_to():
    part = figure.part(fig2.SWEEP, ("all", "1", "32"), 2, 5)
    assert [(c.window, c.fresh) for c in part.settings()] == [("1", 256), ("32", 8), ("all", 8)]
    assert (part.seeds, part.config.episodes) == ((0, 1), 5)
    for windows, seeds, episodes, says in [
        (("1", "3"), None, None, "no N = 3"),
        (("1", "all"), None, None, "needs 1, and 4 or 32"),
        ((), 0, None, "--seeds"),
        ((), None, 0, "--episodes"),
    ]:
        with pytest.raises(UserError, match=says):
            figure.part(fig2.SWEEP, windows, seeds, episodes)
    with pytest.raises(UserError, match="is for fig2"):
        figure.part(fig1.SWEEP, ("1", "32"), None, None)


def grid(sweep):
    return [(config.window, config.fresh) for config in sweep.settings()]


def test_figure_2_by_the_papers_settings_and_with_equally_many_updates():
    """The paper's buffer of 2,048 is the reward's: N policies fill it with 2,048/N each."""
    paper = fig2.sweep("paper-swapped")
    assert grid(paper) == [("1", 2048), ("4", 512), ("32", 64), ("256", 8), ("all", 8)]
    assert (paper.name, paper.config.actor_rate) == ("fig2-paper-swapped", 1e-5)
    assert paper.config.interactions == fig2.SWEEP.config.interactions
    even = fig2.sweep(fresh=16)
    assert grid(even) == [(N, 16) for N in ("1", "4", "32", "256", "all")]
    assert (even.name, even.config) == ("fig2-fresh16", fig2.SWEEP.config)
    assert len({sweep.name for sweep in (paper, even, fig2.SWEEP, fig2.sweep("paper", 8))}) == 4


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("fig1", {"preset": "paper"}, "--preset and --fresh are for fig2; fig1"),
        ("fig3", {"fresh": 8}, "are for fig2; fig3"),
        ("fig2", {"fresh": 0}, "--fresh is 0; it must be from 1 to 100,000"),
    ],
)
def test_options_of_figure_2_that_cannot_be_meant(tmp_path, name, options, says):
    with pytest.raises(UserError, match=says):
        reproduce.reproduce(name, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_killed_deep_sweep_leaves_no_worker_and_goes_on(tmp_path):
    prepare(tmp_path)
    (tmp_path / "tiny.toml").write_text(FILE.replace("interactions = 96", "interactions = 4096"))
    command = [
        sys.executable,
        "-c",
        "from understudy.cli.program import main; main()",
        "sweep",
        "tiny.toml",
        "--allow-code",
    ]
    going = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
    until = time.monotonic() + 120
    while not list(tmp_path.rglob("metrics.jsonl")) and time.monotonic() < until:
        time.sleep(0.2)
    going.send_signal(signal.SIGKILL)
    assert going.wait() == -signal.SIGKILL
    time.sleep(3)
    left = subprocess.run(["pgrep", "-s", str(going.pid)], capture_output=True, text=True)
    assert left.stdout == ""
    assert understudy("sweep", "tiny.toml", "--env", "probe:Point", cwd=tmp_path).returncode == 0
    assert len(stored_runs.load(tmp_path / "runs/tiny")[0]) == 2


@pytest.mark.slow
def test_figure_2_is_run_drawn_and_judged(tmp_path, monkeypatch):
    small = dataclasses.replace(
        fig2.SWEEP,
        envs=("Hopper-v5",),
        config=dataclasses.replace(TINY, interactions=512, marks=2),
    )
    figure2 = dataclasses.replace(fig2.FIGURE, sweep=small)
    monkeypatch.setitem(reproduce.FIGURES, "fig2", figure2)
    out = tmp_path / "fig2"
    document = reproduce.reproduce("fig2", out, windows=("1", "32", "all"), seeds=2)
    assert (document["runs"], len(document["verdicts"])) == (6, 3)
    assert (out / "fig2.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads((out / "verdicts.json").read_text())
    assert told["rule"] == "mean over seeds of 2 sampled episodes"
    assert {row["N"] for row in document["curves"]} == {1, 32, "all"}
    assert reproduce.table("fig2", document["stored"]).row_count == 3
    again = reproduce.reproduce("fig2", out, windows=("1", "32", "all"), seeds=2)
    assert again["resumed"] == 6
    page.write(out, out / "report.html")
    assert "A small N already helps" in (out / "report.html").read_text()
