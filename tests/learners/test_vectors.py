"""The linear learner on vectors: against plain NumPy, in a grid, on CartPole, and bad input."""

import dataclasses
import json
import shutil

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from test_cli import understudy

from understudy.core import mdp as mdps
from understudy.core import vector_features as basis
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.vector_features import FeatureMap
from understudy.demos import recording, scripted
from understudy.envs import wide_grid
from understudy.experiments import train_features as linear_train
from understudy.experiments import train_tables as train
from understudy.experiments import watch
from understudy.experiments.report import page
from understudy.learners import vectors
from understudy.learners.config import Config, VectorConfig

LOW = np.array([-2.4, -2.5, -0.21, -2.5])
SHAPE = vectors.Shape(
    horizon=4, shared=False, episodes=2, slots=3, capacity=40, sweeps=1, optimistic=True
)


def test_bases_by_hand():
    low, high = np.zeros(2), np.ones(2)
    x = np.array([[0.0, 0.5], [1.0, 0.25]])
    phi = basis.fourier(1, low, high, 3)(x)
    assert phi.shape == (2, 3, 12)
    angles = np.array([[0, 0, 0, 0], [0, 0, 0, 0]]) + x @ np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    np.testing.assert_allclose(phi[:, 1, 4:8], np.cos(np.pi * angles) / 2)
    assert not phi[:, 1, :4].any()
    bumps = basis.radial(3, low, high, 2)(x)[:, 0, :9]
    np.testing.assert_allclose(bumps.sum(-1), 1)
    assert bumps[0].argmax() == 1  # the centre (0, ½)
    assert bumps[0, 1] / bumps[0, 4] == pytest.approx(np.exp(0.5))  # one step away
    far = basis.radial(3, low, high, 2)(np.array([[1e9, -1e9]]))
    assert np.isfinite(far).all()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fourier", "give 'fourier:ORDER'"),
        ("wavelet:3", "give 'fourier:ORDER'"),
        ("radial:0", "with a number from 1"),
        ("fourier:" + "9" * 5000, "with a number from 1"),
        ("fourier:20", "makes 194,481 features"),
    ],
)
def test_bad_features_in_words(text, says):
    with pytest.raises(UserError, match=says):
        basis.parse(text, LOW, -LOW, 2)


def test_a_users_features_are_checked():
    long = FeatureMap(lambda x: np.full((len(x), 2, 4), 0.6), 2, 4)
    with pytest.raises(UserError, match=r"norm 1\.2; the theory needs"):
        long(np.zeros((3, 4)))
    flat = FeatureMap(lambda x: np.zeros((len(x), 4)), 2, 4)
    with pytest.raises(UserError, match=r"shape \(3, 4\)"):
        flat(np.zeros((3, 4)))


def some_state(rng, shape, A=2, d=5):
    """Six transitions, the last into an ended episode, large enough to be cut and projected."""
    state = vectors.init(FeatureMap(lambda x: x, A, d - 1), shape)
    here, ahead = rng.normal(size=(8, d)) / 3, 2 * rng.normal(size=(8, A, d))
    here[:, -1], ahead[..., -1] = 0, 0  # which only an ended episode has
    ahead[5] = np.eye(d)[-1]
    fresh = vectors.Fresh(
        here=jnp.asarray(here).at[6:].set(0),
        ahead=jnp.asarray(ahead).at[6:].set(0),
        count=jnp.asarray(6, jnp.int32),
        expectation=jnp.asarray(rng.normal(size=(shape.stages, d))),
    )
    return dataclasses.replace(state, policy=jnp.asarray(rng.normal(size=(shape.stages, d)))), fresh


def numbers_of(gamma):
    return vectors.Numbers(
        *(jnp.asarray(x) for x in (0.1, 2.0, gamma, 0.2)),
        vectors.Reuse(jnp.asarray(3.0), jnp.asarray(0.0), jnp.zeros(3)),
    )


def by_hand(fresh, expert):
    """Λ⁻¹, μ_1 and the bonus in plain NumPy."""
    here, ahead = np.asarray(fresh.here[:6]), np.asarray(fresh.ahead[:6])
    inverse = np.linalg.inv(np.eye(5) + here.T @ here)
    mu = 2.0 * np.asarray(expert - fresh.expectation)
    norm = np.linalg.norm(mu, axis=-1, keepdims=True)
    assert (norm > np.sqrt(5)).any()  # the projection binds
    width = 0.2 * np.sqrt(np.einsum("nad,de,nae->na", ahead, inverse, ahead))
    width[5] = 0  # nothing is unknown of an ended episode
    return here, ahead, inverse, mu * np.minimum(1, np.sqrt(5) / norm), width


def value(ahead, Q, policy, width, reach):
    """V̂ at the transitions' ends, and whether the cut binds."""
    full = ahead @ Q + width
    weight = np.exp(ahead @ np.asarray(policy))
    V = (weight / weight.sum(-1, keepdims=True) * np.clip(full, -reach, reach)).sum(-1)
    return V, (np.abs(full) > reach).any()


def test_an_iteration_by_hand():
    """Least-squares value iteration, window and mirror step in plain NumPy, stage by stage."""
    rng = np.random.default_rng(3)
    state, fresh = some_state(rng, SHAPE)
    numbers, expert = numbers_of(1.0), jnp.asarray(rng.normal(size=(4, 5)))
    after = vectors.step(state, fresh, expert, numbers, SHAPE)
    here, ahead, inverse, mu, width = by_hand(fresh, expert)
    np.testing.assert_allclose(after.inverse, inverse, atol=1e-12)
    np.testing.assert_allclose(after.mu, mu)
    w, cut = np.zeros((4, 5)), []
    for h in (2, 1, 0):
        Q, reach = (mu + w)[h + 1], (3 - h) * np.sqrt(5)
        V, bound = value(ahead, Q, state.policy[h + 1], width, reach)
        cut.append(bound)
        w[h] = inverse @ here.T @ V
        w[h, -1] = Q[-1]  # an ended episode stays ended
    assert all(cut)
    np.testing.assert_allclose(after.w, w, atol=1e-12)
    np.testing.assert_allclose(after.policy, np.asarray(state.policy) + 0.1 * (mu + w), atol=1e-12)
    second = dataclasses.replace(fresh, expectation=fresh.expectation + 1)
    again = vectors.step(after, second, expert, numbers, SHAPE)  # behind, over the padding
    np.testing.assert_allclose(again.memory.here[:12], np.tile(here, (2, 1)))
    assert int(again.memory.count) == 12
    moved = mu + 2.0 * np.asarray(expert - fresh.expectation - 0.5)  # the mean of two segments
    moved *= np.minimum(1, np.sqrt(5) / np.linalg.norm(moved, axis=-1, keepdims=True))
    np.testing.assert_allclose(again.mu, moved)


def test_shared_stages_by_hand():
    """Three discounted sweeps of one set of weights, from where the last iteration ended."""
    rng = np.random.default_rng(4)
    shape = dataclasses.replace(SHAPE, shared=True, sweeps=3)
    state, fresh = some_state(rng, shape)
    begun = jnp.asarray(rng.normal(size=(1, 5)))
    state = dataclasses.replace(state, w=begun)
    expert = jnp.asarray(rng.normal(size=(1, 5)))
    after = vectors.step(state, fresh, expert, numbers_of(0.5), shape)
    here, ahead, inverse, mu, width = by_hand(fresh, expert)
    w, cut = np.asarray(begun[0]), []
    for _ in range(3):
        Q = mu[0] + w
        V, bound = value(ahead, Q, state.policy[0], width, np.sqrt(5) / 0.5)
        cut.append(bound)
        w = 0.5 * inverse @ here.T @ V
        w[-1] = 0.5 * Q[-1]
    assert any(cut)
    np.testing.assert_allclose(after.w[0], w, atol=1e-12)


def test_ended_episodes_stay_ended():
    """A demonstration that falls after two of four steps has two stages in the last coordinate."""
    phi = FeatureMap(lambda x: np.stack([x, -x], axis=1) / 10, 2, 1)
    demos = Demonstrations(
        [np.array([[1.0], [2.0], [3.0]])], [np.array([0, 1])], [np.zeros(2)], [True]
    )
    f = vectors.of_demonstrations(phi, demos, SHAPE)
    np.testing.assert_allclose(f, [[0.1, 0], [-0.2, 0], [0, 1], [0, 1]])
    shared = dataclasses.replace(SHAPE, shared=True)
    np.testing.assert_allclose(vectors.of_demonstrations(phi, demos, shared), [[-0.025, 0.5]])
    cut = dataclasses.replace(demos, terminated=[False])
    with pytest.raises(UserError, match="cut off after 2 of 4 steps"):
        vectors.of_demonstrations(phi, cut, SHAPE)
    wrong = dataclasses.replace(demos, actions=[np.array([0, 2])])
    with pytest.raises(UserError, match="actions outside 0 … 1"):
        vectors.of_demonstrations(phi, wrong, SHAPE)


def test_practice_is_what_the_environment_did():
    world = gymnasium.make("CartPole-v1")
    shape = dataclasses.replace(SHAPE, horizon=60, shared=True)
    phi = basis.parse("fourier:1", LOW, -LOW, 2)
    policy, rng = np.zeros((1, phi.size + 1)), np.random.default_rng(0)
    fresh, returns = vectors.practise(world, phi, policy, shape, rng)
    n = int(fresh.count)
    assert n == returns.sum()  # a reward of one a step
    ended = 1 - n / 120 if (returns < 60).all() else None
    if ended is not None:
        assert float(fresh.expectation[0, -1]) == pytest.approx(ended)
    np.testing.assert_allclose(fresh.expectation[0, :-1] * 120, fresh.here[:n, :-1].sum(0))
    assert not np.asarray(fresh.here[n:]).any()


def test_the_grid_and_its_table_are_one_world():
    n, rng = 20, np.random.default_rng(0)
    mdp, world = wide_grid.table(n), wide_grid.WideGridEnv(n)
    succ, prob = np.asarray(mdp.succ[0]), np.asarray(mdp.prob[0])
    world.reset(seed=0)
    counts = {}
    for _ in range(4000):
        s, a = int(world.cell @ (n, 1)), int(rng.choice([0, 2, 4]))
        x, r, *_ = world.step(a)
        to = int(np.rint(x * (n - 1)) @ (n, 1))
        assert r == pytest.approx(float(mdp.reward[0, s, a]))
        assert prob[s, a][succ[s, a] == to].sum() > 0
        counts.setdefault((s, a), []).append(to)
        if rng.random() < 0.02:
            world.reset()
    (s, a), seen = max(counts.items(), key=lambda item: len(item[1]))
    for to, p in zip(succ[s, a], prob[s, a], strict=True):
        if p > 0:
            share = np.mean(np.array(seen) == to)
            assert share == pytest.approx(p, abs=5 * np.sqrt(p / len(seen)))
    phi = wide_grid.features(n)(wide_grid.positions(n))
    np.testing.assert_allclose(phi.sum(-1), 1)
    assert phi.min() >= 0


@pytest.mark.slow
def test_the_grid_is_learned_by_its_features():
    n = 20
    mdp, phi = wide_grid.table(n), wide_grid.features(n)
    config = VectorConfig(interactions=4_000, horizon=wide_grid.HORIZON, gamma=0.95)
    demos = scripted.across_the_wide_grid(n, 30, seed=0)
    result = vectors.imitate(wide_grid.WideGridEnv(n), phi, demos, config, seed=0)
    logits = vectors.features(phi, wide_grid.positions(n)) @ result.policy[0]
    pi = jnp.broadcast_to(jax.nn.softmax(jnp.asarray(logits), -1), mdp.shape)
    best = mdps.optimum(mdp, mdp.reward)[1]
    assert float(mdps.value(mdp, pi, mdp.reward)) >= 0.95 * float(best)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_cartpole_from_a_scripted_expert(seed):
    world, phi = gymnasium.make("CartPole-v1"), basis.parse("fourier:2", LOW, -LOW, 2)
    expert = recording.acting(scripted.EXPERTS["CartPole-v1"])
    demos = recording.record(world, expert, 10, seed=seed + 10_000)
    assert demos.returns.mean() >= 495
    result = vectors.imitate(world, phi, demos, VectorConfig(interactions=10_000), seed=seed)
    played = vectors.play(world, phi, result.policy, horizon=500, episodes=20, seed=seed)
    assert played.mean() >= 0.9 * demos.returns.mean()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"interactions": 20}, "33 features are more than 20 interactions"),
        ({"gamma": 1.0}, "--gamma is 1"),
        ({"batch": 0}, "--batch is 0"),
        ({"sigma": -1.0}, "--sigma is -1"),
        ({"window": "0"}, "at least 1 policy"),
    ],
)
def test_bad_settings(change, says):
    with pytest.raises(UserError, match=says):
        vectors.plan(basis.parse("fourier:1", LOW, -LOW, 2), VectorConfig(**change))


@pytest.mark.slow
def test_train_and_evaluate_on_the_command_line(tmp_path):
    args = ("train", "CartPole-v1", "--features", "fourier:1", "--interactions", "400")
    done = understudy(*args, "--out", "a", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["features"] == 32
    assert summary["interactions"] >= 400
    assert summary["expert_return"] == 500
    played = understudy("evaluate", "a", "--episodes", "3", "--json", cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    assert json.loads(played.stdout)["episodes"] == 3
    filmed = understudy("watch", "a", "--episodes", "3", "--seconds", "1", "--json", cwd=tmp_path)
    assert filmed.returncode == 0, filmed.stderr
    returns = json.loads(filmed.stdout)["returns"]
    assert np.mean(returns) == pytest.approx(json.loads(played.stdout)["return"])
    assert (tmp_path / "a/watch.gif").read_bytes().startswith(b"GIF")
    bad = understudy(*args[:3], "fourier", cwd=tmp_path)
    assert bad.returncode == 2
    assert "give 'fourier:ORDER'" in bad.stderr


@pytest.mark.slow
def test_one_hot_features_on_the_command_line(tmp_path):
    args = ("train", "EmptyRoom-3x3", "--features", "onehot", "--interactions", "1000", "--json")
    done = understudy(*args, "--rewards", "box", "--window", "32", "--out", "a", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["return"] >= 0.95 * summary["expert_return"]
    assert all(row["holds"] is not False for row in summary["ledger"].values())
    bad = understudy("train", "EmptyRoom-3x3", "--features", "fourier:2", cwd=tmp_path)
    assert bad.returncode == 2
    assert "give 'onehot'" in bad.stderr


def test_advice_for_linear_mdps(tmp_path):
    args = ("--actions", "4", "--horizon", "10", "--iterations", "1000")
    done = understudy("advise", *args, "--features", "900", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["d"] == 900
    assert said["n_star"] == pytest.approx({"paper": 1.0, "sharp": 3 ** (1 / 3)})
    assert said["sigma"] == pytest.approx(np.sqrt(2 * np.log(4) / (100 * 30 * 1000)))
    assert said["eta"] == pytest.approx(np.sqrt(0.9))
    bad = understudy("advise", *args, cwd=tmp_path)
    assert bad.returncode == 2
    assert "--features" in bad.stderr


# --- stored runs ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A short run of each kind: on features, and in a table."""
    folder = tmp_path_factory.mktemp("stored")
    short = VectorConfig(interactions=100, horizon=50)
    linear_train.train("CartPole-v1", "fourier:1", short, out=folder / "linear")
    train.train("EmptyRoom-3x3", Config(interactions=100), out=folder / "table")
    return folder


def tampered(run, folder, **changes):
    """A copy of a run with another config."""
    shutil.copytree(run, folder)
    asked = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**asked, **changes}))
    return folder


@pytest.mark.parametrize("kind", ["linear", "table"])
@pytest.mark.parametrize("verb", ["evaluate", "watch"])
def test_a_runs_folder_cannot_run_code(kind, verb, stored, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("open('ran', 'w')\nclass Env: pass\n")
    run = tampered(stored / kind, tmp_path / "run", env="evil:Env")
    module = linear_train if kind == "linear" else train
    with pytest.raises(UserError, match="say --env evil:Env"):
        watch.watch(run) if verb == "watch" else module.evaluate(run, episodes=1, seed=0)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"config": [1]}, "damaged"),
        ({"low": 0.0, "high": 1.0}, "limits"),
        ({"low": [0.0] * 4, "high": [0.0] * 4}, "limits"),
        ({"env": "FrozenLake-v1"}, "observations"),
        ({"config": {"horizon": -5}}, "damaged"),
        ({"features": "fourier:" + "9" * 5000}, "with a number from 1"),
    ],
)
def test_a_damaged_run_is_refused_in_a_sentence(change, says, stored, tmp_path):
    with pytest.raises(UserError, match=says):
        linear_train.load(tampered(stored / "linear", tmp_path / "run", **change))


def test_weights_that_are_none_are_refused(stored, tmp_path):
    shutil.copytree(stored / "linear", tmp_path / "run")
    kept = load_file(tmp_path / "run/policy.safetensors")
    for policy in (kept["policy"] * np.nan, kept["policy"][:0]):
        save_file({**kept, "policy": policy}, tmp_path / "run/policy.safetensors")
        with pytest.raises(UserError, match=r"NaN or infinite|cut short"):
            linear_train.load(tmp_path / "run")


def test_runs_of_different_kinds_share_a_report(stored, tmp_path):
    """What differs between two of them, a third may lack."""
    for name, rewards in (("a", "box"), ("b", "ball")):
        config = Config(interactions=100, ledger=False)
        train.train(
            "EmptyRoom-3x3", config, out=tmp_path / name, features="onehot", rewards=rewards
        )
    shutil.copytree(stored / "table", tmp_path / "c")
    assert page.write(tmp_path, tmp_path / "report.html")["runs"] == 3
