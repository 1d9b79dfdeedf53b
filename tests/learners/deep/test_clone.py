"""Cloning, and how far the learner then trusts its clone."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.learners.deep import actor as actors
from understudy.learners.deep import as_method, clone, learner
from understudy.learners.deep.actor_critic import Transitions
from understudy.learners.deep.config import DeepConfig

KEY = jax.random.key(0)


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
    here = clone.clone(pi, obs, action, key=KEY).at(some(500, 4, key=9))
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

    assert layers() == (1 + clone.DEPTH, 3)
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
    pi = clone.clone(actors.actor(4, 2, (16, 16), discrete=True, key=KEY), obs, right, key=KEY)
    fresh = some(500, 4, key=9)
    chosen = jnp.argmax(pi.at(fresh).mode(), axis=-1)
    assert float(jnp.mean(chosen == (fresh[:, 0] > 0))) > 0.97


# --- how far it is held to -----------------------------------------------------------------------

CONFIG = DeepConfig(
    interactions=60_000, replay=800, fresh=4, hidden=8, discriminator_hidden=8, batch=16, points=16,
    reward_steps=1, policy_steps=2, actor_rate=1e-2, final_rate=1.0, kl=1.0, warm_start="clone",
)  # fmt: skip


def points(n, key=0):
    obs, action = some(n, 3, key=key), jnp.tanh(some(n, 2, key=key + 1))
    return Transitions(obs, action, obs, jnp.zeros(n, bool))


def moved(apart, steps=40, *, terminates=False, **changes):
    """How far the actor goes from where it began, by KL, and whether its anchor went with it."""
    settings = learner.resolve(dataclasses.replace(CONFIG, **changes))
    state = learner.init(settings, 3, 2, discrete=False, key=KEY)
    begun, expert = state.agent.actor, points(64, key=5)
    at = begun.at(expert.obs)
    before = jax.tree.map(np.asarray, begun)
    state = dataclasses.replace(
        state, apart=jnp.asarray(apart, jnp.float32), terminates=jnp.asarray(terminates)
    )
    for i in range(steps):
        state, _ = learner.step(state, points(4, key=10 + i), expert, settings=settings)
    kl = float(jnp.mean(state.agent.actor.at(expert.obs).kl(at)))
    same = jax.tree.map(lambda a, b: np.array_equal(a, b), before, state.agent.anchor)
    return kl, all(jax.tree.leaves(same))


@pytest.mark.slow
def test_a_clone_that_passes_for_the_expert_is_held_to():
    held, stays = moved(apart=0.99 * learner.TELLS_APART)
    free, gone = moved(apart=learner.TELLS_APART)
    assert (stays, gone) == (True, False)
    assert held < free / 3


@pytest.mark.slow
def test_where_there_is_no_time_to_learn_anew_a_poor_clone_is_held_to():
    assert moved(apart=3.0, steps=2, interactions=800)[1]
    assert not moved(apart=0.5, steps=2)[1]


@pytest.mark.slow
def test_a_clone_that_is_lost_is_let_go():
    assert moved(apart=learner.LOST, steps=9)[1]  # the policy before lies ten iterations back
    assert not moved(apart=learner.LOST, steps=10)[1]
    assert not moved(apart=learner.LOST, steps=9, terminates=True)[1]


def test_letting_go_changes_what_it_says():
    settings = learner.resolve(CONFIG)
    state = learner.init(settings, 3, 2, discrete=False, key=KEY)
    state, loose = learner.let_go(state, settings)
    assert loose.tuning.kl == loose.config.kl == CONFIG.kl / 5
    assert (loose.config.anchor, loose.config.demo_share) == (10, CONFIG.demo_share / 8)
    assert CONFIG.entropy is not None
    assert float(jnp.exp(state.agent.log_alpha)) == pytest.approx(2.5 * CONFIG.entropy)


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ({"interactions": 20_000}, 2_000),  # short: a tenth of the run
        ({"interactions": 50_000}, 5_000),
        ({"interactions": 100_000}, 5_000),
        ({"interactions": 20_000, "warm_start": "none"}, 1_000),
        ({"interactions": 20_000, "warmup": 7}, 7),
    ],
)
def test_the_clone_waits_for_its_critics(changes, first):
    config = DeepConfig(**changes)
    assert not as_method.warmed(config, first - 1)
    assert as_method.warmed(config, first)


@pytest.mark.slow
def test_the_hold_loosens_along_the_run():
    held, _ = moved(apart=0.1, steps=200, interactions=800, loosen=1.0)
    loosened, _ = moved(apart=0.1, steps=200, interactions=800, loosen=1e-3)
    assert loosened > 2 * held


@pytest.mark.slow
def test_it_is_measured_while_the_actor_waits_and_then_stays():
    settings = learner.resolve(CONFIG)
    state = learner.init(settings, 3, 2, discrete=False, key=KEY)
    assert state.apart == np.float32(learner.TELLS_APART)  # not held before it is known
    # Of four points one is far out, as after a fall: the median does not see it, a mean would.
    expert, usual = points(1, key=5), points(1, key=7)
    far = jax.tree.map(lambda x: 50 * x if x.dtype == jnp.float32 else x, points(1, key=9))
    practised = jax.tree.map(lambda *x: jnp.concatenate(x), usual, usual, usual, far)
    state, _ = learner.step(state, practised, expert, settings=settings, moving=False)
    shown, seen, fallen = (
        float(state.judge(learner.points(x, False))[0]) for x in (expert, usual, far)
    )
    assert float(state.apart) == pytest.approx(shown - seen, abs=1e-6)
    assert abs(fallen - seen) > 0.1
    known = float(state.apart)
    state, _ = learner.step(state, points(4), expert, settings=settings)
    assert float(state.apart) == known
