"""The ledger against the definitions, added up in plain NumPy from the policies themselves."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mdps import random_mdp, random_policy

from understudy.core import mdp as mdps
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.learners import loop, tabular
from understudy.learners.config import Config
from understudy.learners.finite import expert_occupancy, imitate, plan
from understudy.learners.tabular import Problem

PAPERS = {"steps": "paper", "visits": "sampled", "handed": "last"}
CASES = {
    "on-policy": {"window": "1", "batch": 2},
    "window": {"window": "5", "batch": 1},
    "weights": {"window": "3", "beta": (0.6, 0.1, 0.3), "batch": 1},
    "triangular": {"window": "6", "beta": "triangular", "batch": 1},
    "all": {"window": "all", "batch": 1},
    "growing": {"window": "2*k^0.4", "batch": 1},
    "the default": {"fresh": 1},
    "expected, one a time": {"fresh": 1, "gradients": "sampled", "visits": "expected"},
    "steps that fall": {"window": "4", "batch": 1, "steps": "anytime"},
    "expected visits": {"window": "4", "batch": 1, "visits": "expected"},
    "expected points": {"window": "4", "fresh": 3, "points": 7, "visits": "expected"},
    "leader": {"batch": 1, "rewarder": "leader", "steps": "anytime"},
    "leader, stationary": {"batch": 1, "rewarder": "leader", "reward": "stationary"},
    "fresh": {"window": "4", "fresh": 3, "points": 7},
    "stationary reward": {"window": "4", "batch": 1, "reward": "stationary"},
    "exact": {"window": "4", "batch": 1, "gradients": "exact"},
    "learned": {"window": "4", "batch": 1, "model": "learned", "counts": "stage"},
    "modelled": {"batch": 1, "model": "learned", "counts": "stage", "gradients": "modelled"},
    "path ratios": {"window": "4", "batch": 2, "correction": "path"},
    "marginal ratios": {"window": "4", "batch": 2, "correction": "marginal"},
}
UPDATES = 30


def both_ways(problem, config, seed):
    """Step by step, keeping every policy, reward and estimate: what the ledger says at the end, and
    each term by its definition."""
    p = plan(problem.mdp, config)
    key = jax.random.key(seed)
    state = tabular.init(problem, p.protocol, key=jax.random.fold_in(key, 0))
    step = jax.jit(lambda state, key: tabular.step(state, problem, p.settings, p.protocol, key=key))
    pis, mus, estimates, betas = [], [], [], []
    for k in range(1, UPDATES + 1):
        pis.append(np.asarray(state.pi))
        mus.append(np.broadcast_to(np.asarray(state.mu), problem.mdp.shape))
        state, info = step(state, jax.random.fold_in(key, k))
        estimates.append(np.asarray(info.d_mix))
        betas.append(np.asarray(info.beta))
    ds = [np.asarray(mdps.occupancy(problem.mdp, jnp.asarray(pi))) for pi in pis]
    mixes = [
        sum(b * ds[k - n] for n, b in enumerate(beta) if b > 0) for k, beta in enumerate(betas)
    ]
    shown, expert = np.asarray(problem.expert), np.asarray(problem.truth)
    on = sum(expert - d for d in ds)
    if config.reward == "stationary":
        star = np.broadcast_to(on.sum(0, keepdims=True) > 0, on.shape).astype(float)
    else:
        star = (on > 0).astype(float)

    def against(xs):
        return sum(((star - mu) * x).sum() for mu, x in zip(mus, xs, strict=True))

    best = max_value(problem.mdp, sum(mus))
    policy = best - sum((d * mu).sum() for d, mu in zip(ds, mus, strict=True))
    reward = against([expert - d for d in ds])
    account = loop.regret_of(state, problem)
    return account, {
        "ail": (star * on).sum(),
        "policy": policy,
        "reward": reward,
        "optimisation": against([shown - e for e in estimates]),
        "shift": against([m - d for m, d in zip(mixes, ds, strict=True)]),
        "estimation": against([e - m for e, m in zip(estimates, mixes, strict=True)]),
        "demonstrations": against([expert - shown] * UPDATES),
        "tv": max(np.abs(a - b).sum(-1).max() / 2 for a, b in itertools.pairwise(pis)),
    }


def max_value(mdp, reward):
    return float(mdps.optimum(mdp, jnp.asarray(reward))[1])


@pytest.fixture(scope="module")
def problem():
    mdp = random_mdp(4, 5, 3, 3, staged=True, seed=11)
    expert = mdps.occupancy(mdp, random_policy(mdp, 1, 0.2))
    shown = mdps.occupancy(mdp, random_policy(mdp, 2, 0.2)) * 0.3 + expert * 0.7
    return Problem(mdp, shown, expert)


# Those of a kind with another one.
SLOW = ("path ratios", "stationary reward", "weights", "growing", "triangular", "exact",
        "expected points", "leader, stationary")  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CASES],
)
def test_every_term_is_its_definition(name, problem):
    per_update = 4 * CASES[name].get("batch", 0) or CASES[name]["fresh"]
    usual = {} if name == "the default" else PAPERS
    config = Config(**{**usual, **CASES[name]}, interactions=UPDATES * per_update, marks=1)
    account, expected = both_ways(problem, config, seed=5)
    measured = {key: float(value) for key, value in vars(account).items() if key != "drift"}
    scale = max(abs(v) for v in expected.values())
    for term, value in expected.items():
        if term == "tv":  # the ledger has seen one step more
            assert measured[term] >= value - 1e-12
        else:
            assert measured[term] == pytest.approx(value, abs=1e-9 * scale), term
    split = sum(measured[t] for t in ("optimisation", "shift", "estimation", "demonstrations"))
    assert split == pytest.approx(measured["reward"], rel=1e-9)
    assert measured["slack"] == pytest.approx(
        measured["policy"] + measured["reward"] - measured["ail"], abs=1e-9
    )
    assert measured["slack"] >= -1e-9  # Lemma 3.2
    if name == "on-policy":
        assert measured["shift"] == 0.0
    if name in ("exact", "the default"):
        assert measured["estimation"] == 0.0
    if name == "modelled":
        assert measured["estimation"] != 0.0


def test_drift_is_measured_per_lag():
    """Against occupancies of the run's own policies, at the last pair."""
    room = empty_room(3)
    problem = Problem(room, expert_occupancy(room, demonstrations(3)))
    config = Config(window="4", batch=1, interactions=9 * 12, marks=1)
    p = plan(room, config)
    key = jax.random.key(0)
    state, ds = tabular.init(problem, p.protocol, key=jax.random.fold_in(key, 0)), []
    step = jax.jit(lambda s, key: tabular.step(s, problem, p.settings, p.protocol, key=key)[0])
    for k in range(1, 13):
        ds.append(np.asarray(mdps.occupancy(room, state.pi)))
        state = step(state, jax.random.fold_in(key, k))
    result = imitate(room, demonstrations(3), config, seeds=[0])
    expected = [np.abs(ds[-1] - ds[-1 - n]).sum((1, 2)).max() for n in (1, 2, 4)]
    np.testing.assert_allclose(result.regret.drift[0, -1], expected, atol=1e-12)
