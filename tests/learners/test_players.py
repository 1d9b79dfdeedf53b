"""The leader, steps that fall, own probabilities and the policy handed out, each replayed in plain
NumPy from what the run drew."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import dense, random_mdp, random_policy, seeds
from scipy.optimize import minimize

from understudy.core import features, updates
from understudy.core import mdp as mdps
from understudy.core import occupancy as occupancies
from understudy.core.linear_mdp import random_linear
from understudy.core.occupancy import Points
from understudy.learners import linear, loop, tabular
from understudy.learners.config import Config
from understudy.learners.finite import imitate, learner_of, plan, pose, stack
from understudy.learners.seeds import keys_of
from understudy.learners.tabular import Problem, Segment

H, S, A = 4, 5, 3
MDP = random_mdp(H, S, A, 3, staged=True, seed=11)
EXPERT = mdps.occupancy(MDP, random_policy(MDP, 1, 0.2))
SMALL = random_linear(3, S=6, A=3, H=4, d=5, C=3, p=2)


def visited(state, k):
    """The points that policy k − 1, the k-th, collected: rows (h, s, a)."""
    (slot,) = np.flatnonzero(np.asarray(state.window.label) == k - 1)
    at = state.window.segments.points
    return np.stack([np.asarray(x[slot]) for x in (at.h, at.s, at.a)], axis=-1)


def counted(points, pi, *, expected):
    """d̂ of one segment, point by point."""
    d = np.zeros(pi.shape)
    for h, s, a in points:
        if expected:
            d[h, s] += pi[h, s] * len(pi) / len(points)
        else:
            d[h, s, a] += len(pi) / len(points)
    return d


def walked(problem, config, seed=5):
    """A run step by step: for each update the state before and after."""
    p = plan(problem.linear if isinstance(problem, linear.Problem) else problem.mdp, config)
    learner = learner_of(problem, p.protocol)
    key = jax.random.key(seed)
    state = learner.init(problem, p.protocol, key=jax.random.fold_in(key, 0))
    step = jax.jit(lambda s, key: learner.step(s, problem, p.settings, p.protocol, key=key)[0])
    for k in range(1, p.iterations + 1):
        after = step(state, jax.random.fold_in(key, k))
        yield k, p, state, after
        state = after


# --- the leader ----------------------------------------------------------------------------------


@settings(max_examples=25)
@given(seeds, st.floats(0.05, 5.0), st.sampled_from(["box", "ball"]))
def test_the_leader_is_the_regularised_best_response(seed, eta, kind):
    """argmax_μ ⟨μ, G⟩ − ‖μ‖²/(2η) by a general optimiser, on the box and on the ball of √d."""
    rng = np.random.default_rng(seed)
    before, gradient = rng.normal(size=(2, 2, 4))
    project = updates.project_box if kind == "box" else updates.project_ball
    gain, mu = updates.lead(jnp.asarray(before), jnp.asarray(gradient), jnp.float64(eta), project)
    np.testing.assert_allclose(gain, before + gradient)
    for G, ours in zip(before + gradient, np.asarray(mu), strict=True):

        def loss(x, G=G):
            return x @ x / (2 * eta) - G @ x

        inside = {"bounds": [(0, 1)] * 4, "method": "L-BFGS-B"}
        if kind == "ball":
            ball = {"type": "ineq", "fun": lambda x: 4 - x @ x}
            inside = {"constraints": ball, "method": "SLSQP"}
        found = minimize(loss, np.full(4, 0.3), **inside, options={"maxiter": 500, "ftol": 1e-14})
        np.testing.assert_allclose(ours, found.x, atol=1e-4)
        assert loss(ours) <= found.fun + 1e-8
        assert (0 <= ours).all() if kind == "box" else ours @ ours <= 4 + 1e-9


def test_the_leader_beats_every_point_of_a_fine_grid():
    """One coordinate of the box: η G where that is inside, else the nearer end."""
    grid = np.linspace(0, 1, 10_001)
    for G in (-2.0, 0.0, 0.3, 1.7, 40.0):
        for eta in (0.1, 0.5, 2.0):
            _, mu = updates.lead(jnp.zeros((1, 1)), jnp.full((1, 1), G), jnp.float64(eta))
            best = grid[np.argmax(grid * G - grid**2 / (2 * eta))]
            assert float(mu[0, 0]) == pytest.approx(best, abs=1e-4)


def test_a_stationary_leader_sums_the_stages():
    rng = np.random.default_rng(0)
    before, gradient = rng.normal(size=(1, 3, 2)), rng.normal(size=(4, 3, 2))
    gain, mu = updates.lead(jnp.asarray(before), jnp.asarray(gradient), jnp.float64(0.2))
    np.testing.assert_allclose(gain[0], before[0] + gradient.sum(0))
    np.testing.assert_allclose(mu[0], np.clip(0.2 * (before[0] + gradient.sum(0)), 0, 1))


@pytest.mark.parametrize(
    "change",
    [
        {"batch": 1, "steps": "paper", "visits": "sampled"},
        {"batch": 2},
        {"fresh": 3},
        {"batch": 1, "visits": "sampled", "reward": "stationary", "sigma": 0.3},
    ],
)
def test_the_leader_of_a_run_answers_all_that_was_sampled(change):
    """μ_k = clip(η_k Σ_j (d_E − d̂_j)), from the points that the run drew."""
    config = Config(
        **{"steps": "anytime", **change},
        gradients="sampled", rewarder="leader", interactions=96, marks=1,
    )  # fmt: skip
    total = np.zeros(MDP.shape)
    inside = False
    for k, p, before, after in walked(Problem(MDP, EXPERT), config):
        expected = config.visits == "expected"
        d = counted(visited(after, k), np.asarray(before.pi), expected=expected)
        total += np.asarray(EXPERT) - d
        eta = float(p.settings.eta) / (np.sqrt(k) if config.steps == "anytime" else 1)
        G = total.sum(0, keepdims=True) if config.reward == "stationary" else total
        np.testing.assert_allclose(after.gain, G, atol=1e-11)
        np.testing.assert_allclose(after.mu, np.clip(eta * G, 0, 1), atol=1e-11)
        inside |= bool(((eta * G > 0.01) & (eta * G < 0.99)).any())
    assert k >= 12
    assert inside  # not all at the ends


def test_the_leader_of_a_linear_run_answers_all_that_was_sampled():
    """μ_k = Proj[η_k Σ_j Σ φ (d_E − d̂_j)], on the ball of radius √5."""
    phi = np.asarray(features.vectors(SMALL.phi))
    problem = pose(SMALL, None)
    config = Config(
        batch=1, gradients="sampled", rewarder="leader", eta=4.0, interactions=80, marks=1
    )
    total, lengths = np.zeros((4, 5)), []
    for k, _, before, after in walked(problem, config):
        d = counted(visited(after, k), np.asarray(before.pi), expected=True)
        total += np.einsum("hsa,sad->hd", np.asarray(problem.expert) - d, phi)
        mu = 4.0 / np.sqrt(k) * total
        length = np.linalg.norm(mu, axis=-1, keepdims=True)
        lengths.append(length)
        np.testing.assert_allclose(after.mu, mu * np.minimum(1, np.sqrt(5) / length), atol=1e-11)
    assert np.min(lengths) < np.sqrt(5) < np.max(lengths)  # within the ball, and projected


# --- step sizes ----------------------------------------------------------------------------------


def value_of(mdp, pi, mu):
    """Q^π of the reward μ, backwards, in plain NumPy."""
    P, V, Q = dense(mdp), np.zeros(mdp.states), np.zeros(mdp.shape)
    for h in reversed(range(mdp.horizon)):
        Q[h] = np.broadcast_to(mu, mdp.shape)[h] + P[h] @ V
        V = (pi[h] * Q[h]).sum(-1)
    return Q


def centred(x):
    return x - x.max(-1, keepdims=True)


@pytest.mark.parametrize("steps", ["anytime", "paper", "theory"])
def test_logits_are_the_step_size_times_all_values(steps):
    """σ_k Σ_j Q_j up to a constant for each state: with σ_k = σ_1/√k dual averaging, with a
    constant σ Eq. 4."""
    config = Config(batch=1, steps=steps, interactions=4 * 200, marks=1)
    total, own = np.zeros(MDP.shape), np.full(MDP.shape, 1 / A)
    for k, p, before, after in walked(Problem(MDP, EXPERT), config):
        sigma = float(p.settings.sigma)
        Q = value_of(MDP, np.asarray(before.pi), np.asarray(after.mu))
        total += Q
        if steps == "anytime":
            own = np.exp(centred(sigma / np.sqrt(k) * total))
        else:
            own = own * np.exp(sigma * centred(Q))  # Eq. 4
        own /= own.sum(-1, keepdims=True)
        now = sigma / np.sqrt(k) if steps == "anytime" else sigma
        np.testing.assert_allclose(centred(after.logits), centred(now * total), atol=1e-10)
        np.testing.assert_allclose(after.pi, own, atol=1e-11)
    assert k == 200
    assert np.abs(own - 1 / A).max() > 0.1  # it went somewhere


@settings(max_examples=30)
@given(seeds, st.floats(0.01, 3.0), st.integers(1, 30))
def test_fading_makes_mirror_steps_dual_averaging(seed, sigma, k):
    """After k steps with any Q_1 … Q_k, on their own."""
    Qs = np.random.default_rng(seed).uniform(0, 5, size=(k, 1, 2, 4))
    falling = constant = jnp.zeros((1, 2, 4))
    for j, Q in enumerate(Qs, 1):
        now = updates.pace(jnp.float64(sigma), jnp.int32(j), anytime=True)
        assert float(now) == pytest.approx(sigma / np.sqrt(j), rel=1e-15)
        falling = updates.mirror(falling, jnp.asarray(Q), now, jnp.sqrt((j - 1) / j))
        still = updates.pace(jnp.float64(sigma), jnp.int32(j), anytime=False)
        constant = updates.mirror(constant, jnp.asarray(Q), still)
    expected = centred(sigma / np.sqrt(k) * Qs.sum(0))
    np.testing.assert_allclose(centred(falling), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(centred(constant), centred(sigma * Qs.sum(0)), rtol=0, atol=1e-11)


def test_the_rewards_steps_fall_too():
    """μ_k = clip(μ_{k−1} + η_1/√k (d_E − d̂_k)), from the points drawn."""
    config = Config(batch=1, gradients="sampled", eta=0.3, interactions=80, marks=1)
    mu = np.zeros(MDP.shape)
    for k, _, before, after in walked(Problem(MDP, EXPERT), config):
        d = counted(visited(after, k), np.asarray(before.pi), expected=True)
        mu = np.clip(mu + 0.3 / np.sqrt(k) * (np.asarray(EXPERT) - d), 0, 1)
        np.testing.assert_allclose(after.mu, mu, atol=1e-12)


def test_the_first_steps_in_numbers():
    """H = 9, A = 5: 7 √(2 log 5) / 9, and 10; one stage of nine at a time makes it a third."""
    assert updates.anytime_steps(9, 5, 9) == pytest.approx((1.3954287, 10), rel=1e-6)
    assert updates.anytime_steps(9, 5, 1) == pytest.approx((1.3954287, 10 / 3), rel=1e-6)
    assert updates.anytime_steps(9, 5, 90)[1] == 10
    assert updates.anytime_steps(2, 1, 2)[0] == updates.anytime_steps(2, 2, 2)[0]  # no log 1


# --- own probabilities ---------------------------------------------------------------------------


def some_segment(pi, n=12):
    rng = np.random.default_rng(3)
    h, s = rng.integers(H, size=n), rng.integers(S, size=n)
    a = np.array([rng.choice(A, p=pi[i, j] / pi[i, j].sum()) for i, j in zip(h, s, strict=True)])
    weights = rng.dirichlet(np.ones(n))
    return h, s, a, weights


def test_expected_visits_put_the_policys_share_on_every_action():
    pi = np.asarray(random_policy(MDP, 4, 1.0))
    h, s, a, weights = some_segment(pi)
    points = Points(*(jnp.asarray(x, jnp.int32) for x in (h, s, a)))
    at, shares = tabular.weighed(Segment(points, None, jnp.asarray(pi[h, s])), jnp.asarray(weights))
    assert shares.shape == (12, A)
    for i in range(12):
        for b in range(A):
            assert (int(at.h[i, b]), int(at.s[i, b]), int(at.a[i, b])) == (h[i], s[i], b)
            assert float(shares[i, b]) == pytest.approx(weights[i] * pi[h[i], s[i], b], rel=1e-14)
    assert float(shares.sum()) == pytest.approx(1)
    taken = tabular.weighed(Segment(points, None, None), jnp.asarray(weights))
    assert taken[0] is points
    np.testing.assert_array_equal(taken[1], weights)


def test_expected_visits_are_the_mean_of_sampled_ones():
    """Over all Aⁿ actions that might have been taken in n = 3 visited states, each as probable as
    the policy has it."""
    pi = np.asarray(random_policy(MDP, 4, 1.0))
    h, s, weights = np.array([0, 2, 2]), np.array([1, 4, 0]), np.array([0.5, 0.2, 0.3])
    mean = np.zeros(MDP.shape)
    for actions in np.ndindex(A, A, A):
        chance = np.prod(pi[h, s, list(actions)])
        points = Points(*(jnp.asarray(x, jnp.int32) for x in (h, s, np.array(actions))))
        sampled = tabular.weighed(Segment(points, None, None), jnp.asarray(weights))
        mean += chance * np.asarray(occupancies.estimate(*sampled, MDP.shape))
    chances = jnp.asarray(pi[h, s])
    expected = tabular.weighed(Segment(points, None, chances), jnp.asarray(weights))
    np.testing.assert_allclose(occupancies.estimate(*expected, MDP.shape), mean, atol=1e-14)


def test_in_a_bandit_expected_visits_are_the_policy_itself():
    """One state and one stage: nothing is left to chance."""
    bandit = mdps.from_arrays(np.ones((1, 4, 1)), horizon=1, nu=np.ones(1))
    expert = jnp.asarray([[[0.1, 0.2, 0.6, 0.1]]])
    problem = Problem(bandit, expert)
    for change in ({}, {"fresh": 3}, {"window": "4", "points": 8}):
        p = plan(bandit, Config(interactions=60, gradients="sampled", **change))
        state, played = tabular.init(problem, p.protocol, key=jax.random.key(0)), []
        step = jax.jit(
            lambda s, key, p=p: tabular.step(s, problem, p.settings, p.protocol, key=key)
        )
        for k in range(1, 8):
            played.append(np.asarray(state.pi))
            key = jax.random.fold_in(jax.random.key(1), k)
            state, info = step(state, key)
            if "points" not in change:
                np.testing.assert_allclose(info.d_mix, played[-1], atol=1e-14)
        if "points" in change:  # as many points as there are, each once: the window's mean
            np.testing.assert_allclose(info.d_mix, np.mean(played[-4:], axis=0), atol=1e-14)


# --- the policy handed out -----------------------------------------------------------------------


def forward(P, pi):
    """d_h(s,a) of the policy, P as H×S×A×S, in plain NumPy."""
    mass, d = np.asarray(MDP.nu), []
    for h in range(H):
        d.append(mass[:, None] * np.asarray(pi[h]))
        mass = np.einsum("sa,sat->t", d[-1], P[h])
    return np.stack(d)


def gap_of(pi, expert):
    """Σ max(d_E − d, 0)."""
    return np.maximum(expert - forward(dense(MDP), pi), 0).sum()


HANDED = {
    "expected visits": {"gradients": "sampled"},
    "window": {"window": "4", "batch": 1, "visits": "sampled"},
    "leader": {"rewarder": "leader", "steps": "anytime", "fresh": 3},
    "constant steps": {"steps": "theory", "batch": 1},
}


@pytest.mark.parametrize("name", HANDED)
def test_the_policy_handed_out_is_no_worse_than_the_uniform_average(name):
    """Its gap by the definition; that of the average, K times, is the ledger's regret."""
    config = Config(interactions=480, marks=1, **HANDED[name])
    p = plan(MDP, config)
    run = tabular.run(
        Problem(MDP, EXPERT), stack(p.settings, 3), p.protocol, p.marks, keys=keys_of(range(3))
    )
    expert, K = np.asarray(EXPERT), p.iterations
    seen = run.measured
    for i in range(3):
        pi, last = np.asarray(run.policy[i]), np.asarray(run.state.pi[i])
        gap, last_gap = gap_of(pi, expert), gap_of(last, expert)
        even = np.maximum(expert - np.asarray(run.state.mixture.mean[i]), 0).sum()
        recent = np.maximum(expert - np.asarray(run.state.mixture.recent[i]), 0).sum()
        assert float(seen.gap[i, -1]) == pytest.approx(gap, abs=1e-12)
        assert float(seen.last_gap[i, -1]) == pytest.approx(last_gap, abs=1e-12)
        assert gap == pytest.approx(min(even, recent, last_gap), abs=1e-12)
        assert K * even == pytest.approx(float(run.regret.ail[i, -1]), abs=1e-9)
        assert gap <= float(run.regret.ail[i, -1]) / K + 1e-12
        assert 0 < gap < H
    assert float(seen.gap[0, 0]) == pytest.approx(gap_of(np.full(MDP.shape, 1 / A), expert))


def test_the_mixture_of_a_run_is_of_the_policies_that_acted():
    ds, weights = [], []
    config = Config(batch=1, interactions=4 * 25, marks=1)
    for k, _, before, after in walked(Problem(MDP, EXPERT), config):
        ds.append(forward(dense(MDP), before.pi))
        weights.append(k * (k + 1) * (k + 2))
        mean = np.average(ds, axis=0, weights=weights)
        np.testing.assert_allclose(after.mixture.mean, sum(ds) / len(ds), rtol=1e-12)
        np.testing.assert_allclose(after.mixture.recent, mean, rtol=1e-11)


def test_with_a_stationary_reward_the_gap_sums_the_stages_first():
    problem = Problem(MDP, EXPERT)
    d = np.asarray(mdps.occupancy(MDP, random_policy(MDP, 8, 0.5)))
    flat = np.maximum((np.asarray(EXPERT) - d).sum(0), 0).sum()
    staged = np.maximum(np.asarray(EXPERT) - d, 0).sum()
    found = [
        float(loop.imitation_gap(problem, jnp.asarray(d), stationary=s)) for s in (True, False)
    ]
    assert found == pytest.approx([flat, staged])
    assert flat < staged


def test_the_true_expert_measures_and_the_shown_one_chooses():
    """As far as the learner can tell: it has seen no other."""
    truth = mdps.occupancy(MDP, random_policy(MDP, 2, 0.2))
    config = Config(interactions=200, marks=1)
    result = imitate(MDP, np.asarray(EXPERT), config, truth=truth)
    alone = imitate(MDP, np.asarray(EXPERT), config)
    np.testing.assert_allclose(result.policy, alone.policy, atol=1e-12)
    assert result.gap[0, -1] == pytest.approx(gap_of(result.policy[0], np.asarray(truth)))
    assert alone.gap[0, -1] == pytest.approx(gap_of(alone.policy[0], np.asarray(EXPERT)))


def test_the_gap_of_a_linear_run_is_a_norm_of_features():
    """√d Σ_h ‖Σ φ (d_E − d)‖ on the ball; K times that of the average is the ledger's regret."""
    phi = np.asarray(features.vectors(SMALL.phi))
    problem, config = pose(SMALL, None), Config(batch=1, interactions=4 * 60, marks=1)
    p = plan(SMALL, config)
    run = linear.run(problem, stack(p.settings, 2), p.protocol, p.marks, keys=keys_of([0, 1]))

    def gap(d):
        f = np.einsum("hsa,sad->hd", np.asarray(problem.expert) - np.asarray(d), phi)
        return np.sqrt(5) * np.linalg.norm(f, axis=-1).sum()

    for i in range(2):
        found = gap(mdps.occupancy(SMALL.mdp, run.policy[i]))
        last = gap(mdps.occupancy(SMALL.mdp, run.state.pi[i]))
        even = gap(run.state.mixture.mean[i])
        assert float(run.measured.gap[i, -1]) == pytest.approx(found, abs=1e-10)
        assert float(run.measured.last_gap[i, -1]) == pytest.approx(last, abs=1e-10)
        best = min(even, gap(run.state.mixture.recent[i]), last)
        assert found == pytest.approx(best, abs=1e-10)
        assert 60 * even == pytest.approx(float(run.regret.ail[i, -1]), abs=1e-8)


def counted_model(counts):
    """P̂ as H×S×A×S: uniform where nothing was tried."""
    P = np.full((H, S, A, S), 1 / S)
    for h, s, a in np.ndindex(H, S, A):
        n = np.asarray(counts[h, s, a])
        if n.sum():
            P[h, s, a] = 0
            np.add.at(P[h, s, a], np.asarray(MDP.succ[h, s, a]), n / n.sum())
    return P


def test_with_learned_transitions_the_choice_is_by_the_model():
    """By the counted P̂ of each update for the averages, and the latest for the last iterate: the
    learner knows no other."""
    config = Config(batch=2, model="learned", counts="stage", interactions=4 * 2 * 30, marks=1)
    problem, ds = Problem(MDP, EXPERT), []
    walk = list(walked(problem, config))
    for _, _, before, after in walk:
        ds.append(forward(counted_model(after.counts), before.pi))
    k, p, _, after = walk[-1]
    weights = np.arange(1, k + 1) * np.arange(2, k + 2) * np.arange(3, k + 3)
    even, recent = np.mean(ds, axis=0), np.average(ds, axis=0, weights=weights)
    np.testing.assert_allclose(after.mixture.mean, even, rtol=1e-10)
    np.testing.assert_allclose(after.mixture.recent, recent, rtol=1e-10)
    told = even, recent, forward(counted_model(after.counts), after.pi)
    best = int(np.argmin([np.maximum(np.asarray(EXPERT) - d, 0).sum() for d in told]))
    pi = loop.hand_out(tabular.LEARNER, after, problem, p.protocol)
    chosen = told[best] / told[best].sum(-1, keepdims=True)
    np.testing.assert_allclose(pi, chosen, rtol=1e-9)


def test_the_last_policy_is_handed_out_where_asked_for_and_at_the_start():
    config = Config(interactions=100, marks=2, handed="last")
    last = imitate(MDP, np.asarray(EXPERT), config)
    np.testing.assert_array_equal(last.policy, last.last_policy)
    np.testing.assert_array_equal(last.gap, last.last_gap)
    mixed = imitate(MDP, np.asarray(EXPERT), dataclasses.replace(config, handed="mixture"))
    np.testing.assert_allclose(mixed.last_policy, last.policy, atol=1e-12)  # the run is the same
    np.testing.assert_allclose(mixed.last_returns, last.returns, atol=1e-12)
    assert mixed.returns[0, 0] == last.returns[0, 0]  # nothing has acted yet: π⁰
    assert np.isfinite(mixed.returns).all()


def test_what_demonstrations_can_be_off_by_is_the_sum_of_what_they_have_too_much():
    """On the box sup ⟨μ, x⟩ is the sum of x where it is positive; a stationary reward adds the
    stages up first."""
    rng = np.random.default_rng(5)
    shown = np.abs(np.asarray(EXPERT) + 0.1 * rng.normal(size=EXPERT.shape))
    problem = Problem(MDP, jnp.asarray(shown), truth=jnp.asarray(EXPERT))
    off = shown - np.asarray(EXPERT)
    for stationary, x in ((False, off), (True, off.sum(axis=0))):
        told = float(loop.misshown(problem, stationary=stationary))
        assert told == pytest.approx(np.maximum(x, 0).sum(), rel=1e-9)
    assert float(loop.misshown(Problem(MDP, EXPERT), stationary=False)) == 0
