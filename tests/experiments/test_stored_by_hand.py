"""Stored runs, at the edges of what is read back."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from understudy.core.errors import UserError
from understudy.experiments import run_files, runs
from understudy.experiments import stored_runs as stored
from understudy.experiments.stored_runs import StoredRun

REQUEST = {
    "kind": "tables", "env": "understudy/EmptyRoom-3x3-v0", "horizon": 9, "seed": 2,
    "demos": None, "config": {"window": "4"},
}  # fmt: skip
TERMS = ("optimisation", "shift", "estimation", "demonstrations", "reward", "policy", "ail")
ROWS = [
    {"interactions": n, "updates": n // 2, "return": 0.5 * n,
     "regret": {term: float(n) for term in TERMS} | {"drift": [1.0, 2.0]}}
    for n in (0, 4, 8)
]  # fmt: skip
SUMMARY = {"expert_return": 4.0, "seconds": 1.5, "ledger": {"ail": {"measured": 1, "holds": True}}}
REPLAY = {"visits": np.ones((3, 9, 5)), "reward": np.ones((3, 9, 5))}


def kept(folder, *, request=REQUEST, rows=ROWS, summary=SUMMARY, replay=None):
    """A run as it is written, whatever it says."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**request, "versions": {"jax": "0"}}))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    save_file({"policy": np.zeros(3)}, folder / "policy.safetensors")
    if replay is not None:
        save_file(replay, folder / "replay.safetensors")
    marker = {**summary, **run_files.listing(folder)}
    (folder / "done.json").write_text(json.dumps(marker))
    return folder


def changed(at, value, document):
    """The document with another value at a place given by its keys."""
    first, *rest = at
    copy = document.copy()
    copy[first] = changed(rest, value, copy[first]) if rest else value
    return copy


def test_a_run_is_read_back_as_it_was(tmp_path):
    run = stored.read(kept(tmp_path / "run", replay=REPLAY))
    assert (run.env, run.seed, run.window, run.kind) == ("EmptyRoom-3x3", 2, "4", "tables")
    none = dict.fromkeys(("method", "thin", "begin", "begun", "demos"))
    assert run.asked == none | {"horizon": 9}
    assert run.interactions.tolist() == [0, 4, 8]
    assert run.updates.tolist() == [0, 2, 4]
    assert run.returns.tolist() == [0, 2, 4]
    assert run.summary == {
        "expert_return": 4.0, "seconds": 1.5, "ledger": {"ail": {"measured": 1.0, "holds": True}},
    }  # fmt: skip
    assert run.regret["ail"].tolist() == [0, 4, 8]
    assert run.regret["drift"].shape == (3, 2)
    assert "versions" not in run.request
    assert "replay" not in vars(run)  # a thousand of them would be heavy
    np.testing.assert_array_equal(run.replay["visits"], REPLAY["visits"])
    assert stored.read(kept(tmp_path / "other")).replay is None
    assert not run.cloned


def test_the_return_is_that_of_the_last_mark_so_far():
    marks, returns = np.array([0, 4, 8]), np.array([1.0, 2.0, 3.0])
    run = StoredRun(Path(), {}, {"expert_return": 1.0}, marks, marks, returns, None)
    assert [run.at(n) for n in (0, 3, 4, 7, 8, 99, -1)] == [1, 1, 2, 2, 3, 3, 1]


@pytest.mark.parametrize(
    ("at", "fits", "wrong"),
    [
        (("seed",), (0, -5, 10**15), (10**15 + 1, 1.0, True, None, "1")),
        (("horizon",), (1, 10**15), (0, None, 2.0)),
        (("env",), ("x" * 200,), ("x" * 201, 3, ["x"])),
        (("config", "window"), (" All ", "adaptive", "2*k^0.4", "9" * 10, "1" * 60),
         ("many", "", "1" * 61, 4)),
        (("method",), (None, "counts"), (3, ["x"])),
        (("config",), (), ([], "x")),
    ],
)  # fmt: skip
def test_what_a_run_was_asked_is_what_could_be_asked(at, fits, wrong, tmp_path):
    for value in fits:
        stored.read(kept(tmp_path / "run", request=changed(at, value, REQUEST)))
    for value in wrong:
        with pytest.raises(UserError, match="is not one of ours or is damaged"):
            stored.read(kept(tmp_path / "run", request=changed(at, value, REQUEST)))


def test_networks_need_no_horizon_and_experts_are_no_imitators(tmp_path):
    deep = {**REQUEST, "kind": "networks", "horizon": None, "method": "mdpo"}
    deep["config"] = {"window": "4", "warm_start": "clone"}
    assert stored.read(kept(tmp_path / "run", request=deep)).cloned
    with pytest.raises(UserError, match="is an expert's"):
        stored.read(kept(tmp_path / "run", request={**deep, "method": "sac"}))
    with pytest.raises(UserError, match="damaged"):
        stored.read(kept(tmp_path / "run", request=changed(("config", "kl"), "x", deep)))


@pytest.mark.parametrize(
    ("at", "fits", "wrong"),
    [
        (("expert_return",), (0, 1e15, -1e15, 1e-9, -1e-9), (1.1e15, -1.1e15, 9e-10, -9e-10, "1")),
        (("seconds",), (0, 0.0, None), (-0.1, "1", True)),
        (("ledger",), (None, {}), ([], {"ail": 3}, 3)),
        (("ledger", "ail", "measured"), (1e100, -1e100, None), (1.1e100, "x", True)),
        (("ledger", "ail", "holds"), (None, False), (1, "yes")),
    ],
)
def test_what_a_run_says_of_itself(at, fits, wrong, tmp_path):
    for value in fits:
        stored.read(kept(tmp_path / "run", summary=changed(at, value, SUMMARY)))
    for value in wrong:
        with pytest.raises(UserError, match="damaged"):
            stored.read(kept(tmp_path / "run", summary=changed(at, value, SUMMARY)))


@pytest.mark.parametrize(
    ("at", "fits", "wrong"),
    [
        ((1, "interactions"), (0, 8), (9, -1, 4.0, True)),
        ((1, "updates"), (0, 4), (5, -1, None)),
        ((1, "return"), (0, -1e15), (2e15, "x", None, float("nan"))),
        ((1, "regret", "ail"), (0, 1e100), (1.1e100, "x", [1.0])),
        ((1, "regret", "drift"), ([1, 2],), ([1], [1, "x"], 3)),
        ((1, "regret"), (), (None, [])),
    ],
)
def test_marks_are_numbers_that_do_not_fall_back(at, fits, wrong, tmp_path):
    for value in fits:
        stored.read(kept(tmp_path / "run", rows=changed(at, value, ROWS)))
    for value in wrong:
        with pytest.raises(UserError, match="damaged"):
            stored.read(kept(tmp_path / "run", rows=changed(at, value, ROWS)))


def test_one_mark_is_enough(tmp_path):
    run = stored.read(kept(tmp_path / "run", rows=ROWS[1:2]))
    assert run.regret is not None
    assert (run.returns.tolist(), run.regret["ail"].tolist()) == ([2], [4])


def test_a_regret_is_there_at_every_mark_or_at_none(tmp_path):
    bare = [{k: v for k, v in row.items() if k != "regret"} for row in ROWS]
    assert stored.read(kept(tmp_path / "run", rows=bare)).regret is None
    for rows in ([bare[0], *ROWS[1:]], [*ROWS[:2], bare[2]]):
        with pytest.raises(UserError, match="a regret at some marks only"):
            stored.read(kept(tmp_path / "run", rows=rows))
    for term in TERMS:
        rows = [
            {**row, "regret": {k: v for k, v in row["regret"].items() if k != term}} for row in ROWS
        ]
        with pytest.raises(UserError, match=f"its regret lacks {term}"):
            stored.read(kept(tmp_path / "run", rows=rows))
    with pytest.raises(UserError, match=r"metrics\.jsonl is empty"):
        stored.read(kept(tmp_path / "run", rows=[]))


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({"visits": np.full((3, 9, 5), 1e15)}, True),
        ({"visits": np.full((3, 9, 5), 1.1e15)}, False),
        ({"visits": np.full((3, 9, 5), np.nan)}, False),
        ({"visits": np.ones((2, 9, 5))}, False),
        ({"visits": np.ones((3, 9, 4)), "reward": np.ones((3, 9, 4))}, False),
        ({"visits": np.ones((3, 4, 5)), "reward": np.ones((3, 4, 5))}, False),
        ({"visits": np.ones((3, 45)), "reward": np.ones((3, 45))}, False),
        ({"visits": np.ones((2, 9, 5)), "reward": np.ones((2, 9, 5))}, False),
        ({"visits": np.ones((3, 9, 5), np.int64)}, True),
        ({"visits": np.ones((3, 9, 5), bool)}, False),
        ({"visits": None}, False),
        ({"reward": None}, False),
    ],
)
def test_a_replay_is_of_every_mark_and_of_the_room(change, fits, tmp_path):
    replay = {k: v for k, v in (REPLAY | change).items() if v is not None}
    folder = kept(tmp_path / "run", replay=replay)
    if fits:
        assert set(stored.read(folder).replay) == {"visits", "reward"}
        return
    with pytest.raises(UserError, match="The replay"):
        stored.read(folder)


def test_a_replay_of_another_world_has_any_states(tmp_path):
    replay = {name: np.ones((3, 4, 2)) for name in ("visits", "reward")}
    lake = {**REQUEST, "env": "FrozenLake-v1"}
    assert stored.read(kept(tmp_path / "run", request=lake, replay=replay)).replay is not None


def test_some_runs_are_read_and_a_sentence_is_said_of_each_other(tmp_path):
    kept(tmp_path / "a")
    kept(tmp_path / "b", rows=[])
    found, skipped = stored.load(tmp_path)
    assert [run.folder.name for run in found] == ["a"]
    assert len(skipped) == 1
    assert "b" in skipped[0]
    with pytest.raises(UserError, match="no such folder"):
        stored.load(tmp_path / "none")


# --- files and values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("config.json", 16 * 2**20),
        ("done.json", 64 * 2**20),
        ("failed.json", 2**20),
        ("metrics.jsonl", 2**30),
    ],
)
def test_files_of_a_run_have_a_size_that_can_be_meant(name, most, tmp_path):
    folder = kept(tmp_path / "run")
    (folder / name).touch()
    os.truncate(folder / name, most + 1)
    with pytest.raises(UserError, match=f"{name} cannot be read: it has {most + 1:,} bytes"):
        stored.read(folder)
    stored.regular(folder / name, most + 1)
    stored.regular(folder / "none", 0)
    with pytest.raises(UserError, match="no regular file"):
        stored.regular(folder, 10)


@pytest.mark.parametrize("deep", [12, 13])
def test_documents_are_at_most_twelve_levels_deep(deep, tmp_path):
    document: dict = {}
    for _ in range(deep):
        document = {"a": document}
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document))
    if deep == 12:
        assert stored.document(path, "It") == document
        return
    with pytest.raises(UserError, match="more than 12 levels deep"):
        stored.document(path, "It")
    nested: list = []
    for _ in range(deep):
        nested = [nested]
    with pytest.raises(ValueError, match="more than 12"):
        stored.plain(nested)


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("x" * 20_000, True),
        ("x" * 20_001, False),
        ("a\nb", False),
        (1e100, True),
        (-1.1e100, False),
        (float("nan"), False),
        ([[1e101]], False),
        ({"x" * 1000: 1}, True),
        ({"x" * 1001: 1}, False),
        ({"a": [{"b": "\x07"}]}, False),
    ],
)
def test_what_is_within_a_document(value, fits):
    if fits:
        stored.plain(value)
        return
    with pytest.raises(ValueError, match=r"its|a number"):
        stored.plain(value)


def test_what_is_no_document_is_named(tmp_path):
    with pytest.raises(UserError, match=r"The run's .* does not exist"):
        stored.document(tmp_path / "none.json", "The run's")
    for text, says in (("[1]", "not a JSON object"), ("{", "cannot be read")):
        (tmp_path / "odd.json").write_text(text)
        with pytest.raises(UserError, match=says):
            stored.document(tmp_path / "odd.json", "The run's")


def test_values_in_short():
    assert stored.shown("x" * 58) == repr("x" * 58)
    assert stored.shown("x" * 59) == repr("x" * 59)[:57] + "…"
    assert stored.legible("a\x07b\ud800c\n") == "a�b�c�"
    assert stored.name("x" * 1000, "name") == "x" * 1000
    with pytest.raises(ValueError, match="its name is"):
        stored.name("x" * 1001, "name")
    assert stored.number(3, "n", least=3.0) == 3.0
    with pytest.raises(ValueError, match="its n is 2"):
        stored.number(2, "n", least=3.0)
    assert stored.whole(10**15, "n", 0) == 10**15


# --- names of runs -------------------------------------------------------------------------------


def test_a_runs_name_does_not_depend_on_the_order_of_what_was_asked():
    back = dict(reversed(REQUEST.items()))
    assert runs.identity(back) == runs.identity(REQUEST)
    assert runs.identity({**REQUEST, "shown_rewards": "x", "kind": "other"}) == runs.identity(
        REQUEST
    )
    assert runs.identity({**REQUEST, "seed": 3}) != runs.identity(REQUEST)
    assert len(runs.identity(REQUEST)) == 12
    with pytest.raises(ValueError, match="not JSON compliant"):
        runs.identity({"a": float("nan")})
    named = runs.name(REQUEST)
    assert named == f"EmptyRoom-3x3-N4-seed2-{runs.identity(REQUEST)}"
    odd = {"env": "../a b" + "x" * 100, "seed": 0, "config": {"window": "2*k^0.4"}}
    assert runs.name(odd).startswith("..-a-b" + "x" * 74 + "-N2xkto0.4-seed0-")
    assert runs.default("a/b:C", 3) == Path("runs/a-b-C-seed3")


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({}, "tables"),
        ({"method": None}, "tables"),
        ({"method": "counts"}, "tables"),
        ({"method": "linear"}, "features"),
        ({"method": "mdpo"}, "networks"),
        ({"method": "mdpo", "kind": "tables"}, "tables"),
    ],
)
def test_the_kind_of_a_run(config, kind):
    assert runs.kind_of(config) == kind
    with pytest.raises(UserError, match="its kind is 'other'"):
        runs.kind_of({**config, "kind": "other"})


def test_what_ran_is_noted():
    told = runs.versions()
    assert set(told) == {"understudy", "jax", "code"}
    root = Path(runs.__file__).parent.parent
    sources = sorted(root.rglob("*.py"))
    every = b"".join(str(x.relative_to(root)).encode() + b"\0" + x.read_bytes() for x in sources)
    assert told["code"] == hashlib.sha256(every).hexdigest()[:12]
    more = runs.libraries()
    assert set(told) < set(more)
    assert {"numpy", "jaxlib", "gymnasium", "python"} <= set(more)


@pytest.mark.parametrize("named", ["MDP", "LinearMDP", "module:Class"])
def test_a_folder_names_no_code_and_no_object(named, tmp_path):
    with pytest.raises(UserError, match=r"given in Python|code outside Gymnasium"):
        runs.playable(tmp_path, named, None)
    assert runs.playable(tmp_path, named, "mine:World") == "mine:World"
    assert runs.playable(tmp_path, "CartPole-v1", None) == "CartPole-v1"
    (tmp_path / "config.json").write_text(json.dumps({"given": "x"}))
    with pytest.raises(UserError, match="given in Python, not by its name"):
        runs.playable(tmp_path, "CartPole-v1", None)
    assert runs.playable(tmp_path, "CartPole-v1", "CartPole-v1") == "CartPole-v1"
    assert runs.versions_of(tmp_path) == {}
    (tmp_path / "config.json").write_text(json.dumps({"versions": {"jax": "1"}}))
    assert runs.versions_of(tmp_path) == {"jax": "1"}
