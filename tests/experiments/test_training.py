"""`understudy.train` and what it returns: every kind of environment, in the user's own program."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import gymnasium
import jax.numpy as jnp
import numpy as np
import odd
import probe
import pytest
from test_cli import understudy as command

import understudy
from understudy.core import extras, linear_mdp
from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.core.vector_features import FeatureMap
from understudy.demos import npz, recording
from understudy.envs.empty_room import demonstrations
from understudy.experiments import runs
from understudy.learners.finite import expert_occupancy
from understudy.learners.staged import FeaturePolicy, TablePolicy

ROOM = understudy.Config(interactions=400, marks=4)
SMALL = understudy.DeepConfig(
    interactions=48, hidden=8, discriminator_hidden=8, batch=8, points=8, marks=2, episodes=1,
    warm_start="none",
)  # fmt: skip


class Corridor(gymnasium.Env):
    """Ten places in a row, of the user's own; the goal is at one end."""

    observation_space, action_space = gymnasium.spaces.Discrete(10), gymnasium.spaces.Discrete(2)

    def __init__(self, goal=9):
        self.goal = goal
        self.spec = gymnasium.envs.registration.EnvSpec("Corridor-v0", max_episode_steps=12)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.at, {}

    def step(self, action):
        self.at = int(np.clip(self.at + (1 if action else -1), 0, 9))
        return self.at, float(self.at == self.goal), False, False, {}


@pytest.mark.parametrize("given", ["id", "MDP", "LinearMDP"])
def test_finite_environments_have_a_regret(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    room = understudy.empty_room(3)
    env = {"id": "EmptyRoom-3x3", "MDP": room, "LinearMDP": linear_mdp.one_hot(room)}[given]
    result = understudy.train(env, config=ROOM)
    assert result.interactions.tolist() == [0, 100, 200, 300, 400]
    assert result.returns.shape == (5,)
    assert result.expert_return == pytest.approx(4.6)
    split = sum(result.regret[t] for t in ("optimisation", "shift", "estimation", "demonstrations"))
    np.testing.assert_allclose(split, result.regret["reward"], atol=1e-9)
    assert not [*tmp_path.iterdir()]  # nothing was written


def test_an_environment_object_is_copied_and_stays_as_it_is():
    env = Corridor(goal=3)
    env.reset(seed=0)
    env.step(1)
    result = understudy.train(env, config=understudy.Config(interactions=4_000, ledger=False))
    assert (env.at, env.goal) == (1, 3)
    assert result.returns[-1] > 0.9 * result.expert_return
    fresh = Corridor(goal=3)
    s, _ = fresh.reset(seed=0)
    state, gained = None, 0.0
    for _ in range(12):
        action, state = result.policy.predict(s, state)
        s, r, *_ = fresh.step(action)
        gained += r
    assert gained == 5  # there in three steps, and then at every other


def point():
    return probe.Point()


@pytest.mark.parametrize("given", [probe.Point(), point, lambda: probe.Point()])
def test_networks_learn_from_an_object_or_a_function(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = []
    result = understudy.train(
        given, probe.straight(), SMALL, progress=lambda n, gained: told.append((n, gained))
    )
    assert result.interactions.tolist() == [0, 24, 48]
    assert [n for n, gained in told if gained is not None] == [0, 24, 48]
    assert len(told) == 7  # and every iteration
    assert not [*tmp_path.iterdir()]
    saved = understudy.load_policy(result.save(tmp_path / "saved"))
    obs = np.array([[0.1, 0.2], [0.3, -0.4]], np.float32)
    np.testing.assert_array_equal(saved.predict(obs)[0], result.policy.predict(obs)[0])


def test_a_folder_of_tables_tells_of_the_policy_handed_out_and_of_the_last(tmp_path):
    room = understudy.empty_room(3)
    expert, kept = expert_occupancy(room, demonstrations(3)), {}
    named = {"mixture": ("", "last_"), "last": ("",)}
    for handed, prefixes in named.items():
        folder = tmp_path / handed
        understudy.train(
            "EmptyRoom-3x3", config=dataclasses.replace(ROOM, handed=handed), out=folder
        )
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        measured = {prefix + what for prefix in prefixes for what in ("return", "gap")}
        assert len(rows) == 5
        for row in rows:
            told = {"interactions", "updates", "regret", "certificate", "crc32"}
            assert set(row) - told == measured
            assert row["regret"]["ail"] <= row["certificate"]
        summary = runs.summary(folder)
        assert {name: summary[name] for name in measured} == {n: rows[-1][n] for n in measured}
        assert summary.keys().isdisjoint({"last_return", "last_gap"} - measured)
        kept[handed] = runs.tensors(folder / "policy.safetensors", "The policy")
        assert kept[handed].keys() == {"reward", *(f"{prefix}policy" for prefix in prefixes)}
        for prefix in prefixes:
            d = mdps.occupancy(room, jnp.asarray(kept[handed][f"{prefix}policy"]))
            value = float(jnp.sum(d * room.reward))
            assert rows[-1][f"{prefix}return"] == pytest.approx(value, abs=1e-9)
            gap = float(jnp.sum(jnp.maximum(expert - d, 0)))  # by the best reward in [0, 1]
            assert rows[-1][f"{prefix}gap"] == pytest.approx(gap, abs=1e-9)
    # The run is the same one, whatever is handed out of it.
    last, mixed = kept["last"], kept["mixture"]
    np.testing.assert_allclose(mixed["last_policy"], last["policy"], atol=1e-12)
    np.testing.assert_allclose(mixed["reward"], last["reward"], atol=1e-12)


def test_what_is_saved_is_what_a_folder_would_hold(tmp_path):
    npz.write(tmp_path / "demos.npz", probe.straight())
    for kind, asked in {
        "tables": ("EmptyRoom-3x3", None, ROOM, {}),
        "networks": (probe.Point, str(tmp_path / "demos.npz"), SMALL, {}),
        "features": (
            "CartPole-v1", None, understudy.VectorConfig(interactions=300, horizon=20),
            {"features": "fourier:1"},
        ),
    }.items():  # fmt: skip
        env, demos, config, more = asked
        saved = understudy.train(env, demos, config, **more).save(tmp_path / f"{kind}-saved")
        there = understudy.train(env, demos, config, **more, out=tmp_path / f"{kind}-out")
        for name in ("metrics.jsonl", "policy.safetensors"):
            ours = (tmp_path / f"{kind}-out" / name).read_bytes()
            assert (saved / name).read_bytes() == ours, (kind, name)
        assert runs.done(saved)
        assert runs.kind(saved) == kind
        again = understudy.train(env, demos, config, **more, out=tmp_path / f"{kind}-out")
        np.testing.assert_array_equal(again.returns, there.returns)
        copied = again.save(tmp_path / f"{kind}-copied")
        assert runs.done(copied)
        with pytest.raises(UserError, match="holds"):
            again.save(copied)


def test_a_folder_of_another_run_is_refused(tmp_path):
    understudy.train("EmptyRoom-3x3", config=ROOM, out=tmp_path)
    with pytest.raises(UserError, match="another run"):
        understudy.train("EmptyRoom-3x3", config=ROOM, out=tmp_path, seed=1)


def test_older_folders_do_not_say_their_kind(tmp_path):
    understudy.train("EmptyRoom-3x3", config=ROOM, out=tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config.pop("kind") == "tables"
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert understudy.load_policy(tmp_path).pi.shape == (9, 9, 5)
    for older, kind in (({"method": "linear"}, "features"), ({"method": "mdpo"}, "networks")):
        assert runs.kind_of(older) == kind
    with pytest.raises(UserError, match="its kind is 'oracle'"):
        runs.kind_of({"kind": "oracle"})


BAD = {
    "a number": (3, None, None, "an id, a Gymnasium environment"),
    "a function of nothing": (lambda: 3, None, None, "in place of a Gymnasium environment"),
    "no demonstrations": (odd.Vector, None, SMALL, "There are no demonstrations"),
    "an occupancy for networks": (odd.Vector, np.ones(3), SMALL, "networks learn from a path"),
    "no features": ("CartPole-v1", None, understudy.VectorConfig(), "needs features"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_meant_is_one_sentence(what):
    env, demos, config, says = BAD[what]
    with pytest.raises(UserError, match=says):
        understudy.train(env, demos, config)


# --- policies that know their stage ---------------------------------------------------------------


def test_a_table_acts_by_the_stage_of_each_episode():
    pi = np.zeros((3, 2, 4))
    for h, s in np.ndindex(3, 2):
        pi[h, s, (h + s) % 4] = 1
    policy = TablePolicy(pi, "T", first_state=5, first_action=10)
    action, state = policy.predict(6)
    assert (action, state[0].tolist()) == (11, [1])
    action, state = policy.predict(np.array([5]), state)
    assert (action.tolist(), state[0].tolist()) == ([11], [2])
    both, state = policy.predict(np.array([5, 6]), (np.array([2, 1]),), np.array([True, False]))
    assert both.tolist() == [10, 12]
    with pytest.raises(UserError, match="3 stages"):
        policy.predict(5, (np.array([3]),))
    for wrong in (4, 7, 5.0, np.array([[5]])):
        with pytest.raises(UserError, match="no state of T"):
            policy.predict(wrong)


def test_drawn_actions_follow_the_policy():
    pi = np.tile([0.7, 0.1, 0.2], (1, 1, 1))
    drawn, _ = TablePolicy(pi, "T").predict(np.zeros(20_000, int), deterministic=False, seed=1)
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 20_000, pi[0, 0], atol=0.015)


@pytest.mark.parametrize("stages", [1, 2])
def test_features_act_by_their_logits(stages):
    phi = FeatureMap(lambda x: np.stack([x, -x], 1), 2, 2)
    weights = np.array([[1.0, -2.0, 0.0], [-1.0, 2.0, 0.0]])[:stages]
    policy = FeaturePolicy(weights, phi, "F", 9, (2,))
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    first, state = policy.predict(x)
    assert first.tolist() == [0, 1]
    second, _ = policy.predict(x, state)
    assert second.tolist() == ([0, 1] if stages == 1 else [1, 0])
    with pytest.raises(UserError, match="takes"):
        policy.predict(np.zeros(3))


# --- the user's own program -----------------------------------------------------------------------

IN_32_BITS = """
import sys, time
begun = time.perf_counter(); import understudy; took = time.perf_counter() - begun
assert "jax" not in sys.modules and "gymnasium" not in sys.modules and took < 1, took
import jax.numpy as jnp
import gymnasium
before = set(gymnasium.registry)
def narrow(): return jnp.zeros(1).dtype == "float32"
understudy.train("EmptyRoom-3x3", config=understudy.Config(interactions=400, marks=4), out="room")
assert narrow()
room = understudy.from_function(lambda s, a: [(1.0, s ^ a)], states=2, actions=2, horizon=3,
                                nu=[1.0, 0.0], reward=[[0, 1], [1, 0]])
assert room.prob.dtype == "float64" and narrow()
assert understudy.imitate(room, config=understudy.Config(interactions=60)).policy.dtype == "float64"
assert narrow()
small = understudy.DeepConfig(interactions=48, hidden=8, discriminator_hidden=8, batch=8, points=8,
                              marks=2, episodes=1, warm_start="none")
net = understudy.train("probe:Point", "demos.npz", small, out="net")
net.policy.predict([[0.1, 0.2]])
assert narrow()
understudy.train("CartPole-v1", features="fourier:1", out="vectors",
                 config=understudy.VectorConfig(interactions=300, horizon=20))
understudy.load_policy("room").predict(0)
assert narrow() and set(gymnasium.registry) == before
"""


def test_a_program_in_32_bits_stays_so_and_learns_the_same(tmp_path):
    """As by the command line, whose process is ours."""
    npz.write(tmp_path / "demos.npz", probe.straight())
    (tmp_path / "probe.py").write_text(Path(probe.__file__).read_text())
    done = subprocess.run(
        [sys.executable, "-c", IN_32_BITS], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    asked = {
        "room": ("EmptyRoom-3x3", "--interactions", "400", "--marks", "4"),
        "net": ("probe:Point", "--demos", "demos.npz", "--interactions", "48", "--hidden", "8",
                "--discriminator-hidden", "8", "--batch", "8", "--points", "8", "--marks", "2",
                "--episodes", "1", "--warm-start", "none"),
        "vectors": ("CartPole-v1", "--features", "fourier:1", "--interactions", "300", "--horizon",
                    "20"),
    }  # fmt: skip
    for name, words in asked.items():
        again = command("train", *words, "--out", f"{name}-again", cwd=tmp_path)
        assert again.returncode == 0, again.stderr
        for file in ("metrics.jsonl", "policy.safetensors"):
            ours = (tmp_path / f"{name}-again" / file).read_bytes()
            assert (tmp_path / name / file).read_bytes() == ours, (name, file)


# --- the learner by name, and what is missing -----------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("Pendulum-v1", "--learner", "tables"), "needs them Discrete"),
        (("CartPole-v1", "--learner", "features"), "--features"),
        (("FrozenLake-v1", "--learner", "networks"), "no demonstrations of FrozenLake-v1"),
        (("CartPole-v1", "--learner", "oracle"), "invalid choice"),
    ],
)
def test_the_learner_may_be_named(words, says, tmp_path):
    done = command("train", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("module", sorted(extras.EXTRAS))
def test_a_missing_package_is_one_sentence_with_its_command(module):
    error = ModuleNotFoundError("No module named it", name=f"{module}.part")
    assert f"pip install 'understudy[{extras.EXTRAS[module]}]'" in str(extras.explained(error))
    assert extras.explained(ModuleNotFoundError("theirs", name="theirs")) is None


def test_every_extra_is_one_of_the_package():
    import tomllib

    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    assert set(extras.EXTRAS.values()) <= set(project["optional-dependencies"])
    assert len(project["dependencies"]) <= 10


def test_recorded_demonstrations_are_imitated():
    shown = recording.record(gymnasium.make("CartPole-v1"), recording.acting(lambda obs: 1), 2)
    result = understudy.train("CartPole-v1", shown, SMALL)
    assert np.isfinite(result.returns).all()


def test_a_wrapper_or_the_caller_may_limit_the_time():
    class Unlimited(Corridor):
        def __init__(self):
            self.goal, self.spec = 9, None

    config = understudy.Config(interactions=200, ledger=False)
    limited = gymnasium.wrappers.TimeLimit(Unlimited(), 11)
    assert understudy.train(limited, config=config).policy.pi.shape == (11, 10, 2)
    assert understudy.train(Unlimited, config=config, horizon=10).policy.pi.shape == (10, 10, 2)
    with pytest.raises(UserError, match="sets no time limit"):
        understudy.train(Unlimited(), config=config)


def test_an_mdp_that_was_given_is_no_environment_to_evaluate_in(tmp_path):
    understudy.train(understudy.empty_room(3), config=ROOM).save(tmp_path / "run")
    done = command("evaluate", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "given in Python" in done.stderr


def test_an_expert_as_a_numpy_table_is_an_occupancy():
    room = understudy.empty_room(3)
    pi = np.full(room.shape, 1 / room.actions)
    expert = understudy.occupancy(room, pi)
    assert expert.dtype == "float64"
    result = understudy.train(room, np.asarray(expert), ROOM)
    assert result.expert_return == pytest.approx(float(understudy.value(room, pi, room.reward)))
    assert result.updates.tolist() == [0, 100, 200, 300, 400]
    assert {values.shape for values in result.regret.values()} == {(5,)}


def test_a_player_records_in_an_environment_by_its_id():
    shown = understudy.record("CartPole-v1", understudy.acting(lambda obs: 1), 2)
    assert isinstance(shown, understudy.Demonstrations)
    assert len(shown) == 2


def test_objects_of_one_name_are_told_apart(tmp_path):
    """A slippery lake and one that is not are both FrozenLake-v1."""
    config = understudy.Config(interactions=200, ledger=False)
    lakes = [gymnasium.make("FrozenLake-v1", is_slippery=slippery) for slippery in (True, False)]
    understudy.train(lakes[0], config=config, out=tmp_path)
    with pytest.raises(UserError, match="another run"):
        understudy.train(lakes[1], config=config, out=tmp_path)
    assert understudy.load_policy(tmp_path).pi.shape == (100, 16, 4)
    done = command("evaluate", ".", "--episodes", "1", cwd=tmp_path)
    assert done.returncode == 2
    assert "was given in Python, not by its name" in done.stderr
    done = command("evaluate", ".", "--episodes", "1", "--env", "FrozenLake-v1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_run_of_features_is_read_back_without_its_environments_name(tmp_path):
    config = understudy.VectorConfig(interactions=300, horizon=20)
    shown = understudy.record("CartPole-v1", understudy.acting(lambda obs: 1), 3)
    shown = understudy.Demonstrations(shown.observations, shown.actions, shown.rewards, [True] * 3)
    for _ in range(2):
        result = understudy.train(
            lambda: gymnasium.make("CartPole-v1"), shown, config, features="fourier:1", out=tmp_path
        )
        assert result.policy.predict(np.zeros(4))[0] in (0, 1)


def test_demonstrations_have_the_environments_numbers():
    """A corridor whose places and moves are numbered from elsewhere than zero."""

    class Elsewhere(Corridor):
        observation_space = gymnasium.spaces.Discrete(10, start=3)
        action_space = gymnasium.spaces.Discrete(2, start=5)

        def reset(self, **options):
            return super().reset(**options)[0] + 3, {}

        def step(self, action):
            at, *rest = super().step(action - 5)
            return at + 3, *rest

    shown = understudy.record(
        gymnasium.wrappers.TimeLimit(Elsewhere(), 12), understudy.acting(lambda s: 6), 1
    )
    config = understudy.Config(interactions=3_000, ledger=False)
    result = understudy.train(Elsewhere(), shown, config)
    assert result.expert_return == pytest.approx(4)  # in nine steps at the end, where it stays
    assert result.returns[-1] > 3.6
    assert result.policy.predict(3)[0] == 6


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"config": SMALL, "features": "fourier:1"}, "leave features out"),
        ({"config": SMALL, "horizon": 0}, "at least 1"),
        ({"config": understudy.VectorConfig(), "features": "fourier:1", "demos": np.ones(3)},
         "features of vectors are learned"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(options, says):
    with pytest.raises(UserError, match=says):
        understudy.train("CartPole-v1", **options)
