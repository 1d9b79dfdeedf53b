"""Single steps of the deep learner against plain NumPy in double precision, slopes by differences.

After one step from rest, Adam's first moment is a tenth of the slope: what a step went by is read
off it. Where draws are all of one point, what is drawn does not matter, and steps can be known.
"""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from understudy.core import window as windows
from understudy.learners.deep import actor_critic, learner
from understudy.learners.deep.actor_critic import Transitions, Tuning
from understudy.learners.deep.config import DeepConfig

S, A, KEY = 3, 3, jax.random.key(0)


def shaken(tree, seed):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: x + jnp.asarray(rng.normal(0, 0.5, x.shape), x.dtype), tree)


def weights(tree):
    return [np.array(x, np.float64) for x in jax.tree.leaves(tree)]


def points(n, seed=0, *, terminated=None, discrete=True):
    """Points of random numbers; every third ends, if not said otherwise."""
    rng = np.random.default_rng(seed)
    s, after = rng.normal(size=(2, n, S)).astype(np.float32)
    a = np.eye(A)[rng.integers(A, size=n)] if discrete else rng.uniform(-1, 1, (n, A))
    ends = np.arange(n) % 3 == 0 if terminated is None else np.full(n, terminated)
    return Transitions(*map(jnp.asarray, (s, a.astype(np.float32), after, ends)))


def unchanged(before, after, *names):
    for name in names:
        same(getattr(before, name), getattr(after, name))


def same(one, other):
    for a, b in zip(weights(one), weights(other), strict=True):
        np.testing.assert_array_equal(a, b)


# --- the networks and their slopes, by hand ------------------------------------------------------


def net(weights, x, norm=False):
    *hidden, (w, b) = zip(weights[::2], weights[1::2], strict=True)
    for v, c in hidden:
        x = x @ v + c
        if norm:
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        x = np.maximum(x, 0)
    return x @ w + b


def twins(weights, s, a):
    """Q₁ and Q₂ of actions (n, batch, A)."""
    x = np.concatenate([np.broadcast_to(s, (*a.shape[:-1], S)), a], axis=-1)
    return [net([w[twin] for w in weights], x, norm=True)[..., 0] for twin in range(2)]


def spread(out):
    mean, raw = np.split(out, 2, axis=-1)
    return mean, np.exp(-5 + 7 * (np.tanh(raw) + 1) / 2)


def options(weights, s, noise):
    """Actions, log π and what each counts for: all of a choice, or one of a box, by its noise."""
    out = net(weights, s)
    if noise is None:
        p = (np.exp(out) / np.exp(out).sum(-1, keepdims=True)).T
        return np.broadcast_to(np.eye(A)[:, None], (A, len(s), A)), np.log(p), p
    mean, std = spread(out)
    u = mean + std * noise
    log = np.log(norm.pdf(u, mean, std) / (1 - np.tanh(u) ** 2)).sum(-1)
    return np.tanh(u)[None], log[None], np.ones((1, len(s)))


def divergence(weights, old, s, discrete):
    """KL(π ‖ π_old), the mean over states."""
    if discrete:
        p, q = (options(w, s, None)[2] for w in (weights, old))
        return (p * np.log(p / q)).sum(0).mean()
    (m, std), (n, was) = spread(net(weights, s)), spread(net(old, s))
    return (np.log(was / std) + (std**2 + (m - n) ** 2) / (2 * was**2) - 0.5).sum(-1).mean()


def backup(actor, target, batch, r, noise, *, gamma, alpha):
    s = np.asarray(batch.next_obs, np.float64)
    a, log, p = options(actor, s, noise)
    V = (p * (np.minimum(*twins(target, s, a)) - alpha * log)).sum(0)
    return r + gamma * np.where(batch.terminated, 0, V)


def missed(batch, y):
    """The critics' loss, a function of their weights."""
    s, a = (np.asarray(x, np.float64) for x in (batch.obs, batch.action))
    return lambda w: np.mean([(q[0] - y) ** 2 for q in twins(w, s, a[None])])


def off(weights, s, a, discrete):
    """How far the mode is from actions: −log π of a choice, a cross-entropy of a box."""
    out = net(weights, s)
    if discrete:
        return -np.log((options(weights, s, None)[2].T * a).sum(-1))
    mode, u = (1 + np.tanh(spread(out)[0])) / 2, (1 + a) / 2
    return -(u * np.log(mode) + (1 - u) * np.log(1 - mode)).sum(-1)


def cost(batch, old, critic, noise, *, kl, alpha, cloning, hint):
    """The actor's, Eq. 3, a function of its weights; the hint is actions and their weights."""
    s, shown, weight = (np.asarray(x, np.float64) for x in (batch.obs, *hint))

    def of(w):
        a, log, p = options(w, s, noise)
        gained = np.minimum(*twins(critic, s, a)) - alpha * log
        missed = (weight * off(w, s, shown, noise is None)).sum()
        far = kl * divergence(w, old, s, noise is None) + cloning * missed
        return far - (p * gained).sum(0).mean()

    return of


def slopes(cost, weights, h=1e-6):
    """Central differences, weight by weight."""
    found = [np.zeros_like(x) for x in weights]
    for x, slope in zip(weights, found, strict=True):
        for i in np.ndindex(x.shape):
            at, values = x[i], []
            for x[i] in (at + h, at - h):
                values.append(cost(weights))
            x[i], slope[i] = at, (values[0] - values[1]) / (2 * h)
    return found


def stepped(before, after, moments, cost, rate):
    """Adam's first step down this cost: as long as its rate in every weight, against the slope."""
    down = slopes(cost, before)
    assert max(np.abs(slope).max() for slope in down) > 0.01
    moved = zip(before, weights(after), weights(moments[0].mu), down, strict=True)
    for old, new, moment, slope in moved:
        np.testing.assert_allclose(moment / 0.1, slope, rtol=1e-3, atol=1e-5)
        steep = np.abs(slope) > 1e-3
        np.testing.assert_allclose((new - old)[steep], -rate * np.sign(slope[steep]), rtol=1e-3)


# --- a step of the policy player -----------------------------------------------------------------

TUNING = Tuning(
    actor_hidden=(4,), critic_hidden=(5,), actor_rate=0.01, critic_rate=0.02, gamma=0.8, tau=0.3,
    kl=0.7, cloning=0.6, entropy=0.4, target_entropy=0.5,
)  # fmt: skip
BOTH = pytest.mark.parametrize("discrete", [True, False], ids=["choice", "box"])


def step(of, **options):
    return jax.jit(functools.partial(of, **{"tuning": TUNING, **options}))


def all_different(agent):
    """Actor, anchor, critic and target that have nothing in common."""

    def nets(agent):
        return agent.actor, agent.anchor, agent.critic, agent.target

    moved = tuple(shaken(x, seed) for seed, x in enumerate(nets(agent)))
    return eqx.tree_at(nets, agent, moved)


def staged(discrete, tuning=TUNING):
    """An agent, a batch, its reward, and the noise of its actions."""
    agent = all_different(actor_critic.init(S, A, tuning, discrete=discrete, key=KEY))
    noise = None if discrete else np.asarray(jax.random.normal(KEY, (7, A), jnp.float32), float)
    r = jnp.asarray(np.random.default_rng(9).normal(size=7), jnp.float32)
    return agent, points(7, discrete=discrete), r, noise


@BOTH
def test_a_step_of_the_critics_and_of_their_targets(discrete):
    agent, batch, r, noise = staged(discrete)
    actor, critic, target = map(weights, (agent.actor, agent.critic, agent.target))
    y = backup(actor, target, batch, np.asarray(r), noise, gamma=0.8, alpha=0.4)
    after, loss = step(actor_critic.evaluate)(agent, batch, r, key=KEY)
    assert float(loss) == pytest.approx(missed(batch, y)(critic), rel=1e-5)
    stepped(critic, after.critic, after.critic_moments, missed(batch, y), 0.02)
    for old, near, new in zip(target, weights(after.critic), weights(after.target), strict=True):
        np.testing.assert_allclose(new, 0.7 * old + 0.3 * near, rtol=1e-5, atol=1e-6)
    unchanged(agent, after, "actor", "anchor", "log_alpha", "actor_moments", "alpha_moments")


@BOTH
def test_a_step_of_the_actor_and_of_the_temperature(discrete):
    """Half a step; the last two of seven points are the expert's, a clone has a word at others."""
    agent, batch, _, noise = staged(discrete)
    actor, old, critic = map(weights, (agent.actor, agent.anchor, agent.critic))
    weight = np.float32([0.1, 0, 0.3, 0.2, 0, 0.5, 0.5])
    said = jnp.asarray(batch.action)[::-1]
    hint = said, weight
    half = step(lambda *args, **keys: actor_critic.ascend(
        *args, pace=0.5, hint=actor_critic.Hint(said, jnp.asarray(weight), 2), **keys
    ))  # fmt: skip
    after, info = half(agent, batch, jnp.float32(5), key=KEY)
    of = cost(batch, old, critic, noise, kl=0.7, alpha=0.4, cloning=0.6, hint=hint)
    stepped(actor, after.actor, after.actor_moments, of, 0.5 * 0.01)
    a, log, p = options(actor, np.asarray(batch.obs, np.float64), noise)
    q, other = twins(critic, np.asarray(batch.obs, np.float64), a)
    assert 0 < np.mean(q < other) < 1  # so that the least is neither twin
    entropy = -(p * log).sum(0).mean()
    apart = divergence(actor, old, np.asarray(batch.obs, np.float64), discrete)
    shown = (np.asarray(x, np.float64)[-2:] for x in (batch.obs, said))
    missed = off(actor, *shown, discrete).mean()
    known = 5, (p * np.minimum(q, other)).sum(0).mean(), apart, entropy, missed
    told = info.critic_loss, info.q, info.kl, info.entropy, info.missed
    assert list(map(float, told)) == pytest.approx(known, rel=1e-4)
    slope = float(after.alpha_moments[0].mu) / 0.1
    assert slope == pytest.approx(entropy - 0.5, rel=1e-4)  # below the target α rises
    moved = float(after.log_alpha) - np.log(0.4)
    assert moved == pytest.approx(-0.01 * np.sign(entropy - 0.5), rel=1e-3)
    unchanged(agent, after, "anchor", "critic", "target", "critic_moments")


def test_the_usual_entropy_to_aim_at():
    assert actor_critic.usual_entropy(4, discrete=False) == -4
    assert actor_critic.usual_entropy(4, discrete=True) == pytest.approx(0.3 * np.log(4))


def test_the_actor_climbs_the_critics_that_have_just_moved_and_alpha_may_stay():
    tuning = dataclasses.replace(TUNING, target_entropy=None)
    agent, batch, r, _ = staged(True, tuning)
    after, info = step(actor_critic.improve, tuning=tuning)(agent, batch, r, key=KEY)
    s = np.asarray(batch.obs, np.float64)
    a, _, p = options(weights(agent.actor), s, None)
    values = [
        (p * np.minimum(*twins(weights(x.critic), s, a))).sum(0).mean() for x in (after, agent)
    ]
    assert float(info.q) == pytest.approx(values[0], rel=1e-4)
    assert abs(values[0] - values[1]) > 0.01
    unchanged(agent, after, "anchor", "log_alpha", "alpha_moments")


# --- an iteration --------------------------------------------------------------------------------

CONFIG = DeepConfig(
    interactions=10, window="1", fresh=1, replay=1, points=4, batch=4, demo_share=0.25, hidden=4,
    discriminator_hidden=8, reward_steps=1, policy_steps=1, actor_rate=0.01, critic_rate=0.02,
    discriminator_rate=0.03, final_rate=0.5, gamma=0.8, tau=0.3, kl=0.7, anchor=2, entropy=0.4,
    average=0.5, penalty=0.0, cloning=0.6, audition=0, warm_start="none", absorbing=True,
)  # fmt: skip


def begun(config, k=0):
    """Settings, and a state after k iterations whose networks have nothing in common."""
    settings = learner.resolve(config)
    state = learner.init(settings, S, A, discrete=True, key=KEY)
    nets = all_different(state.agent), shaken(state.average, 7), shaken(state.judge, 8)
    state = eqx.tree_at(lambda s: (s.agent, s.average, s.judge), state, nets)
    return settings, dataclasses.replace(state, k=jnp.asarray(k, jnp.int32))


def in_the_end(points):
    """The same points in the absorbing state."""
    return dataclasses.replace(points, obs=points.obs.at[:, -1].set(1))


def seen(points):
    """(s, a), and no action where its last number says that all is over."""
    s, a = np.asarray(points.obs, np.float64), np.asarray(points.action, np.float64)
    return np.concatenate([s, a * (1 - s[:, -1:])], axis=-1)


def softplus(x):
    return np.log1p(np.exp(x))


def together(*many):
    return jax.tree.map(lambda *x: jnp.concatenate(x), *many)


@pytest.mark.parametrize("k", [7, 8])
def test_an_iteration_by_hand(k):
    """One point of practice and one of the expert: three and one of them in a batch of four. The
    reward is that of worlds that end, which is known now (k = 7) or was before."""
    settings, state = begun(CONFIG, k - 1)
    state = dataclasses.replace(state, terminates=jnp.asarray(k == 8))
    expert = dataclasses.replace(points(1, 1, terminated=False), obs=jnp.zeros((1, S), jnp.float32))
    fresh = in_the_end(points(1, 2, terminated=k == 7))
    agent = state.agent
    actor, anchor, critic, target = map(
        weights, (agent.actor, agent.anchor, agent.critic, agent.target)
    )
    judge, average = weights(state.judge), weights(state.average)
    none = jnp.zeros(1, bool)
    after, info = learner.step(state, fresh, expert, settings=settings, ended=none)

    def told_apart(w):
        return (softplus(-net(w, seen(expert))) + softplus(net(w, seen(fresh)))).item()

    stepped(judge, after.judge, after.moments, told_apart, 0.03)
    batch = together(fresh, fresh, fresh, expert)
    r = softplus(net(weights(after.judge), seen(batch)))[:, 0]
    assert float(info.reward) == pytest.approx(r.mean(), rel=1e-4)
    y = backup(actor, target, batch, r, None, gamma=0.8, alpha=0.4)
    stepped(critic, after.agent.critic, after.agent.critic_moments, missed(batch, y), 0.02)
    before = actor if k == 7 else anchor  # it is renewed before the first step, the third …
    for old, kept in zip(before, weights(after.agent.anchor), strict=True):
        np.testing.assert_array_equal(old, kept)
    hint = batch.action, [0, 0, 0, 1]  # the expert's own action, where there is no clone
    of = cost(
        batch, before, weights(after.agent.critic), None, kl=0.7, alpha=0.4, cloning=0.6, hint=hint
    )
    rate = 0.01 * (1 - 0.5 * k / 10)  # half of it is left at the end, after ten
    stepped(actor, after.agent.actor, after.agent.actor_moments, of, rate)
    share = 1 / (1 + 0.5 * k)
    means = zip(average, weights(after.agent.actor), weights(after.average), strict=True)
    for old, now, mean in means:
        np.testing.assert_allclose(mean, (1 - share) * old + share * now, rtol=1e-5, atol=1e-6)
    p, q = (options(w, np.asarray(fresh.obs), None)[2] for w in (actor, weights(after.agent.actor)))
    assert float(info.drift) == pytest.approx(np.abs(p - q).sum() / 2, rel=1e-3)
    assert (int(info.window), int(after.k), after.window.label.tolist()) == (1, k, [k - 1])
    assert bool(after.terminates)


@pytest.mark.parametrize("left", [1.0, 0.25])
@pytest.mark.parametrize("absorbing", [False, True])
def test_near_the_expert_the_clone_has_a_word(left, absorbing):
    """Five points of practice, where it weighs what the discriminator makes of its action there, up
    to one, and two of the expert, whose own actions count."""
    config = dataclasses.replace(CONFIG, warm_start="clone", absorbing=absorbing)
    settings, state = begun(config)
    state = eqx.tree_at(lambda s: s.lead.clone, state, state.average)
    state = eqx.tree_at(lambda s: s.judge, state, jax.tree.map(lambda x: 3 * x, state.judge))
    batch, clone = points(7), weights(state.average)
    found, held = learner.known(state, batch, 2, jnp.float32(left), settings)
    s = np.asarray(batch.obs, np.float64)
    out = net(clone, s)
    said = np.eye(A)[out.argmax(-1)]
    there = np.concatenate([s, said * (1 - s[:, -1:]) if absorbing else said], axis=-1)
    near = left * np.minimum(1, np.exp(net(weights(state.judge), there)[:, 0]))
    assert np.ptp(near) > 0.1 * left
    np.testing.assert_allclose(found.weight[:5], near[:5] / 7, rtol=1e-4)
    np.testing.assert_allclose(found.weight[5:], 1 / 2)
    np.testing.assert_array_equal(found.action[:5], said[:5])
    np.testing.assert_array_equal(found.action[5:], batch.action[5:])
    assert float(held) == pytest.approx(near[:5].mean(), rel=1e-4)
    for changes in ({"cloning": 0.0}, {"warm_start": "none"}):
        other = learner.resolve(dataclasses.replace(config, **changes))
        hint, held = learner.known(state, batch, 2, jnp.float32(left), other)
        assert (float(held), hint is None) == (0, "cloning" in changes)
    np.testing.assert_array_equal(hint.weight, np.float32([0, 0, 0, 0, 0, 0.5, 0.5]))


@pytest.mark.parametrize("reward", ["auto", "negative"])
def test_the_reward_where_nothing_has_ended_and_an_actor_that_waits(reward):
    """The logit, or log D where that is asked for."""
    config = dataclasses.replace(CONFIG, absorbing=False, reward=reward)
    settings, state = begun(config, 5)
    expert, fresh = points(1, 1, terminated=False), points(1, 2, terminated=False)
    state = dataclasses.replace(state, window=windows.append(state.window, fresh, jnp.int32(0)))
    batch = together(fresh, fresh, fresh, expert)
    ell = net(weights(state.judge), np.concatenate([batch.obs, batch.action], axis=-1))
    r = ell if reward == "auto" else -softplus(-ell)
    policy = jax.jit(learner.policy, static_argnums=(2, 3))
    after, told = policy(state, expert, settings, True, key=KEY)
    assert float(told["reward"]) == pytest.approx(r.mean(), rel=1e-4)
    waiting = policy(state, expert, settings, False, key=KEY)[0].agent
    unchanged(state.agent, waiting, "actor", "actor_moments", "log_alpha", "alpha_moments")
    unchanged(after.agent, waiting, "critic_moments")


# --- a step of the reward player -----------------------------------------------------------------

judging = jax.jit(learner.reward, static_argnums=3)


@pytest.mark.parametrize("loss", ["logistic", "linear"])
def test_a_step_of_the_discriminator_on_two_policies(loss):
    """Three in four points of the latest policy, one of that before, none of the third."""
    config = dataclasses.replace(CONFIG, window="2", replay=3, beta=(0.75, 0.25), loss=loss)
    settings, state = begun(config)
    practised = [in_the_end(points(1, seed)) for seed in range(4)]
    for segment in practised:
        state = learner.remember(state, segment)
    expert, judge = points(1, 8), weights(state.judge)
    N, beta = learner.recall(state, settings)
    assert int(N) == 2
    after, told = judging(state, beta, expert, settings, key=KEY)
    mixture, shown = seen(together(*[practised[3]] * 3, practised[2])), seen(expert)

    def value(w):
        if loss == "linear":
            return net(w, mixture).mean() - net(w, shown).mean()
        return softplus(-net(w, shown)).mean() + softplus(net(w, mixture)).mean()

    stepped(judge, after.judge, after.moments, value, 0.03)
    expected = (value(judge), net(judge, shown).mean(), net(judge, mixture).mean())
    names = ("discriminator_loss", "expert_logit", "agent_logit")
    assert [float(told[name]) for name in names] == pytest.approx(expected, rel=1e-4)
    unchanged(state, after, "agent", "average", "k")


@pytest.mark.parametrize("centre", [0.0, 1.0])
def test_a_step_of_the_discriminator_with_its_penalty(centre):
    """Where expert and agent are one point, so is all between them."""
    config = dataclasses.replace(CONFIG, penalty=0.7, penalty_centre=centre)
    settings, state = begun(config)
    here = points(1, 3)
    state, judge, x = learner.remember(state, here), weights(state.judge), seen(here)[0]

    def value(w):
        first, second = w[0] * (x @ w[0] + w[1] > 0), w[2]
        second = second * (np.maximum(x @ w[0] + w[1], 0) @ w[2] + w[3] > 0)
        slope, ell = first @ second @ w[4][:, 0], net(w, x).item()
        return softplus(-ell) + softplus(ell) + 0.7 * (np.linalg.norm(slope) - centre) ** 2

    after, told = judging(state, jnp.ones(1), here, settings, key=KEY)
    assert float(told["discriminator_loss"]) == pytest.approx(value(judge), rel=1e-4)
    stepped(judge, after.judge, after.moments, value, 0.03)
