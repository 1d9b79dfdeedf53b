"""From what is asked to numbers: limits of options, shapes and step sizes, marks."""

import dataclasses
import math

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from random_mdps import random_mdp

from understudy.core import linear_mdp, memory
from understudy.core import mdp as mdps
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.linear_mdp import random_linear
from understudy.core.vector_features import FeatureMap
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.learners import finite, tabular, vectors
from understudy.learners.config import (
    Config,
    VectorConfig,
    as_option,
    check,
    check_beta,
    check_vectors,
)
from understudy.learners.seeds import keys_of

# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("interactions", 1, 2**31 - 1),
        ("points", 0, 2**31 - 1),
        ("marks", 1, 100_000),
        ("episodes", 0, 100_000),
        ("fresh", 1, 2**31 - 1),
        ("batch", 1, 2**31 - 1),
    ],
)
def test_numbers_within_their_ends(name, least, most):
    for value in (least, most):
        check(Config(**{name: value}))
    for value in (least - 1, most + 1):
        with pytest.raises(UserError, match=f"--{name} is {value}; it must be from {least} to"):
            check(Config(**{name: value}))


@pytest.mark.parametrize("name", ["sigma", "eta", "bonus", "ascent"])
def test_step_sizes_are_finite_and_not_negative(name):
    for of, checked in ((Config, check), (VectorConfig, check_vectors)):
        if name == "ascent" and of is VectorConfig:
            continue
        checked(of(**{name: 0.0}))
        for value in (-1e-9, math.inf, math.nan):
            with pytest.raises(UserError, match=f"--{name} is"):
                checked(of(**{name: value}))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"gradients": "exact", "ledger": False, "window": "4"}, "leave the ledger on"),
        ({"gradients": "exact", "ledger": False}, None),
        ({"gradients": "exact", "window": "4"}, None),
        ({"gradients": "modelled", "model": "learned", "window": "4"}, "--model learned and --win"),
        ({"gradients": "modelled", "ledger": False}, "needs --model learned and --window 1"),
        ({"gradients": "modelled", "model": "learned"}, None),
        ({"steps": "adaptive"}, None),
        ({"steps": "adaptive", "rewarder": "leader"}, None),
        ({"steps": "adaptive", "rewarder": "step"}, "sets all step sizes itself"),
        ({"steps": "adaptive", "window": "4"}, "sets all step sizes itself"),
        ({"steps": "adaptive", "sigma": 1.0}, "sets all step sizes itself"),
        ({"steps": "adaptive", "eta": 1.0}, "sets all step sizes itself"),
        ({"steps": "adaptive", "player": "gradient"}, "sets all step sizes itself"),
        ({"correction": "path", "batch": 1, "visits": "sampled"}, None),
        ({"correction": "path", "batch": 1, "points": 0, "visits": "sampled"}, None),
        ({"correction": "path", "batch": 1}, "give --visits sampled"),
        ({"rewarder": "leader"}, None),
        ({"rewarder": "leader", "window": "4"}, "weighs everything alike"),
        ({"correction": "path", "batch": 1, "points": 4}, "--correction needs whole"),
        ({"correction": "marginal"}, "--correction needs whole"),
        ({"fresh": 2, "batch": 1}, "exclude each other"),
        ({"player": "gradient", "model": "learned"}, "needs --model known"),
        ({"player": "reinforce", "model": "learned"}, None),
        ({"player": "gradient"}, None),
    ],
)
def test_options_that_go_together(options, says):
    if says is None:
        check(Config(**options))
        return
    with pytest.raises(UserError, match=says):
        check(Config(**options))


def test_weights_are_weights():
    for beta in ("uniform", (1.0,), (0.0, 2.0)):
        check_beta(beta)
    for beta in ((0.0, 0.0), (1.0, -0.5), (math.inf,), (math.nan, 1.0), ()):
        with pytest.raises(UserError, match="not all zero"):
            check_beta(beta)
    with pytest.raises(UserError, match="not all zero"):
        check(Config(beta=(0.0,)))


@pytest.mark.parametrize("name", ["interactions", "horizon", "batch", "sweeps"])
def test_options_of_features_within_their_ends(name):
    check_vectors(VectorConfig(**{name: 1}))
    check_vectors(VectorConfig(**{name: 10_000_000}))
    for value in (0, 10_000_001):
        with pytest.raises(
            UserError, match=f"--{name} is {value}; it must be from 1 to 10,000,000"
        ):
            check_vectors(VectorConfig(**{name: value}))


def test_discounts_and_memory_of_features(monkeypatch):
    for gamma in (0.0, 0.999):
        check_vectors(VectorConfig(gamma=gamma))
    for gamma in (-0.01, 1.0):
        with pytest.raises(UserError, match="--gamma is"):
            check_vectors(VectorConfig(gamma=gamma))
    config = VectorConfig(interactions=100, batch=3, horizon=7)
    monkeypatch.setattr(memory, "machine", lambda: 8 * 121)
    check_vectors(config)
    monkeypatch.setattr(memory, "machine", lambda: 8 * 121 - 1)
    with pytest.raises(UserError, match="make --interactions, --batch or --horizon smaller"):
        check_vectors(config)


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("interactions", 5, 5),
        ("bonus", 1, 1.0),
        ("bonus", 0.5, 0.5),
        ("sigma", None, None),
        ("sigma", 2, 2.0),
        ("beta", "uniform", "uniform"),
        ("beta", [1, 2.5], (1.0, 2.5)),
        ("ledger", False, False),
        ("player", "mirror", "mirror"),
        ("window", "all", "all"),
    ],
)
def test_values_from_json_as_options_hold_them(name, value, read):
    got = as_option(name, value)
    assert (got, type(got)) == (read, type(read))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("interactions", 5.0), ("interactions", True), ("interactions", "5"), ("bonus", "1"),
        ("bonus", True), ("beta", [1, "x"]), ("beta", [True]), ("beta", "odd"), ("ledger", 1),
        ("player", "other"), ("player", 3), ("window", 4), ("bonus", None), ("beta", 3),
    ],
)  # fmt: skip
def test_values_from_json_of_another_type_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} is"):
        as_option(name, value)


# --- plans ---------------------------------------------------------------------------------------

ROOM = empty_room(3)  # H = 9, S = 9, A = 5
LOG4, LOG5 = math.log(4), math.log(5)


def test_an_equal_estimation_budget_in_numbers():
    """m = 32 points of N = 4 policies: eight fresh ones an iteration."""
    config = Config(window="4", points=32, steps="paper", interactions=1000, marks=4)
    p = finite.plan(ROOM, config)
    assert (p.protocol.lanes, p.protocol.steps, p.protocol.slots, p.protocol.points) == (
        1,
        8,
        4,
        32,
    )
    assert (p.iterations, p.protocol.fresh) == (125, 8)
    assert p.interactions.tolist() == [0, 250, 500, 750, 1000]
    assert p.marks.tolist() == [0, 31, 62, 93, 125]
    assert float(p.settings.sigma) == pytest.approx(10 * math.sqrt(2 * LOG4 / (81 * 1000)))
    assert float(p.settings.eta) == pytest.approx(5 / math.sqrt(1000))
    assert not p.protocol.keeps_all


def test_the_theorys_steps_know_states_actions_and_stages_apart():
    """H = 7, S = 9, A = 5, and K = 10 batches of one trajectory."""
    room = empty_room(3, horizon=7)
    p = finite.plan(room, Config(window="4", batch=1, interactions=70, steps="theory"))
    assert float(p.settings.sigma) == pytest.approx(math.sqrt(2 * LOG5 / (49 * 10)))
    assert float(p.settings.eta) == pytest.approx(math.sqrt(45 / 10))
    paper = finite.plan(room, Config(window="4", batch=1, interactions=70, steps="paper"))
    assert float(paper.settings.sigma) == pytest.approx(10 * math.sqrt(2 * LOG4 / (49 * 10)))


def test_steps_that_fall_know_stages_actions_and_what_is_fresh():
    """The first of them: 7 √(2 log A)/H, and 10, less where a segment is a part of an episode."""
    room = empty_room(3, horizon=7)
    for fresh, share in ((1, 1 / 7), (3, 3 / 7), (7, 1), (20, 1)):
        p = finite.plan(room, Config(fresh=fresh, interactions=70, steps="anytime"))
        assert float(p.settings.sigma) == pytest.approx(7 * math.sqrt(2 * LOG5) / 7)
        assert float(p.settings.eta) == pytest.approx(10 * math.sqrt(share))
        assert p.protocol.anytime
    assert not finite.plan(room, Config(steps="paper")).protocol.anytime
    whole = finite.plan(room, Config(batch=2, interactions=70))
    assert float(whole.settings.eta) == 10


@pytest.mark.parametrize(
    ("options", "gradients", "adaptive"),
    [
        ({}, "exact", True),
        ({"model": "learned"}, "modelled", False),
        ({"model": "learned", "steps": "adaptive"}, "modelled", True),
        ({"window": "4"}, "sampled", False),
        ({"points": 0}, "sampled", False),
        ({"visits": "sampled"}, "sampled", False),
        ({"visits": "sampled", "batch": 1, "correction": "path"}, "sampled", False),
        ({"player": "reinforce"}, "sampled", False),
        ({"player": "gradient"}, "exact", False),
        ({"rewarder": "leader"}, "exact", True),
        ({"rewarder": "step"}, "exact", False),
        ({"sigma": 1.0}, "exact", False),
        ({"eta": 1.0}, "exact", False),
        ({"steps": "paper"}, "exact", False),
        ({"gradients": "sampled"}, "sampled", False),
        ({"gradients": "sampled", "steps": "adaptive"}, "sampled", True),
        ({"gradients": "exact", "model": "learned"}, "exact", False),
        ({"gradients": "exact", "window": "4"}, "exact", False),
    ],
)
def test_what_is_not_given_follows_from_what_is(options, gradients, adaptive):
    p = finite.plan(ROOM, Config(interactions=90, **options)).protocol
    assert (p.gradients, p.adaptive) == (gradients, adaptive)
    leads = adaptive or options.get("rewarder") == "leader"
    assert p.rewarder == ("leader" if leads else "step")
    assert p.anytime == (not adaptive and options.get("steps") is None)


def test_a_regression_of_values_takes_samples():
    lin = random_linear(0, S=4, A=2, H=4, d=5)
    assert finite.plan(lin, Config(interactions=40)).protocol.gradients == "exact"
    asked = Config(interactions=4_000, model="learned", counts="stage")
    counted = finite.plan(lin, asked).protocol
    assert (counted.gradients, counted.anytime) == ("sampled", True)


def test_whole_trajectories_in_numbers():
    p = finite.plan(ROOM, Config(window="4", batch=2, interactions=1000, steps="theory"))
    assert (p.protocol.lanes, p.protocol.steps, p.protocol.points) == (2, 9, None)
    assert p.iterations == 55  # 18 interactions each
    assert float(p.settings.sigma) == pytest.approx(math.sqrt(2 * LOG5 / (81 * 55)))
    assert float(p.settings.eta) == pytest.approx(math.sqrt(45 / 55))
    given = finite.plan(ROOM, Config(window="4", sigma=0.0, eta=0.25, ascent=0.75))
    assert [float(x) for x in (given.settings.sigma, given.settings.eta)] == [0.0, 0.25]
    assert float(given.settings.ascent) == 0.75
    sampled = finite.plan(ROOM, Config(window="4", batch=2, points=7))
    assert sampled.protocol.points == 7
    assert finite.plan(ROOM, Config(window="4", points=0)).protocol.points is None


def test_windows_that_keep_everything():
    assert finite.plan(ROOM, Config(window="all")).protocol.keeps_all
    assert not finite.plan(ROOM, Config(window="2*k^1")).protocol.keeps_all
    few = finite.plan(ROOM, Config(window="32", batch=1, interactions=45))
    assert (few.iterations, few.protocol.slots) == (5, 5)


def test_one_iteration_is_needed():
    assert finite.plan(ROOM, Config(window="4", points=32, interactions=8)).iterations == 1
    with pytest.raises(UserError, match="7 interactions are less than one iteration of 8"):
        finite.plan(ROOM, Config(window="4", points=32, interactions=7))


def test_the_bonus_is_a_share_of_the_theorys():
    p = finite.plan(ROOM, Config(window="4", batch=1, interactions=90, model="learned", bonus=0.5))
    scale = 9 * math.sqrt(4 * 9 * math.log(3 * 9 * 5 * 9 * 10 / 0.05))
    assert float(p.settings.bonus) == pytest.approx(0.5 * scale)
    staged = random_mdp(3, 4, 2, 2, staged=True, seed=0)
    finite.plan(staged, Config(window="4", counts="shared"))
    finite.plan(staged, Config(window="4", model="learned", counts="stage"))
    with pytest.raises(UserError, match="count per stage"):
        finite.plan(staged, Config(window="4", model="learned", counts="shared"))


def test_what_a_run_with_tables_needs_of_memory(monkeypatch):
    """Points of three numbers of four bytes, in four slots of eight, and 32 sampled; one table.
    Where all actions count, each point has five chances of eight bytes besides."""
    for visits, each in (("sampled", 12), ("expected", 12 + 5 * 8)):
        needed, config = each * (4 * 8 + 32) + 8 * 9 * 9 * 5, Config(
            window="4", points=32, visits=visits
        )  # fmt: skip
        monkeypatch.setattr(memory, "machine", lambda needed=needed: needed)
        finite.plan(ROOM, config)
        monkeypatch.setattr(memory, "machine", lambda needed=needed: needed - 1)
        with pytest.raises(UserError, match="make --interactions, --window, --points"):
            finite.plan(ROOM, config)


def test_features_that_can_be_regressed():
    lin = random_linear(0, S=4, A=2, H=4, d=5, p=6)
    asked = {"model": "learned", "counts": "stage", "batch": 1, "window": "4"}
    finite.plan(lin, Config(**asked, interactions=24))  # six transitions a stage
    with pytest.raises(UserError, match="6 features, and a stage sees 5"):
        finite.plan(lin, Config(**asked, interactions=20))
    steps = finite.plan(lin, Config(batch=1, window="4", interactions=400, steps="theory")).settings
    root = math.sqrt(5)
    assert float(steps.sigma) == pytest.approx(math.sqrt(2 * math.log(2) / (16 * root * 100)))
    assert float(steps.eta) == pytest.approx(math.sqrt(5 / 100))
    for option in ({"player": "gradient"}, {"correction": "path", "batch": 1, "visits": "sampled"},
                   {"gradients": "modelled", "model": "learned"}):  # fmt: skip
        with pytest.raises(UserError, match="With features"):
            finite.plan(lin, Config(**option))


def test_plans_that_differ_in_numbers_share_a_program():
    one, two = (
        finite.plan(ROOM, Config(window=N, fresh=4, beta=beta))
        for N, beta in (("2", (1.0, 0.5)), ("3", (1.0, 0.5, 0.25)))
    )
    shape, settings = finite.together([one, two])
    assert shape.slots == 3
    assert [s.reuse.lag.tolist() for s in settings] == [[1, 0.5, 0], [1, 0.5, 0.25]]
    other = finite.plan(ROOM, Config(window="3", fresh=5))
    with pytest.raises(ValueError, match="different shapes"):
        finite.together([one, other])


def test_plans_that_owe_different_numbers_share_a_program():
    """Four windows of a figure in one program: each run is what it is alone."""
    asked = [
        Config(interactions=96, window=N, points=8, visits="sampled", steps="paper", marks=3)
        for N in ("1", "2", "8", "16")
    ]
    plans = [finite.plan(ROOM, one) for one in asked]
    assert [p.protocol.steps for p in plans] == [8, 4, 1, 1]
    shape, settings = finite.together(plans)
    assert (shape.steps, shape.slots) == (8, 16)
    assert [int(s.owed) for s in settings] == [8, 4, 1, 1]
    problem = finite.pose(ROOM, demonstrations(3))
    for one, planned, its in zip(asked, plans, settings, strict=True):
        alone = finite.imitate(ROOM, demonstrations(3), one, seeds=(3, 5))
        both = tabular.run(
            problem, finite.stack(its, 2), shape, planned.marks, keys=keys_of((3, 5))
        )
        np.testing.assert_allclose(both.policy, alone.policy, atol=1e-12)
        np.testing.assert_allclose(both.returns, alone.returns, atol=1e-12)
        assert np.ptp(alone.policy, axis=0).max() > 0
    counted = finite.plan(ROOM, Config(points=8, model="learned"))
    assert not finite.counts(counted.protocol)


# --- experts -------------------------------------------------------------------------------------


def test_an_occupancy_sums_to_one_within_a_millionth():
    d = np.asarray(mdps.occupancy(ROOM, mdps.uniform(ROOM))).copy()
    finite.expert_occupancy(ROOM, d)
    at = tuple(np.argwhere(d[3] > 0.05)[0])
    for off, fits in ((0.9e-6, True), (1.5e-6, False), (-1.5e-6, False)):
        near = d.copy()
        near[(3, *at)] += off
        if fits:
            finite.expert_occupancy(ROOM, near)
            continue
        with pytest.raises(UserError, match="sum to one per stage"):
            finite.expert_occupancy(ROOM, near)
    negative = d.copy()
    negative[3, 0, 0], negative[3, 0, 1] = -0.1, d[3, 0, 0] + d[3, 0, 1] + 0.1
    for bad in (negative, np.full_like(d, np.nan)):
        with pytest.raises(UserError, match="must be non-negative"):
            finite.expert_occupancy(ROOM, bad)
    with pytest.raises(UserError, match="has shape"):
        finite.expert_occupancy(ROOM, d[:2])


def test_demonstrations_in_tables_are_whole_numbers():
    shown = demonstrations(3)
    same = Demonstrations(
        [o.astype(float) for o in shown.observations], shown.actions, shown.rewards,
        shown.terminated,
    )  # fmt: skip
    np.testing.assert_array_equal(
        finite.expert_occupancy(ROOM, same), finite.expert_occupancy(ROOM, shown)
    )
    half = dataclasses.replace(shown, actions=[a + 0.5 for a in shown.actions])
    with pytest.raises(UserError, match="Demonstration 0 has actions"):
        finite.expert_occupancy(ROOM, half)
    wide = dataclasses.replace(same, observations=[o[:, None] for o in same.observations])
    with pytest.raises(UserError, match="one whole number per step"):
        finite.expert_occupancy(ROOM, wide)


def test_the_expert_is_the_optimum_where_nobody_shows():
    best = mdps.optimum(ROOM, ROOM.reward)[1]
    problem = finite.pose(ROOM, None)
    assert finite.expert_return(problem) == pytest.approx(float(best))
    hot = finite.pose(linear_mdp.one_hot(ROOM), demonstrations(3), rewards="box")
    assert finite.expert_return(hot) == pytest.approx(4.6)
    np.testing.assert_allclose(hot.span, (0, 1))
    ball = finite.pose(linear_mdp.one_hot(ROOM), demonstrations(3))
    np.testing.assert_allclose(ball.span, (-math.sqrt(45), math.sqrt(45)))
    assert (hot.reach, ball.reach) == (9, pytest.approx(9 * math.sqrt(45)))


def test_a_run_tells_how_far_it_is():
    config = Config(window="4", interactions=400, marks=50, ledger=False)
    told: list[int] = []
    whole = finite.imitate(ROOM, demonstrations(3), config, seeds=[0, 1])
    parts = finite.imitate(ROOM, demonstrations(3), config, seeds=[0, 1], progress=told.append)
    np.testing.assert_array_equal(whole.returns, parts.returns)
    assert len(told) == 17  # 51 marks, three at a time: at most twenty pieces
    assert told == sorted(told)
    assert told[-1] == 400
    assert whole.regret is None
    assert whole.glimpse is None
    assert (whole.seeds, whole.returns.shape) == ((0, 1), (2, 51))
    assert whole.expert_return == pytest.approx(4.6)


# --- features of vectors -------------------------------------------------------------------------

PHI = FeatureMap(lambda x: np.stack([x, -x], 1) / 4, 2, 2)


def test_a_plan_on_vectors_in_numbers():
    apart = VectorConfig(
        interactions=1000, horizon=10, batch=2, window="4", stages="apart", sigma=None, bonus=0.0
    )
    shape, numbers = vectors.plan(PHI, apart)
    assert (shape.horizon, shape.episodes, shape.slots, shape.capacity) == (10, 2, 4, 1020)
    assert (shape.shared, shape.stages, shape.optimistic) == (False, 10, False)
    root, K = math.sqrt(3), 50
    assert float(numbers.sigma) == pytest.approx(math.sqrt(2 * math.log(2) / (100 * root * K)))
    assert float(numbers.eta) == pytest.approx(math.sqrt(3 / K))
    assert float(numbers.gamma) == 1
    shared = dataclasses.replace(apart, stages="shared", gamma=0.9, bonus=0.5, sweeps=3)
    shape, numbers = vectors.plan(PHI, shared)
    assert (shape.shared, shape.stages, shape.sweeps, shape.optimistic) == (True, 1, 3, True)
    assert float(numbers.sigma) == pytest.approx(0.1 * math.sqrt(2 * math.log(2) / (root * K)))
    assert [float(x) for x in (numbers.gamma, numbers.bonus)] == [0.9, 0.5]
    given = dataclasses.replace(apart, sigma=0.0, eta=0.25)
    numbers = vectors.plan(PHI, given)[1]
    assert [float(x) for x in (numbers.sigma, numbers.eta)] == [0, 0.25]
    many = vectors.plan(PHI, dataclasses.replace(apart, window="all", interactions=5000))
    assert many[0].slots == 4096
    assert len(many[1].reuse.lag) == 4096


def sized(actions, size):
    return FeatureMap(lambda x: np.zeros((len(x), actions, size)), actions, size)


def test_plans_on_vectors_that_are_refused():
    config = VectorConfig(interactions=5000, horizon=10)
    vectors.plan(sized(2, 4095), config)
    with pytest.raises(UserError, match="4,097 features, more than the 4,096"):
        vectors.plan(sized(2, 4096), config)
    with pytest.raises(UserError, match="one action"):
        vectors.plan(sized(1, 3), config)
    few = dataclasses.replace(config, interactions=10, batch=1)
    vectors.plan(sized(2, 9), few)
    with pytest.raises(UserError, match="11 features are more than 10 interactions"):
        vectors.plan(sized(2, 10), few)
    with pytest.raises(UserError, match="10 interactions are less than one iteration of 20"):
        vectors.plan(sized(2, 3), dataclasses.replace(few, batch=2))
    with pytest.raises(UserError, match="give a number of policies, 'all', or"):
        vectors.plan(sized(2, 3), dataclasses.replace(config, window=" Adaptive "))


def test_feature_expectations_of_demonstrations_by_hand():
    """Three stages: one episode ended after one step, one goes on for longer."""
    short = np.array([[1.0, 2.0], [0.5, 0.5]]), np.array([1])
    way = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.1, 0.1], [9.0, 9.0]])
    long = way, np.array([0, 1, 0, 0])
    demos = Demonstrations(
        [short[0], long[0]], [short[1], long[1]], [np.zeros(1), np.zeros(4)], [True, False]
    )
    apart = vectors.Shape(
        horizon=3, shared=False, episodes=1, slots=1, capacity=9, sweeps=1, optimistic=False
    )
    by_hand = np.array([[(-1 + 0) / 8, (-2 + 1) / 8, 0], [-1 / 8, 0, 0.5], [2 / 8, 2 / 8, 0.5]])
    np.testing.assert_allclose(vectors.of_demonstrations(PHI, demos, apart), by_hand)
    shared = dataclasses.replace(apart, shared=True)
    found = vectors.of_demonstrations(PHI, demos, shared)
    np.testing.assert_allclose(found, by_hand.mean(0, keepdims=True))
    cut = dataclasses.replace(demos, terminated=[False, False])
    with pytest.raises(UserError, match="Demonstration 0 is cut off after 1 of 3 steps"):
        vectors.of_demonstrations(PHI, cut, apart)
    for bad in (np.array([2, 1, 0, 0]), np.array([-1, 1, 0, 0]), np.array([0.5, 1, 0, 0])):
        odd = dataclasses.replace(demos, actions=[short[1], bad])
        with pytest.raises(UserError, match="Demonstration 1 has actions outside 0 … 1"):
            vectors.of_demonstrations(PHI, odd, apart)


class Rail(gymnasium.Env):
    """Shows where it is; action 1 goes on and pays one, action 0 stays; three ends it."""

    observation_space, action_space = Box(-9, 9, (2,), np.float64), Discrete(2)

    def __init__(self, lasts=99):
        self.lasts = lasts

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = 0.0, 0
        return np.array([1.0, self.at]), {}

    def step(self, action):
        self.t += 1
        self.at += action
        return np.array([1.0, self.at]), float(action), self.at == 3, self.t == self.lasts, {}


def test_weights_are_played_stage_by_stage():
    """Large weights leave no doubt: on, stay, and then the last stage's for the rest."""
    on, stay = [-400.0, 0.0, 0.0], [400.0, 0.0, 0.0]
    rng = np.random.default_rng(0)

    def told(policy, horizon):
        play = vectors.episode(Rail(), PHI, np.array(policy), horizon=horizon, seed=0, rng=rng)
        return [*play]

    assert told([on, stay, on], 6) == [0, 1, 1, 2, 3]
    assert told([stay], 4) == [0, 0, 0, 0, 0]
    assert told([on], 2) == [0, 1, 2]
    played = vectors.play(Rail(2), PHI, np.array([on]), horizon=9, episodes=3, seed=0)
    assert played.tolist() == [2, 2, 2]


def test_practice_of_one_policy_by_hand():
    shape = vectors.Shape(
        horizon=4, shared=False, episodes=2, slots=1, capacity=20, sweeps=1, optimistic=False
    )
    on = np.tile([-400.0, 0.0, 0.0], (4, 1))
    fresh, returns = vectors.practise(Rail(), PHI, on, shape, np.random.default_rng(0))
    assert returns.tolist() == [3, 3]
    assert int(fresh.count) == 6
    here = np.array([[-1, -at, 0] for at in (0, 1, 2)]) / 4
    np.testing.assert_allclose(fresh.here, [*here, *here, [0] * 3, [0] * 3])
    np.testing.assert_allclose(fresh.ahead[2], [[0, 0, 1]] * 2)  # it has ended
    np.testing.assert_allclose(fresh.ahead[0], np.array([[1, 1, 0], [-1, -1, 0]]) / 4)
    np.testing.assert_allclose(fresh.expectation, [*here, [0, 0, 1]])
    with pytest.raises(UserError, match="cut an episode off after 3 steps; use a horizon of at"):
        vectors.practise(Rail(3), PHI, -on, shape, np.random.default_rng(0))
    last = vectors.practise(Rail(4), PHI, -on, shape, np.random.default_rng(0))
    assert int(last[0].count) == 8


def test_learning_on_vectors_counts_its_interactions():
    config = VectorConfig(interactions=40, horizon=4, batch=2, window="2", stages="apart")
    demos = Demonstrations(
        [np.array([[1.0, t] for t in range(5)])], [np.ones(4, int)], [np.ones(4)], [False]
    )
    told: list[tuple[int, float]] = []
    learned = vectors.imitate(
        Rail(), PHI, demos, config, seed=1, progress=lambda n, mean: told.append((n, mean))
    )
    assert learned.interactions[-1] >= 40
    assert learned.interactions[-2] < 40
    assert [n for n, _ in told] == learned.interactions.tolist()
    assert [mean for _, mean in told] == learned.returns.tolist()
    assert learned.policy.shape == learned.reward.shape == (4, 3)
    again = vectors.imitate(Rail(), PHI, demos, config, seed=1)
    np.testing.assert_array_equal(learned.policy, again.policy)
    other = vectors.imitate(Rail(), PHI, demos, config, seed=2)
    assert not np.array_equal(learned.policy, other.policy)
