"""`understudy tune`: it finds, prunes, goes on exactly, and keeps what Optuna itself reads."""

import dataclasses
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import optuna
import probe
import pytest
from test_cli import understudy
from test_deep_runs import SMALL, Stop, stopping

from understudy.core.errors import UserError
from understudy.demos import npz
from understudy.experiments import runs, tune
from understudy.experiments.search_space import Several, Span, chosen, usual
from understudy.learners.baselines.methods import options
from understudy.learners.deep.config import PRESETS, DeepConfig, check_deep

OVER = ("noise", "gamma=0.5,0.9", "policy-steps=1:3")


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    path = tmp_path_factory.mktemp("demos") / "point.npz"
    npz.write(path, probe.straight())
    return str(path)


def search(demos, out, budget, **changes):
    asked = {"over": OVER, "demos": demos, "checkpoint": 0.0, **changes}
    return tune.tune("probe:Point", SMALL, budget=budget, out=out, **asked)


@pytest.fixture(scope="module")
def found(demos, tmp_path_factory):
    """A search of three runs, in which all but the first can be pruned."""
    patched = pytest.MonkeyPatch()
    patched.setattr(tune, "FREE", 1)
    out = tmp_path_factory.mktemp("tune") / "search"
    document = search(demos, out, 3)
    patched.undo()
    return out, document


def test_the_first_run_is_the_usual_one_and_the_best_is_told(found):
    out, document = found
    listed = document["runs"]
    assert len(listed) == 3
    assert listed[0]["values"] == {"noise": 0.4, "gamma": 0.9, "policy_steps": 2}
    done = [one for one in listed if one["state"] == "done"]
    assert document["best"] == max(done, key=lambda one: one["score"])
    for one in done:
        rows = runs.metrics(out / one["run"].rsplit("/", 1)[-1])
        assert len(rows) == 5
        assert one["score"] == rows[-1]["return"]  # a quarter of five is one
        config = json.loads((out / one["run"] / "config.json").read_text())["config"]
        assert config["noise"] == one["values"]["noise"]
    assert json.loads((out / "tune.json").read_text()) == json.loads(json.dumps(document))


def test_poor_runs_are_ended_early(found, demos, tmp_path, monkeypatch):
    monkeypatch.setattr(tune, "FREE", 1)
    out, document = tmp_path / "search", found[1]
    shutil.copytree(found[0], out)
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{out / 'study.db'}")
    values = document["best"]["values"]
    for _ in range(4):  # far above whatever a run can earn there
        study.add_trial(
            optuna.create_trial(
                params=values,
                distributions=study.trials[0].distributions,
                value=1e6,
                intermediate_values=dict.fromkeys((0, 40, 80, 120, 160), 1000000.0),
            )
        )
    ended = search(demos, out, 8)["runs"][-1]
    assert (ended["state"], ended["score"]) == ("pruned", None)
    rows = runs.metrics(out / "run0007")
    assert ended["interactions"] == rows[-1]["interactions"] == 40  # a quarter of the way
    assert not (out / "run0007" / "checkpoint.safetensors").exists()


def test_optuna_reads_the_study(found):
    out, document = found
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{out / 'study.db'}")
    assert study.best_params == document["best"]["values"]
    assert study.best_value == document["best"]["score"]
    states = {"COMPLETE": "done", "PRUNED": "pruned"}
    assert [states[t.state.name] for t in study.trials] == [r["state"] for r in document["runs"]]
    for trial, one in zip(study.trials, document["runs"], strict=True):
        told = {row["interactions"]: row["return"] for row in runs.metrics(out / one["run"])}
        assert trial.intermediate_values == told


def test_a_search_that_was_stopped_ends_as_one_that_was_not(found, demos, tmp_path, monkeypatch):
    monkeypatch.setattr(tune, "FREE", 1)
    stopping(monkeypatch, at=(4, 30))
    for _ in range(2):
        with pytest.raises(Stop):
            search(demos, tmp_path / "search", 2)
    search(demos, tmp_path / "search", 2)
    document = search(demos, tmp_path / "search", 3)  # a larger budget goes on too
    for mine, theirs in zip(document["runs"], found[1]["runs"], strict=True):
        assert {**mine, "run": ""} == {**theirs, "run": ""}


PARSED = """
import dataclasses, json, sys
from understudy.cli import program
asked = program.parse()
print(json.dumps([dataclasses.asdict(asked.config), asked.demos, asked.seed]))
"""


def test_the_command_trains_as_the_best_run_did(found):
    """By the command line's own words; in a process of its own, for types are not checked there."""
    words = shlex.split(found[1]["command"])
    assert words[:3] == ["understudy", "train", "probe:Point"]
    told = subprocess.run(
        [sys.executable, "-c", PARSED, *words[1:]],
        cwd=Path(probe.__file__).parent,  # from where 'probe' can be imported
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    best = json.loads((found[0] / found[1]["best"]["run"] / "config.json").read_text())
    config = {"task_reward": 0.0, **best["config"]}  # noted where it is paid alone
    assert json.loads(told.stdout) == [config, best["demos"], best["seed"]]


def test_a_folder_of_another_search_is_refused(found, demos):
    out, _ = found
    with pytest.raises(UserError, match="holds a search for something else"):
        search(demos, out, 3, over=("kl",))
    with pytest.raises(UserError, match="holds a search for something else"):
        search(demos, out, 3, seed=1)
    again = search(demos, out, 3)  # nothing is left to do
    assert again["runs"] == found[1]["runs"]


def test_a_damaged_study_is_refused(demos, tmp_path):
    (tmp_path / "study.db").write_bytes(b"not a database" * 100)
    with pytest.raises(UserError, match=r"study\.db cannot be read"):
        search(demos, tmp_path, 1)


def test_a_run_that_diverges_is_one_of_the_budget(demos, tmp_path, monkeypatch):
    from understudy.core.errors import Diverged

    def nan(*_, **__):
        raise Diverged("The learner's q became NaN")

    monkeypatch.setattr(tune.deep_run.rehearsal, "rehearse", nan)
    with pytest.raises(UserError, match="None of 2 runs came to its end"):
        search(demos, tmp_path / "search", 2)


# --- what is searched over -----------------------------------------------------------------------


def test_every_known_span_holds_the_usual_config_and_is_allowed():
    for name, span in chosen(list(tune.described(chosen((), "mdpo"))), "mdpo").items():
        assert span.near(getattr(DeepConfig(), name)) == getattr(DeepConfig(), name)
    from understudy.experiments.search_space import KNOWN

    base = PRESETS["fast"]
    assert usual(KNOWN, base) == {name: getattr(base, name) for name in KNOWN}
    for name, span in KNOWN.items():
        ends = span.values if isinstance(span, Several) else (span.low, span.high)
        for end in ends:
            check_deep(dataclasses.replace(base, **{name: end}))


def test_spans_of_ones_own():
    found = chosen(["kl=0.1:1", "gamma=0.97,0.99", "policy-steps=2:4", "noise"], "mdpo")
    assert found["kl"] == Span(0.1, 1.0, log=True)
    assert found["gamma"] == Several((0.97, 0.99))
    assert found["policy_steps"] == Span(2, 4)
    assert usual(found, PRESETS["fast"])["policy_steps"] == 4  # 6 is beyond: the nearest
    assert set(chosen((), "bc")) == {"clone_rate", "clone_blur", "clone_steps"}
    assert "discriminator_rate" not in chosen((), "sqil")


@pytest.mark.parametrize(
    ("over", "method", "says"),
    [
        ("depth", "mdpo", "--over names 'depth'; it may name kl"),
        ("kl=1", "mdpo", "no choice"),
        ("kl=1:0.5", "mdpo", "LOW must be above 0 below HIGH"),
        ("kl=0:1", "mdpo", "LOW must be above 0"),
        ("kl=1:2:3", "mdpo", "LOW must be"),
        ("kl=a:b", "mdpo", "give numbers"),
        ("kl=nan:1", "mdpo", "give numbers"),
        ("policy-steps=0.5:2", "mdpo", "give whole numbers"),
        ("penalty", "sqil", "changes nothing with --method sqil"),
    ],
)
def test_what_cannot_be_searched_over(over, method, says):
    with pytest.raises(UserError, match=says):
        chosen([over], method)
    with pytest.raises(UserError, match="twice"):
        chosen(["kl", "kl=0.1:1"], "mdpo")


def test_ends_beyond_all_bounds_are_refused_before_any_run(demos, tmp_path):
    with pytest.raises(UserError, match=r"--gamma is 1\.5"):
        search(demos, tmp_path / "search", 1, over=("gamma=1.5,1.5e0,0.9",))
    with pytest.raises(UserError, match="--runs is 0"):
        search(demos, tmp_path / "search", 0)
    assert not (tmp_path / "search").exists()


def test_the_score_is_of_the_last_quarter():
    rows = [{"return": float(n)} for n in range(21)]
    assert tune.score_of(rows) == np.mean([16, 17, 18, 19, 20])
    assert tune.score_of(rows[:3]) == 2


def test_the_command_line(demos, tmp_path):
    told = understudy("tune", "Pendulum-v1", "--over", "depth", cwd=tmp_path)
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    told = understudy("tune", "--help", cwd=tmp_path)
    assert "--over" in told.stdout
    assert "--runs" in told.stdout
    assert options("mdpo", PRESETS["fast"]) == PRESETS["fast"]
