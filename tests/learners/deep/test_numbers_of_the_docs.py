"""The numbers that docs/deep.md and docs/algorithms say of cloning and of how a run begins."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from understudy.learners.deep import actor_critic, clone, learner
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.config import PRESETS, DeepConfig
from understudy.learners.deep.networks import MLP, Linear, standardise

KEY = jax.random.key(0)
FAST = PRESETS["fast"]


def affine(observations, actions, *, discrete=False, bias=0.0):
    """An actor without a hidden layer, its weights zero."""
    outputs = actions if discrete else 2 * actions
    w, b = jnp.zeros((observations, outputs), jnp.float32), jnp.full(outputs, bias, jnp.float32)
    return Actor(MLP((Linear(w, b),), norm=False), discrete)


def moments_after_one_step(obs, action):
    """The slope that a step of cloning went by, of weights and of biases: ten times Adam's first
    moment."""
    actor = affine(obs.shape[1], action.shape[1])
    optimiser = optax.adam(1e-3)
    after, moments = clone.descend(
        actor, optimiser.init(actor), jnp.asarray(obs), jnp.asarray(action), KEY[None],
        optimiser=optimiser, size=min(FAST.clone_batch, len(obs)), blur=FAST.clone_blur,
    )  # fmt: skip
    slope = jax.tree.map(lambda x: np.asarray(x) * 10, moments[0].mu).net.layers[0]
    return after, slope.w, slope.b


# --- cloning -------------------------------------------------------------------------------------


def test_observations_are_blurred_by_two_hundredths():
    """At zero, with an action of one, the slope of each weight is the noise of its input."""
    _, w, b = moments_after_one_step(np.zeros((1, 4000), np.float32), np.ones((1, 1), np.float32))
    assert b[0] == pytest.approx(-1)
    assert w[:, 0].std() == pytest.approx(0.02, rel=0.05)
    assert abs(w[:, 0].mean()) < 0.002


def test_a_step_of_cloning_sees_256_points():
    """Each point pulls at an output of its own: their shares are of 256."""
    action = np.eye(1000, dtype=np.float32)
    _, _, b = moments_after_one_step(np.zeros((1000, 1), np.float32), action)
    counts = -b[:1000] * 256
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)
    assert counts.sum() == pytest.approx(256, rel=1e-3)
    few = np.eye(3, dtype=np.float32)
    counts = -moments_after_one_step(np.zeros((3, 1), np.float32), few)[2][:3] * 3
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)


def test_the_rate_of_a_clone_falls_from_a_thousandth_to_zero():
    obs, action = jnp.zeros((4, 2), jnp.float32), jnp.ones((4, 1), jnp.float32)
    one = clone.fit(affine(2, 1), obs, action, FAST, steps=1, key=KEY)
    assert float(one.net.layers[0].b[0]) == pytest.approx(1e-3, rel=1e-3)
    # The slope hardly changes, so Adam's steps are as long as the rate: half of it on average.
    many = clone.fit(affine(2, 1), obs, action, FAST, steps=100, key=KEY)
    assert float(many.net.layers[0].b[0]) == pytest.approx(100 * 1e-3 / 2, rel=0.03)


@pytest.mark.parametrize(
    ("n", "steps", "held"),
    [(10, 4_000, 1), (1_333, 4_000, 133), (2_000, 6_000, 200), (9_000, 20_000, 900), (5, 4_000, 1)],
)
def test_three_steps_a_transition_and_a_tenth_held_out(n, steps, held, monkeypatch):
    seen = []

    def fit(actor, obs, action, config, *, steps, key):
        seen.append((len(obs), len(action), steps))
        return actor

    monkeypatch.setattr(clone, "fit", fit)
    rng = np.random.default_rng(0)
    action = jnp.asarray(rng.uniform(-0.5, 0.5, (n, 2)), jnp.float32)
    found = clone.clone(affine(3, 2), jnp.zeros((n, 3), jnp.float32), action, FAST, key=KEY)
    assert seen == [(n - held, n - held, steps)]
    spread = np.exp(found.at(jnp.zeros((1, 3), jnp.float32)).log_std[0])
    missed = np.sqrt((np.asarray(action) ** 2).mean(0))
    if held > 100:  # a root mean square of so many is that of all, nearly
        np.testing.assert_allclose(spread, missed, rtol=0.15)
    choice = affine(3, 2, discrete=True)
    assert clone.clone(choice, jnp.zeros((n, 3), jnp.float32), action, FAST, key=KEY) is choice


# --- what a run begins with ----------------------------------------------------------------------

CONFIG = DeepConfig(
    interactions=60_000, replay=8, fresh=2, window="1", points=4, batch=4, hidden=4, envs=2,
    discriminator_hidden=4, warm_start="clone",
)  # fmt: skip


@pytest.fixture(scope="module")
def begun():
    settings = learner.resolve(CONFIG)
    return settings, learner.init(settings, 3, 2, discrete=False, key=KEY)


def test_what_a_run_begins_with(begun):
    settings, state = begun
    assert (int(state.k), bool(state.terminates)) == (0, False)
    assert (int(state.lead.since), state.turns.player.tolist()) == (0, [0, 0])
    assert (float(state.gauge.drift), float(state.gauge.error)) == (0, 1)
    assert state.window.segments.obs.shape == (2, 4, 3)
    assert state.window.segments.action.shape == (2, 4, 2)
    assert [layer.w.shape for layer in state.judge.net.layers] == [(5, 4), (4, 4), (4, 1)]
    assert (settings.slots, settings.audition) == (2, 4)


# --- networks ------------------------------------------------------------------------------------


def test_a_layer_is_standardised_up_to_a_hundred_thousandth():
    x = jnp.array([[0.0, 0.002], [-3.0, 5.0]], jnp.float32)
    expected = [[-1e-3 / np.sqrt(1.1e-5), 1e-3 / np.sqrt(1.1e-5)], [-1, 1]]
    np.testing.assert_allclose(standardise(x), expected, rtol=1e-4)


def test_an_entropy_that_weighs_nothing_is_a_hundred_millionth():
    assert float(jnp.exp(actor_critic.log_of(0.0))) == pytest.approx(1e-8, rel=1e-4)
    assert float(jnp.exp(actor_critic.log_of(0.3))) == pytest.approx(0.3)
