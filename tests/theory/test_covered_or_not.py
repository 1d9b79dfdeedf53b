"""Which bounds a run has, and which it has not; and advice from sizes alone."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.core.errors import UserError
from understudy.theory import advisor, bounds, linear_bounds
from understudy.theory import past_occupancies as pasts
from understudy.theory import verification as check
from understudy.theory.bounds import Sizes
from understudy.theory.ledger import Regret
from understudy.theory.verification import Setting

SIZE = Sizes(S=4, A=3, H=5, K=7, B=2)
SAME = np.ones(7)
SETTING = Setting(
    sigma=0.1 * SAME, eta=0.2 * SAME, windows=np.array([1, 2, 2, 2, 2, 2, 2]),
    lags=np.array([0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]), trajectories=True, uniform=True, staged=True,
    leader=False, bonus_scale=None,
)  # fmt: skip
BALL = linear_bounds.ball(9)


def bounded(**changes):
    """The bounds that there are."""
    found = check.limits(SIZE, dataclasses.replace(SETTING, **changes), 0.1)
    return {
        name
        for name, value in found._asdict().items()
        if value is not None and (not isinstance(value, tuple) or None not in value)
    }


EVERY = {"policy", "optimisation", "shift", "estimation", "ail", "tv", "drift"}
FALLING = np.arange(1, 8) ** -0.5


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({}, set()),
        ({"rewards": BALL}, set()),
        ({"staged": False}, {"policy", "optimisation", "shift", "estimation", "ail"}),
        ({"uniform": False}, {"estimation", "ail"}),
        ({"trajectories": False}, {"estimation", "ail"}),
        ({"corrected": True}, {"estimation", "ail"}),
        ({"modelled": True}, {"estimation", "ail"}),
        ({"eta": 0 * SAME}, {"optimisation", "ail"}),
        ({"sigma": None}, {"policy", "shift", "ail", "tv", "drift"}),
        ({"sigma": FALLING}, {"shift", "tv", "drift"}),
        ({"sigma": FALLING, "rewards": BALL}, {"shift", "ail", "tv", "drift"}),
        ({"bonus_scale": 0.99}, {"policy", "ail"}),
        ({"bonus_scale": 1.0}, set()),
        ({"bonus_scale": 1.0, "trajectories": False}, {"policy", "estimation", "ail"}),
        ({"bonus_scale": 2.0, "rewards": BALL}, {"policy", "ail"}),
    ],
)
def test_what_the_theory_covers(changes, missing):
    assert bounded(**changes) == EVERY - missing


def test_a_learned_model_costs_its_bonus():
    known, learned = (
        check.limits(SIZE, dataclasses.replace(SETTING, bonus_scale=scale), 0.1).policy
        for scale in (None, 3.0)
    )
    visits = 5 * 12 + 2 * 5 * math.sqrt(12 * 7) + 5 * math.sqrt(2 * 7 * math.log(2 / 0.1))
    assert learned - known == pytest.approx(2 * 3 * visits)


def account(**terms):
    names = [f.name for f in dataclasses.fields(Regret)]
    measured = dict.fromkeys(names, jnp.asarray(0.0)) | {"drift": jnp.zeros(0)}
    return Regret(**(measured | {name: jnp.asarray(x) for name, x in terms.items()}))


def test_a_bound_holds_up_to_rounding():
    limit = check.limits(SIZE, SETTING, 0.1).optimisation
    for off, holds in ((0.5e-9, True), (5e-9, False), (-1.0, True)):
        told = check.beside(account(optimisation=limit + off), SIZE, SETTING, delta=0.1)
        assert told["optimisation"]["holds"] is holds
        assert told["optimisation"]["measured"] == limit + off
    for slack, holds in ((-0.5e-9, True), (-5e-9, False), (0.0, True)):
        assert check.beside(account(slack=slack), SIZE, SETTING)["slack"]["holds"] is holds


def test_where_there_is_no_bound_there_is_no_verdict():
    told = check.beside(account(), SIZE, SETTING)
    assert told["demonstrations"]["holds"] is None
    assert not [name for name in told if name.startswith("drift")]
    assert told["ail"]["holds"] is True
    odd = check.beside(account(slack=-1.0), SIZE, dataclasses.replace(SETTING, feasible=False))
    assert odd["ail"] == {"measured": 0, "bound": None, "sharp_bound": None, "holds": None}
    assert odd["slack"] == {"measured": -1, "holds": None}
    assert odd["reward"]["holds"] is True
    ratios = check.beside(account(), SIZE, dataclasses.replace(SETTING, corrected=True))
    assert ratios["optimisation"]["bound"] is None  # a gradient without a bound
    assert ratios["policy"]["holds"] is None


def test_one_in_twenty_may_fail_unless_it_is_said_otherwise():
    usual, same, other = (
        check.beside(account(), SIZE, SETTING, **given)["estimation"]["bound"]
        for given in ({}, {"delta": 0.05}, {"delta": 0.1})
    )
    assert usual == same > other
    given = {"bonus_scale": 1.0}
    assert bounds.policy_regret(SIZE, 0.1, 0.2, **given) == bounds.policy_regret(
        SIZE, 0.1, 0.2, **given, delta=0.05
    )
    windows = [1, 2, 2]
    assert bounds.estimation(SIZE, 0.2, windows) == bounds.estimation(
        SIZE, 0.2, windows, delta=0.05
    )
    assert linear_bounds.estimation(SIZE, 0.2, BALL, windows) == linear_bounds.estimation(
        SIZE, 0.2, BALL, windows, delta=0.05
    )
    assert linear_bounds.policy_regret(SIZE, 0.1, 0.2, BALL) == linear_bounds.policy_regret(
        SIZE, 0.1, 0.2, BALL, gradient=2.0
    )


def test_a_term_of_a_run_is_the_sum_of_its_parts():
    terms = bounds.Terms(policy=1.0, optimisation=2.0, shift=4.0, estimation=8.0)
    assert (terms.reward, terms.total) == (14, 15)
    assert dataclasses.astuple(Sizes(1, 2, 3, 4)) == (1, 2, 3, 4, 1)


@pytest.mark.parametrize(
    ("K", "most"), [(1, 1), (2, 1), (4, 1), (5, 2), (9, 2), (10, 3), (101, 10)]
)
def test_the_largest_window_is_below_the_root_of_k(K, most):
    assert bounds.largest_window(K) == most


# --- advice --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("K", "windows"),
    [
        (2, [1]),
        (26, [1, 2, 3, 4, 5]),
        (82, [1, 2, 3, 4, 6, 8, 9]),
        (300, [1, 2, 3, 4, 6, 8, 12, 16, 17]),
    ],
)
def test_windows_are_spread_up_to_the_largest(K, windows):
    assert advisor.advise(dataclasses.replace(SIZE, K=K)).windows == windows


@pytest.mark.parametrize("d", [None, 16])
def test_advice_is_what_the_orders_say(d):
    size = dataclasses.replace(SIZE, K=300)
    told = advisor.advise(size, d)
    assert told.n_max == 17
    for i, N in enumerate(told.windows):
        whole = float(N)
        proven = bounds.proven(size, whole) if d is None else linear_bounds.proven(size, d, whole)
        assert told.terms["proven"]["total"][i] == proven.total
    assert np.argmin(told.terms["proven"]["total"]) == 0  # N* is no advice
    for kind, sharp in (("paper", False), ("sharp", True)):
        for i, N in enumerate(told.windows):
            if d is None:
                order = bounds.order(size, float(N), sharp=sharp)
            else:
                order = linear_bounds.order(size, d, float(N), sharp=sharp)
            for name in ("policy", "optimisation", "shift", "estimation", "total"):
                assert told.terms[kind][name][i] == getattr(order, name)
        best = (
            bounds.best_window(size, sharp=sharp)
            if d is None
            else linear_bounds.best_window(size, d, sharp=sharp)
        )
        assert told.n_star[kind] == best
    root = 1 if d is None else 4
    assert told.sigma == pytest.approx(math.sqrt(2 * math.log(3) / (25 * root * 300)))
    assert told.eta == pytest.approx(math.sqrt((12 if d is None else 16) / 300))
    document = told.document()
    assert ("S" in document, document.get("d")) == (d is None, d)
    assert document["terms"]["N"] == told.windows
    assert (document["A"], document["n_max"], document["eta"]) == (3, 17, told.eta)


@pytest.mark.parametrize("symbol", ["S", "A", "H", "K", "B"])
def test_sizes_from_one_and_two_actions(symbol):
    names = {"S": "states", "A": "actions", "H": "horizon", "K": "iterations", "B": "batch"}
    least = 2 if symbol == "A" else 1
    advisor.advise(dataclasses.replace(SIZE, **{symbol: least}))
    with pytest.raises(UserError, match=f"--{names[symbol]} is {least - 1}; .* at least {least}"):
        advisor.advise(dataclasses.replace(SIZE, **{symbol: least - 1}))


def test_features_from_one():
    advisor.advise(SIZE, 1)
    with pytest.raises(UserError, match="--features is 0"):
        advisor.advise(SIZE, 0)


# --- occupancies of the past ---------------------------------------------------------------------


@pytest.mark.parametrize("uniform", [True, False])
def test_mixtures_of_the_past_policy_by_policy(uniform):
    """A ring of six sums, windows of one to four policies; ten policies in all."""
    rng, slots = np.random.default_rng(0), 6
    d = rng.random((10, 2, 3, 2))
    ring = jnp.zeros((slots, 2, 3, 2))
    for j in range(1, 11):
        total = jnp.asarray(d[:j].sum(0))
        ring = pasts.keep(ring, total, jnp.int32(j))
        for i in range(max(j + 1 - slots, 0), j + 1):
            np.testing.assert_allclose(pasts.sum_before(ring, jnp.int32(i)), d[:i].sum(0))
        for N in range(1, min(j, 4) + 1):
            beta = np.zeros(4)
            beta[:N] = 1 / N if uniform else rng.dirichlet(np.ones(N))
            by_hand = sum(beta[n - 1] * d[j - n] for n in range(1, N + 1))
            found = pasts.mixture(
                ring, total, jnp.asarray(beta), jnp.int32(N), jnp.int32(j), uniform=uniform
            )
            np.testing.assert_allclose(found, by_hand, atol=1e-12)
