"""The networks' mathematics, each against something that does not share its code."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jax.test_util import check_grads

from understudy.core import occupancy as occupancies
from understudy.learners.deep import actor as actors
from understudy.learners.deep import actor_critic
from understudy.learners.deep import critic as critics
from understudy.learners.deep import discriminator as discriminators
from understudy.learners.deep.actor_critic import Transitions, Tuning
from understudy.learners.deep.networks import MLP, Linear, mlp

KEY = jax.random.key(0)


def some(*shape, key=0):
    return jax.random.normal(jax.random.key(key), shape, jnp.float32)


def gaussian(S=4, A=3, key=0):
    pi = actors.actor(S, A, (16, 16), discrete=False, key=jax.random.key(key))
    # A fresh actor is nearly constant; shake it.
    return jax.tree.map(lambda x: x + 0.3 * some(*x.shape, key=key + 1), pi)


def categorical(S=4, A=3, key=0):
    pi = actors.actor(S, A, (16, 16), discrete=True, key=jax.random.key(key))
    return jax.tree.map(lambda x: x + 0.3 * some(*x.shape, key=key + 1), pi)


def parameters(pi, obs):
    here = pi.at(obs)
    return here.mean, here.log_std


# --- the actor ---------------------------------------------------------------------------------


def test_log_probability_is_that_of_a_transformed_normal():
    pi, obs = gaussian(), some(5, 4)
    a = pi.at(obs).options(key=KEY)
    mean, log_std = (np.asarray(x, np.float64) for x in parameters(pi, obs))
    u = np.asarray(a.raw[0], np.float64)
    normal = scipy.stats.norm.logpdf(u, mean, np.exp(log_std)).sum(-1)
    slope = np.log1p(-(np.tanh(u) ** 2)).sum(-1)
    np.testing.assert_allclose(a.log[0], normal - slope, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(pi.at(obs).log(a.raw), a.log, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(a.action, np.tanh(a.raw), atol=1e-6)


def test_the_squashed_density_integrates_to_one():
    pi, obs = gaussian(A=1), some(1, 4)
    edges = np.linspace(-1, 1, 400_001)
    middle = jnp.asarray((edges[:-1] + edges[1:]) / 2, jnp.float32)
    everywhere = jnp.broadcast_to(obs, (len(middle), 4))
    u = jnp.arctanh(middle[None, :, None])
    density = np.exp(np.asarray(pi.at(everywhere).log(u)[0], np.float64))
    assert density.sum() * (edges[1] - edges[0]) == pytest.approx(1, abs=2e-3)


def test_log_probability_survives_where_tanh_is_flat():
    pi, obs = gaussian(), some(1, 4)
    u = jnp.full((1, 1, 3), 30.0, jnp.float32)
    mean, log_std = (np.asarray(x, np.float64) for x in parameters(pi, obs))
    # log(1 − tanh² u) = log 4 − 2u to within e⁻²ᵘ
    exact = scipy.stats.norm.logpdf(30, mean, np.exp(log_std)).sum() - 3 * (math.log(4) - 60)
    assert float(pi.at(obs).log(u)[0, 0]) == pytest.approx(exact, rel=1e-4)


def test_samples_follow_the_density():
    pi = gaussian(A=1)
    obs = jnp.broadcast_to(some(1, 4), (20_000, 4))
    u = np.arctanh(np.asarray(pi.at(obs).sample(key=KEY), np.float64)[:, 0])
    mean, log_std = (np.asarray(x, np.float64)[0, 0] for x in parameters(pi, obs))
    assert scipy.stats.kstest(u, "norm", args=(mean, np.exp(log_std))).pvalue > 1e-3


@pytest.mark.parametrize("make", [gaussian, categorical])
def test_kl_is_zero_where_nothing_moved_and_positive_otherwise(make):
    pi, other, obs = make(), make(key=7), some(4000, 4)
    a = pi.at(obs).options(key=KEY)
    kl = jnp.sum(a.weight * (a.log - pi.at(obs).log(a.raw)), axis=0)
    np.testing.assert_allclose(kl, 0, atol=1e-5)
    kl = jnp.sum(a.weight * (a.log - other.at(obs).log(a.raw)), axis=0)
    assert float(jnp.mean(kl)) > 0.01


def test_the_gaussian_kl_is_the_closed_form():
    """The sampled log π − log π_old, squashing and all, against the KL of the two normals."""
    pi, other = gaussian(), gaussian(key=7)
    obs = jnp.broadcast_to(some(1, 4), (200_000, 4))
    a = pi.at(obs).options(key=KEY)
    sampled = np.asarray(a.log - other.at(obs).log(a.raw), np.float64)
    (m, s), (n, t) = (
        [np.asarray(x[0], np.float64) for x in parameters(p, obs)] for p in (pi, other)
    )
    exact = (t - s + (np.exp(2 * s) + (m - n) ** 2) / (2 * np.exp(2 * t)) - 0.5).sum()
    assert sampled.mean() == pytest.approx(exact, abs=4 * sampled.std() / math.sqrt(len(obs)))
    assert float(pi.at(obs[:1]).kl(other.at(obs[:1]))[0]) == pytest.approx(exact, rel=1e-4)
    tv = float(pi.at(obs[:1]).tv(other.at(obs[:1]))[0])
    assert tv == pytest.approx(min(1, math.sqrt(exact / 2)), rel=1e-4)


def test_total_variation_of_choices():
    pi, other, obs = categorical(), categorical(key=7), some(5, 4)
    p, q = (np.exp(np.asarray(x.at(obs).log_p)) for x in (pi, other))
    np.testing.assert_allclose(pi.at(obs).tv(other.at(obs)), np.abs(p - q).sum(-1) / 2, atol=1e-6)
    by_scipy = scipy.stats.entropy(p.T, q.T)
    np.testing.assert_allclose(pi.at(obs).kl(other.at(obs)), by_scipy, rtol=1e-4, atol=1e-6)


def test_options_of_a_choice_are_its_whole_distribution():
    pi, obs = categorical(), some(5, 4)
    a = pi.at(obs).options(key=KEY)
    np.testing.assert_allclose(jnp.sum(a.weight, axis=0), 1, atol=1e-6)
    np.testing.assert_allclose(pi.at(obs).log(a.raw), jnp.log(a.weight), atol=1e-5)
    drawn = np.asarray(pi.at(jnp.broadcast_to(obs[:1], (20_000, 4))).sample(key=KEY)).mean(0)
    np.testing.assert_allclose(drawn, a.weight[:, 0], atol=0.02)


# --- the critic and the policy step --------------------------------------------------------------


def plain_mlp(net, x, twin):
    """The same network in NumPy, float64."""
    layers = [
        (np.asarray(l.w[twin], np.float64), np.asarray(l.b[twin], np.float64)) for l in net.layers
    ]
    for w, b in layers[:-1]:
        x = x @ w + b
        if net.norm:
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        x = np.maximum(x, 0)
    return (x @ layers[-1][0] + layers[-1][1])[:, 0]


def transitions(n=6, S=4, A=3):
    ended = jnp.arange(n) % 3 == 0
    return Transitions(some(n, S), jnp.tanh(some(n, A, key=1)), some(n, S, key=2), ended)


@pytest.mark.parametrize("norm", [False, True])
def test_twin_critics_are_two_networks(norm):
    Q, b = critics.critic(4, 3, (16, 16), norm=norm, key=KEY), transitions()
    x = np.concatenate([b.obs, b.action], axis=-1).astype(np.float64)
    by_hand = np.stack([plain_mlp(Q.net, x, twin) for twin in range(2)])
    np.testing.assert_allclose(Q(b.obs, b.action[None])[:, 0], by_hand, rtol=1e-4, atol=1e-5)
    assert np.abs(by_hand[0] - by_hand[1]).max() > 0.01  # and not one twice


@pytest.mark.parametrize("discrete", [False, True])
def test_the_backup_is_the_textbook_one(discrete):
    tuning = Tuning(actor_hidden=(16, 16), critic_hidden=(16, 16), gamma=0.9, entropy=0.2)
    agent = actor_critic.init(4, 3, tuning, discrete=discrete, key=KEY)
    b, r = transitions(), some(6, key=5)
    y = actor_critic.backup(agent, b, r, tuning, key=KEY)
    a = agent.actor.at(b.next_obs).options(key=KEY)
    expected = np.zeros(6)
    for n in range(a.weight.shape[0]):
        x = np.concatenate([b.next_obs, a.action[n]], axis=-1).astype(np.float64)
        least = np.minimum(*(plain_mlp(agent.target.net, x, twin) for twin in range(2)))
        expected += np.asarray(a.weight[n]) * (least - 0.2 * np.asarray(a.log[n]))
    expected = np.asarray(r) + 0.9 * expected * ~np.asarray(b.terminated)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("discrete", [False, True])
def test_the_first_actor_step_does_not_feel_its_own_anchor(discrete):
    """At π = π_old the gradient of KL(π ‖ π_old) is zero: any λ takes the same step."""
    b, r = transitions(), some(6, key=5)
    moved = []
    for kl in (1e-9, 10.0):
        tuning = Tuning(actor_hidden=(16, 16), critic_hidden=(16, 16), kl=kl, entropy=0.0)
        agent = actor_critic.init(4, 3, tuning, discrete=discrete, key=KEY)
        agent, info = jax.jit(functools.partial(actor_critic.improve, tuning=tuning))(
            agent, b, r, key=KEY
        )
        assert float(info.kl) == pytest.approx(0, abs=1e-6)
        moved.append(agent.actor)
    for one, other in zip(*map(jax.tree.leaves, moved), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.slow
def test_a_large_kl_coefficient_keeps_the_policy_close():
    b = transitions(64)
    gone = {}
    for kl in (0.01, 10.0):
        tuning = Tuning(
            actor_hidden=(16, 16), critic_hidden=(16, 16), kl=kl, entropy=0.0, actor_rate=3e-3
        )
        agent = actor_critic.init(4, 3, tuning, discrete=False, key=KEY)
        before, step = agent.actor, jax.jit(functools.partial(actor_critic.improve, tuning=tuning))
        for i in range(50):
            agent, _ = step(agent, b, 5 * b.obs[:, 0], key=jax.random.key(i))
        gone[kl] = float(jnp.mean(agent.actor.at(b.obs).tv(before.at(b.obs))))
    assert gone[10.0] < gone[0.01] / 3


def test_the_temperature_rises_below_the_target_entropy_and_falls_above():
    for target, sign in ((50.0, 1), (-50.0, -1)):
        tuning = Tuning(
            actor_hidden=(16, 16), critic_hidden=(16, 16), entropy=0.1, target_entropy=target
        )
        agent = actor_critic.init(4, 3, tuning, discrete=False, key=KEY)
        step = jax.jit(functools.partial(actor_critic.improve, tuning=tuning))
        after, _ = step(agent, transitions(), some(6), key=KEY)
        assert sign * float(after.log_alpha - agent.log_alpha) > 0


# --- the discriminator ---------------------------------------------------------------------------


def judge(spectral=False, X=7):
    return discriminators.discriminator(X, (16, 16), spectral=spectral, key=KEY)


@pytest.mark.parametrize("centre", [0.0, 1.0])
def test_gradient_penalty_against_finite_differences(centre):
    ell, expert, agent = judge(), some(5, 7), some(5, 7, key=1)
    value = discriminators.gradient_penalty(ell, expert, agent, centre=centre, key=KEY)
    share = np.asarray(jax.random.uniform(KEY, (5, 1), jnp.float32), np.float64)
    x = share * np.asarray(expert) + (1 - share) * np.asarray(agent)

    def logit(x):  # in float64, for the differences
        net = jax.tree.map(lambda p: p[None], ell.net)
        return plain_mlp(net, x, 0)

    h = 1e-6
    slopes = np.stack([(logit(x + h * e) - logit(x - h * e)) / (2 * h) for e in np.eye(7)], axis=-1)
    expected = ((np.linalg.norm(slopes, axis=-1) - centre) ** 2).mean()
    assert float(value) == pytest.approx(expected, rel=1e-3)


def test_the_whole_objective_has_the_gradient_that_differences_give():
    expert, agent = some(6, 7), some(6, 7, key=1)

    for mixup, centre, loss in (
        (False, 0.0, "logistic"),
        (True, 1.0, "logistic"),
        (False, 1.0, "linear"),
    ):
        net = jax.tree.map(lambda x: x.astype(jnp.float32), judge())

        def value(scale, loss=loss, mixup=mixup, centre=centre, net=net):
            moved = jax.tree.map(lambda x: x * scale, net)
            return discriminators.objective(
                moved, expert, agent, loss=loss, mixup=mixup, penalty=0.7, centre=centre, key=KEY
            )

        check_grads(value, (jnp.asarray(1.0, jnp.float32),), order=1, modes=["rev"], rtol=2e-2)


def test_losses_are_cross_entropies():
    ell, expert, agent = judge(), some(5, 7), some(5, 7, key=1)
    D = lambda x: 1 / (1 + np.exp(-np.asarray(ell(x), np.float64)))  # noqa: E731
    by_hand = -np.log(D(expert)).mean() - np.log(1 - D(agent)).mean()
    assert float(discriminators.logistic(ell, expert, agent)) == pytest.approx(by_hand, rel=1e-5)


def test_mixup_of_equal_shares_is_the_plain_loss_in_the_mean():
    """Where expert and agent are one point, mixing changes nothing: the loss is that point's."""
    ell = judge()
    x = jnp.broadcast_to(some(1, 7), (20_000, 7))
    mixed = discriminators.mixed(ell, x, x, loss="logistic", key=KEY)
    assert float(mixed) == pytest.approx(float(discriminators.logistic(ell, x, x)), rel=2e-2)


def test_the_spectral_norm_is_the_largest_singular_value():
    for shape in ((7, 16), (16, 16), (16, 1)):
        w = some(*shape, key=3)
        exact = np.linalg.svd(np.asarray(w), compute_uv=False)[0]
        assert float(discriminators.spectral_norm(w)) == pytest.approx(exact, rel=0.03)
    # so the whole network is close to 1-Lipschitz
    ell, x, y = judge(spectral=True), some(500, 7), some(500, 7, key=1)
    slope = jnp.abs(ell(x) - ell(y)) / jnp.linalg.norm(x - y, axis=-1)
    assert float(jnp.max(slope)) <= 1.1


def test_rewards_are_what_they_say():
    ell, yes, no = some(50), jnp.asarray(True), jnp.asarray(False)
    D = 1 / (1 + np.exp(-np.asarray(ell, np.float64)))
    expected = {
        "logit": np.log(D) - np.log(1 - D),
        "positive": -np.log(1 - D),
        "negative": np.log(D),
    }
    for kind, value in expected.items():
        np.testing.assert_allclose(
            discriminators.reward(ell, kind, no), value, rtol=1e-4, atol=1e-6
        )
    np.testing.assert_array_equal(
        discriminators.reward(ell, "auto", yes), discriminators.reward(ell, "positive", no)
    )
    np.testing.assert_array_equal(
        discriminators.reward(ell, "auto", no), discriminators.reward(ell, "logit", no)
    )


def test_in_a_table_the_discriminators_gradient_is_the_reward_players():
    """A linear logit on one-hot (s, a): the slope of the linear loss is d_mix − d_E (Eq. 5)."""
    S, A, n = 4, 3, 60
    rng = np.random.default_rng(0)
    drawn = {who: (rng.integers(S, size=n), rng.integers(A, size=n)) for who in ("expert", "agent")}

    def one_hot(s, a):
        return jnp.asarray(np.eye(S * A)[s * A + a], jnp.float32)

    layer = Linear(jnp.zeros((S * A, 1), jnp.float32), jnp.zeros(1, jnp.float32))
    flat = discriminators.Discriminator(MLP((layer,), norm=False), spectral=False)
    slope = jax.grad(
        lambda ell: discriminators.linear(ell, one_hot(*drawn["expert"]), one_hot(*drawn["agent"]))
    )(flat)
    d = {
        who: occupancies.estimate(
            occupancies.Points(*(jnp.asarray(x, jnp.int32) for x in (np.zeros(n), s, a))),
            jnp.full(n, 1 / n),
            (1, S, A),
        )
        for who, (s, a) in drawn.items()
    }
    by_table = np.asarray(d["agent"] - d["expert"]).reshape(-1)
    np.testing.assert_allclose(slope.net.layers[0].w[:, 0], by_table, atol=1e-6)


def test_adam_and_the_networks_stay_in_single_precision():
    tuning = Tuning(actor_hidden=(16, 16), critic_hidden=(16, 16), kl=0.1)
    agent = actor_critic.init(4, 3, tuning, discrete=False, key=KEY)
    agent, info = actor_critic.improve(agent, transitions(), some(6), tuning, key=KEY)
    kinds = {str(x.dtype) for x in jax.tree.leaves((agent, info))}
    assert kinds <= {"float32", "int32"}


def test_an_mlp_of_given_sizes():
    net = mlp((3, 5, 2), key=KEY, last=0.01)
    assert [layer.w.shape for layer in net.layers] == [(3, 5), (5, 2)]
    assert float(jnp.abs(net(some(10, 3))).max()) < 0.1
