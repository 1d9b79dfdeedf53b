"""The window against a plain list, and its sampling against expectations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given as given_cases
from hypothesis import strategies as st
from scipy.optimize import minimize

from understudy.core import window as windows
from understudy.core.errors import UserError
from understudy.core.window import Gauge, Reuse


def reuse_of(text: str, slots: int, lag=None) -> Reuse:
    c, alpha = windows.parse(text)
    return Reuse(jnp.float64(c), jnp.float64(alpha), jnp.ones(slots) if lag is None else lag)


IDLE = Gauge(jnp.zeros(()), jnp.ones(()))


def given(reuse: Reuse, k: int):
    return windows.weights(reuse, "given", windows.reach(reuse, jnp.int32(k)), IDLE)


def filled(slots: int, size: int, k: int) -> windows.Window:
    """After k policies; point i of policy n is the number n + i/100."""
    window = windows.empty(jnp.zeros(size), slots)
    for n in range(k):
        window = windows.append(window, n + jnp.arange(size) / 100, jnp.int32(n))
    return window


@given_cases(
    st.sampled_from(["1", "4", "7", "all", "k^0.5", "2*k^0.4", "0.5*k^1"]),
    st.integers(1, 30),
    st.integers(0, 10_000),
)
def test_weights_are_a_distribution_over_the_latest(text, k, seed):
    slots = 32
    lag = jnp.asarray(np.random.default_rng(seed).random(slots))
    reuse = reuse_of(text, slots, lag)
    beta = np.asarray(given(reuse, k))
    c, alpha = windows.parse(text)
    N = max(1, min(k, int(np.floor(c * k**alpha + 1e-9))))
    assert int(windows.reach(reuse, jnp.int32(k))) == N
    expected = np.where(np.arange(slots) < N, lag, 0)
    np.testing.assert_allclose(beta, expected / expected.sum(), atol=1e-12)
    assert (beta >= 0).all()
    assert beta.sum() == pytest.approx(1)


def test_weights_with_nothing_on_what_there_is_fall_back_to_uniform():
    reuse = reuse_of("4", 4, jnp.array([0.0, 0.0, 1.0, 0.0]))
    np.testing.assert_allclose(given(reuse, 2), [0.5, 0.5, 0, 0])
    np.testing.assert_allclose(given(reuse, 3), [0, 0, 1, 0])


@given_cases(st.integers(1, 12))
def test_the_ring_keeps_the_latest(k):
    window = filled(4, 2, k)
    kept = {
        int(label): np.asarray(row)
        for label, row in zip(window.label, window.segments, strict=True)
        if label >= 0
    }
    assert sorted(kept) == list(range(max(0, k - 4), k))
    for label, row in kept.items():
        np.testing.assert_allclose(row, [label, label + 0.01])


def test_sampling_as_many_points_as_there_are_takes_each_once():
    window = filled(4, 8, 9)
    beta = given(reuse_of("4", 4), 9)
    for seed in range(50):
        taken, weights = windows.recall(window, beta, jnp.int32(9), 32, key=jax.random.key(seed))
        np.testing.assert_allclose(np.sort(taken), np.sort(window.segments.reshape(-1)))
        np.testing.assert_allclose(weights, 1 / 32)


def test_sampling_is_unbiased_for_any_weights():
    window = filled(4, 3, 6)
    beta = jnp.array([0.5, 0.0, 0.2, 0.3])
    k = jnp.int32(6)
    whole, each = windows.recall(window, beta, k, None, key=jax.random.key(0))
    of_policy = {int(n): float(w.sum()) for n, w in zip(window.label, each, strict=True)}
    assert of_policy == pytest.approx({5: 0.5, 4: 0.0, 3: 0.2, 2: 0.3})
    assert float(each.sum()) == pytest.approx(1)
    keys = jax.random.split(jax.random.key(1), 4000)
    taken, _ = jax.vmap(lambda key: windows.recall(window, beta, k, 5, key=key))(keys)
    values, counts = np.unique(np.asarray(taken), return_counts=True)
    seen = dict(zip(values.round(4), counts / counts.sum(), strict=True))
    for value, weight in zip(np.ravel(whole).round(4), np.ravel(each), strict=True):
        assert seen.get(value, 0.0) == pytest.approx(weight, abs=0.01)  # 20,000 draws: 3.5 σ


@pytest.mark.parametrize("text", ["0", "-3", "many", "", "2*k^", "2*k^3", "1.5", "nan"])
def test_bad_windows_are_refused(text):
    with pytest.raises(UserError, match="window"):
        windows.parse(text)


@pytest.mark.parametrize(
    ("text", "K", "most"), [("8", 100, 8), ("8", 5, 5), ("all", 70, 70), ("2*k^0.5", 100, 20)]
)
def test_slots_cover_the_largest_window(text, K, most):
    assert windows.largest(*windows.parse(text), K) == most


@given_cases(st.floats(1e-3, 300.0), st.sampled_from([1, 16, 64]))
def test_waterfilling_is_the_optimum(ratio, slots):
    """min c₁ Σ (n−1) β_n + c₂ ‖β‖₂ over the simplex: the gradient is the same on all lags that
    carry weight, and no smaller elsewhere."""
    raw = np.asarray(windows.waterfill(jnp.float64(ratio), slots))
    assert raw.sum() > 0
    if raw[-1] > 0 and slots > 1:
        return  # cut at the slots: a tail that is missing would carry weight too
    beta, lag = raw / raw.sum(), np.arange(slots)
    gradient = lag + ratio * beta / np.linalg.norm(beta)
    carried = beta > 1e-9
    level = gradient[carried].mean()
    np.testing.assert_allclose(gradient[carried], level, rtol=1e-6)
    assert (gradient[~carried] >= level - 1e-6).all()


@pytest.mark.parametrize("ratio", [0.5, 3.0, 40.0])
def test_waterfilling_beats_a_numerical_optimiser(ratio):
    slots = 32
    lag = np.arange(slots)

    def cost(beta):
        return lag @ beta + ratio * np.linalg.norm(beta)

    found = minimize(
        cost,
        np.full(slots, 1 / slots),
        bounds=[(0, 1)] * slots,
        constraints={"type": "eq", "fun": lambda b: b.sum() - 1},
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    raw = np.asarray(windows.waterfill(jnp.float64(ratio), slots))
    assert cost(raw / raw.sum()) <= found.fun + 1e-7


@pytest.mark.parametrize("shape", ["uniform", "geometric", "triangular", "optimal"])
def test_every_shape_is_a_distribution_that_does_not_grow_with_lag(shape):
    for N in (1, 2, 7, 20):
        gauge = Gauge(jnp.float64(0.1), jnp.float64(2.0))
        beta = np.asarray(windows.weights(reuse_of("1", 20), shape, jnp.int32(N), gauge))
        assert beta.sum() == pytest.approx(1)
        assert (beta[N:] == 0).all()
        assert (np.diff(beta[:N]) <= 1e-15).all()


@pytest.mark.parametrize("ratio", [2.0, 50.0, 700.0])
def test_the_adaptive_length_minimises_its_cost(ratio):
    gauge = Gauge(jnp.float64(1.0), jnp.float64(ratio))
    N = int(windows.balance(gauge, jnp.int32(10_000), least=1, most=1000))
    cost = [(n - 1) / 2 + ratio / np.sqrt(n) for n in range(1, 1001)]
    assert abs(N - (1 + int(np.argmin(cost)))) <= 1
    assert int(windows.balance(gauge, jnp.int32(3), least=1, most=1000)) <= 3
    assert int(windows.balance(IDLE, jnp.int32(500), least=1, most=31)) == 31  # nothing measured
