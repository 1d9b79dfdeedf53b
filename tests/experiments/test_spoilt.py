"""Run folders with one spoilt file, and tampered policies: a result or one sentence, and what is
whole beside them is shown all the same."""

import contextlib
import json
import shutil
import signal
from pathlib import Path

import numpy as np
import odd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from test_report import data_of, store_networks, store_run

from understudy.core.errors import UserError
from understudy.demos import npz, recording
from understudy.envs import catalog
from understudy.experiments import run_files as own
from understudy.experiments import runs, tables
from understudy.experiments import stored_runs as stored
from understudy.experiments import train_networks as deep_train
from understudy.experiments.figures import drawing
from understudy.experiments.report import page as report_page
from understudy.learners.deep.config import DeepConfig

# Gymnasium's own word on a world that shows the same array every time.
pytestmark = pytest.mark.filterwarnings("ignore:.*share an object")
ODD = st.sampled_from(
    [5, -1, 1.5, 10**30, -(10**30), 1e39, 1e-320, float("inf"), float("-inf"), float("nan"), True,
     None, "", "what", "$\\frac$", "\ud800", "\x1b[2Jno", "a\nb", "x" * 3_000, [], [1, 2], {},
     {"return": 1}, [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]], 2**63, -(2**63) - 1]
)  # fmt: skip


@pytest.fixture(autouse=True)
def ten_seconds():
    """No hang."""

    def late(signum, frame):
        raise AssertionError("it took more than ten seconds")

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# --- a run's folder -------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["tables", "networks"])
def whole(request, tmp_path_factory):
    """The first of the two is the one to spoil."""
    root = tmp_path_factory.mktemp("whole")
    if request.param == "tables":
        store_run(root, "FrozenLake-v1", "4", 0, marks=4)
    else:
        store_networks(root, "Ant-v5", 0, marks=4)
    store_run(root, "understudy/EmptyRoom-3x3-v0", "32", 0, marks=4, replay=3)
    return root


def places(document, at=()):
    """Every place in a document, by the keys that lead there."""
    yield at
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in inner:
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))
        else:
            yield (*at, key)


def exchanged(document, at, value):
    """The document with something else at a place."""
    if not at:
        return value
    copy = document.copy()
    copy[at[0]] = exchanged(copy[at[0]], at[1:], value)
    return copy


def spoil(folder, name, data):
    """One file of a run says something else; its marker accounts for it, as a hostile one would."""
    path = folder / name
    if name.endswith(".safetensors"):
        arrays = load_file(path)
        key = data.draw(st.sampled_from(sorted(arrays)))
        x = arrays[key]
        arrays[key] = data.draw(
            st.sampled_from([x[:1], x.T.copy(), x * np.nan, x + 1e30, x > 0, x[None]])
        )
        save_file(arrays, path)
    elif name == "metrics.jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        at = data.draw(st.sampled_from([*places(rows)][1:]))
        path.write_text("".join(f"{json.dumps(r)}\n" for r in exchanged(rows, at, data.draw(ODD))))
    else:
        document = json.loads(path.read_text())
        at = data.draw(st.sampled_from([*places(document)]))
        path.write_text(json.dumps(exchanged(document, at, data.draw(ODD))))
    if name in own.LISTED:
        marker = json.loads((folder / own.MARKER).read_text())
        (folder / own.MARKER).write_text(json.dumps({**marker, **own.listing(folder)}))


met = {"shown": 0, "skipped": 0}


@given(st.data())
@settings(max_examples=60)
def test_one_odd_run_does_not_hide_the_others(whole, tmp_path_factory, data):
    root = tmp_path_factory.mktemp("spoilt")
    signal.alarm(10)
    for folder in whole.iterdir():
        shutil.copytree(folder, root / folder.name)
    bad, good = sorted(root.iterdir())
    files = sorted(path.name for path in bad.iterdir())
    spoil(bad, data.draw(st.sampled_from(files)), data)
    found, skipped = stored.load(root)
    assert good in [run.folder for run in found]
    assert len(found) + len(skipped) == 2
    assert all(sentence.isprintable() for sentence in skipped)
    met["skipped" if skipped else "shown"] += 1
    report_page.write(root, root / "report.html")
    page = data_of(root / "report.html")
    assert len(page["curves"]) >= 1
    assert len(page["skipped"]) == len(skipped)
    assert tables.markdown(tables.rows(found)).count("\n") >= 2
    tables.shared(found)
    drawing.curves(found, root / "curves")
    assert (root / "curves.png").stat().st_size > 1_000
    signal.alarm(0)
    shutil.rmtree(root)


def test_some_were_shown_and_some_were_skipped():
    """Or the test above would say little."""
    assert min(met.values()) >= 10, met


# --- a policy -------------------------------------------------------------------------------------

TINY = DeepConfig(
    interactions=16, hidden=8, discriminator_hidden=8, batch=8, points=8, marks=1, episodes=1,
    warm_start="none",
)  # fmt: skip


@pytest.fixture(scope="module")
def players(tmp_path_factory):
    """A policy that chooses, and one that pushes."""
    folder = tmp_path_factory.mktemp("players")
    for world, player in (("Vector", odd.push), ("Choice", odd.hold)):
        shown = recording.record(catalog.make(f"odd:{world}"), recording.acting(player), 3)
        npz.write(folder / f"{world}.npz", shown)
        demos = str(folder / f"{world}.npz")
        deep_train.train(f"odd:{world}", TINY, demos=demos, out=folder / world)
    return folder


SHAPES = st.sampled_from([(), (0,), (1,), (3,), (2, 2), (7, 1), (1, 1, 1)])
NUMBERS = st.sampled_from([0.0, -1.0, np.nan, np.inf, 1e-45, 1e38, -3e38, 0.5, 1e20])
KINDS = st.sampled_from([np.float32, np.float64, np.int64, np.bool_, np.float16])
ABOUT = ODD | st.sampled_from([[1] * 200_000, [2**40], [0], [-1], "categorical", [3, 3], [2.0]])


@given(st.data(), st.sampled_from(["Vector", "Choice"]))
@settings(max_examples=120)
def test_a_tampered_policy_plays_or_is_refused(players, tmp_path_factory, data, world):
    run = tmp_path_factory.mktemp("tampered") / "run"
    shutil.copytree(players / world, run)
    signal.alarm(10)
    if data.draw(st.booleans()):
        about = json.loads((run / "policy.json").read_text())
        at = data.draw(st.sampled_from([*places(about)]))
        (run / "policy.json").write_text(json.dumps(exchanged(about, at, data.draw(ABOUT))))
    else:
        arrays = load_file(run / "policy.safetensors")
        key = data.draw(st.sampled_from(sorted(arrays)))
        with np.errstate(all="ignore"):
            if data.draw(st.booleans()):
                arrays[key] = np.full(arrays[key].shape, data.draw(NUMBERS), arrays[key].dtype)
            else:
                arrays[key] = np.zeros(data.draw(SHAPES), data.draw(KINDS))
        if data.draw(st.integers(0, 9)) == 0:
            del arrays[key]
        save_file(arrays, run / "policy.safetensors")
    if data.draw(st.booleans()):  # a marker that accounts for it
        marker = json.loads((run / own.MARKER).read_text())
        (run / own.MARKER).write_text(json.dumps({**marker, **own.listing(run)}))
    with contextlib.suppress(UserError):
        told = deep_train.evaluate(run, episodes=2, env=f"odd:{world}")
        assert np.isfinite(told["return"])
    signal.alarm(0)
    shutil.rmtree(run)


def test_an_untouched_policy_plays(players):
    for world in ("Vector", "Choice"):
        assert deep_train.evaluate(players / world, episodes=2, env=f"odd:{world}")["episodes"] == 2
        assert runs.done(Path(players / world))


def test_a_run_is_near_the_expert_from_its_first_such_mark():
    """Whatever the sign of the expert's return: nine tenths of 10, a tenth below −10."""
    marks = np.array([0, 5, 10])
    for expert, returns, share, first in (
        (10.0, [1.0, 9.0, 9.5], 0.9, 5),
        (10.0, [1.0, 8.9, 9.5], 0.9, 10),
        (-10.0, [-12.0, -11.0, -10.0], 0.9, 5),
        (10.0, [1.0, 2.0, 8.0], 0.9, None),
    ):
        run = stored.StoredRun(
            Path(), {}, {"expert_return": expert}, marks, marks, np.array(returns), None
        )
        assert run.near(share) == first
