"""The experts that come with the package are what they are said to be."""

import contextlib

import gymnasium
import numpy as np
import pytest

from understudy.core.errors import UserError
from understudy.demos import shipped
from understudy.experiments import deep_run, expert
from understudy.learners.deep import acting, checkpoint, scaling
from understudy.learners.deep.config import ExpertConfig

BARS = {"HalfCheetah-v5": 8_000, "Hopper-v5": 2_800, "Walker2d-v5": 3_000}


@pytest.mark.parametrize("env", BARS)
def test_ten_trajectories_of_a_good_expert(env):
    shown = shipped.find(env)
    assert shown is not None
    assert len(shown) == 10
    assert shown.returns.mean() >= BARS[env]


@pytest.mark.parametrize("env", BARS)
def test_the_simulator_plays_them_again(env):
    """The first steps of an episode, from its seed: the same observations and rewards."""
    shown, world = shipped.find(env), gymnasium.make(env)
    assert shown is not None
    obs, _ = world.reset(seed=10_003)
    for t in range(50):
        np.testing.assert_allclose(obs, shown.observations[3][t], atol=1e-4)
        obs, reward, *_ = world.step(shown.actions[3][t])
        assert reward == pytest.approx(shown.rewards[3][t], abs=1e-4)
    world.close()


def test_there_is_no_expert_of_anything_else():
    assert shipped.find("Pendulum-v1") is None
    assert shipped.find("../../../etc/passwd") is None


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
    spread = [method.act(method.state, n)(obs).item() for n in range(200)]  # as the actor acts
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
