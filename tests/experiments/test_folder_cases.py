"""What can happen to a run's folder, case by case, with real runs and through the command line."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import probe
import pytest
import stage
from stage import whole
from test_cli import understudy
from test_reliability import disk

from understudy.core.errors import UserError
from understudy.demos import npz
from understudy.experiments import deep_run, expert, runs
from understudy.experiments import run_files as own
from understudy.experiments import train_tables as train
from understudy.experiments.sweeps import sweep_file, sweep_run
from understudy.experiments.sweeps.shared_place import Place
from understudy.learners.deep.config import ExpertConfig

# --- kills --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["recorded", "rehearsed"])
def test_killed_before_any_of_its_writes_the_same_command_goes_on(kind, tmp_path):
    """And the marker is the last of them: while it is not there, the run is not done."""
    learn, at, changes = getattr(stage, kind), 0, [()]
    while len(changes) >= at:
        at += 1
        place = tmp_path / str(at)
        place.mkdir()
        with stage.going_away(place, at, share=0.5) as changes:
            learn(place / "run")
        if runs.done(place / "run"):
            assert stage.results(place / "run") == whole(kind)
        learn(place / "run")
        assert stage.results(place / "run") == whole(kind)
        assert {p.name for p in (place / "run").iterdir()} <= {*own.NAMES}
    assert at > 25
    arrived = [Path(to).name for event, _, to in changes if event == "os.rename"
               if Path(to).parent == place / "run"]  # fmt: skip
    assert arrived[-1] == own.MARKER
    assert arrived.count(own.MARKER) == 1


def test_a_real_run_killed_goes_on_beside_notes_and_other_runs(tmp_path):
    for at in (4, 16, 30):
        run = tmp_path / str(at) / "run"
        run.parent.mkdir()
        with stage.going_away(run.parent, at):
            stage.tabular(run)
        run.mkdir(exist_ok=True)
        (run / "notes.md").write_text("mine")
        stage.tabular(run / "seed1", seed=1)
        other = stage.tree(run / "seed1")
        stage.tabular(run)
        assert runs.done(run)
        assert stage.tree(run / "seed1") == other
        assert (run / "notes.md").read_text() == "mine"


ROOM = ("train", "EmptyRoom-3x3", "--interactions", "40", "--out", "run")


def test_a_finished_run_that_was_changed_is_refused_and_restart_moves_it_aside(tmp_path):
    run = tmp_path / "run"
    assert understudy(*ROOM, cwd=tmp_path).returncode == 0
    (run / "analysis").mkdir()
    (run / "notes.md").write_text("mine")
    (run / "analysis/thesis.tex").write_text("years")
    with (run / "metrics.jsonl").open("a") as file:
        file.write("\n")
    before = stage.tree(tmp_path)
    refused = understudy(*ROOM, cwd=tmp_path)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "metrics.jsonl" in refused.stderr
    assert "--restart" in refused.stderr
    assert stage.tree(tmp_path) == before
    again = understudy(*ROOM, "--restart", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    (aside,) = (path for path in tmp_path.iterdir() if path != run)
    assert re.fullmatch(r"run\.\d{4}-\d\d-\d\d-\d{6}", aside.name)
    moved = {f"run/{name}": content for name, content in stage.tree(aside).items()}
    users = {"run/notes.md": b"mine", "run/analysis/thesis.tex": b"years"}
    assert {**moved, **users} == before
    assert users.items() <= stage.tree(tmp_path).items()
    assert runs.done(run)


DOOMED = """
import os, signal, sys
from understudy.cli.program import main
name = sys.argv.pop()
def look(event, arguments):
    if event == "os.rename" and str(arguments[0]).endswith("." + name):
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(look)
main()
"""


def test_killed_while_its_first_files_are_renamed_a_deep_run_goes_on(tmp_path):
    npz.write(tmp_path / "demos.npz", probe.straight())
    shutil.copy(probe.__file__, tmp_path / "probe.py")
    asked = ("train", "probe:Point", "--demos", "demos.npz", "--interactions", "16", "--hidden",
             "8", "--batch", "8", "--marks", "1", "--episodes", "1", "--out", "run")  # fmt: skip
    for name in ("config.json", "checkpoint.safetensors"):
        command = [sys.executable, "-c", DOOMED, *asked, name]
        assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == -9
    stage.tabular(tmp_path / "run/seed1")
    other = stage.tree(tmp_path / "run/seed1")
    done = understudy(*asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert runs.done(tmp_path / "run")
    assert stage.tree(tmp_path / "run/seed1") == other
    assert not own.drafts(tmp_path / "run")


def test_a_marker_names_files_of_the_run_alone(tmp_path):
    (tmp_path / "notes.md").write_text("mine")
    (tmp_path / ".12.checkpoint.safetensors").write_text("half")
    stage.recorded(tmp_path)
    marker = json.loads((tmp_path / own.MARKER).read_text())
    assert set(marker["files"]) == set(marker["sums"]) == set(whole("recorded"))
    (tmp_path / "notes.md").write_text("more of it")
    assert runs.done(tmp_path)
    # A marker of an older version, which names them all.
    del marker["sums"]
    marker["files"] |= {"notes.md": 4, ".12.checkpoint.safetensors": 4}
    (tmp_path / own.MARKER).write_text(json.dumps(marker))
    assert runs.done(tmp_path)


@pytest.mark.parametrize(
    "said",
    ["", "{}", "5", "[]", '{"files": {}}', '{"files": []}', '{"files": {"metrics.jsonl": true}}',
     '{"files": {"metrics.jsonl": "1"}}', '{"files": {"notes.md": 4}}', "[" * 10**5],
)  # fmt: skip
def test_what_is_no_marker_of_the_run_does_not_make_it_done(said, tmp_path):
    stage.recorded(tmp_path / "run")
    (tmp_path / "run" / own.MARKER).write_text(said)
    assert not runs.done(tmp_path / "run")
    with pytest.raises(UserError, match="has not finished"):
        runs.summary(tmp_path / "run")
    with pytest.raises(own.Damaged, match=r"done\.json.*--restart"):
        stage.recorded(tmp_path / "run")


def test_the_marker_of_another_run_does_not_count(tmp_path):
    for seed in (0, 1):
        stage.recorded(tmp_path / str(seed), seed=seed)
    shutil.copy(tmp_path / "1" / own.MARKER, tmp_path / "0" / own.MARKER)
    assert not runs.done(tmp_path / "0")


def test_runs_of_older_versions_are_still_done():
    folders = [*runs.folders(Path(__file__).parents[2] / "results")]
    assert len(folders) > 250
    assert all(map(runs.done, folders))


@pytest.mark.parametrize("name", own.NAMES)
@pytest.mark.parametrize("what", ["folder", "link", "nowhere"])
def test_a_link_or_a_folder_under_a_name_of_ours_is_left(name, what, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "precious").write_text("mine")
    if what == "folder":
        (tmp_path / "run" / name).mkdir()
    else:
        target = "precious" if what == "link" else "nothing"
        (tmp_path / "run" / name).symlink_to(tmp_path / target)
    for learn in (stage.recorded, stage.rehearsed):
        for restart in (False, True):
            with pytest.raises(UserError, match="a folder or a link"):
                learn(tmp_path / "run", restart=restart)
    assert (tmp_path / "precious").read_text() == "mine"
    assert [path.name for path in (tmp_path / "run").iterdir()] == [name]


def test_metrics_kept_elsewhere_by_a_link_do_not_change(tmp_path):
    with stage.going_away(tmp_path, 24):
        stage.rehearsed(tmp_path / "run")
    os.link(tmp_path / "run" / own.METRICS, tmp_path / "backup")
    before = (tmp_path / "backup").read_bytes()
    stage.rehearsed(tmp_path / "run")
    assert (tmp_path / "backup").read_bytes() == before
    assert stage.results(tmp_path / "run") == whole("rehearsed")


# --- the disk, and the place ---------------------------------------------------------------------


def test_a_full_disk_is_a_sentence_for_a_run_with_tables_too(tmp_path):
    with disk(tmp_path / "small", 12_288) as enlarge:  # three pages
        run = tmp_path / "small/run"
        with pytest.raises(UserError, match=r"No space left.*same command again"):
            stage.tabular(run)
        assert not run.exists()
        enlarge(2**20)
        stage.tabular(run)
        assert runs.done(run)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("kind", ["tabular", "rehearsed"])
def test_a_folder_moved_away_stops_the_run_and_what_is_there_now_is_left(
    kind, again, tmp_path, monkeypatch
):
    run, moved = tmp_path / "run", tmp_path / "moved"

    def move():
        if not moved.exists():
            run.rename(moved)
            if again:
                run.mkdir()

    imitate, practise = train.imitate, deep_run.Collector.practise
    monkeypatch.setattr(train, "imitate", lambda *a, **k: (imitate(*a, **k), move())[0])
    monkeypatch.setattr(deep_run.Collector, "practise", lambda *a: (practise(*a), move())[0])
    with pytest.raises(UserError, match=r"was moved away.*move it back"):
        getattr(stage, kind)(run)
    assert not runs.done(moved)
    assert run.exists() == again
    assert not again or not [*run.iterdir()]
    if again:
        run.rmdir()
    moved.rename(run)
    moved.mkdir()  # so that it stays
    getattr(stage, kind)(run)
    assert runs.done(run)


def test_versions_that_changed_are_told_where_a_run_goes_on(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr("understudy.experiments.console.say", told.append)

    def stopped_and_gone_on(name):
        with stage.going_away(tmp_path, 24):
            stage.rehearsed(tmp_path / name)
        told.clear()
        now = runs.libraries()
        monkeypatch.setattr(runs, "libraries", lambda: {**now, "numpy": "9.9"} if told_of else now)
        stage.rehearsed(tmp_path / name)
        monkeypatch.setattr(runs, "libraries", lambda: now)
        return [sentence for sentence in told if "was begun with" in sentence]

    told_of = False
    assert stopped_and_gone_on("same") == []
    told_of = True
    (sentence,) = stopped_and_gone_on("other")
    assert f"numpy {np.__version__} (now 9.9)" in sentence
    assert stage.results(tmp_path / "other") == whole("rehearsed")


def test_the_checkpoint_of_another_run_is_refused(tmp_path):
    for seed in (0, 1):
        with stage.going_away(tmp_path, 24):
            stage.rehearsed(tmp_path / str(seed), seed=seed)
    shutil.copy(tmp_path / "1" / own.CHECKPOINT, tmp_path / "0" / own.CHECKPOINT)
    with pytest.raises(own.Damaged, match="is of another run"):
        stage.rehearsed(tmp_path / "0")


# --- runs of other kinds -------------------------------------------------------------------------


def test_an_experts_dataset_is_replaced_file_by_file(tmp_path):
    config = ExpertConfig(interactions=40, explore=20, hidden=8, batch=8, marks=1, episodes=1)
    run = tmp_path / "run"
    expert.expert("Pendulum-v1", config, out=run)
    dataset = run / "demos/understudy/Pendulum-v1/expert-v0"
    (dataset / "notes.md").write_text("mine")
    (run / "demos/mine.npz").write_text("mine too")
    first = stage.tree(dataset / "data")
    assert len(first) == 2
    expert.expert("Pendulum-v1", config, out=run, restart=True)
    (aside,) = (path for path in tmp_path.iterdir() if path != run)
    assert stage.tree(aside / dataset.relative_to(run)) == {
        f"data/{k}": v for k, v in first.items()
    }
    assert stage.tree(dataset).keys() == {"notes.md", *(f"data/{name}" for name in first)}
    assert (run / "demos/mine.npz").read_text() == "mine too"
    (run / "config.json").unlink()
    for name in own.NAMES:
        (run / name).unlink(missing_ok=True)
    with pytest.raises(own.Damaged, match="expert-v0"):
        expert.expert("Pendulum-v1", config, out=run)


def test_a_sweep_leaves_a_damaged_run_and_goes_on_with_the_others(tmp_path):
    (tmp_path / "asked.toml").write_text(
        'envs = ["EmptyRoom-3x3"]\nseeds = 2\n[config]\ninteractions = 40\n'
    )
    asked, out = sweep_file.read(tmp_path / "asked.toml"), tmp_path / "out"
    sweep_run.run(asked, out)
    spoilt, lost = sorted(runs.folders(out))
    (spoilt / "notes.md").write_text("mine")
    with (spoilt / own.METRICS).open("a") as file:
        file.write("\n")
    shutil.rmtree(lost)
    before = stage.tree(spoilt)
    with pytest.raises(UserError, match=r"1 of 2 runs failed.*metrics\.jsonl"):
        sweep_run.run(asked, out)
    assert stage.tree(spoilt) == before
    assert runs.done(lost)


def test_only_a_runs_files_go_to_a_shared_place_and_back(tmp_path):
    place, run = Place(f"file://{tmp_path}/place"), tmp_path / "run"
    with stage.going_away(tmp_path, 24):
        stage.rehearsed(run)
    (run / "notes.md").write_text("mine")
    place.bring(run)
    (tmp_path / "place/run/notes.md").write_text("another's")
    place.fetch(run)
    assert (run / "notes.md").read_text() == "mine"
    stage.rehearsed(run)
    ended = stage.tree(run)
    place.fetch(run)  # an earlier state of it, which does not count any more
    assert stage.tree(run) == ended
