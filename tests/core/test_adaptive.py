"""Steps that adapt: each player against a numerical optimiser, and the regret against twice the
surprise, which no sequence of payoffs may exceed."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import random_mdp, random_policy, seeds
from scipy.optimize import minimize

from understudy.core import adaptive, updates
from understudy.core import mdp as mdps
from understudy.core.adaptive import Surprise
from understudy.core.linear_mdp import random_linear
from understudy.core.precision import double
from understudy.experiments.outcome import ledger
from understudy.learners.config import Config
from understudy.learners.finite import imitate, plan, pose

A = 4


def surprise_of(total, guess, policy, reward=None) -> Surprise:
    reward = np.zeros((1, 1)) if reward is None else reward
    return Surprise(*(jnp.asarray(x, float) for x in (total, guess, policy, reward)))


def best_on_the_simplex(payoff: np.ndarray, rate: float) -> float:
    """max_w ⟨w, payoff⟩ − KL(w ‖ uniform)/ρ, by an optimiser that knows no closed form."""

    def loss(z: np.ndarray) -> float:
        w = np.exp(z - z.max())
        w /= w.sum()
        return float((w * np.log(np.maximum(w * A, 1e-300))).sum() / rate - w @ payoff)

    return max(-minimize(loss, start).fun for start in np.eye(A))


@settings(max_examples=25)
@given(seeds, st.floats(0.3, 3))
@double
def test_the_policys_surprise_is_what_it_would_have_gained(seed, met):
    rng = np.random.default_rng(seed)
    total, guess, Q = rng.uniform(-2, 2, size=(3, 1, 1, A))
    before = surprise_of(total, guess, [[met]])
    rate = math.log(A) / met
    z = rate * (total + guess)[0, 0]
    pi = np.exp(z - z.max())
    pi /= pi.sum()
    logits, after = adaptive.turn(before, jnp.asarray(pi[None, None]), jnp.asarray(Q))
    acted = pi @ (total + Q)[0, 0] - (pi * np.log(pi * A)).sum() / rate
    delta = best_on_the_simplex((total + Q)[0, 0], rate) - acted
    assert float(after.policy[0, 0]) == pytest.approx(met + delta, abs=1e-5)
    slower = math.log(A) / float(after.policy[0, 0])  # and by that pace it goes on
    ahead = slower * (total + 2 * Q)[0, 0]
    np.testing.assert_allclose(logits[0, 0], ahead - ahead.max(), atol=1e-9)
    np.testing.assert_array_equal(after.guess, Q)


@settings(max_examples=25)
@given(seeds, st.floats(0.1, 2), st.sampled_from(["box", "ball"]))
@double
def test_the_rewards_surprise_is_what_it_would_have_gained(seed, met, rewards):
    rng = np.random.default_rng(seed)
    gain, g = rng.normal(size=(2, 2, 3))
    deltas = np.full((2, 3) if rewards == "box" else (2, 1), met)
    before = surprise_of(np.zeros((1, 1, A)), np.zeros((1, 1, A)), [[0.0]], deltas)
    told, mu, after = adaptive.answer(before, jnp.asarray(gain), jnp.asarray(g), rewards)
    np.testing.assert_allclose(told, gain + g)
    eta = (0.5 if rewards == "box" else 1.5) / met
    project = updates.project_box if rewards == "box" else updates.project_ball
    np.testing.assert_allclose(mu, project(jnp.asarray(eta * (gain + 2 * g))), atol=1e-12)
    for stage in range(2):

        def loss(x: np.ndarray, stage: int = stage) -> float:
            return float((x**2).sum() / (2 * eta) - x @ (gain + g)[stage])

        bounded = (
            {"bounds": [(0, 1)] * 3}
            if rewards == "box"
            else {"constraints": {"type": "ineq", "fun": lambda x: 3 - x @ x}}
        )
        best = minimize(loss, np.full(3, 0.5), method="SLSQP", **bounded).fun
        delta = float(np.sum(after.reward[stage])) - deltas[stage].sum()
        assert delta == pytest.approx(loss(np.asarray(mu[stage])) - best, abs=1e-5)


@settings(max_examples=15)
@given(seeds, st.sampled_from(["noise", "drift", "flips"]))
@double
def test_no_payoffs_cost_the_policy_more_than_twice_its_surprise(seed, kind):
    """However badly it was guessed; and the surprise is at most 2R + R√(K log A)."""
    rng, K, R = np.random.default_rng(seed), 120, 3.0
    Qs = {
        "noise": rng.uniform(0, R, size=(K, 1, 1, A)),
        "drift": np.clip(np.cumsum(rng.normal(size=(K, 1, 1, A)), 0) + 1, 0, R),
        "flips": R * (np.arange(K)[:, None, None, None] % 2 == np.arange(A) % 2),
    }[kind].astype(float)
    pi = jnp.full((1, 1, A), 1 / A)
    state = adaptive.none_yet(pi, jnp.zeros((1, 1)), "box")
    earned = 0.0
    for Q in Qs:
        earned += float(jnp.sum(pi * Q))
        logits, state = jax.jit(adaptive.turn)(state, pi, jnp.asarray(Q))
        pi = updates.policy(logits)
    regret = float(Qs.sum(0).max()) - earned
    met = float(state.policy[0, 0])
    assert regret <= 2 * met + 1e-9
    assert met <= 2 * R + R * math.sqrt(K * math.log(A))


@settings(max_examples=15)
@given(seeds, st.sampled_from(["box", "ball"]))
@double
def test_no_gradients_cost_the_reward_more_than_twice_its_surprise(seed, rewards):
    rng, K, d = np.random.default_rng(seed), 80, 5
    gs = rng.uniform(-1, 1, size=(K, 1, d)) + 0.3 * np.sin(np.arange(K) / 7)[:, None, None]
    mu = gain = jnp.zeros((1, d))
    state, earned = adaptive.none_yet(jnp.ones((1, 1, A)) / A, mu, rewards), 0.0
    for g in gs:
        gain, mu, state = adaptive.answer(state, gain, jnp.asarray(g), rewards)
        earned += float(jnp.sum(mu * g))
    best = updates.best_in_box if rewards == "box" else updates.best_in_ball
    most = float(jnp.sum(best(gain) * gain))
    assert most - earned <= 2 * float(state.reward.sum()) + 1e-9


def test_a_place_where_nothing_surprises_stays_quick():
    """Equal payoffs surprise nobody: σ is log A over the least that counts."""
    with jax.enable_x64(True):
        pi = jnp.full((1, 2, A), 1 / A)
        state = adaptive.none_yet(pi, jnp.zeros((1, 1)), "box")
        Q = jnp.asarray([[[1.0] * A, [0.0, 0.0, 0.0, 2.0]]])
        _, state = adaptive.turn(state, pi, Q)
        quick, slow = (float(x) for x in adaptive.rates(state)[0])
    assert quick == pytest.approx(math.log(A) / adaptive.LEAST)
    assert slow == pytest.approx(math.log(A) / 1.5, rel=1e-4)  # the mean of Q was 0.5 of 2


PROBLEMS = {
    "table": lambda: random_mdp(4, 5, 3, 3, staged=True, seed=11),
    "ball": lambda: random_linear(3, S=6, A=3, H=4, d=5, C=3, p=2),
}


@pytest.mark.parametrize("reward", ["stage", "stationary"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_regret_of_a_run_is_within_its_certificate(name, reward):
    """And the certificate says something: it is far below what no regret can exceed."""
    where, K = PROBLEMS[name](), 500
    mdp = where if name == "table" else where.mdp
    expert = mdps.occupancy(mdp, random_policy(mdp, 1, 0.7))
    config = Config(interactions=K, marks=5, reward=reward)
    result = imitate(where, expert, config, seeds=(0,))
    told = np.asarray(result.measured.certificate[0])
    regret = np.asarray(result.regret.ail[0])
    assert (regret[1:] <= told[1:]).all()
    assert told[-1] < (0.2 if reward == "stage" else 0.4) * 4 * K * (
        1 if name == "table" else 5**0.5
    )
    assert result.last_gap[0, -1] < 0.01  # with a stochastic expert, and yet the last iterate
    first = jax.tree.map(lambda x: x[0], result.measured)
    account = ledger(first, plan(where, config), pose(where, expert))
    assert account["ail"]["sharp_bound"] == pytest.approx(told[-1])
    if reward == "stage":
        assert account["ail"]["bound"] > told[-1]
    assert all(row["holds"] is not False for row in account.values()), account
