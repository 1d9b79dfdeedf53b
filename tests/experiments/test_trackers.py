"""Trackers are told what metrics.jsonl says: read back by their own readers."""

import importlib.util
import json
import struct
from pathlib import Path

import pytest
from test_cli import understudy
from test_sweep_networks import prepare

from understudy.core.errors import UserError
from understudy.experiments import runs, trackers

TINY = ("--interactions", "64", "--marks", "2", "--episodes", "1", "--hidden", "8",
        "--discriminator-hidden", "8", "--batch", "16", "--points", "16", "--policy-steps", "1",
        "--reward-steps", "1", "--warmup", "0", "--warm-start", "none")  # fmt: skip


def scalars(folder):
    """What TensorBoard finds: by name, the values at each number of interactions."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util import tensor_util

    found = EventAccumulator(str(folder))
    found.Reload()
    return {
        tag: {
            event.step: float(tensor_util.make_ndarray(event.tensor_proto))
            for event in found.Tensors(tag)
        }
        for tag in found.Tags()["tensors"]
    }


def histories(folder):
    """What `wandb sync` would send: its file is a log of LevelDB's, 7 bytes before each record."""
    from wandb.proto import wandb_internal_pb2

    (file,) = Path(folder).rglob("*.wandb")
    log, at, parts, rows = file.read_bytes(), 7, b"", []
    while at + 7 <= len(log):
        if (left := 32_768 - at % 32_768) < 7:  # records do not begin at the end of a block
            at += left
            continue
        length, kind = struct.unpack_from("<HB", log, at + 4)
        parts += log[at + 7 : at + 7 + length]
        at += 7 + length
        if kind not in (1, 4):  # whole, or the last part
            continue
        record = wandb_internal_pb2.Record()
        record.ParseFromString(parts)
        parts = b""
        if items := record.history.item:
            rows.append({i.key or i.nested_key[0]: json.loads(i.value_json) for i in items})
    return rows


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_both_are_told_every_row(tmp_path):
    prepare(tmp_path)
    done = understudy("train", "probe:Point", "--demos", "point.npz", *TINY, "--out", "run",
                      "--track", "tensorboard", "wandb", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = runs.metrics(tmp_path / "run")
    assert len(rows) == 3
    found = scalars(tmp_path / "run/tensorboard")
    assert found["return"] == pytest.approx({r["interactions"]: r["return"] for r in rows})
    assert set(found["discriminator_loss"]) == {32, 64}  # there is none before the first update
    sent = histories(tmp_path / "run/wandb")
    assert [row["return"] for row in sent] == pytest.approx([row["return"] for row in rows])
    assert "wandb sync" in done.stderr
    assert runs.done(tmp_path / "run")


def test_a_finite_run_is_told_when_it_has_ended(tmp_path):
    done = understudy("train", "EmptyRoom-3x3", "--interactions", "200", "--marks", "2",
                      "--out", "run", "--track", "tensorboard", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found, rows = scalars(tmp_path / "run/tensorboard"), runs.metrics(tmp_path / "run")
    assert list(found["return"].values()) == pytest.approx([row["return"] for row in rows])
    term = next(iter(rows[-1]["regret"]))
    assert found[f"regret/{term}"][200] == pytest.approx(rows[-1]["regret"][term])


def test_a_missing_package_is_told_before_any_work(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'understudy\[wandb\]'"):
        trackers.refuse_missing(["wandb"])
