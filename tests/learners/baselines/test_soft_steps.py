"""An iteration of SQIL and IQ-Learn by hand, with one point of practice and one of the expert."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.learners.baselines import iq_learn, soft, sqil
from understudy.learners.deep import actor_critic, learner
from understudy.learners.deep.actor_critic import Transitions, Tuning
from understudy.learners.deep.config import DeepConfig

S, A, KEY = 3, 3, jax.random.key(0)
TUNING = Tuning(
    actor_hidden=(4,), critic_hidden=(5,), critic_rate=0.02, gamma=0.8, tau=0.3, entropy=0.4
)


def points(n, seed, terminated=None):
    rng = np.random.default_rng(seed)
    s, after = rng.normal(size=(2, n, S)).astype(np.float32)
    a = np.eye(A, dtype=np.float32)[rng.integers(A, size=n)]
    ends = np.arange(n) % 2 == 0 if terminated is None else np.full(n, terminated)
    return Transitions(*map(jnp.asarray, (s, a, after, ends)))


def shaken(tree, seed):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: x + jnp.asarray(rng.normal(0, 0.5, x.shape), x.dtype), tree)


def agent_of(tuning=TUNING):
    agent = actor_critic.init(S, A, tuning, discrete=True, key=KEY)
    return dataclasses.replace(
        agent, actor=shaken(agent.actor, 1), critic=shaken(agent.critic, 2),
        target=shaken(agent.target, 3),
    )  # fmt: skip


def every(obs):
    """All three actions at each observation."""
    return jnp.broadcast_to(jnp.eye(A, dtype=jnp.float32)[:, None], (A, len(obs), A))


def forward(net, x, norm, twin=None):
    """A network in NumPy."""
    layers = [
        [np.asarray(p, np.float64) if twin is None else np.asarray(p[twin], np.float64)
         for p in (layer.w, layer.b)]
        for layer in net.layers
    ]  # fmt: skip
    for w, b in layers[:-1]:
        x = x @ w + b
        if norm:
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        x = np.maximum(x, 0)
    return x @ layers[-1][0] + layers[-1][1]


def by_hand(agent, seen, shown, terminates):
    """Their loss, twin by twin, in NumPy: −E_E[r], a middle term, and E_all[r²]/(4 · ½), where r =
    Q − γ V′, V′ of the targets, and V = Σ_a π (Q − α log π) of the same twin."""
    obs, action, following, ended = (
        np.concatenate([np.asarray(getattr(b, name)) for b in (seen, shown)])
        for name in ("obs", "action", "next_obs", "terminated")
    )
    of_expert = np.arange(len(obs)) >= len(seen.obs)
    losses = []
    for twin in range(2):

        def Q(critic, s, a, twin=twin):
            x = np.concatenate([s, a], axis=1)
            return forward(critic.net, x, critic.net.norm, twin)[:, 0]

        def V(critic, s, Q=Q):
            out = forward(agent.actor.net, s, agent.actor.net.norm)
            p = np.exp(out - out.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            each = [Q(critic, s, np.tile(np.eye(A)[a], (len(s), 1))) for a in range(A)]
            return (p * (np.stack(each, axis=1) - 0.4 * np.log(p))).sum(1)

        y = 0.8 * np.where(ended, 0, V(agent.target, following))
        r = Q(agent.critic, obs, action) - y
        if terminates:  # v0: every state of the expert's is a start
            middle = 0.2 * V(agent.critic, obs)[of_expert].mean()
        else:  # value: of all points
            middle = (V(agent.critic, obs) - y).mean()
        losses.append(middle - r[of_expert].mean() + (r**2).mean() / 2)
    return (losses[0] + losses[1]) / 2


@pytest.mark.parametrize("terminates", [False, True])
def test_a_step_of_iq_learns_critics(terminates):
    """The loss, and its slope along some of the critics' weights."""
    agent, seen, shown = agent_of(), points(4, 5), points(3, 6)
    after, loss = jax.jit(functools.partial(iq_learn.fit, tuning=TUNING))(
        agent, seen, shown, terminates=jnp.asarray(terminates), key=KEY
    )
    assert float(loss) == pytest.approx(by_hand(agent, seen, shown, terminates), rel=1e-4)
    leaves, tree = jax.tree.flatten(agent.critic)
    moments = jax.tree.leaves(after.critic_moments[0].mu)
    for place, (leaf, moment) in enumerate(zip(leaves, moments, strict=True)):
        for at in ((0,) * leaf.ndim, (1,) * (leaf.ndim - 1) + (leaf.shape[-1] - 1,)):
            sides = []
            for step in (1e-4, -1e-4):
                moved = [np.asarray(x, np.float64) for x in leaves]
                moved[place] = moved[place].copy()
                moved[place][at] += step
                other = dataclasses.replace(agent, critic=jax.tree.unflatten(tree, moved))
                sides.append(by_hand(other, seen, shown, terminates))
            slope = (sides[0] - sides[1]) / 2e-4
            assert float(moment[at]) / 0.1 == pytest.approx(slope, rel=1e-3, abs=1e-4)
    trees = (agent.target, after.critic, after.target)
    for old, near, new in zip(*map(jax.tree.leaves, trees), strict=True):
        np.testing.assert_allclose(new, 0.7 * old + 0.3 * near, rtol=1e-5, atol=1e-6)
    for old, new in zip(jax.tree.leaves(agent.actor), jax.tree.leaves(after.actor), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_step_of_sqils_critics():
    """Towards r + γ V′, r = 1 for the expert; and the mean of squares of both twins."""
    agent, seen, shown = agent_of(), points(4, 5), points(3, 6)

    @jax.jit
    def missed(agent):
        losses = []
        for batch, r in ((seen, 0), (shown, 1)):
            log, ahead = agent.actor.at(batch.next_obs).log_p.T, every(batch.next_obs)
            Q = agent.target.least(batch.next_obs, ahead)
            y = r + 0.8 * jnp.where(batch.terminated, 0, (jnp.exp(log) * (Q - 0.4 * log)).sum(0))
            losses.append((agent.critic(batch.obs, batch.action[None])[:, 0] - y) ** 2)
        return jnp.concatenate(losses, axis=1).mean()

    _, loss = jax.jit(functools.partial(sqil.fit, tuning=TUNING))(
        agent, seen, shown, terminates=jnp.asarray(True), key=KEY
    )
    assert float(loss) == pytest.approx(float(missed(agent)), rel=1e-4)


CONFIG = DeepConfig(
    interactions=10, window="all", fresh=1, replay=1, batch=4, demo_share=0.25, hidden=4,
    policy_steps=1, actor_rate=0.01, final_rate=0.5, average=0.5, warm_start="none", kl=0.0,
    entropy=0.4,
)  # fmt: skip


def told(agent, seen, shown, tuning, *, terminates, key):
    """A fit that fits nothing, and says what it was given: two means and two counts."""
    said = jnp.mean(seen.obs[:, 0]) + 10 * jnp.mean(shown.obs[:, 0])
    return agent, said + 100 * len(seen.obs) + 10_000 * len(shown.obs)


def begun(k):
    settings = learner.resolve(CONFIG)
    state = soft.init(settings, S, A, discrete=True, key=KEY)
    state = dataclasses.replace(
        state, agent=agent_of(settings.tuning), average=shaken(state.average, 7),
        k=jnp.asarray(k - 1, jnp.int32),
    )  # fmt: skip
    return settings, state


def copied(tree):
    return jax.tree.map(np.array, jax.tree.leaves(tree))


def test_an_iteration_keeps_half_a_batch_of_each():
    """Three points in four of practice and one of the expert's, after seven iterations of ten."""
    settings, state = begun(7)
    expert, fresh = points(1, 1, False), points(1, 2, False)
    actor, average = copied(state.agent.actor), copied(state.average)
    after, info = soft.stepping(told)(state, fresh, expert, settings=settings)
    said = float(fresh.obs[0, 0]) + 10 * float(expert.obs[0, 0]) + 300 + 10_000
    assert float(info.critic_loss) == pytest.approx(said, rel=1e-5)
    assert (int(after.k), after.window.label.tolist()) == (7, [6])
    np.testing.assert_array_equal(after.window.segments.obs[0], fresh.obs)
    for old, anchor in zip(actor, copied(after.agent.anchor), strict=True):
        np.testing.assert_array_equal(old, anchor)
    moved = zip(actor, copied(after.agent.actor), strict=True)
    assert max(np.abs(new - old).max() for old, new in moved) == pytest.approx(
        0.01 * (1 - 0.5 * 0.7), rel=1e-3
    )  # Adam's first
    share = 1 / (1 + 0.5 * 7)
    means = zip(average, copied(after.agent.actor), copied(after.average), strict=True)
    for old, now, mean in means:
        np.testing.assert_allclose(mean, (1 - share) * old + share * now, rtol=1e-4, atol=1e-6)
    log = after.agent.anchor.at(jnp.concatenate([fresh.obs] * 3 + [expert.obs])).log_p
    entropy = -(jnp.exp(log) * log).sum(-1).mean()
    assert float(info.entropy) == pytest.approx(float(entropy), rel=1e-3)
    obs = jnp.concatenate([fresh.obs] * 3 + [expert.obs])
    q = (jnp.exp(log).T * after.agent.critic.least(obs, every(obs))).sum(0).mean()
    assert float(info.q) == pytest.approx(float(q), rel=1e-3)


def test_the_actor_may_wait_for_its_critics():
    settings, state = begun(1)
    actor = copied(state.agent.actor)
    after, info = soft.stepping(told)(
        state, points(1, 2), points(1, 1), settings=settings, moving=False
    )
    for old, new in zip(actor, copied(after.agent.actor), strict=True):
        np.testing.assert_array_equal(old, new)
    assert (float(info.q), float(info.entropy)) == (0, 0)
    assert float(info.critic_loss) > 10_000
    few = dataclasses.replace(CONFIG, demo_share=0.0)
    settings = learner.resolve(few)
    _, told_ = soft.stepping(told)(begun(1)[1], points(1, 2), points(1, 1), settings=settings)
    assert 10_300 - 50 < float(told_.critic_loss) < 10_300 + 50  # one of the expert's in any case


def test_the_last_of_the_steps_is_told():
    settings = learner.resolve(dataclasses.replace(CONFIG, policy_steps=3))

    def counting(agent, seen, shown, tuning, *, terminates, key):
        return dataclasses.replace(agent, log_alpha=agent.log_alpha + 1), agent.log_alpha

    state = begun(1)[1]
    first = float(state.agent.log_alpha)
    after, info = soft.stepping(counting)(
        state, points(1, 2), points(1, 1), settings=settings, moving=False
    )
    assert float(info.critic_loss) == pytest.approx(first + 2)
    assert float(after.agent.log_alpha) == pytest.approx(first + 3)


def test_once_an_episode_has_ended_early_the_steps_know_it():
    """From the practice of that iteration on, and whatever is practised later."""

    def asking(agent, seen, shown, tuning, *, terminates, key):
        return agent, terminates.astype(jnp.float32)

    settings, state = begun(1)
    step, said = soft.stepping(asking), []
    for seed, ended in ((2, False), (3, True), (4, False)):
        state, info = step(
            state, points(1, seed, ended), points(1, 1, True), settings=settings, moving=False
        )
        said.append(float(info.critic_loss))
    assert said == [0, 1, 1]
