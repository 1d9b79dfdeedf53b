"""`understudy train --seeds`: several seeds side by side, in the program itself."""

import json
from pathlib import Path

import numpy as np
import probe
import pytest
from test_cli import understudy

from understudy.core.errors import UserError
from understudy.demos import npz
from understudy.experiments import several_seeds
from understudy.learners.deep.config import DeepConfig

TINY = ("--interactions", "48", "--marks", "2", "--episodes", "1", "--hidden", "4", "--batch", "8",
        "--discriminator-hidden", "4", "--points", "8", "--policy-steps", "1", "--reward-steps",
        "1", "--warmup", "0", "--warm-start", "none", "--demos", "point.npz")  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("seeds")
    (found / "probe.py").write_text(Path(probe.__file__).read_text())
    npz.write(found / "point.npz", probe.straight())
    return found


def train(folder, *more):
    return understudy("train", "probe:Point", *TINY, *more, cwd=folder)


def test_each_is_the_run_of_its_seed(folder):
    done = train(folder, "--seed", "3", "--seeds", "2", "--out", "both", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [Path(one["run"]).name for one in told["runs"]] == ["seed3", "seed4"]
    returns = [one["return"] for one in told["runs"]]
    assert (told["return"], told["worst"]) == (np.mean(returns), min(returns))
    assert "mean" in done.stderr
    alone = train(folder, "--seed", "4", "--out", "alone")
    assert alone.returncode == 0, alone.stderr
    configs, rows = zip(*(read(folder / one) for one in ("both/seed4", "alone")), strict=True)
    assert configs[0] == configs[1]
    for one, other in zip(*rows, strict=True):
        assert one.keys() == other.keys()
        ours, theirs = (np.array(list(row.values()), float) for row in (one, other))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)  # another number of threads
    again = train(folder, "--seed", "3", "--seeds", "2", "--out", "both", "--json")
    assert json.loads(again.stdout)["runs"] == told["runs"]


def read(run):
    rows = (run / "metrics.jsonl").read_text().splitlines()
    request = json.loads((run / "config.json").read_text())
    return request, [json.loads(row) for row in rows]


def test_what_cannot_be_meant(folder):
    options = {"demos": "point.npz", "trajectories": None}
    for seeds in (0, -1, 1_001):
        with pytest.raises(UserError, match=rf"--seeds is {seeds}; it must be from 1 to 1,000"):
            several_seeds.train("probe:Point", DeepConfig(), seeds=seeds, **options)
    refused = train(folder, "--seeds", "2", "--track", "tensorboard", "--out", "none")
    assert (refused.returncode, "--track is of one run" in refused.stderr) == (2, True)
    assert not (folder / "none").exists()
