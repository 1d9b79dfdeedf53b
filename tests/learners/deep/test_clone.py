"""Cloning, and how far the learner then trusts its clone."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.learners.deep import actor as actors
from understudy.learners.deep import clone, learner
from understudy.learners.deep.config import DeepConfig

KEY = jax.random.key(0)
CONFIG = DeepConfig(interactions=800, hidden=8, discriminator_hidden=8)


def some(*shape, key=0):
    return jax.random.normal(jax.random.key(key), shape, jnp.float32)


@pytest.fixture(scope="module")
def teacher():
    """States, and an expert's actions there, off by a known noise."""
    obs, M = some(2_000, 4), 0.5 * some(4, 2, key=1)
    noise = jnp.array([0.02, 0.2], jnp.float32)
    return obs, jnp.tanh(obs @ M) + noise * some(2_000, 2, key=2), M, noise


def test_a_clone_does_what_the_expert_means_and_is_as_sure_as_it_is_right(teacher):
    obs, action, M, noise = teacher
    pi = actors.actor(4, 2, (32, 32), discrete=False, key=KEY)
    here = clone.clone(pi, obs, action, CONFIG, key=KEY).at(some(500, 4, key=9))
    meant = jnp.tanh(some(500, 4, key=9) @ M)
    assert float(jnp.sqrt(jnp.mean((here.mode() - meant) ** 2))) < 0.08
    # The spread is what is missed on transitions held out: the noise, and a little error.
    std = np.exp(np.asarray(here.log_std))
    np.testing.assert_allclose(std, np.broadcast_to(std[0], std.shape), rtol=1e-5)
    assert (std[0] > 0.9 * np.asarray(noise)).all()
    assert (std[0] < 1.4 * np.asarray(noise) + 0.03).all()


def test_a_miss_is_a_cross_entropy_whose_slope_is_the_difference():
    mean, action = some(50, 3), jnp.tanh(some(50, 3, key=1))

    def missed(mean):
        return actors.Gaussian(mean, jnp.zeros_like(mean)).miss(action)

    p, q = ((1 + np.asarray(x, np.float64)) / 2 for x in (action, jnp.tanh(mean)))
    by_hand = -np.sum(p * np.log(q) + (1 - p) * np.log1p(-q), axis=-1)
    np.testing.assert_allclose(missed(mean), by_hand, rtol=1e-4)
    slope = jax.grad(lambda mean: jnp.sum(missed(mean)))(mean)
    np.testing.assert_allclose(slope, jnp.tanh(mean) - action, atol=1e-6)
    # Far beyond the border of the box it still pulls, where a square has no slope left.
    far = jax.grad(lambda u: missed(mean.at[0, 0].set(u))[0])(jnp.float32(20))
    assert float(far) == pytest.approx(1 - float(action[0, 0]), rel=1e-5)


def test_an_actor_that_is_cloned_has_a_layer_more():
    def layers(**changes):
        settings = learner.resolve(dataclasses.replace(CONFIG, **changes))
        state = learner.init(settings, 3, 2, discrete=False, key=KEY)
        return len(state.agent.actor.net.layers), len(state.agent.critic.net.layers)

    assert layers() == (4, 3)
    assert layers(clone_depth=1) == (2, 3)
    assert layers(warm_start="none") == (3, 3)


def test_a_spread_that_is_set_is_there_and_moves_no_mode():
    pi = actors.actor(4, 2, (16, 16), discrete=False, key=KEY)
    obs = some(7, 4)
    after = pi.with_spread(jnp.array([0.05, 0.5], jnp.float32)).at(obs)
    np.testing.assert_allclose(jnp.exp(after.log_std), [[0.05, 0.5]] * 7, rtol=1e-4)
    np.testing.assert_allclose(after.mode(), pi.at(obs).mode())


def test_a_choice_is_cloned_by_its_likelihood():
    obs = some(2_000, 4)
    right = jax.nn.one_hot((obs[:, 0] > 0).astype(int), 2, dtype=jnp.float32)
    pi = clone.clone(
        actors.actor(4, 2, (16, 16), discrete=True, key=KEY), obs, right, CONFIG, key=KEY
    )
    fresh = some(500, 4, key=9)
    chosen = jnp.argmax(pi.at(fresh).mode(), axis=-1)
    assert float(jnp.mean(chosen == (fresh[:, 0] > 0))) > 0.97
