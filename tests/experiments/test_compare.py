"""Methods side by side: the runs, the ranking, the table and the report."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from test_cli import understudy
from test_sweep_networks import stored_run

from understudy.core.errors import UserError
from understudy.experiments import compare, comparison, stored_runs, train_networks
from understudy.experiments.figures import averages
from understudy.experiments.report import judged
from understudy.experiments.sweeps import networks
from understudy.learners.baselines import methods
from understudy.learners.config import Config, check
from understudy.learners.deep import learner
from understudy.learners.deep.config import PRESETS, check_deep
from understudy.learners.deep.executed import executed

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
    assert (
        "| 1. understudy | 3 | 0.00 | 0.45 | 0.54 | 0.90 | 0.60 to 1.10 | 20 (2 of 3) | – |" in told
    )
    assert told.count("never") == 2


def test_beside_a_method_is_how_probably_ours_ends_higher():
    """Ours ends at 1.0, 1.1 and 0.6, cloning at 0.85 thrice, GAIL at 0.8 thrice."""
    ours, cloning, on_policy = comparison.ranked(CELLS)
    assert ours.below is None
    assert cloning.below == on_policy.below == pytest.approx((2 / 3, 0, 1))
    assert "| 0.67 (0.00 to 1.00) |" in comparison.markdown([cloning], methods.TABULAR_TITLES)
    without = {key: cell for key, cell in CELLS.items() if key[1] != "understudy"}
    assert [row.below for row in comparison.ranked(without)] == [None, None]


@pytest.mark.parametrize("seed", range(3))
def test_the_probability_of_improvement_is_mann_and_whitneys(seed):
    """Against SciPy's, and its bootstrap of both samples."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 6, 7) / 5.0, rng.integers(0, 5, 5) / 5.0  # with ties

    def share(x, y, axis=-1):
        return stats.mannwhitneyu(x, y, axis=axis).statistic / (x.shape[axis] * y.shape[axis])

    assert averages.improvement(x, y) == pytest.approx(share(x, y))
    assert averages.improvement(x, y) + averages.improvement(y, x) == pytest.approx(1)
    theirs = stats.bootstrap(
        (x, y), share, method="percentile", n_resamples=4_000, vectorized=True, rng=seed
    ).confidence_interval
    assert averages.improvement_interval(x, y) == pytest.approx(theirs, abs=0.06)


def test_what_differs_by_rounding_is_a_tie():
    x = np.array([1.0, 1.0 - 3e-15, 1e9])
    assert averages.wins(x, x + np.array([4e-16, 0, 1e-6])).diagonal().tolist() == [0.5] * 3
    assert averages.wins(x, x * (1 - 1e-6)).diagonal().tolist() == [1.0] * 3


@pytest.mark.parametrize("runs", [2, 3, 5, 8, 11])
def test_the_interval_of_an_interquartile_mean_is_scipys(runs):
    """The same percentile bootstrap, of the same trimmed mean."""
    y = np.random.default_rng(runs).normal(size=(runs, 2))
    middle = stats.trim_mean(y, 0.25, axis=0)
    np.testing.assert_allclose(averages.interquartile_mean(y), middle)
    theirs = stats.bootstrap(
        (y,), lambda x, axis: stats.trim_mean(x, 0.25, axis=axis), axis=0, n_resamples=4_000,
        method="percentile", rng=runs,
    ).confidence_interval  # fmt: skip
    np.testing.assert_allclose(averages.bootstrap_interval(y), theirs, atol=0.2)


def executed_of(name, **changes):
    method, config = methods.compared(name, dataclasses.replace(PRESETS["fast"], **changes))
    return executed(method, learner.resolve(config))


def test_what_is_executed_is_what_was_resolved():
    """Widths, batches and steps an interaction are the same for all that practise, but for what
    makes a method itself."""
    base = {"hidden": 32, "batch": 64, "policy_steps": 6, "fresh": 8, "reward_steps": 4}
    done = {name: executed_of(name, **base) for name in methods.COMPARED}
    begun = done.pop("bc")
    assert begun == (0, 0, 256, (32, 32, 32), (), "clone")
    ours = done.pop("understudy")
    assert ours == (0.75, 0.5, 64, (32, 32, 32), (32, 32), "clone")
    for name, each in done.items():
        judged = name not in ("sqil", "iq-learn")
        assert each == (0.75, 0.5 if judged else 0, 64, (32, 32), (32, 32), "none"), name
    told = comparison.work({"understudy": ours, "bc": begun}, comparison.titles_of(True))
    assert "| understudy | 0.75 | 0.5 | 64 | 3 × 32 | two of 2 × 32 | its clone |" in told
    assert "| behavioural cloning | 0 | 0 | 256 | 3 × 32 | – | its clone |" in told


def test_the_docs_state_what_is_executed_by_default():
    done = {name: executed_of(name) for name in methods.COMPARED}
    page = Path(__file__).parents[2] / "docs/baselines.md"
    assert comparison.work(done, comparison.titles_of(True)) in page.read_text()


def test_what_is_executed_follows_the_lanes_and_is_not_what_was_asked():
    assert executed_of("scratch", envs=2).policy_steps == 12 / 16
    assert executed_of("understudy", policy_steps=None).policy_steps == 1


def test_from_scratch_is_ours_without_its_warm_start():
    base = PRESETS["fast"]
    assert methods.compared("understudy", base) == ("mdpo", base)
    method, config = methods.compared("scratch", base)
    assert (method, config) == ("mdpo", dataclasses.replace(base, warm_start="none"))


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


def test_networks_are_compared_end_to_end(tmp_path, monkeypatch):
    """Cloning's only mark is ours at 0 interactions; from scratch is a row; what each executed is
    in the document and on the page."""
    small = dataclasses.replace(
        PRESETS["fast"], hidden=8, discriminator_hidden=8, batch=16, points=16, policy_steps=1,
        reward_steps=1, marks=2, episodes=2, warmup=16, clone_least=20, clone_most=20,
    )  # fmt: skip
    monkeypatch.setitem(PRESETS, "fast", small)
    monkeypatch.setattr(networks, "work", in_this_process)
    document = compare.compare(
        "Pendulum-v1", ["understudy", "scratch", "bc", "iq-learn"], budget=48, seeds=2,
        shown=[comparison.Shown(1)], out=tmp_path / "x",
    )  # fmt: skip
    assert sorted(row["title"] for row in document["rows"]) == [
        "IQ-Learn", "behavioural cloning", "understudy", "understudy, from scratch",
    ]  # fmt: skip
    ran = {}
    for run in stored_runs.load(tmp_path / "x")[0]:
        ran[run.folder.parent.name, run.seed] = run
    for seed in (0, 1):
        cloning, ours = ran["bc", seed], ran["understudy", seed]
        assert cloning.returns.tolist() == [ours.returns[0]]
        assert ran["scratch", seed].returns[0] != ours.returns[0]
    by_title = {one["title"]: one for one in document["executed"]}
    assert by_title["understudy"]["actor"] == (8, 8, 8)
    assert by_title["understudy, from scratch"]["warm_start"] == "none"
    assert by_title["IQ-Learn"]["reward_steps"] == 0
    assert document["work"].count("\n") == 5
    stored = json.loads((tmp_path / "x/compare.json").read_text())
    assert stored["executed"][0]["batch"] == 16
    (found,), skipped = judged.comparisons(tmp_path)
    assert (len(found["executed"]), skipped) == (4, [])
    assert {row["title"]: row["below"] is None for row in found["rows"]}["understudy"]


def test_the_demonstrations_can_be_chosen(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        networks, "work", lambda listed, **_: asked.extend(listed) or {"failed": []}
    )
    ids = {}
    for demos in (None, "medium"):
        with pytest.raises(UserError, match="nothing to compare"):
            compare.compare("Hopper-v5", ["bc"], seeds=1, demos=demos, out=tmp_path / "x")
        last = asked[-1]
        assert last.options["demos"] == last.request["demos"] == demos
        ids[demos] = last.request["shown"]
    assert ids[None] != ids["medium"]


def in_this_process(listed, *, restart):
    for asked in listed:
        train_networks.train(asked.env, asked.config, out=asked.folder, **asked.options)
    return {"failed": []}


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
        ({"names": [], "demos": "medium"}, "--demos is for"),
        ({"names": [], "shown": [comparison.Shown(thin=20)]}, "continuous"),
    ],
)
def test_what_cannot_be_compared_is_refused(options, said, tmp_path):
    with pytest.raises(UserError, match=said):
        compare.compare("EmptyRoom-3x3", options.pop("names"), out=tmp_path / "x", **options)
    assert not (tmp_path / "x").exists()
