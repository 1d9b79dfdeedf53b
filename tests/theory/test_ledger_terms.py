"""Every shape of β with every kind of window, both ways to count and both reward players in the
ledger, replayed in plain NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mdps import dense, random_mdp, random_policy

from understudy.core import mdp as mdps
from understudy.core.window import Reuse, weights
from understudy.experiments.outcome import mean_lags
from understudy.learners import loop, tabular
from understudy.learners.config import Config
from understudy.learners.finite import plan
from understudy.learners.tabular import Problem

UPDATES, H = 40, 3
GIVEN = (0.5, 0.0, 0.2, 0.3)


@pytest.fixture(scope="module")
def problem() -> Problem:
    mdp = random_mdp(H, 4, 2, 3, staged=True, seed=3)
    expert = mdps.occupancy(mdp, random_policy(mdp, 1, 0.2))
    shown = 0.6 * expert + 0.4 * mdps.occupancy(mdp, random_policy(mdp, 2, 0.2))
    return Problem(mdp, shown, expert)


def occupancy(mdp: mdps.MDP, pi: np.ndarray) -> np.ndarray:
    """d_h(s,a), forward from ν."""
    P, mass, d = dense(mdp), np.asarray(mdp.nu), []
    for h in range(H):
        d.append(mass[:, None] * pi[h])
        mass = np.einsum("sa,sat->t", d[-1], P[h])
    return np.stack(d)


def best_value(mdp: mdps.MDP, reward: np.ndarray) -> float:
    """max_π J(π, r), backward from the last stage."""
    P, V = dense(mdp), np.zeros(4)
    for h in reversed(range(H)):
        V = (reward[h] + P[h] @ V).max(-1)
    return float(np.asarray(mdp.nu) @ V)


def by_hand(shape: str, N: int, slots: int) -> np.ndarray:
    """β_1 … β_N of the shapes that depend on nothing but N."""
    lag = np.arange(slots)
    raw = {
        "uniform": np.ones(slots),
        "geometric": (N / (N + 1)) ** lag,
        "triangular": np.maximum(N - lag, 0.0),
        "given": np.append(GIVEN, np.zeros(slots))[:slots],
    }[shape]
    raw = np.where(lag < N, raw, 0)
    return raw / raw.sum()


WINDOWS, BETAS = ("4", "all", "2*k^0.4"), ("uniform", "geometric", "triangular", "given")
VISITS = ("sampled", "expected")
CASES = [
    *((*case, "step") for case in itertools.product(WINDOWS, BETAS, VISITS)),
    *(("1", "uniform", visits, "leader") for visits in VISITS),  # of no other window
]


def counted(state, pi: np.ndarray, k: int, *, expected: bool) -> np.ndarray:
    """d̂ of the trajectory that π has just walked, by its points."""
    label = np.asarray(state.window.label)
    (slot,) = np.flatnonzero(label == k - 1)
    at = jax.tree.map(lambda x: np.asarray(x[slot]), state.window.segments.points)
    d = np.zeros_like(pi)
    for h, s, a in zip(at.h, at.s, at.a, strict=True):
        if expected:
            d[h, s] += pi[h, s]
        else:
            d[h, s, a] += 1
    return d


@pytest.mark.parametrize(("window", "beta", "visits", "rewarder"), CASES)
def test_every_term_of_every_shape_is_its_definition(window, beta, visits, rewarder, problem):
    config = Config(
        window=window,
        beta=GIVEN if beta == "given" else beta,
        batch=1,
        gradients="sampled",
        steps="anytime" if visits == "expected" else "paper",
        visits=visits,
        rewarder=rewarder,
        interactions=UPDATES * H,
        marks=1,
    )
    p = plan(problem.mdp, config)
    key = jax.random.key(7)
    state = tabular.init(problem, p.protocol, key=jax.random.fold_in(key, 0))
    step = jax.jit(lambda state, key: tabular.step(state, problem, p.settings, p.protocol, key=key))
    ds, mus, hats, estimates, mixes, sizes, ages = [], [], [], [], [], [], []
    for k in range(1, UPDATES + 1):
        pi = np.asarray(state.pi)
        ds.append(occupancy(problem.mdp, pi))
        mus.append(np.asarray(state.mu))
        state, info = step(state, jax.random.fold_in(key, k))
        used, N = np.asarray(info.beta), int(info.N)
        assert 1 <= N <= k
        assert used.sum() == pytest.approx(1)
        assert not used[N:].any()
        np.testing.assert_allclose(used, by_hand(beta, N, len(used)), atol=1e-12)
        sizes.append(N)
        ages.append(sum(n * b for n, b in enumerate(used)))
        hats.append(counted(state, pi, k, expected=visits == "expected"))
        lags = [(n, b) for n, b in enumerate(used) if b > 0]
        estimates.append(sum(b * hats[k - 1 - n] for n, b in lags))
        mixes.append(sum(b * ds[k - 1 - n] for n, b in lags))
        np.testing.assert_allclose(info.d_mix, estimates[-1], atol=1e-12)
    told = mean_lags(p.protocol.beta, np.asarray(p.settings.reuse.lag), np.array(sizes))
    np.testing.assert_allclose(told, ages, atol=1e-12)
    if window == "all":
        assert N == UPDATES
    shown, truth = np.asarray(problem.expert), np.asarray(problem.truth)
    star = (sum(truth - d for d in ds) > 0).astype(float)

    def against(xs: list[np.ndarray]) -> float:
        return float(sum(((star - mu) * x).sum() for mu, x in zip(mus, xs, strict=True)))

    expected = {
        "ail": float((star * sum(truth - d for d in ds)).sum()),
        "policy": best_value(problem.mdp, sum(mus))
        - float(sum((mu * d).sum() for mu, d in zip(mus, ds, strict=True))),
        "reward": against([truth - d for d in ds]),
        "optimisation": against([shown - e for e in estimates]),
        "shift": against([m - d for m, d in zip(mixes, ds, strict=True)]),
        "estimation": against([e - m for e, m in zip(estimates, mixes, strict=True)]),
        "demonstrations": against([truth - shown] * UPDATES),
    }
    account = loop.regret_of(state, problem)
    for term, value in expected.items():
        assert float(getattr(account, term)) == pytest.approx(value, abs=1e-9), term
    assert (expected["shift"] == 0) == (window == "1")


@pytest.mark.parametrize("N", [1, 2, 3, 7])
def test_geometric_weights_fall_by_one_in_n_plus_one(N):
    """1 − 1/(N+1) a lag: with N = 1 − 1/N there would be 0⁰, with N = 2 a half."""
    reuse = Reuse(jnp.asarray(7.0), jnp.asarray(0.0), jnp.zeros(7))
    beta = np.asarray(weights(reuse, "geometric", jnp.asarray(N, jnp.int32)))
    np.testing.assert_allclose(beta[1:N] / beta[: N - 1], N / (N + 1), rtol=1e-12)
    assert not beta[N:].any()
