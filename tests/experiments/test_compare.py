"""Methods side by side: the runs, the ranking, the table and the report."""

import dataclasses
import json

import numpy as np
import pytest
from test_cli import understudy
from test_sweep_networks import stored_run

from understudy.core.errors import UserError
from understudy.experiments import compare, comparison
from understudy.experiments.report import judged
from understudy.learners.baselines import methods
from understudy.learners.config import Config, check
from understudy.learners.deep.config import PRESETS, check_deep

CELLS = {
    (comparison.Shown(), "gail"): [stored_run([0, 0.2, 0.4, 0.8], seed=s) for s in (0, 1, 2)],
    (comparison.Shown(), "understudy"): [
        stored_run([0, 0.95, 0.4, 1.0], 0),
        stored_run([0, 0.2, 0.92, 1.1], 1),
        stored_run([0, 0.2, 0.3, 0.6], 2),
    ],
    (comparison.Shown(), "bc"): [stored_run([0.85] * 4, seed=s) for s in (0, 1, 2)],
}


def test_the_ranking_is_by_interactions_to_the_expert_then_by_the_end():
    ours, cloning, on_policy = comparison.ranked(CELLS)
    assert [ours.method, cloning.method, on_policy.method] == ["understudy", "bc", "gail"]
    assert ours.near == (10, 20, None)
    assert ours.typical == 20
    assert np.isinf(cloning.typical)
    # A tenth of 40 is the mark at 0; a quarter is 10; a half is 20.
    assert ours.shares == pytest.approx((0, 0.45, 0.54, 0.9))
    assert ours.interval == pytest.approx((0.6, 1.1))  # of three seeds, the outermost
    told = comparison.markdown([ours, cloning, on_policy], methods.TABULAR_TITLES)
    assert "| 1. understudy | 3 | 0.00 | 0.45 | 0.54 | 0.90 | 0.60 to 1.10 | 20 (2 of 3) |" in told
    assert told.count("never") == 2


def test_a_method_without_practice_is_a_level():
    once = [
        dataclasses.replace(run, interactions=run.interactions[:1], returns=run.returns[:1])
        for run in CELLS[comparison.Shown(), "bc"]
    ]
    level = comparison.levels(once, 40)
    assert level["x"].tolist() == [0, 40]
    assert level["middle"] == pytest.approx([0.85, 0.85])


@pytest.mark.parametrize("name", methods.TABULAR_TITLES)
def test_every_tabular_method_can_be_asked_for(name):
    check(methods.tabular_options(name, Config(ledger=False)))


@pytest.mark.parametrize("name", methods.TITLES)
def test_every_deep_method_can_be_asked_for(name):
    check_deep(methods.options(name, PRESETS["fast"]))


@pytest.mark.parametrize(
    ("method", "changed"),
    [("sqil", {"penalty": 3.0}), ("iq-learn", {"reward_steps": 9}), ("bc", {"absorbing": True})],
)
def test_an_option_that_would_change_nothing_is_refused(method, changed):
    usual = methods.options(method, PRESETS["paper"])
    methods.check_used(method, usual)
    with pytest.raises(UserError, match=f"changes nothing with --method {method}"):
        methods.check_used(method, dataclasses.replace(usual, **changed))


def test_rooms_are_compared_end_to_end(tmp_path):
    asked = ("compare", "EmptyRoom-3x3", "--methods", "understudy", "bc", "oal", "importance",
             "--budget", "400", "--seeds", "2", "--trajectories", "3", "--out", "x")  # fmt: skip
    told = understudy(*asked, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("\n") == 6
    assert "3 trajectories" in told.stdout
    document = json.loads((tmp_path / "x/compare.json").read_text())
    assert sorted(row["rank"] for row in document["rows"]) == [1, 2, 3, 4]
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "x").rglob("metrics.jsonl")}
    assert len(before) == 8
    assert understudy(*asked, cwd=tmp_path).stdout == told.stdout
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "x").rglob("metrics.jsonl")} == before
    found, skipped = judged.comparisons(tmp_path)
    assert (len(found), skipped) == (1, [])
    damaged = json.loads((tmp_path / "x/compare.json").read_text())
    damaged["curves"][0]["colour"] = "red;background:url(x)"
    (tmp_path / "x/compare.json").write_text(json.dumps(damaged))
    assert "damaged" in judged.comparisons(tmp_path)[1][0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"names": ["ppo"]}, "no method 'ppo'"),
        ({"names": ["sqil"]}, "no method 'sqil'"),
        ({"names": [], "seeds": 0}, "--seeds is 0"),
        ({"names": [], "shown": [comparison.Shown(thin=20)]}, "continuous"),
    ],
)
def test_what_cannot_be_compared_is_refused(options, said, tmp_path):
    with pytest.raises(UserError, match=said):
        compare.compare("EmptyRoom-3x3", options.pop("names"), out=tmp_path / "x", **options)
    assert not (tmp_path / "x").exists()
