"""Exported policies: they answer as `predict` does, elsewhere too; and the card is read."""

import dataclasses
import json
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
from test_policies_to_keep import BOX, CHOICE, kept

import understudy
from understudy.core.errors import UserError
from understudy.experiments import command_line, export, model_card, runs
from understudy.learners.deep import numpy_file, plain_policy
from understudy.learners.deep.config import PRESETS, DeepConfig
from understudy.learners.deep.scaling import Scaling

pytest.importorskip("onnxruntime")
SMALL = DeepConfig(
    interactions=80, marks=1, episodes=1, hidden=16, discriminator_hidden=8, batch=16, points=32,
    policy_steps=2, reward_steps=2, warmup=0, clone_least=20, clone_most=20,
)  # fmt: skip
FINE = Scaling(  # finer than single precision can tell
    np.float64([1e6, 2, 3]), np.float64([1e-3, 2, 4]), np.float64([-1, -400]),
    np.float64([3, 1e3]), discrete=False,
)  # fmt: skip
SEVERAL = Scaling(  # three choices at once, of 2, 3 and 4 numbers, each from another one on
    np.float32([0] * 3), np.float32([1] * 3), np.float32([0, -1, 5]), np.float32([1, 1, 8]),
    discrete=True,
)  # fmt: skip
POLICIES = {
    "box": kept(BOX),
    "choice": kept(CHOICE),
    "several choices": dataclasses.replace(kept(SEVERAL), action_shape=(3,)),
    "fine": kept(FINE),
    "absorbing": kept(BOX, (2,), absorbing=True),
    "shaped": kept(BOX, (1, 3)),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    understudy.train("Pendulum-v1", config=SMALL, out=folder)
    return folder


def seen(policy, count=1_000):
    """Observations as far out as a policy may get to see."""
    mean, std = (
        x[: policy.observation_shape[-1]] for x in (policy.scaling.mean, policy.scaling.std)
    )
    spread = np.random.default_rng(1).normal(size=(count, *policy.observation_shape)) * 3
    return mean + spread * std


def closely(got, expected, policy):
    if policy.scaling.discrete:
        np.testing.assert_array_equal(got, expected)
        return
    unit = np.maximum(1, (policy.scaling.high - policy.scaling.low) / 2)
    assert np.abs((got - expected) / unit).max() <= 1e-5
    assert got.dtype == expected.dtype


@pytest.mark.parametrize("name", POLICIES)
def test_onnx_answers_as_the_policy_does(name, tmp_path):
    import onnxruntime

    policy = POLICIES[name]
    export.write_onnx(tmp_path / "policy.onnx", policy)
    session = onnxruntime.InferenceSession(str(tmp_path / "policy.onnx"))
    (taken,), (given,) = session.get_inputs(), session.get_outputs()
    assert (taken.name, given.name) == ("observation", "action")
    assert taken.shape == ["batch", *policy.observation_shape]
    assert given.shape == ["batch", *policy.action_shape]
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}[taken.type]
    obs = seen(policy)
    (got,) = session.run(None, {"observation": obs.astype(kind)})
    closely(got, policy.predict(obs)[0], policy)
    (one,) = session.run(None, {"observation": obs[:1].astype(kind)})
    closely(one, policy.predict(obs[:1])[0], policy)


@pytest.mark.parametrize("name", POLICIES)
def test_a_file_of_numpy_answers_as_the_policy_does(name, tmp_path):
    policy = POLICIES[name]
    export.write_numpy(tmp_path / "policy.py", policy)
    text = (tmp_path / "policy.py").read_text()
    assert len(text.splitlines()) < 50
    kept: dict = {}
    exec(text, kept)
    obs = seen(policy)
    closely(kept["act"](obs), policy.predict(obs)[0], policy)
    closely(np.asarray(kept["act"](obs[0])), np.asarray(policy.predict(obs[0])[0]), policy)
    assert np.shape(kept["act"](obs[0].tolist())) == policy.action_shape
    with pytest.raises(ValueError, match="shape is"):
        kept["act"](np.zeros(7))


def test_the_file_runs_where_there_is_nothing_but_numpy(run, tmp_path):
    """In an environment of its own, with NumPy's folder and no other package of this one."""
    export.export(run, numpy=tmp_path / "policy.py")
    venv.create(tmp_path / "bare", symlinks=True)
    (site,) = (tmp_path / "bare").glob("lib/python*/site-packages")
    packages = Path(np.__file__).parent.parent
    for name in ("numpy", "numpy.libs"):
        if (packages / name).exists():
            (site / name).symlink_to(packages / name)
    np.save(tmp_path / "seen.npy", obs := np.random.default_rng(0).normal(size=(1_000, 3)))
    program = """
import importlib.util, sys
assert not any(map(importlib.util.find_spec, ("jax", "understudy", "gymnasium", "scipy", "onnx")))
import numpy
from policy import act
numpy.save("done.npy", act(numpy.load("seen.npy")))
"""
    python = tmp_path / "bare/bin/python"
    subprocess.run([python, "-c", program], cwd=tmp_path, check=True, env={"PATH": ""}, timeout=120)
    expected, _ = understudy.load_policy(run).predict(obs)
    assert np.abs(np.load(tmp_path / "done.npy") - expected).max() <= 2e-5  # of a torque up to 2


def test_an_environments_name_is_quoted(tmp_path):
    hostile = '"""\nimport os; os.mkdir("made")  # {weights} \\ '
    policy = plain_policy.plain(kept(BOX))._replace(env=hostile)
    held: dict = {}
    exec(numpy_file.source(policy), held)
    assert held["ENV"] == hostile
    assert not Path("made").exists()


def test_what_answers_otherwise_is_refused():
    box, choice = POLICIES["box"], POLICIES["choice"]
    for policy, spoil in (
        (box, lambda action: action + 3e-5),
        (box, lambda action: action * np.nan),
        (box, lambda action: action[:, :1]),
        (choice, lambda action: np.roll(action, 1)),
        (choice, lambda action: action + 3),
    ):
        with pytest.raises(UserError, match=r"It (is|answers)"):
            plain_policy.refuse_apart(policy, lambda obs: spoil(policy.predict(obs)[0]), "It")  # noqa: B023
        assert plain_policy.refuse_apart(policy, lambda obs: policy.predict(obs)[0], "It") == 0  # noqa: B023


def test_choices_that_are_worth_the_same_may_differ():
    tied = kept(CHOICE)
    w, b = np.zeros((3, 3), np.float32), np.zeros(3, np.float32)
    even = plain_policy.plain(tied)._replace(layers=[(w, b)])
    obs = seen(tied, 5)
    assert plain_policy._lost(even, obs, np.array([5] * 5), np.array([7] * 5)) == 0


# --- the command ---------------------------------------------------------------------------------


def test_files_are_written_where_they_are_asked_for(run, tmp_path):
    told = export.export(run, onnx=tmp_path / "new/policy.onnx", numpy=tmp_path / "policy.py")
    assert told["onnx"]["out"] == str(tmp_path / "new/policy.onnx")
    assert told["onnx"]["observations"] == 1_000
    assert 0 <= told["onnx"]["apart"] <= 1e-5
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new", "policy.py"]


def test_mistakes_are_one_sentence_and_leave_nothing(run, tmp_path):
    (tmp_path / "mine.py").write_text("precious")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.tex").write_text("precious")
    before = sorted(tmp_path.rglob("*"))
    for options, says in (
        ({}, "nothing to export"),
        ({"numpy": tmp_path / "mine.py"}, "is there already"),
        ({"onnx": tmp_path / "full"}, "is there already"),
        ({"to_hub": tmp_path / "full"}, "is there already"),
        ({"to_hub": tmp_path / "hub", "license": "a b"}, "identifier, such as mit"),
        ({"to_hub": tmp_path / "hub", "episodes": 0}, "--episodes is 0"),
    ):
        with pytest.raises(UserError, match=says):
            export.export(run, **options)
        assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "table").mkdir()
    (tmp_path / "table/config.json").write_text('{"kind": "tables"}')
    with pytest.raises(UserError, match="one with tables"):
        export.export(tmp_path / "table", numpy=tmp_path / "policy.py")


def test_without_the_package_it_says_which_extra(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match=r"needs onnxruntime.*understudy\[onnx\]"):
        export.export(run, onnx=tmp_path / "policy.onnx")


# --- for Hugging Face ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uploaded(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("hub") / "pendulum"
    told = export.export(run, to_hub=out, license="mit", episodes=3, seed=5)
    return out, told["hub"]


def test_hugging_face_reads_the_card(uploaded):
    hugging = pytest.importorskip("huggingface_hub")
    out, told = uploaded
    card = hugging.ModelCard.load(out / "README.md")
    data = card.data
    assert (data.license, data.library_name) == ("mit", "understudy")
    assert data.pipeline_tag == "reinforcement-learning"
    assert {"Pendulum-v1", "imitation-learning"} <= set(data.tags)
    (result,) = data.eval_results
    assert (result.dataset_name, result.metric_type) == ("Pendulum-v1", "mean_reward")
    returns = np.array(told["returns"])
    assert result.metric_value == f"{returns.mean():.2f} +/- {returns.std():.2f}"
    assert "understudy train Pendulum-v1" in card.text
    assert "`mit`" in card.text
    assert f"| worst and best | {returns.min():.2f}, {returns.max():.2f} |" in card.text
    assert f"jax `{runs.libraries()['jax']}`" in card.text
    low, high = model_card.mean_interval(returns)
    assert returns.min() <= low <= returns.mean() <= high <= returns.max()


def test_the_folder_is_a_run_that_can_be_loaded(uploaded, run):
    out, told = uploaded
    assert told["files"] == sorted(path.name for path in out.iterdir())
    assert {"README.md", "policy.onnx", "policy.py", "reward.safetensors"} <= set(told["files"])
    obs = np.zeros(3)
    there, here = (understudy.load_policy(folder).predict(obs)[0] for folder in (out, run))
    np.testing.assert_array_equal(there, here)
    assert understudy.load_reward(out)(obs, [0.5]) == understudy.load_reward(run)(obs, [0.5])
    assert runs.done(out)
    assert not [p for p in out.parent.iterdir() if p != out]


def test_nothing_in_it_says_where_it_was_made(uploaded, run):
    out, _ = uploaded
    for path in out.iterdir():
        assert str(run.parent).encode() not in path.read_bytes(), path.name
    told = export.without_paths({"demos": "/home/me/secret/mine.npz", "seed": 0})
    assert told == {"demos": "mine.npz", "seed": 0}


@pytest.mark.parametrize(
    ("method", "preset", "changes"),
    [
        ("mdpo", "fast", {}),
        ("mdpo", "fast", {"kl": 0.25, "layer_norm": False, "fresh": None, "beta": (2.0, 1.0)}),
        ("mdpo", "paper", {"interactions": 500, "mixup": True}),
        ("gail", "fast", {"hidden": 32}),
    ],
)
def test_the_command_is_the_one_that_makes_the_run(method, preset, changes):
    import dataclasses
    import shlex

    from understudy.learners.baselines.methods import options

    config = dataclasses.replace(options(method, PRESETS[preset]), **changes)
    request = {
        "env": "Pendulum-v1", "method": method, "seed": 3, "demos": "/far/away/my demos.npz",
        "trajectories": 2, "thin": None, "horizon": 70,
        "config": json.loads(json.dumps(dataclasses.asdict(config))),
    }  # fmt: skip
    line = command_line.train(request)
    assert len(shlex.split(line)) < 40
    code = "import sys; from understudy.cli import program; print(repr(program.parse()))"
    done = subprocess.run(
        [sys.executable, "-c", code, *shlex.split(line)[1:]], capture_output=True, text=True,
        check=True, timeout=300,
    )  # fmt: skip
    assert repr(config) in done.stdout
    for said in (f"method='{method}'", "seed=3", "trajectories=2", "horizon=70", "'my demos.npz'"):
        assert said in done.stdout
    assert "thin=None" in done.stdout
