"""Policies across the border with Stable-Baselines3, which is there or the tests are skipped."""

import json

import gymnasium
import numpy as np
import pytest
from test_cli import understudy

sb3 = pytest.importorskip("stable_baselines3")

from understudy.core.errors import UserError  # noqa: E402
from understudy.demos import recording  # noqa: E402
from understudy.demos import sb3 as ours  # noqa: E402
from understudy.demos.reading import read  # noqa: E402

# PyTorch has many warnings of its own.
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def saved(folder, algorithm, env, **policy):
    model = getattr(sb3, algorithm)("MlpPolicy", env, policy_kwargs=policy or None, seed=1)
    model.save(folder / "expert.zip")
    return model


@pytest.mark.parametrize(
    ("algorithm", "env"),
    [("PPO", "CartPole-v1"), ("A2C", "Pendulum-v1"), ("SAC", "Pendulum-v1"), ("TD3", "Pendulum-v1"),
     ("DDPG", "Pendulum-v1"), ("DQN", "CartPole-v1")],
)  # fmt: skip
def test_a_saved_policy_acts_as_the_model_does(algorithm, env, tmp_path):
    model = saved(tmp_path, algorithm, env, net_arch=[16, 8])
    with gymnasium.make(env) as world:
        policy = ours.load(tmp_path / "expert.zip", world)
        a, b = (
            recording.record(world, recording.predicting(p), 1, seed=3) for p in (policy, model)
        )
    np.testing.assert_array_equal(a.actions[0], b.actions[0])
    np.testing.assert_array_equal(a.observations[0], b.observations[0])


def test_networks_of_other_shapes_and_activations(tmp_path):
    import torch

    shape = {"pi": [16], "vf": [8]}
    model = saved(tmp_path, "PPO", "Pendulum-v1", net_arch=shape, activation_fn=torch.nn.ELU)
    with gymnasium.make("Pendulum-v1") as world:
        policy = ours.load(tmp_path / "expert.zip", world)
        obs = np.stack([world.observation_space.sample() for _ in range(20)])
    expected, _ = model.predict(obs, deterministic=True)
    np.testing.assert_array_equal(policy.predict(obs, None, None, True)[0], expected)


def test_what_we_cannot_build_is_refused(tmp_path):
    import torch

    class Own(torch.nn.ReLU):
        pass

    saved(tmp_path, "PPO", "CartPole-v1", activation_fn=Own)
    with gymnasium.make("CartPole-v1") as world, pytest.raises(UserError, match="the activation"):
        ours.load(tmp_path / "expert.zip", world)
    saved(tmp_path, "PPO", "CartPole-v1")
    with gymnasium.make("Pendulum-v1") as world, pytest.raises(UserError, match="for Pendulum-v1"):
        ours.load(tmp_path / "expert.zip", world)


def test_demonstrations_are_rolled_out_by_the_command(tmp_path):
    model = saved(tmp_path, "PPO", "CartPole-v1")
    done = understudy("demos", "record", "CartPole-v1", "--player", "expert.zip", "--episodes", "2",
                      "--out", "shown.npz", "--json", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    with gymnasium.make("CartPole-v1") as world:
        expected = recording.record(world, recording.predicting(model), 2)
    assert read(tmp_path / "shown.npz").returns.tolist() == expected.returns.tolist()
    assert json.loads(done.stdout)["steps"] == sum(len(a) for a in expected.actions)


def test_our_policies_are_evaluated_by_theirs(tmp_path):
    """`evaluate_policy`, on one environment and on several at once, gives what `record` gives."""
    import jax
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    from understudy.learners.deep import policy as policies
    from understudy.learners.deep import scaling
    from understudy.learners.deep.actor import actor

    with gymnasium.make("Hopper-v5") as world:
        border = scaling.of_spaces(world, "Hopper-v5")
        fresh = actor(11, 3, (16, 16), discrete=False, key=jax.random.key(0))
        policies.save(tmp_path, policies.Policy(fresh, border, "Hopper-v5", (11,), (3,)))
        policy = policies.load(tmp_path)
        play = recording.predicting(policy)
        each = [recording.record(world, play, 1, seed=5 + i).returns[0] for i in range(3)]
        alone, _ = evaluate_policy(policy, Monitor(world), n_eval_episodes=1)
    assert np.isfinite(alone)
    several, _ = evaluate_policy(policy, make_vec_env("Hopper-v5", 3, seed=5), n_eval_episodes=3)
    assert several == pytest.approx(np.mean(each), rel=1e-3)
