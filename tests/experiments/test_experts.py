"""The experts that come with the package are what they are said to be."""

import contextlib
import warnings

import gymnasium
import numpy as np
import pytest

from understudy.core.errors import UserError
from understudy.demos import reading, shipped
from understudy.experiments import deep_run, expert, train_networks
from understudy.learners.deep import acting, checkpoint, scaling
from understudy.learners.deep.config import ExpertConfig

BARS = {
    "Acrobot-v1": -100,
    "CartPole-v1": 500,
    "HalfCheetah-v5": 11_000,
    "Hopper-v5": 3_300,
    "InvertedDoublePendulum-v5": 9_300,
    "LunarLander-v3": 200,
    "LunarLanderContinuous-v3": 200,
    "Pendulum-v1": -150,
    "Pusher-v5": -30,
    "Reacher-v5": -4,
    "Swimmer-v5": 300,
    "Walker2d-v5": 4_500,
    "HalfCheetah-v5/medium": 8_000,
    "Hopper-v5/medium": 2_800,
    "Walker2d-v5/medium": 3_000,
}  # the mean return, where the task counts as solved or the expert as worth imitating


def test_every_expert_that_is_shipped_is_held_to_a_bar():
    assert set(shipped.names()) == set(BARS)


@pytest.mark.parametrize("name", BARS)
def test_ten_trajectories_of_a_good_expert(name):
    shown = shipped.find(name)
    assert shown is not None
    assert len(shown) == 10
    assert shown.returns.mean() >= BARS[name]


@pytest.mark.parametrize("name", BARS)
def test_the_simulator_plays_them_again(name):
    """The first steps of an episode, from its seed: the same observations and rewards."""
    shown = shipped.find(name)
    assert shown is not None
    with warnings.catch_warnings():  # Box2D's bindings do not survive a warning that is an error
        warnings.simplefilter("ignore")
        world = gymnasium.make(name.split("/")[0])
    obs, _ = world.reset(seed=10_003)
    for t in range(min(50, len(shown.actions[3]))):
        np.testing.assert_allclose(obs, shown.observations[3][t], atol=1e-4)
        obs, reward, *_ = world.step(shown.actions[3][t])
        assert reward == pytest.approx(shown.rewards[3][t], abs=1e-3)
    world.close()


def test_an_environment_has_its_other_demonstrations_by_their_name():
    for env in ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5"):
        weaker, expert = shipped.find(env, "medium"), shipped.find(env)
        assert weaker is not None
        assert expert is not None
        assert weaker.returns.mean() < expert.returns.mean()
        assert reading.read(f"{env}/medium").returns.mean() == weaker.returns.mean()
        asked = train_networks.demonstrations(env, "medium", 2)
        assert asked.returns.tolist() == weaker.returns[:2].tolist()


def test_there_is_no_expert_of_anything_else():
    assert shipped.find("MountainCar-v0") is None
    assert shipped.find("Pendulum-v1", "medium") is None
    assert shipped.find("../../../etc/passwd") is None
    with pytest.raises(UserError, match="no demonstrations 'Pendulum-v1/medium'"):
        reading.read("Pendulum-v1/medium")


def test_an_expert_begins_with_the_networks_of_another(tmp_path, monkeypatch):
    """Those of a run that was stopped, without what it practised: the same policy acts."""
    first = ExpertConfig(interactions=64, explore=16, hidden=8, batch=8, marks=4, episodes=1)

    @contextlib.contextmanager
    def stopping(*_):
        def tell(row):
            if row["interactions"] == 48:
                raise KeyboardInterrupt

        yield tell

    monkeypatch.setattr(deep_run.trackers, "tracking", stopping)
    with pytest.raises(KeyboardInterrupt):
        expert.expert("Pendulum-v1", first, out=tmp_path / "first", checkpoint=0.0)
    monkeypatch.undo()
    whole, slim = tmp_path / "first" / deep_run.CHECKPOINT, tmp_path / "networks.safetensors"
    checkpoint.slim(whole, slim)
    assert slim.stat().st_size < whole.stat().st_size
    border = scaling.of_spaces(gymnasium.make("Pendulum-v1"), "Pendulum-v1")
    networks = checkpoint.networks(slim)
    method = expert.soft_actor_critic(border, first, seed=3, networks=networks)
    _, arrays = checkpoint.load(whole)
    for name, x in checkpoint.named(method.state.agent).items():
        np.testing.assert_array_equal(x, arrays[f"state.agent{name}"])
    assert int(method.state.k) == 0  # nothing practised
    obs = np.zeros((1, 3), np.float32)
    spread = [
        method.act(method.state, n)(obs, np.zeros(1, int)).item() for n in range(200)
    ]  # as the actor acts
    mean = acting.deterministic(method.state.agent.actor)(obs).item()
    assert abs(np.mean(np.arctanh(spread)) - np.arctanh(mean)) < 0.3
    second = ExpertConfig(**{**vars(first), "interactions": 32, "marks": 1})
    expert.expert("Pendulum-v1", second, out=tmp_path / "second", begin=slim)
    # The same without them is another run, and networks of other sizes are refused.
    with pytest.raises(UserError, match="another run"):
        expert.expert("Pendulum-v1", second, out=tmp_path / "second")
    wide = ExpertConfig(**{**vars(second), "hidden": 16})
    with pytest.raises(UserError, match="networks to begin with does not fit"):
        expert.expert("Pendulum-v1", wide, out=tmp_path / "wide", begin=slim)


def test_what_has_no_networks_is_nothing_to_begin_with(tmp_path):
    checkpoint.save(tmp_path / "other.safetensors", {"state.k": np.zeros(1)}, {})
    with pytest.raises(UserError, match="has no networks"):
        checkpoint.networks(tmp_path / "other.safetensors")
