"""The files of a run one by one: accounted for, written together, moved aside."""

import json
import os
from zlib import crc32

import jax
import numpy as np
import pytest

from understudy.core.errors import Diverged, UserError
from understudy.experiments import deep_run, run_files, runs, standing, store
from understudy.experiments.run_files import Damaged
from understudy.learners.deep import actor as actors
from understudy.learners.deep import checkpoint
from understudy.learners.deep.rehearsal import Place

REQUEST = {"method": "mdpo", "env": "E", "seed": 0, "config": {"window": "4", "lag": (1, 2)}}


def begun(folder, request=REQUEST, **more):
    folder.mkdir(parents=True, exist_ok=True)
    store.write_json(folder / "config.json", {**request, "versions": {"jax": "0"}, **more})
    return folder


def marked(folder, summary=None):
    (folder / "metrics.jsonl").write_bytes(run_files.line({"interactions": 0, "return": 1.0}))
    store.write_json(folder / "done.json", {**(summary or {}), **run_files.listing(folder)})
    return folder


# --- lines of metrics ----------------------------------------------------------------------------


def test_a_line_carries_the_checksum_of_the_rest():
    row = {"interactions": 4, "return": 0.5}
    text = run_files.line(row).decode()
    body = '{"interactions": 4, "return": 0.5}'
    assert text == body[:-1] + f', "crc32": {crc32(body.encode())}' + "}\n"
    with pytest.raises(ValueError, match="not JSON compliant"):
        run_files.line({"interactions": 0, "return": float("nan")})


def test_lines_are_ours_whole_or_in_part():
    whole = b"".join(run_files.line({"interactions": n, "return": 1.0}) for n in range(3))
    for end in range(len(whole) + 1):  # wherever a kill may have cut them
        assert run_files.written(whole[:end])
    for spoilt in (
        whole.replace(b"1.0", b"2.0", 1), b"\n", b"{}\n", b"note", whole + b"note",
        b"[1]\n" + whole, whole + b'{"interactionz', b"3\n", b'"text"\n', b"{\n",
    ):  # fmt: skip
        assert not run_files.written(spoilt)


def test_metrics_are_read_back_and_older_ones_have_no_checksum(tmp_path):
    rows = [{"interactions": n, "return": 0.1 * n} for n in range(3)]
    written = runs.append(tmp_path, rows)
    assert written == (tmp_path / "metrics.jsonl").stat().st_size
    assert runs.metrics(tmp_path) == rows
    runs.append(tmp_path, [{"interactions": 3, "return": 1.0}])
    assert len(runs.metrics(tmp_path)) == 4
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    (tmp_path / "metrics.jsonl").write_text("\n".join([json.dumps(rows[0]), *lines[1:]]))
    assert runs.metrics(tmp_path)[0] == rows[0]
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines[:2], lines[2].replace("0.2", "0.3")]))
    with pytest.raises(UserError, match="line 3 of its"):
        runs.metrics(tmp_path)
    (tmp_path / "metrics.jsonl").write_text("[1]\n")
    with pytest.raises(ValueError, match="not a JSON object"):
        runs.metrics(tmp_path)


# --- markers -------------------------------------------------------------------------------------


def test_a_marker_accounts_for_every_file(tmp_path):
    folder = marked(begun(tmp_path))
    marker = run_files.read(folder / "done.json")
    assert marker["files"] == {"metrics.jsonl": (folder / "metrics.jsonl").stat().st_size}
    assert runs.done(folder)
    assert run_files.amiss(folder, {**marker, "sums": {}}) is None  # of an older version
    for spoilt in (None, {}, {"files": []}, {**marker, "sums": []}, {**marker, "files": {}}):
        assert "not one that understudy wrote" in run_files.amiss(folder, spoilt)
    for size in (1, True, float(marker["files"]["metrics.jsonl"]), None):
        why = run_files.amiss(folder, {**marker, "files": {"metrics.jsonl": size}})
        assert "bytes, and its done.json says" in why
    other = run_files.line({"interactions": 0, "return": 2.0})
    assert len(other) - (folder / "metrics.jsonl").stat().st_size in (-1, 0, 1)
    whole = (folder / "metrics.jsonl").read_bytes()
    (folder / "metrics.jsonl").write_bytes(whole.replace(b"1.0", b"9.0"))
    assert "changed since" in run_files.amiss(folder, marker)
    (folder / "metrics.jsonl").unlink()
    assert run_files.amiss(folder, marker) == "metrics.jsonl is missing"
    assert not runs.done(folder)


def test_a_file_of_an_end_under_way_is_accounted_for_by_its_checksum(tmp_path):
    folder = marked(begun(tmp_path))
    marker = run_files.read(folder / "done.json")
    assert run_files.accounted(folder, "metrics.jsonl", marker)
    assert not run_files.accounted(folder, "policy.json", marker)
    assert not run_files.accounted(folder, "metrics.jsonl", None)
    assert not run_files.accounted(folder, "metrics.jsonl", {"files": marker["files"]})
    assert not run_files.accounted(folder, "metrics.jsonl", {"files": [], "sums": {}})
    (folder / "metrics.jsonl").write_bytes(b"other")
    assert not run_files.accounted(folder, "metrics.jsonl", marker)


def test_the_later_of_two_folders_counts(tmp_path):
    for name, text in (("a", "one"), ("b", "three")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_text(text)
    (tmp_path / "a" / "policy.json").write_text("{}")
    listed = run_files.listing(tmp_path / "a", tmp_path / "b")
    assert listed["files"] == {"metrics.jsonl": 5, "policy.json": 2}
    assert listed["sums"]["metrics.jsonl"] == run_files.digest(tmp_path / "b" / "metrics.jsonl")
    assert len(listed["sums"]["policy.json"]) == 32


# --- how it stands -------------------------------------------------------------------------------


def test_a_run_is_new_stopped_failed_or_done(tmp_path):
    folder = tmp_path / "run"
    assert standing.of_run(folder, REQUEST) == "new"
    begun(folder)
    assert standing.of_run(folder, REQUEST) == "new"
    runs.append(folder, [{"interactions": 0, "return": 1.0}])
    assert standing.of_run(folder, REQUEST) == "new"
    (folder / "checkpoint.safetensors").write_bytes(b"x")
    assert standing.of_run(folder, REQUEST) == "stopped"
    with pytest.raises(Damaged, match="which such a run never writes"):
        standing.prepare(folder, REQUEST, tables=True)
    runs.fail(folder, "It became NaN.", interactions=4)
    assert standing.of_run(folder, REQUEST) == "failed"
    assert standing.failure(folder) == "It became NaN."
    with pytest.raises(Diverged, match="has failed before: It became NaN"):
        standing.prepare(folder, REQUEST)
    assert runs.ended(folder)
    marked(folder)
    assert standing.of_run(folder, REQUEST) == "done"
    (folder / ".1.run").mkdir()
    assert standing.prepare(folder, REQUEST) == "done"
    assert not (folder / ".1.run").exists()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda f: (f / "config.json").unlink(), "config.json is missing"),
        (lambda f: (f / "config.json").write_text("{"), "config.json cannot be read"),
        (
            lambda f: (f / "config.json").write_text((f / "config.json").read_text() + " "),
            "config.json was changed",
        ),
        (lambda f: (f / "failed.json").write_text("{}"), "failed.json is not one"),
        (lambda f: (f / "done.json").write_text("{}"), "done.json is not one"),
        (lambda f: (f / "policy.json").write_text("{}"), "holds policy.json, though"),
        (lambda f: (f / "metrics.jsonl").write_text("note"), "holds what understudy did not write"),
    ],
)
def test_what_cannot_be_accounted_for_is_damage(spoil, why, tmp_path):
    folder = begun(tmp_path / "run")
    runs.append(folder, [{"interactions": 0, "return": 1.0}])
    spoil(folder)
    with pytest.raises(Damaged, match=why):
        standing.of_run(folder, REQUEST)
    standing.mend(folder, REQUEST)
    assert standing.of_run(folder, REQUEST) == "new"
    aside = [path for path in tmp_path.iterdir() if path.name != "run"]
    assert len(aside) == 1
    assert "metrics.jsonl" in {path.name for path in aside[0].iterdir()}


def test_files_in_folders_are_moved_with_them_and_leave_no_empty_ones(tmp_path):
    here, there = tmp_path / "run", tmp_path / "aside"
    names = ["config.json", "demos/a/b/data.npz", "demos/note.txt"]
    for name in [*names, "theirs/own.txt"]:
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(name)
    run_files.move_aside(here, there, names)
    assert sorted(str(path.relative_to(here)) for path in here.rglob("*")) == [
        "theirs", "theirs/own.txt",
    ]  # fmt: skip
    assert {name: (there / name).read_text() for name in names} == {name: name for name in names}


def test_another_run_is_left_alone(tmp_path):
    folder = begun(tmp_path / "run")
    other = {**REQUEST, "seed": 1}
    for asking in (standing.of_run, standing.move_aside, standing.mend):
        with pytest.raises(UserError, match="holds another run"):
            asking(folder, other)
    standing.mend(folder, REQUEST)  # neither damaged nor failed: it stays
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert standing.asks({**REQUEST, "config": {"window": "4", "lag": [1, 2]}}, REQUEST)
    younger = {**REQUEST, "kind": "networks", "shown_rewards": "x"}
    assert standing.asks({**REQUEST, "config": {"window": "4", "lag": [1, 2]}}, younger)
    noted = {**younger, "config": {"window": "4", "lag": [1, 2]}, "kind": "tables"}
    assert not standing.asks(noted, younger)


def test_the_end_of_a_run_that_was_being_written_counts(tmp_path):
    folder = begun(tmp_path / "run")
    draft = folder / ".77.run"
    draft.mkdir()
    (draft / "policy.json").write_text("{}")
    store.write_json(draft / "done.json", run_files.listing(draft))
    (draft / "policy.json").rename(folder / "policy.json")
    assert run_files.unfinished(folder)["files"] == {"policy.json": 2}
    assert standing.of_run(folder, REQUEST) == "new"
    standing.clear(folder)
    assert [path.name for path in folder.iterdir()] == ["config.json"]


def test_clearing_leaves_metrics_that_count(tmp_path):
    folder = begun(tmp_path / "run")
    runs.append(folder, [{"interactions": 0, "return": 1.0}])
    (folder / "policy.json").write_text("{}")
    (folder / "mine.txt").write_text("mine")
    standing.clear(folder, metrics=False)
    assert {p.name for p in folder.iterdir()} == {"config.json", "metrics.jsonl", "mine.txt"}
    standing.clear(folder)
    assert {p.name for p in folder.iterdir()} == {"config.json", "mine.txt"}


def test_a_run_is_begun_wherever_it_is_asked_for_once(tmp_path):
    folder = tmp_path / "new" / "run"
    runs.begin(folder, REQUEST)
    assert runs.same(folder, REQUEST)
    assert not runs.same(folder, {**REQUEST, "seed": 9})
    assert not runs.same(tmp_path, REQUEST)
    assert runs.versions_of(folder) == runs.versions()
    (folder / "mine.txt").write_text("mine")
    runs.begin(folder, REQUEST)  # nothing was done yet
    assert (folder / "mine.txt").exists()
    marked(folder)
    with pytest.raises(UserError, match="a run that is done already"):
        runs.begin(folder, REQUEST)
    with (
        pytest.raises(UserError, match="a run that is done; choose"),
        runs.recording(folder, REQUEST),
    ):
        pass
    with runs.recording(tmp_path / "other" / "run", REQUEST) as draft:
        runs.append(draft, [{"interactions": 0, "return": 1.0}])
        runs.finish(draft, {"policy": np.zeros(1)}, {"return": 1.0}, {"visits": np.zeros(1)})
        assert not (tmp_path / "other" / "run" / "config.json").exists()
    assert runs.summary(tmp_path / "other" / "run")["return"] == 1.0
    assert (tmp_path / "other" / "run" / "replay.safetensors").exists()
    with pytest.raises(UserError, match=r"has not finished, .*: there is no done.json"):
        runs.summary(begun(tmp_path / "begun"))
    runs.fail(tmp_path / "begun", "NaN.")
    with pytest.raises(UserError, match=r"failed: NaN"):
        runs.summary(tmp_path / "begun")


# --- drafts and moves ----------------------------------------------------------------------------


def test_drafts_are_known_by_their_names(tmp_path):
    for name in (".1.run", ".22.done.json", ".3.other", "4.run", ".x.run", ".5.run.bak"):
        (tmp_path / name).mkdir()
    assert [path.name for path in run_files.drafts(tmp_path)] == [".1.run", ".22.done.json"]
    (tmp_path / ".1.run" / "policy.json").write_text("{}")
    (tmp_path / ".1.run" / "mine.txt").write_text("mine")
    (tmp_path / ".9.metrics.jsonl").write_text("x")
    (tmp_path / ".8.run").symlink_to(tmp_path / "4.run")
    run_files.remove_drafts(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".1.run", ".3.other", "4.run", ".x.run", ".5.run.bak"}
    assert [path.name for path in (tmp_path / ".1.run").iterdir()] == ["mine.txt"]


def test_files_written_together_appear_together(tmp_path):
    (tmp_path / "policy.json").write_text("old")
    with store.together(tmp_path) as draft:
        (draft / "policy.json").write_text("new")
        (draft / "demos/understudy/E/expert-v0/data").mkdir(parents=True)
        (draft / "demos/understudy/E/expert-v0/data/metadata.json").write_text("{}")
        assert (tmp_path / "policy.json").read_text() == "old"
    assert (tmp_path / "policy.json").read_text() == "new"
    dataset = "demos/understudy/E/expert-v0/data/metadata.json"
    assert run_files.datasets(tmp_path) == [dataset]
    assert not run_files.drafts(tmp_path)

    def failing():
        with store.together(tmp_path) as draft:
            (draft / "policy.json").write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert (tmp_path / "policy.json").read_text() == "new"
    assert not run_files.drafts(tmp_path)


def test_moving_aside_takes_what_is_the_runs_and_leaves_the_rest(tmp_path):
    folder, to = tmp_path / "run", tmp_path / "aside"
    folder.mkdir()
    to.mkdir()
    deep = "demos/understudy/E/expert-v0/data/metadata.json"
    names = ["config.json", "metrics.jsonl", "done.json", deep]
    (folder / deep).parent.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(name)
    (folder / "demos" / "mine.txt").write_text("mine")
    run_files.move_aside(folder, to, names)
    assert {str(p.relative_to(to)) for p in to.rglob("*") if p.is_file()} == set(names)
    assert {str(p.relative_to(folder)) for p in folder.rglob("*")} == {"demos", "demos/mine.txt"}


def test_a_dated_folder_beside_the_run_never_one_that_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(standing.time, "strftime", lambda form: "2026-01-01-000000")
    names = [standing._beside(tmp_path / "run").name for _ in range(3)]
    assert names == [f"run.2026-01-01-000000{end}" for end in ("", "-2", "-3")]


def test_a_link_among_the_demonstrations_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "demos").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link, where a folder is to be"):
        run_files.datasets(tmp_path / "run")


# --- folders to write to -------------------------------------------------------------------------


def test_folders_that_were_made_for_nothing_are_taken_away(tmp_path):
    def failing(write):
        with store.output_folder(tmp_path / "a" / "b") as folder:
            if write:
                (folder / "kept").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing(write=False)
    assert not [*tmp_path.iterdir()]
    with pytest.raises(ZeroDivisionError):
        failing(write=True)
    assert (tmp_path / "a" / "b" / "kept").exists()
    with pytest.raises(ZeroDivisionError):
        failing(write=False)  # it was there before
    assert (tmp_path / "a" / "b").exists()


def test_a_folder_that_was_moved_away_is_not_written_to(tmp_path):
    place = tmp_path / "place"
    with store.workplace(place):
        store.still(place / "run")
        with store.whole(place / "a.json") as draft:
            draft.write_text("{}")
        place.rename(tmp_path / "moved")
        with pytest.raises(UserError, match="was moved away"):
            store.still(place / "run")
        place.mkdir()
        with pytest.raises(UserError, match="was moved away"):
            store.still(place)
        with pytest.raises(UserError, match="was moved away"):
            store.write_json(place / "b.json", {})
        assert not [*place.iterdir()]
    store.still(place)  # nobody is at work there any more


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    def failing():
        with store.whole(tmp_path / "a.json") as draft:
            draft.write_text("half")
            assert draft.name == f".{os.getpid()}.a.json"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert not [*tmp_path.iterdir()]
    store.write_json(tmp_path / "a.json", {"a": (1, 2)})
    assert (tmp_path / "a.json").read_text() == '{\n  "a": [\n    1,\n    2\n  ]\n}\n'
    assert store.read_json(tmp_path / "a.json", "It") == {"a": [1, 2]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write_json(tmp_path / "b.json", {"a": float("nan")})
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    for text, says in (("[1]", "is not a JSON object"), ("{", "cannot be read")):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(UserError, match=says):
            store.read_json(tmp_path / "a.json", "It")
    with pytest.raises(UserError, match="does not exist"):
        store.read_json(tmp_path / "none.json", "It")


def test_a_copy_of_a_run_is_made_where_there_is_none(tmp_path):
    source = marked(begun(tmp_path / "a"), {"return": 1.0, "expert_return": 2.0})
    runs.copy(source, tmp_path / "deep" / "b")
    assert runs.summary(tmp_path / "deep" / "b")["return"] == 1.0
    assert {p.name for p in (tmp_path / "deep" / "b").iterdir()} == {
        p.name for p in source.iterdir()
    }
    with pytest.raises(UserError, match=r"holds config\.json already"):
        runs.copy(source, tmp_path / "deep" / "b")
    with pytest.raises(UserError):
        runs.copy(begun(tmp_path / "c"), tmp_path / "d")


def test_arrays_of_a_run_are_read_or_named(tmp_path):
    runs.finish(tmp_path, {"policy": np.arange(3.0)}, {"return": 1.0})
    assert runs.tensors(tmp_path / "policy.safetensors", "The policy")["policy"].tolist() == [
        0,
        1,
        2,
    ]
    assert not (tmp_path / "replay.safetensors").exists()
    with pytest.raises(UserError, match=r"The policy .* does not exist"):
        runs.tensors(tmp_path / "none", "The policy")
    with pytest.raises(UserError, match="no regular file"):
        runs.tensors(tmp_path, "The policy")
    (tmp_path / "odd").write_text("odd")
    with pytest.raises(UserError, match="cannot be read"):
        runs.tensors(tmp_path / "odd", "The policy")


# --- a run with networks under way ---------------------------------------------------------------


def test_metrics_after_a_checkpoint_must_be_ours_to_cut_off(tmp_path):
    lines = [run_files.line({"interactions": n, "return": 1.0}) for n in range(3)]
    (tmp_path / "metrics.jsonl").write_bytes(b"".join(lines))
    size, whole = len(lines[0]), b"".join(lines)
    assert deep_run.metrics_of(tmp_path, size) == lines[0]
    assert deep_run.metrics_of(tmp_path, len(whole)) == whole
    with pytest.raises(Damaged, match="was cut short"):
        deep_run.metrics_of(tmp_path, len(whole) + 1)
    (tmp_path / "metrics.jsonl").write_bytes(lines[0] + b"note")
    with pytest.raises(Damaged, match="did not write"):
        deep_run.metrics_of(tmp_path, size)
    (tmp_path / "metrics.jsonl").unlink()
    with pytest.raises(Damaged, match="cannot be read"):
        deep_run.metrics_of(tmp_path, 0)


def test_versions_that_changed_are_named_and_no_others(tmp_path, capsys):
    now = runs.libraries()
    deep_run.tell_versions(tmp_path, now)
    assert capsys.readouterr().err == ""
    deep_run.tell_versions(tmp_path, {**now, "jax": "0.0.1", "gone": "7"})
    said = " ".join(capsys.readouterr().err.split())
    assert f"jax 0.0.1 (now {now['jax']}), gone 7 (now None)" in said
    assert "numpy" not in said


def test_what_stops_a_run_says_when_and_what_is_left(tmp_path):
    net = actors.actor(2, 1, (4,), discrete=False, key=jax.random.key(0))

    def stopped(error):
        with deep_run.explained(tmp_path, Place(None, net, interactions=1200), 8):
            raise error

    tmp_path.joinpath("config.json").write_text("{}")
    with pytest.raises(UserError, match=r"It broke \(at 1,200 interactions\)\.$"):
        stopped(UserError("It broke."))
    with pytest.raises(Diverged, match=r"NaN \(in iteration 150; nothing was kept yet\)\.$"):
        stopped(Diverged("NaN"))
    assert json.loads((tmp_path / "failed.json").read_text())["interactions"] == 1200
    about = {"interactions": 1000}
    checkpoint.save(tmp_path / "checkpoint.safetensors", {"a": np.zeros(1)}, about)
    with pytest.raises(UserError, match="the last checkpoint is intact"):
        stopped(UserError("It broke."))
    with pytest.raises(Diverged, match="the state of 1,000 interactions is kept in checkpoint"):
        stopped(Diverged("NaN."))
