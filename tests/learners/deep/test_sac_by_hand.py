"""Soft Actor-Critic on one point: what is drawn does not matter, so its steps can be known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.learners.deep import actor_critic, sac
from understudy.learners.deep.actor_critic import Tuning

TUNING = Tuning(
    actor_hidden=(4,), critic_hidden=(4,), actor_rate=0.01, critic_rate=0.02, gamma=0.8, tau=0.3,
    entropy=0.4, target_entropy=0.5,
)  # fmt: skip
PRACTISED = {
    "obs": np.array([[0.5, -1.0]], np.float32),
    "action": np.array([[0.0, 1.0, 0.0]], np.float32),
    "next_obs": np.array([[1.0, 2.0]], np.float32),
    "terminated": np.array([False]),
    "reward": np.array([3.0], np.float32),
}


def begun(slots=2):
    return sac.init(2, 3, TUNING, discrete=True, fresh=1, slots=slots, key=jax.random.key(0))


def test_points_are_kept_with_the_worlds_reward():
    segment = sac.segment(PRACTISED)
    for name in ("obs", "action", "next_obs", "terminated"):
        np.testing.assert_array_equal(getattr(segment.points, name), PRACTISED[name])
    assert segment.reward.tolist() == [3.0]
    state = begun()
    assert (int(state.k), state.window.label.tolist()) == (0, [-1, -1])
    assert state.window.segments.reward.shape == (2, 1)
    assert state.window.segments.points.action.shape == (2, 1, 3)


@pytest.mark.parametrize("steps", [1, 2])
def test_steps_are_those_of_the_policy_on_what_is_kept(steps):
    """A second place is empty, and nothing of it may be drawn."""
    segment = sac.segment(PRACTISED)
    batch, reward = (jax.tree.map(lambda x: jnp.repeat(x, 5, 0), part)
                     for part in (segment.points, segment.reward))  # fmt: skip
    improve = jax.jit(functools.partial(actor_critic.improve, tuning=TUNING))
    agent = begun().agent
    for _ in range(steps):
        agent, info = improve(agent, batch, reward, key=jax.random.key(7))
    after, told = sac.step(begun(), segment, tuning=TUNING, steps=steps, batch=5)
    assert (int(after.k), after.window.label.tolist()) == (1, [0, -1])
    for mine, theirs in zip(jax.tree.leaves(agent), jax.tree.leaves(after.agent), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-7)
    for name in ("critic_loss", "q", "entropy"):
        assert getattr(told, name).shape == (1,)  # the last step's
        assert float(getattr(told, name)[0]) == pytest.approx(float(getattr(info, name)), rel=1e-4)


def test_while_exploring_nothing_is_learned():
    state = begun()
    before = jax.tree.map(np.array, jax.tree.leaves(state.agent))
    after, told = sac.step(state, sac.segment(PRACTISED), tuning=TUNING, steps=0, batch=5)
    for old, new in zip(before, jax.tree.leaves(after.agent), strict=True):
        np.testing.assert_array_equal(old, new)
    assert told.q.shape == (0,)
    again, _ = sac.step(after, sac.segment(PRACTISED), tuning=TUNING, steps=0, batch=5)
    assert (int(again.k), again.window.label.tolist()) == (2, [0, 1])
