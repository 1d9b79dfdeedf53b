"""Bounds, verdicts, gauges, windows and practice: small sums, done again by hand with numbers."""

import dataclasses
from math import log, sqrt
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from understudy.core import window as windows
from understudy.core.demonstrations import Demonstrations
from understudy.core.window import Gauge
from understudy.experiments.figures import claims, fig2
from understudy.experiments.stored_runs import StoredRun
from understudy.learners.deep import absorbing, learner, replay, scaling
from understudy.learners.deep import discriminator as discriminators
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.actor_critic import Transitions
from understudy.learners.deep.collect import Collector
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.networks import MLP, Linear
from understudy.theory import bounds, linear_bounds
from understudy.theory import verification as check
from understudy.theory.bounds import Sizes
from understudy.theory.ledger import Regret
from understudy.theory.verification import Setting

KEY = jax.random.key(0)

# --- the bounds: S = 4, A = 3, H = 5, K = 7, B = 2, σ = 0.1, η = 0.2, δ = 0.1 ---------------------

SIZE = Sizes(S=4, A=3, H=5, K=7, B=2)
SQUARES = 25 + 16 + 9 + 4 + 1  # Q is at most 5, 4, 3, 2, 1
MIRROR = 5 * log(3) / 0.1 + 0.1 * 7 * SQUARES / 8  # H log A / σ + σ K Σ (H−h+1)² / 8
ENERGY = 3.5 / (2 * 2)  # N = 1, 2, 2: c = (1.5, 1, 0.5), Σc² = 3.5, over 2B
# 2¹² vertices of the box of a stage and 2H/δ = 100; then 2/δ = 20
SAMPLING = 5 * sqrt(ENERGY * (12 * log(2) + log(100))) + 5 * sqrt(ENERGY * log(20))
ESTIMATION = SAMPLING + 0.2 * 5 * (0 + 1 + 1)


def test_tabular_steps_and_drifts_by_hand():
    assert bounds.tv_step(3, 5, 0.1) == pytest.approx(1.5)  # ½ · 2AσH
    h = np.arange(1, 6)
    sharp = bounds.sharp_tv_step(5, 0.1, h)
    np.testing.assert_allclose(sharp, [0.125, 0.1, 0.075, 0.05, 0.025])  # σ (H−h+1) / 4
    paper = bounds.drift_per_step(5, 3, 0.1, sharp=False)
    np.testing.assert_allclose(paper, [3, 6, 9, 12, 15])  # twice 1.5 a stage
    np.testing.assert_allclose(
        bounds.drift_per_step(5, 3, 0.1, sharp=True), [0.25, 0.45, 0.6, 0.7, 0.75]
    )
    nu, tv = np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([[0.4, 0], [0.2, 0.6]])
    np.testing.assert_allclose(bounds.occupancy_drift(nu, tv), [0.2, 1.0])  # 2·0.1, 2·(0.1 + 0.4)


def test_tabular_terms_by_hand():
    """Lemma 4.1 and the three of Thm 4.4."""
    known = bounds.policy_regret(SIZE, 0.1, 0.2)
    assert known == pytest.approx(MIRROR + sqrt(2) * 0.2 * 5 * 7)
    learned = bounds.policy_regret(SIZE, 0.1, 0.2, bonus_scale=1.5, delta=0.1)
    visits = 5 * 12 + 2 * 5 * sqrt(12 * 7) + 5 * sqrt(2 * 7 * log(2 / 0.1))
    assert learned - known == pytest.approx(2 * 1.5 * visits)
    assert bounds.optimisation(SIZE, 0.2) == pytest.approx(60 / 0.4 + 4 * 0.2 * 35)
    assert bounds.optimisation(SIZE, 0.2, 3.0) == pytest.approx(60 / 0.4 + 9 * 0.2 * 35)
    some = [1, 2, 3, 3]  # half of N − 1: 0, ½, 1, 1
    assert bounds.shift(SIZE, 0.1, some, sharp=False) == pytest.approx(2.5 * 45)
    assert bounds.shift(SIZE, 0.1, some, sharp=True) == pytest.approx(2.5 * 2.75)
    found = bounds.estimation(SIZE, 0.2, [1, 2, 2], delta=0.1)
    assert found == pytest.approx(ESTIMATION)
    weights = np.array([1.5, 1, 0.5])
    assert bounds.sampling(SIZE, weights, delta=0.1) == pytest.approx(SAMPLING)


FALLING = np.array([0.4, 0.2, 0.2, 0.1])


def test_steps_that_fall_by_hand():
    """Four updates: the last step divides, all of them add up (0.9), and the first drifts. A policy
    is played with the step before its own: 0.4 + 0.4 + 0.2 + 0.2 = 1.2."""
    size = Sizes(S=4, A=3, H=5, K=4, B=2)
    mirror = 5 * log(3) / 0.1 + 1.2 * SQUARES / 8
    assert bounds.mirror_descent(size, FALLING) == pytest.approx(mirror)
    assert bounds.mirror_descent(size, FALLING, 6.0) == pytest.approx(
        5 * log(3) / 0.1 + 1.2 * 36 * SQUARES / 8
    )
    assert bounds.policy_regret(size, FALLING, FALLING) == pytest.approx(mirror + sqrt(2) * 5 * 0.9)
    assert bounds.optimisation(size, FALLING) == pytest.approx(60 / 0.2 + 4 * 5 * 0.9)
    N = [1, 2, 2, 2]  # c = (1.5, 1, 1, 0.5), Σc² = 4.5
    energy = 4.5 / (2 * 2)
    noise = 5 * sqrt(energy * (12 * log(2) + log(100))) + 5 * sqrt(energy * log(20))
    found = bounds.estimation(size, FALLING, N, delta=0.1)
    assert found == pytest.approx(noise + 5 * 0.4 * 3)
    alone = 5 * sqrt(12 * log(2) + log(100)) + 5 * sqrt(log(20))  # Σc² = 4, over 2B
    whole = bounds.regret(size, FALLING, FALLING, [1] * 4, delta=0.1)
    assert whole == pytest.approx(mirror + 60 / 0.2 + 5 * 1.2 + alone)
    reused = bounds.regret(size, FALLING, FALLING, N, delta=0.1)  # by delay: drift has no bound
    moved = 5 * 0.4 * 3 + 2 * 5 * (0.5 + 0.5)
    assert reused == pytest.approx(mirror + 60 / 0.2 + 5 * 1.2 + noise + 5 * 0.4 * 3 + moved)


def test_shifts_by_hand():
    """By the mean lag of any weights; and as delayed feedback, by how far c is from one."""
    assert bounds.lagged(SIZE, 0.1, 4.5, sharp=False) == pytest.approx(4.5 * 45)
    assert bounds.lagged(SIZE, 0.1, 4.5, sharp=True) == pytest.approx(4.5 * 2.75)
    N = [1, 2, 2, 2]
    assert bounds.delayed(SIZE, 0.2, N) == pytest.approx(5 * 0.2 * 3 + 2 * 5 * (0.5 + 0.5))
    assert bounds.delayed(SIZE, 0.2, [1] * 7) == 0
    # N = 3: c = (11/6, 7/6, 1, …, 1, 2/3, 1/3), off by 5/6 + 1/6 + 1/3 + 2/3 = 2
    fixed = np.minimum(np.arange(1, 101), 3)
    assert bounds.delayed(Sizes(4, 3, 5, 100), 0.0, fixed) == pytest.approx(2 * 5 * 2)


def test_the_regret_as_a_whole_by_hand():
    """On-policy nothing shifts and no noise is seen twice; with N = 2 the smaller shift counts."""
    noise = 5 * sqrt(7 / 4 * (12 * log(2) + log(100))) + 5 * sqrt(7 / 4 * log(20))
    alone = MIRROR + 60 / 0.4 + 5 * 0.2 * 7
    found = bounds.regret(SIZE, 0.1, 0.2, [1] * 7, delta=0.1)
    assert found == pytest.approx(alone + noise)
    N = [1, *[2] * 6]  # c = (1.5, 1, 1, 1, 1, 1, 0.5), Σc² = 7.5
    noise = 5 * sqrt(7.5 / 4 * (12 * log(2) + log(100))) + 5 * sqrt(7.5 / 4 * log(20))
    seen = 5 * 0.2 * 6
    drifting, delayed = 6 / 2 * 2.75, 5 * 0.2 * 6 + 2 * 5 * (0.5 + 0.5)
    assert drifting < delayed
    found = bounds.regret(SIZE, 0.1, 0.2, N, delta=0.1)
    assert found == pytest.approx(alone + noise + seen + drifting)
    faster = bounds.regret(SIZE, 1.0, 0.2, N, delta=0.1)
    mirror = 5 * log(3) / 1.0 + 1.0 * 7 * SQUARES / 8
    assert faster == pytest.approx(mirror + 60 / 0.4 + 7 + noise + seen + delayed)
    learned = bounds.regret(SIZE, 0.1, 0.2, N, bonus_scale=1.5, delta=0.1)
    visits = 5 * 12 + 2 * 5 * sqrt(12 * 7) + 5 * sqrt(2 * 7 * log(2 / 0.1))
    assert learned - found == pytest.approx(2 * 1.5 * visits)


def test_segments_weigh_what_the_updates_that_hold_them_give():
    N = [1, 2, 1, 4, 2, 3]
    by_hand = np.zeros(len(N))
    for k, n in enumerate(N):  # update k + 1 holds the segments of policies k, k − 1, …
        for lag in range(n):
            by_hand[k - lag] += 1 / n
    np.testing.assert_allclose(bounds.segment_weights(N), by_hand)


def test_linear_bounds_in_numbers():
    """The ball of d = 9: rewards up to 3, of width 6, μ of diameter 6; the box: 1, 1 and 3."""
    ball, box = linear_bounds.ball(9), linear_bounds.box(9)
    assert dataclasses.astuple(ball) == (3, 6, 6)
    assert dataclasses.astuple(box) == (1, 1, 3)
    assert linear_bounds.tv_step(3, 5, 0.1, ball) == pytest.approx(4.5)
    assert linear_bounds.sharp_tv_step(5, 0.1, ball, 2) == pytest.approx(0.6)
    drifts = [linear_bounds.drift_per_step(5, 3, 0.1, ball, sharp=s) for s in (False, True)]
    np.testing.assert_allclose(drifts, [[9, 18, 27, 36, 45], [1.5, 2.7, 3.6, 4.2, 4.5]])
    some = [1, 2, 3, 3]
    shifts = [linear_bounds.shift(SIZE, 0.1, ball, some, sharp=s) for s in (False, True)]
    assert shifts == pytest.approx([6 * 2.5 * 135, 6 * 2.5 * 16.5])
    mirror = 5 * log(3) / 0.1 + 0.1 * 7 * SQUARES * 6**2 / 8
    policy = mirror + 2 * 0.2 * 35 + 5 * 3
    assert linear_bounds.policy_regret(SIZE, 0.1, 0.2, ball) == pytest.approx(policy)
    assert linear_bounds.optimisation(SIZE, 0.2, ball) == pytest.approx(2 * 5 * 9 / 0.2 + 28)
    spread = sqrt(2 * log(4 * 5 / 0.1) * 3.5 / 2), sqrt(3.5 * log(2 / 0.1) / (2 * 2))
    for rewards, diameter, width in ((ball, 6, 6), (box, 3, 1)):
        found = linear_bounds.estimation(SIZE, 0.2, rewards, [1, 2, 2], delta=0.1)
        expected = 5 * (diameter * spread[0] + width * spread[1]) + 2 * 0.2 * 5 * 2
        assert found == pytest.approx(expected)
    spread = sqrt(2 * log(4 * 5 / 0.1) * 7.5 / 2), sqrt(7.5 * log(2 / 0.1) / (2 * 2))
    whole = mirror + 5 * 36 / 0.4 + 2 * 5 * 0.2 * 7  # N = 1, then 2: six lags of ½, six seen again
    whole += 5 * 6 * (spread[0] + spread[1]) + 2 * 5 * 0.2 * 6 + 6 * 3 * 16.5
    found = linear_bounds.regret(SIZE, 0.1, 0.2, ball, [1, *[2] * 6], delta=0.1)
    assert found == pytest.approx(whole)


def test_printed_orders_in_numbers():
    tabular_order = bounds.order(SIZE, 4.0, sharp=False)
    assert dataclasses.astuple(tabular_order) == pytest.approx(
        (sqrt(5**4 * 4**2 * 3 * 7), sqrt(5**2 * 12 * 7), 25 * 3 * 3 * sqrt(7), sqrt(125 * 84 / 8))
    )
    linear = linear_bounds.order(SIZE, 16, 4.0, sharp=False)
    assert dataclasses.astuple(linear) == pytest.approx(
        (25 * 64 * sqrt(7), 5 * 4 * sqrt(7), 25 * 3 * 3 * 8 * sqrt(7), sqrt(125 * 16**2 * 7 / 8))
    )
    wide = Sizes(S=240_000, A=3, H=5, K=7, B=2)
    assert bounds.best_window(wide, sharp=False) == pytest.approx(20)  # ∛8,000
    assert bounds.best_window(wide, sharp=True) == pytest.approx(72_000 ** (1 / 3))
    assert linear_bounds.best_window(SIZE, 10**8, sharp=False) == pytest.approx(
        (10**4 / 90) ** (1 / 3)
    )
    assert linear_bounds.best_window(SIZE, 10**8, sharp=True) == pytest.approx(10)


def test_proven_orders_in_numbers():
    """H = 5, SA = 12, K = 7, B = 2, N = 4: √(H²SAK) = √2100; the smaller of that and √(H⁴K) shifts.
    None of it falls with N."""
    found = bounds.proven(SIZE, 4.0)
    assert dataclasses.astuple(found) == pytest.approx(
        (25 * sqrt(7), sqrt(2100), 3 * sqrt(2100), sqrt(1050) + 3 * sqrt(2100))
    )
    linear = linear_bounds.proven(SIZE, 16, 4.0)
    assert dataclasses.astuple(linear) == pytest.approx(
        (25 * 8 * sqrt(7), 20 * sqrt(7), 600 * sqrt(7), 20 * sqrt(7) / sqrt(2) + 60 * sqrt(7))
    )
    totals = [bounds.proven(SIZE, N).total for N in (1.0, 2.0, 8.0)]
    assert totals == sorted(totals)


# N = 1, then 2: c = (1.5, 1, 1, 1, 1, 1, 0.5), Σc² = 7.5, and six mean lags of a half
TWO = np.array([1, *[2] * 6])
SETTING = Setting(
    sigma=np.full(7, 0.1), eta=np.full(7, 0.2), windows=TWO, lags=(TWO - 1) / 2,
    trajectories=True, uniform=True, staged=True, leader=False, bonus_scale=None,
)  # fmt: skip
NOISE = 5 * sqrt(7.5 / 4 * (12 * log(2) + log(100))) + 5 * sqrt(7.5 / 4 * log(20))
SEEN = 0.2 * 5 * 6
BEHIND = sqrt(2) * 0.2 * 35
AIL = MIRROR + 60 / 0.4 + 0.2 * 35 + NOISE + SEEN + 3 * 2.75


def test_a_runs_limits_by_hand():
    """Whole trajectories: ‖ĝ_h‖ ≤ √2, for which the paper has 2. Fresh steps: 1 + H = 6."""
    whole = check.limits(SIZE, SETTING, 0.1)
    assert whole.policy == pytest.approx(MIRROR + BEHIND)
    assert whole.optimisation == pytest.approx(150 + 4 * 0.2 * 35)
    assert whole.shift == pytest.approx((3 * 45, 3 * 2.75))
    assert whole.estimation == pytest.approx(NOISE + SEEN)
    assert whole.ail == pytest.approx(AIL)
    assert whole.tv == pytest.approx((1.5, 0.125))
    assert whole.drift == pytest.approx((15, 0.75))
    fresh = check.limits(SIZE, dataclasses.replace(SETTING, trajectories=False), 0.1)
    assert fresh.policy == pytest.approx(MIRROR + 6 * 0.2 * 35)
    assert fresh.optimisation == pytest.approx(150 + 36 * 0.2 * 35)
    assert (fresh.estimation, fresh.ail) == (None, None)
    assert fresh.shift == pytest.approx((135, 8.25))
    ball = dataclasses.replace(SETTING, rewards=linear_bounds.ball(9))
    linear = check.limits(SIZE, ball, 0.1)
    mirror = 5 * log(3) / 0.1 + 0.1 * 7 * SQUARES * 36 / 8
    assert linear.policy == pytest.approx(mirror + 14 + 15)
    assert linear.shift == pytest.approx((6 * 3 * 135, 6 * 3 * 16.5))
    assert linear.tv == pytest.approx((4.5, 0.75))
    assert linear.drift == pytest.approx((45, 4.5))


def test_the_limits_of_steps_that_fall_by_hand():
    """The whole is bounded, with reuse as delayed feedback; a policy's step is not, nor its
    shift."""
    root = np.sqrt(np.arange(1, 8))
    falling = dataclasses.replace(
        SETTING, sigma=0.1 / root, eta=0.2 / root, windows=np.ones(7, int), lags=np.zeros(7)
    )
    alone = check.limits(SIZE, falling, 0.1)
    total = float((1 / root).sum())
    played = 1 + total - 1 / sqrt(7)  # from the step before the first, which is the first
    mirror = 5 * log(3) * sqrt(7) / 0.1 + 0.1 * played * SQUARES / 8
    noise = 5 * sqrt(7 / 4 * (12 * log(2) + log(100))) + 5 * sqrt(7 / 4 * log(20))
    assert alone.policy == pytest.approx(mirror + sqrt(2) * 0.2 * 5 * total)
    assert alone.optimisation == pytest.approx(60 * sqrt(7) / 0.4 + 4 * 5 * 0.2 * total)
    assert (alone.shift, alone.tv, alone.drift) == ((0, 0), (None, None), (None, None))
    gained = 60 * sqrt(7) / 0.4 + 5 * 0.2 * played
    assert alone.ail == pytest.approx(mirror + gained + noise)
    leading = check.limits(SIZE, dataclasses.replace(falling, leader=True), 0.1)
    assert leading.policy == pytest.approx(mirror + 1.5 * sqrt(2) * 0.2 * 5 * total)
    assert leading.ail == pytest.approx(alone.ail)
    reused = dataclasses.replace(falling, windows=TWO, lags=(TWO - 1) / 2)
    delayed = check.limits(SIZE, reused, 0.1)
    assert delayed.shift == (None, None)
    moved = 5 * 0.2 * 6 + 2 * 5 * (0.5 + 0.5)
    assert delayed.ail == pytest.approx(mirror + gained + NOISE + SEEN + moved)
    ball = dataclasses.replace(reused, rewards=linear_bounds.ball(9))
    assert check.limits(SIZE, ball, 0.1).ail is None


@pytest.mark.parametrize(
    "change",
    [{"trajectories": False}, {"uniform": False}, {"staged": False}, {"corrected": True},
     {"eta": np.zeros(7)}, {"bonus_scale": 0.5}, {"bonus_scale": 1.0, "trajectories": False},
     {"modelled": True}],
)  # fmt: skip
def test_what_the_theory_does_not_cover_has_no_bound_of_the_whole(change):
    assert check.limits(SIZE, dataclasses.replace(SETTING, **change), 0.1).ail is None


def test_the_policys_bound_with_learned_transitions_needs_whole_trajectories():
    learned = dataclasses.replace(SETTING, bonus_scale=1.0)
    visits = 5 * 12 + 2 * 5 * sqrt(12 * 7) + 5 * sqrt(2 * 7 * log(2 / 0.1))
    assert check.limits(SIZE, learned, 0.1).policy == pytest.approx(MIRROR + BEHIND + 2 * visits)
    fresh = dataclasses.replace(learned, trajectories=False)
    assert check.limits(SIZE, fresh, 0.1).policy is None


def test_a_run_is_held_to_the_sharper_bound_too():
    names = [f.name for f in dataclasses.fields(Regret)]
    measured = dict.fromkeys(names, jnp.asarray(1.0)) | {"demonstrations": jnp.asarray(4.0)}
    measured |= {"shift": jnp.asarray(8.5), "drift": jnp.array([0.7, 1.4, 3.1])}
    told = check.beside(Regret(**measured), SIZE, SETTING, delta=0.1)
    assert told["shift"]["bound"] == pytest.approx(135)
    assert told["shift"]["holds"] is False  # 8.5 is above the sharper 8.25
    drifts = [told[f"drift_{n}"] for n in (1, 2, 4)]
    assert [row["sharp_bound"] for row in drifts] == pytest.approx([0.75, 1.5, 3])
    assert [row["holds"] for row in drifts] == [True, True, False]
    rest = 178 + NOISE + SEEN + 4
    for kind, shift in (("bound", 135), ("sharp_bound", 8.25)):
        assert told["reward"][kind] == pytest.approx(rest + shift)
    assert told["ail"]["bound"] == pytest.approx(rest + 135 + MIRROR + BEHIND)
    assert told["ail"]["sharp_bound"] == pytest.approx(AIL + 4)


# --- verdicts that need two standard errors ------------------------------------------------------


def judged(**shares):
    """Figure 2 of one task, two seeds at ± 0.01: a standard error of 0.01 each, and of √2 times
    that for a difference."""
    marks, runs = np.arange(0, 1_001, 100), []
    for N, share in {"1": 0.1, "4": 0.5, "32": 0.5, "all": 0.5, **shares}.items():
        for seed, off in enumerate((-0.01, 0.01)):
            request = {"env": "Hopper-v5", "seed": seed, "config": {"window": N}}
            returns = np.full(len(marks), 2 * (share + off))
            told = {"expert_return": 2.0}
            runs.append(StoredRun(Path("x"), request, told, marks, marks, returns, None))
    return [row["holds"] for row in fig2.claims(claims.Curves(runs))]


@pytest.mark.parametrize(("errors", "significant"), [(1.5, False), (1.9, False), (2.1, True)])
def test_two_standard_errors_of_a_difference_are_needed(errors, significant):
    gain = errors * 0.01 * sqrt(2)
    assert judged(**{"4": 0.1 + gain}) == [True, significant, True]
    assert judged(all=0.5 + gain) == [True, True, not significant]


# --- what an adaptive window goes by -------------------------------------------------------------


def always(*p):
    """An actor that chooses so in every state."""
    layer = Linear(jnp.zeros((3, len(p)), jnp.float32), jnp.log(jnp.array(p, jnp.float32)))
    return Actor(MLP((layer,), norm=False), discrete=True)


def test_the_deep_gauge_goes_by_the_discounts_horizon():
    config = DeepConfig(interactions=100, fresh=4, window="adaptive", gamma=0.8)
    gauge = Gauge(jnp.float64(0.3), jnp.float64(0.9))
    args = gauge, always(0.5, 0.3, 0.2), always(0.2, 0.4, 0.4), segment(0)
    new, tv = learner.measure(*args, learner.resolve(config))
    assert float(tv) == pytest.approx(0.3)
    assert float(new.drift) == pytest.approx(0.95 * 0.3 + 0.05 * 2 * 0.3 / 0.2)
    assert float(new.error) == pytest.approx(0.95 * 0.9 + 0.05 / 2)  # of four points
    fixed = learner.resolve(dataclasses.replace(config, window="1"))
    assert learner.measure(*args, fixed)[0] is gauge


# --- what is kept, and what is drawn of it -------------------------------------------------------


def segment(seed, ends=False):
    """Four points of three numbers and of three choices, the last of which may end."""
    s, after = np.random.default_rng(seed).normal(size=(2, 4, 3)).astype(np.float32)
    over = np.arange(4) == (3 if ends else 9)
    return Transitions(
        *map(jnp.asarray, (s, np.eye(3, dtype=np.float32)[[0, 1, 2, 1]], after, over))
    )


def test_what_is_kept_after_some_practices():
    """A ring of three: labels in order, the oldest overwritten, an end never forgotten."""
    config = DeepConfig(interactions=40, fresh=4, replay=12, hidden=2, discriminator_hidden=2)
    state = learner.init(learner.resolve(config), 3, 3, discrete=True, key=KEY)
    practised = [segment(seed, ends=seed == 1) for seed in range(4)]
    rings = ([0, -1, -1], [0, 1, -1], [0, 1, 2], [3, 1, 2])
    for k, labels in enumerate(rings, 1):
        state = learner.remember(state, practised[k - 1])
        assert (state.window.label.tolist(), int(state.k)) == (labels, k)
        assert bool(state.terminates) is (k >= 2)
        for slot, label in enumerate(labels):
            assert state.window.segments.reward is None  # nothing of the environment's
            for name in ("obs", "action", "next_obs", "terminated"):
                x = getattr(state.window.segments, name)
                kept = getattr(practised[label], name) if label >= 0 else np.zeros_like(x[0])
                np.testing.assert_array_equal(x[slot], kept)


@pytest.mark.parametrize(("written", "kept"), [(1, 3), (2, 6), (4, 12), (9, 12)])
def test_batches_are_drawn_evenly_from_all_that_is_kept(written, kept):
    segments = {"x": jnp.arange(12).reshape(4, 3), "y": -jnp.arange(12).reshape(4, 3)}
    window = windows.Window(segments, jnp.zeros(4, jnp.int32))
    drawn = replay.batch(window, jnp.int32(written), 12_000, key=KEY)
    counts = np.bincount(drawn["x"], minlength=12)
    np.testing.assert_array_equal(drawn["y"], -drawn["x"])  # a point stays whole
    np.testing.assert_allclose(counts[:kept], 12_000 / kept, rtol=0.15)  # some five deviations
    assert not counts[kept:].any()


def test_the_experts_points_are_drawn_evenly():
    drawn = np.asarray(replay.draw(segment(0), 4_000, key=KEY).obs)
    counts = [(drawn == point).all(-1).sum() for point in np.asarray(segment(0).obs)]
    assert sum(counts) == 4_000
    np.testing.assert_allclose(counts, 1_000, atol=150)


@pytest.mark.parametrize("loss", ["logistic", "linear"])
def test_mixtures_are_labelled_by_their_shares(loss):
    expert, agent = np.random.default_rng(0).normal(size=(2, 6, 3)).astype(np.float32)
    found = discriminators.mixed(
        lambda x: 2 * x[:, 0] - x[:, 1], jnp.asarray(expert), jnp.asarray(agent), loss=loss, key=KEY
    )
    share = np.asarray(jax.random.uniform(KEY, (6,), jnp.float32), float)
    between = share[:, None] * expert + (1 - share[:, None]) * agent
    ell = 2 * between[:, 0] - between[:, 1]
    losses = (-ell, ell)
    if loss == "logistic":
        losses = 2 * np.log1p(np.exp(-ell)), 2 * np.log1p(np.exp(ell))
    expected = np.mean(share * losses[0] + (1 - share) * losses[1])
    assert float(found) == pytest.approx(expected, rel=1e-4)


# --- practice ------------------------------------------------------------------------------------


class Clock(gymnasium.Env):
    """Shows its number, its episode and the time; lasts a given time, and ends or is cut."""

    observation_space, action_space = Box(-99, 99, (3,), np.float32), Discrete(2)

    def __init__(self, number, lasts, ends):
        self.number, self.lasts, self.ends, self.seeds, self.taken = number, lasts, ends, [], []

    def reset(self, *, seed=None, options=None):
        self.seeds.append(seed)
        self.t = 0
        return self.shown(), {}

    def shown(self):
        return np.array([self.number, len(self.seeds), self.t], np.float32)

    def step(self, action):
        self.t += 1
        self.taken.append(action)
        over = self.t == self.lasts
        return self.shown(), 1.0 + self.number, over and self.ends, over and not self.ends, {}


def practising(seed=0, steps=7):
    """Two lanes: episodes of two steps that end, and of three that are cut."""
    worlds = [Clock(0, 2, True), Clock(1, 3, False)]
    making, ends = iter(worlds), np.float32([[0], [1]])
    border = scaling.Scaling(*np.float32([[0] * 3, [1] * 3]), *ends, discrete=True)
    collector = Collector(lambda: next(making), border, lanes=2, seed=seed, name="Clock")

    def act(obs, episodes):  # by number and time
        return np.eye(2, dtype=np.float32)[(obs[:, 0] + obs[:, 2]).astype(int) % 2]

    return worlds, collector, collector.practise(act, steps)


def test_practice_is_in_order_and_ends_are_no_beginnings():
    worlds, collector, got = practising()
    rows = []
    for t in range(7):
        for number, lasts in ((0, 2), (1, 3)):
            episode, at = 1 + t // lasts, t % lasts
            ended = number == 0 and at == 1
            rows.append(([number, episode, at], (number + at) % 2, at + 1, ended, 1 + number))
    obs, chosen, after, ended, reward = map(np.array, zip(*rows, strict=True))
    np.testing.assert_array_equal(got["obs"], obs)
    np.testing.assert_array_equal(got["next_obs"], np.column_stack([obs[:, :2], after]))
    np.testing.assert_array_equal(got["action"], np.eye(2)[chosen])
    np.testing.assert_array_equal(got["terminated"], ended)
    np.testing.assert_array_equal(got["reward"], reward)
    assert [world.taken for world in worlds] == [chosen[::2].tolist(), chosen[1::2].tolist()]
    assert collector.ended == [2, 6, 2, 2, 6]  # as they ended; in the sixth step both
    assert [int(collector.state()[f"{i}/episode"]) for i in range(2)] == [3, 2]


def test_every_episode_of_every_lane_has_a_seed_of_its_own():
    seeds = [[world.seeds for world in practising(seed)[0]] for seed in (0, 0, 1)]
    assert [len(lane) for lane in seeds[0]] == [4, 3]
    assert seeds[0] == seeds[1]  # and the same one again
    assert len({seed for run in seeds[1:] for lane in run for seed in lane}) == 14


def test_an_end_is_a_state_of_its_own():
    """For one step, then it is cut; and demonstrations show what the wrapper shows."""
    shown, raw = [], []
    for world in (Clock(5, 2, True), Clock(5, 2, False)):
        wrapped = absorbing.Absorbing(world)
        told = [(wrapped.reset(seed=0)[0], 0.0, False, False)]
        while not told[-1][3] and len(told) < 9:
            told.append(wrapped.step(1)[:4])
        shown.append(told)
        raw.append(np.float32([[5, 1, t] for t in range(3)]))
    end = [0, 0, 0, 1]
    assert [t[0].tolist() for t in shown[0]] == [[5, 1, 0, 0], [5, 1, 1, 0], end, end]
    assert [t[0].tolist() for t in shown[1]] == [[5, 1, 0, 0], [5, 1, 1, 0], [5, 1, 2, 0]]
    assert [t[1:] for t in shown[0][1:]] == [
        (6.0, False, False), (6.0, False, False), (0.0, False, True)
    ]  # fmt: skip
    demos = Demonstrations(raw, [np.ones(2, int)] * 2, [np.full(2, 6.0)] * 2, [True, False])
    same = absorbing.of_demonstrations(demos)
    for told, obs, reward in zip(shown, same.observations, same.rewards, strict=True):
        np.testing.assert_array_equal(obs, [t[0] for t in told])
        np.testing.assert_array_equal(reward, [t[1] for t in told[1:]])
    assert same.terminated == [False, False]
    assert [len(a) for a in same.actions] == [3, 2]
    border = scaling.of_spaces(absorbing.Absorbing(Clock(5, 2, True)), "Clock")
    border = scaling.standardised(border, np.concatenate(same.observations), absorbing=True)
    assert (border.mean[-1], border.std[-1]) == (0, 1)  # the last number is a bit


@pytest.mark.parametrize(("K", "width", "A"), [(1, 1.0, 2), (100, 3.0, 4), (50, 2.0, 1)])
def test_twice_what_players_that_adapt_are_surprised_by(K, width, A):
    """2R (√(K log A) + 2), two actions at least."""
    expected = 2 * width * (sqrt(K * log(max(A, 2))) + 2)
    assert bounds.adaptive_players(K, width, A) == pytest.approx(expected)
