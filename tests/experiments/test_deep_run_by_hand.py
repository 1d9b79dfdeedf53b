"""A run with networks in memory and in its folder, with a learner that learns nothing."""

import json

import jax
import numpy as np
import probe
import pytest
import stage

from understudy.experiments import deep_run, run_files, runs
from understudy.learners.deep import acting, checkpoint
from understudy.learners.deep import policy as policies
from understudy.learners.deep.collect import Collector
from understudy.learners.deep.evaluation import Evaluator
from understudy.learners.deep.policy import Policy
from understudy.learners.deep.rehearsal import Method, Schedule

REQUEST = {"method": "mdpo", "env": "probe:Point", "seed": 3, "config": {"window": "4"}}
NET = stage.player(0)
SCHEDULE = Schedule(6, 3, 2, keep_best=False, checkpoint_seconds=1e9)


def method():
    return Method(
        NET,
        2,
        lambda state, n: stage.alone(acting.sampling(state, jax.random.key(0), n)),
        lambda state, practised, n: (state, {"mean": practised["reward"].mean()}),
        lambda state: state,
    )


def exported(net):
    return Policy(net, stage.BORDER, "probe:Point", (2,), (2,))


STAGE = deep_run.Stage(probe.Point, stage.BORDER, exported)


def measured():
    """What the policy returns in the episodes that it is measured by."""
    evaluator = Evaluator(probe.Point, stage.BORDER, episodes=2, name="probe:Point")
    return evaluator(acting.deterministic(NET)).returns


def in_folder(out, **options):
    given = {"expert_return": 5.0} | options
    return deep_run.in_folder(out, REQUEST, method, STAGE, SCHEDULE, **given)


def test_a_run_in_memory_and_one_in_a_folder_are_the_same(tmp_path):
    told = []
    reached = deep_run.in_memory(
        REQUEST, method, STAGE, SCHEDULE, expert_return=5.0,
        tell=lambda n, row: told.append((n, row is not None)),
    )  # fmt: skip
    assert told == [(0, True), (2, True), (4, True), (6, True)]
    assert [row["interactions"] for row in reached.rows] == [0, 2, 4, 6]
    returns = measured()
    assert reached.played.returns.tolist() == returns.tolist()
    seconds = reached.summary.pop("seconds")
    assert seconds == round(seconds, 1)
    assert reached.summary == {
        "return": returns.mean(), "return_std": returns.std(), "episodes": 2,
        "expert_return": 5.0, "interactions": 6, "env": "probe:Point", "seed": 3,
    }  # fmt: skip
    kept = in_folder(tmp_path / "a")
    del kept["seconds"]
    assert kept == {**reached.summary, "run": str(tmp_path / "a")}
    reached.summary["seconds"] = 0.0
    deep_run.write(REQUEST, reached, tmp_path / "b")
    assert stage.results(tmp_path / "a") == stage.results(tmp_path / "b")
    assert runs.summary(tmp_path / "b")["run"] == str(tmp_path / "b")
    assert not (tmp_path / "a" / "checkpoint.safetensors").exists()
    played = policies.load(tmp_path / "a").predict(np.zeros(2))[0]
    np.testing.assert_allclose(played, exported(NET).predict(np.zeros(2))[0])


def test_what_comes_after_joins_the_summary_and_is_told(tmp_path):
    told = []

    def after(folder, draft, played):
        told.append((folder, draft.parent, len(played), (draft / "policy.json").exists()))
        return {"more": 1}

    summary = in_folder(tmp_path / "run", after=after, expert_return=None)
    assert told == [(tmp_path / "run", tmp_path / "run", 2, True)]
    assert summary["more"] == 1
    assert "expert_return" not in summary
    assert runs.summary(tmp_path / "run")["more"] == 1


def test_a_run_that_has_ended_is_not_run_again(tmp_path, capsys):
    first = in_folder(tmp_path / "run")
    capsys.readouterr()
    again = in_folder(tmp_path / "run", tell=lambda n, row: pytest.fail("it runs"))
    assert {k: again[k] for k in first} == first
    assert "has ended already" in " ".join(capsys.readouterr().err.split())


def test_a_run_without_a_place_goes_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert in_folder(None)["run"] == "runs/probe-Point-seed3"
    expert = deep_run.in_folder(None, {**REQUEST, "method": "sac"}, method, STAGE, SCHEDULE)
    assert expert["run"] == "runs/expert-probe-Point-seed3"


class Enough(Exception):
    pass


def test_a_run_that_was_stopped_goes_on_from_its_checkpoint(tmp_path):
    always = Schedule(6, 3, 2, keep_best=False, checkpoint_seconds=0.0)

    def stop(n, row):
        if n == 4:
            raise Enough

    with pytest.raises(Enough):
        deep_run.in_folder(tmp_path / "run", REQUEST, method, STAGE, always, tell=stop)
    about, arrays = checkpoint.load(tmp_path / "run" / "checkpoint.safetensors")
    lines = (tmp_path / "run" / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 3  # what was measured after the checkpoint comes again
    assert about["interactions"] == 2
    assert about["metrics"] == len(lines[0] + lines[1])
    assert about["best_return"] == pytest.approx(measured().mean())
    assert about["versions"] == runs.libraries()
    assert about["seconds"] > 0
    assert {name.split("/")[0].split(".")[0] for name in arrays} >= {"lanes", "state", "best"}
    told = []
    summary = deep_run.in_folder(
        tmp_path / "run", REQUEST, method, STAGE, always, tell=lambda n, row: told.append(n)
    )
    assert told == [4, 6]
    assert summary["interactions"] == 6
    assert summary["seconds"] >= round(about["seconds"], 1)
    in_folder(tmp_path / "whole")
    assert stage.results(tmp_path / "run") == stage.results(tmp_path / "whole")


def test_a_checkpoint_before_anything_was_measured_has_no_best(tmp_path):
    collector = Collector(probe.Point, stage.BORDER, lanes=1, seed=0, name="probe:Point")
    place, folder = deep_run.resume(tmp_path, REQUEST, method(), collector)
    assert (place.interactions, place.measured, folder.metrics) == (0, False, 0)
    folder.keep(place, collector)
    about, _ = checkpoint.load(tmp_path / "checkpoint.safetensors")
    assert about["best_return"] is None
    (tmp_path / "metrics.jsonl").touch()
    again, folder = deep_run.resume(tmp_path, REQUEST, method(), collector)
    assert again.best_return == -np.inf
    assert (again.measured, folder.metrics) == (False, 0)
    collector.close()


def test_the_checkpoint_of_another_run_is_not_gone_on_with(tmp_path):
    collector = Collector(probe.Point, stage.BORDER, lanes=1, seed=0, name="probe:Point")
    place, folder = deep_run.resume(tmp_path, REQUEST, method(), collector)
    folder.append({"interactions": 0, "return": 1.0})
    assert folder.metrics == (tmp_path / "metrics.jsonl").stat().st_size
    folder.keep(place, collector)
    assert deep_run.resume(tmp_path, REQUEST, method(), collector)[0].measured
    with pytest.raises(run_files.Damaged, match="is of another run"):
        deep_run.resume(tmp_path, {**REQUEST, "seed": 4}, method(), collector)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"odd")
    with pytest.raises(run_files.Damaged, match="cannot be read"):
        deep_run.resume(tmp_path, REQUEST, method(), collector)
    collector.close()
    assert json.loads((tmp_path / "config.json").read_text())["seed"] == 3
