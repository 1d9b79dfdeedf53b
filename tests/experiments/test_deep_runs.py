"""Deep runs: they learn, they can be stopped anywhere, and they fail in one clear sentence."""

import dataclasses
import json
import os
import signal
import subprocess
import sys

import gymnasium
import numpy as np
import probe
import pytest
from test_cli import understudy

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.demos import minari, npz
from understudy.experiments import deep_run, stored_runs, watch
from understudy.experiments import train_networks as deep_train
from understudy.experiments.figures import drawing
from understudy.experiments.report import page
from understudy.learners.deep import evaluation, learner
from understudy.learners.deep import policy as policies
from understudy.learners.deep.config import PRESETS, DeepConfig

SLOW = pytest.mark.slow
SMALL = DeepConfig(
    interactions=160, marks=4, episodes=2, hidden=16, discriminator_hidden=8, batch=16, points=32,
    policy_steps=2, reward_steps=2, warmup=0, warm_start="none",
)  # fmt: skip


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    """Demonstrations of each kind of environment, good ones where they are easy to come by."""
    folder = tmp_path_factory.mktemp("demos")
    npz.write(folder / "probe:Point.npz", probe.straight())
    for env in ("Pendulum-v1", "CartPole-v1", "HalfCheetah-v5"):
        npz.write(folder / f"{env}.npz", scripted(env))
    return folder


def scripted(env, episodes=2, steps=60):
    world = gymnasium.make(env, max_episode_steps=steps)
    world.action_space.seed(0)
    seen, done, gained, ends = [], [], [], []
    for i in range(episodes):
        obs, _ = world.reset(seed=i)
        o, a, r, over = [obs], [], [], False
        while not over:
            action = world.action_space.sample()
            if env == "CartPole-v1":
                action = int(3 * obs[2] + obs[3] > 0)  # which balances for a while
            obs, reward, ended, cut, _ = world.step(action)
            over = ended or cut
            o.append(obs)
            a.append(action)
            r.append(reward)
        seen.append(np.array(o))
        done.append(np.array(a))
        gained.append(np.array(r, float))
        ends.append(bool(ended))
    world.close()
    return Demonstrations(seen, done, gained, ends)


def learn(env, demos, out, config=SMALL, **options):
    return deep_train.train(env, config, demos=str(demos / f"{env}.npz"), out=out, **options)


def results(folder):
    """What must not depend on interruptions."""
    names = ("metrics.jsonl", "policy.safetensors", "reward.safetensors")
    kept = {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}
    told = json.loads((folder / "done.json").read_text())
    kept["summary"] = {
        k: v for k, v in told.items() if k not in ("seconds", "run", "files", "demos")
    }
    return kept


# --- it learns -----------------------------------------------------------------------------------


def test_it_solves_a_tiny_continuous_task(demos, tmp_path):
    config = DeepConfig(
        interactions=1_200, marks=2, hidden=32, discriminator_hidden=32, batch=64, points=64,
        gamma=0.9, warmup=160, actor_rate=3e-3, critic_rate=3e-3, discriminator_rate=1e-3,
        average=0.05, warm_start="none", demo_share=0.25, audition=0,
    )  # fmt: skip
    summary = learn("probe:Point", demos, tmp_path / "run", config)
    start = runs_rows(tmp_path / "run")[0]["return"]
    gap = summary["expert_return"] - start
    assert summary["return"] > summary["expert_return"] - 0.2 * gap
    assert runs_rows(tmp_path / "run")[-1]["interactions"] == 1_200


def runs_rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@SLOW
def test_cloning_first_begins_where_the_expert_is(demos, tmp_path):
    short = {**vars(SMALL), "interactions": 8, "marks": 1, "hidden": 32}
    cloning = DeepConfig(**{**short, "warm_start": "clone"})
    learn("probe:Point", demos, tmp_path / "cloned", cloning)
    learn("probe:Point", demos, tmp_path / "scratch", DeepConfig(**short))
    cloned, scratch = (runs_rows(tmp_path / name)[0]["return"] for name in ("cloned", "scratch"))
    best = probe.straight().returns.mean()
    assert best - cloned < 0.3 * (best - scratch)


CHOICES = [
    pytest.param(
        {"window": "adaptive", "beta": "optimal", "absorbing": True, "spectral_norm": True},
        marks=SLOW,
    ),
    pytest.param({"loss": "linear", "mixup": True, "reward": "negative"}, marks=SLOW),
    pytest.param({"window": "1", "fresh": None, "points": 16}, marks=SLOW),
    pytest.param({"window": "2*k^0.5", "beta": "triangular"}, marks=SLOW),
    pytest.param({"window": "3", "beta": (0.5, 0.3, 0.2)}, marks=SLOW),
    pytest.param({"envs": 2, "replay": 64, "window": "2", "anchor": 3}, marks=SLOW),
    pytest.param({"normalise": False, "penalty": 0.0, "layer_norm": False}, marks=SLOW),
]


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_every_choice_runs(options, demos, tmp_path):
    config = DeepConfig(**{**vars(SMALL), "interactions": 96, "marks": 1, **options})
    summary = learn("CartPole-v1", demos, tmp_path / "run", config)
    assert np.isfinite(summary["return"])
    played = deep_train.evaluate(tmp_path / "run", episodes=2, seed=evaluation.FIRST_SEED)
    assert played["return"] == summary["return"]  # the exported policy is the one that was measured


@SLOW
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_presets_run(preset, demos, tmp_path):
    config = DeepConfig(**{**vars(PRESETS[preset]), "interactions": 64, "marks": 1, "episodes": 1})
    assert learn("Pendulum-v1", demos, tmp_path / "run", config)["interactions"] == 64


def test_the_paper_preset_is_what_the_paper_states():
    paper, swapped = PRESETS["paper"], PRESETS["paper-swapped"]
    assert (paper.hidden, paper.kl, paper.policy_steps) == (256, 0.1, None)
    assert (paper.replay, paper.points, paper.discriminator_rate) == (None, 2048, 1e-3)
    for N, each in (("1", 2048), ("32", 64), ("256", 8)):
        settings = learner.resolve(dataclasses.replace(paper, window=N))
        assert (settings.fresh, settings.policy_steps) == (each, each)
    assert (paper.actor_rate, paper.critic_rate) == (1e-3, 1e-5)
    assert (swapped.actor_rate, swapped.critic_rate) == (1e-5, 1e-3)


@SLOW
def test_n_all_and_n_one_see_different_pasts(demos, tmp_path):
    rows = {}
    for window in ("1", "all"):
        config = DeepConfig(**{**vars(SMALL), "window": window})
        learn("Pendulum-v1", demos, tmp_path / window, config)
        rows[window] = runs_rows(tmp_path / window)[-1]
    assert (rows["1"]["window"], rows["all"]["window"]) == (1, 20)  # 160 interactions by 8
    assert rows["1"]["agent_logit"] != rows["all"]["agent_logit"]


# --- stop and go on ------------------------------------------------------------------------------


class Stop(BaseException):
    """The machine goes away."""


def stopping(monkeypatch, at):
    """Let the n-th checkpoint be the last thing that happens, n in `at`."""
    keep, count = deep_run.Folder.keep, iter(range(1, 10_000))

    def kept(*args):
        keep(*args)
        if next(count) in at:
            raise Stop

    monkeypatch.setattr(deep_run.Folder, "keep", kept)


@pytest.mark.parametrize(
    ("env", "options"),
    [
        pytest.param("probe:Point", {}, marks=SLOW),
        pytest.param("Pendulum-v1", {"envs": 2}, marks=SLOW),
        pytest.param("CartPole-v1", {"absorbing": True}, marks=SLOW),
        pytest.param("HalfCheetah-v5", {"warm_start": "clone", "warmup": 40}, marks=SLOW),
        pytest.param("CartPole-v1", {"absorbing": True, "task_reward": 0.5}, marks=SLOW),
    ],
    ids=["custom", "two-lanes", "discrete-absorbing", "mujoco-cloned", "task-reward"],
)
def test_stopped_three_times_it_ends_with_the_same_bytes(
    env, options, demos, tmp_path, monkeypatch
):
    config = DeepConfig(**{**vars(SMALL), **options})
    learn(env, demos, tmp_path / "whole", config, horizon=60)
    stopping(monkeypatch, at=(3, 4, 8))  # of ten or twenty
    for _ in range(3):
        with pytest.raises(Stop):
            learn(env, demos, tmp_path / "stopped", config, horizon=60, checkpoint=0.0)
        # as if it had been measured after the checkpoint, and half of the line written
        with (tmp_path / "stopped" / "metrics.jsonl").open("a") as file:
            file.write('{"interactions": 99')
    learn(env, demos, tmp_path / "stopped", config, horizon=60, checkpoint=0.0)
    assert results(tmp_path / "stopped") == results(tmp_path / "whole")
    assert not (tmp_path / "stopped" / deep_run.CHECKPOINT).exists()


DOOMED = """
import os, signal, sys
from understudy.cli.program import main
left = int(sys.argv.pop())
def count(event, arguments):
    global left
    if event == "os.rename" and "checkpoint" in str(arguments[0]):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
main()
"""


@pytest.mark.slow
def test_a_killed_expert_ends_with_the_same_bytes(tmp_path):
    asked = ["expert", "Pendulum-v1", "--interactions", "160", "--explore", "40", "--hidden", "16",
             "--batch", "16", "--marks", "2", "--episodes", "2", "--checkpoint", "0"]  # fmt: skip
    for n in ("5", "9"):
        command = [sys.executable, "-c", DOOMED, *asked, "--out", "killed", n]
        done = subprocess.run(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
        assert done.returncode == -signal.SIGKILL
    assert understudy(*asked, "--out", "killed", cwd=tmp_path).returncode == 0
    whole = understudy(*asked, "--out", "whole", "--json", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    assert results(tmp_path / "killed") == results(tmp_path / "whole")
    shown = minari.read(tmp_path / json.loads(whole.stdout)["demos"])
    assert shown.returns.mean() == pytest.approx(json.loads(whole.stdout)["return"])
    assert len(shown) == 2
    again = understudy(*asked, "--out", "whole", "--json", cwd=tmp_path)  # at once, as it is done
    assert json.loads(again.stdout) == json.loads((tmp_path / "whole/done.json").read_text())


@SLOW
def test_a_world_that_cannot_be_replayed_is_named(demos, tmp_path, monkeypatch):
    npz.write(tmp_path / "probe:Forgetful.npz", probe.straight())
    stopping(monkeypatch, at=(2,))
    with pytest.raises(Stop):
        learn("probe:Forgetful", tmp_path, tmp_path / "run", checkpoint=0.0)
    with pytest.raises(UserError, match="did not come to the same place"):
        learn("probe:Forgetful", tmp_path, tmp_path / "run", checkpoint=0.0)


# --- mistakes ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_world_that_fails_leaves_its_last_checkpoint(demos, tmp_path):
    npz.write(tmp_path / "probe:Broken.npz", probe.straight())
    config = DeepConfig(**{**vars(SMALL), "marks": 1, "episodes": 1})
    probe.Broken.steps = 0
    with pytest.raises(UserError, match=r"ZeroDivisionError.*last checkpoint is intact"):
        learn("probe:Broken", tmp_path, tmp_path / "run", config, checkpoint=0.0)
    summary = learn("probe:Broken", tmp_path, tmp_path / "run", config, checkpoint=0.0)
    assert summary["interactions"] == 160


def test_a_world_that_shows_nan_is_named(demos, tmp_path):
    npz.write(tmp_path / "probe:Foggy.npz", probe.straight())
    with pytest.raises(UserError, match=r"probe:Foggy gave an observation.*NaN"):
        learn("probe:Foggy", tmp_path, tmp_path / "run")
    assert not (tmp_path / "run" / "done.json").exists()


@SLOW
def test_a_world_without_an_end_is_named(demos, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "LONGEST", 500)
    npz.write(tmp_path / "probe:Endless.npz", probe.straight())
    with pytest.raises(UserError, match="--horizon"):
        learn("probe:Endless", tmp_path, tmp_path / "run")
    assert learn("probe:Endless", tmp_path, tmp_path / "other", horizon=20)["interactions"] == 160


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda d: d.observations.__setitem__(0, d.observations[0][:, :1]),
            "observations of shape",
        ),
        (lambda d: [a.__imul__(9) for a in d.actions], r"have the action .* takes"),
    ],
)
def test_demonstrations_of_another_world_are_refused(spoil, sentence, tmp_path):
    shown = probe.straight(episodes=1)
    spoil(shown)
    npz.write(tmp_path / "probe:Point.npz", shown)
    with pytest.raises(UserError, match=sentence):
        learn("probe:Point", tmp_path, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_demonstrations_with_nan_are_refused(tmp_path):
    arrays = dict(np.load(_written(tmp_path)))
    arrays["actions"][3] = np.nan
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(UserError, match="action that is not finite"):
        deep_train.train("probe:Point", SMALL, demos=str(tmp_path / "bad.npz"), out=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def _written(folder):
    npz.write(folder / "good.npz", probe.straight())
    return folder / "good.npz"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "MountainCar-v0"], "no demonstrations of MountainCar-v0"),
        (["train", "Pendulum-v1", "--demos", "nobody/none-v0"], "Minari"),
        (["train", "Pendulum-v1", "--kl", "-1"], "--kl is -1"),
        (["train", "Pendulum-v1", "--sigma", "1"], "--sigma"),
        (["train", "nowhere:Env"], "cannot be imported"),
        (["expert", "FrozenLake-v1"], "needs a Box"),
        (["train", "Pendulum-v1", "--window", "2", "--beta", "0", "0"], "--beta is (0.0, 0.0)"),
        (["train", "Pendulum-v1", "--seed", "-1"], "The seed is -1"),
        (["expert", "Pendulum-v1", "--rate", "0"], "--rate is 0"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_mistakes_get_one_sentence(arguments, sentence, tmp_path):
    done = understudy(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not any(tmp_path.iterdir())


@SLOW
def test_other_demonstrations_are_another_run(demos, tmp_path, monkeypatch):
    npz.write(tmp_path / "Pendulum-v1.npz", scripted("Pendulum-v1"))
    stopping(monkeypatch, at=(2,))
    with pytest.raises(Stop):
        learn("Pendulum-v1", tmp_path, tmp_path / "run", checkpoint=0.0)
    npz.write(tmp_path / "Pendulum-v1.npz", scripted("Pendulum-v1", episodes=3))
    with pytest.raises(UserError, match="choose --out"):
        learn("Pendulum-v1", tmp_path, tmp_path / "run")


@SLOW
def test_another_run_is_not_overwritten(demos, tmp_path):
    learn("Pendulum-v1", demos, tmp_path / "run")
    before = results(tmp_path / "run")
    with pytest.raises(UserError, match="choose --out"):
        learn("Pendulum-v1", demos, tmp_path / "run", seed=1)
    assert results(tmp_path / "run") == before
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match="choose --out"):
        learn("Pendulum-v1", demos, mine)
    assert (mine / "thesis.tex").read_text() == "precious"


# --- policies ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(demos, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    learn("Pendulum-v1", demos, folder)
    return folder


def test_a_policy_answers_as_sb3s_do(trained):
    policy = policies.load(trained)
    world = gymnasium.make("Pendulum-v1")
    obs, _ = world.reset(seed=0)
    action, state = policy.predict(obs, deterministic=True)
    assert state is None
    assert world.action_space.contains(action)
    many, _ = policy.predict(np.stack([obs] * 3))
    assert many.shape == (3, 1)
    np.testing.assert_allclose(many[0], action, atol=1e-6)
    noisy = [policy.predict(obs, deterministic=False, seed=i)[0].item() for i in range(5)]
    assert len(set(noisy)) == 5
    with pytest.raises(UserError, match="shape"):
        policy.predict(np.zeros(7))


def test_a_deep_policy_is_filmed_in_its_own_time(trained, tmp_path):
    told = watch.watch(trained, tmp_path / "film.gif", episodes=1, seconds=1)
    assert told["frames"] == 30  # a second of Pendulum
    assert told["returns"] == [deep_train.evaluate(trained, episodes=1)["return"]]


def test_deep_runs_are_drawn_and_reported(trained, tmp_path):
    run = stored_runs.read(trained)
    assert (run.env, run.window) == ("Pendulum-v1", "all")
    assert run.interactions.tolist() == [0, 40, 80, 120, 160]
    drawing.curves([run], tmp_path / "curves")
    assert (tmp_path / "curves.png").stat().st_size > 5_000
    assert page.write(trained, tmp_path / "report.html")["runs"] == 1


def test_a_spoilt_policy_is_refused(trained, tmp_path):
    about = json.loads((trained / policies.JSON).read_text())
    tensors = (trained / policies.TENSORS).read_bytes()
    spoilt = {
        "hidden": [10**9], "kind": "oracle", "format": 7, "observations": "3", "actions": 2,
        "observation_shape": None,
    }  # fmt: skip
    for name, value in spoilt.items():
        (tmp_path / policies.JSON).write_text(json.dumps({**about, name: value}))
        (tmp_path / policies.TENSORS).write_bytes(tensors)
        with pytest.raises(UserError):
            policies.load(tmp_path)
    (tmp_path / policies.JSON).write_text(json.dumps(about))
    (tmp_path / policies.TENSORS).write_bytes(tensors[:-50])
    with pytest.raises(UserError, match="cannot be read"):
        policies.load(tmp_path)
    (tmp_path / policies.TENSORS).unlink()
    with pytest.raises(UserError, match="missing"):
        policies.load(tmp_path)


def test_a_runs_folder_cannot_name_code_to_run(trained, tmp_path, monkeypatch):
    for path in trained.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    about = json.loads((tmp_path / policies.JSON).read_text())
    (tmp_path / policies.JSON).write_text(json.dumps({**about, "env": "antigravity:Fly"}))
    with pytest.raises(UserError, match="--env antigravity:Fly"):
        deep_train.evaluate(tmp_path, episodes=1)
    assert "antigravity" not in sys.modules


def test_minari_reads_back_what_was_written(tmp_path):
    shown = scripted("Pendulum-v1")
    world = gymnasium.make("Pendulum-v1")
    folder = minari.write(
        tmp_path, "test/pendulum-v0", shown, world, algorithm="none", description="", seeds=[0, 1]
    )
    back = minari.read(folder)
    for one, other in zip(shown.observations + shown.actions, back.observations + back.actions,
                          strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(back.returns, shown.returns)
    assert back.terminated == shown.terminated
    # and by Minari itself, where it looks for its own
    import minari as real

    dataset = real.MinariDataset(folder / "data")
    assert (dataset.total_episodes, dataset.total_steps) == (2, 120)
    assert os.environ.get("MINARI_DATASETS_PATH") is None
