"""Windows given in words, their lengths and weights, with numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.core import importance, updates
from understudy.core import model as models
from understudy.core import occupancy as occupancies
from understudy.core import window as windows
from understudy.core.errors import UserError
from understudy.core.occupancy import Points
from understudy.core.window import Gauge, Reuse


def reuse(c, alpha=0.0, slots=4, lag=None):
    given = jnp.ones(slots) if lag is None else jnp.asarray(lag)
    return Reuse(jnp.float64(c), jnp.float64(alpha), given)


def gauge(drift, error):
    return Gauge(jnp.float64(drift), jnp.float64(error))


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("1", (1, 0)),
        (" 32 ", (32, 0)),
        (" ALL", (1, 1)),
        ("k^0.4", (1, 0.4)),
        ("2 * k ^ 0.5", (2, 0.5)),
        ("0.5*k^1", (0.5, 1)),
        ("3*k^0", (3, 0)),
        ("1*k^0", (1, 0)),
    ],
)
def test_a_window_in_words(text, means):
    assert windows.parse(text) == means


@pytest.mark.parametrize(
    "text", ["0.9*k^0", "0*k^0.5", "k^1.01", "0", "k", "k^", "*k^1", "9" * 400 + "*k^0.5.5"]
)
def test_what_is_no_window(text):
    with pytest.raises(UserError, match="The window is"):
        windows.parse(text)


def test_more_policies_than_32_bits_count_are_all_of_them():
    c, alpha = windows.parse(str(10**12))
    assert alpha == 0
    assert 10**9 < c < 2**32
    assert windows.largest(c, alpha, 50) == 50


@pytest.mark.parametrize(
    ("c", "alpha", "K", "most"),
    [(1.0, 1 / 3, 8, 2), (1.0, 1 / 3, 7, 1), (0.1, 0.5, 9, 1), (2.0, 0.5, 9, 6), (3.0, 0.0, 2, 2)],
)
def test_the_largest_window_is_the_last_one(c, alpha, K, most):
    assert windows.largest(c, alpha, K) == most
    k = jnp.int32(K)
    assert int(windows.reach(reuse(c, alpha), k)) == most


def test_what_each_policy_owes_of_the_points():
    assert [windows.owed(32, c, 0.0) for c in (1.0, 4.0, 5.0, 32.0, 33.0)] == [32, 8, 6, 1, 1]
    assert windows.owed(32, 2.0, 0.5) == 1


def test_weights_by_lag_are_scaled_cut_and_filled():
    assert windows.lags("uniform", "3", 4) == [0.0] * 4
    assert windows.lags((1.0, 2.0, 4.0), "3", 3) == [0.25, 0.5, 1.0]
    assert windows.lags((1.0, 2.0, 4.0), "3", 2) == [0.25, 0.5]
    assert windows.lags((1.0, 2.0), "all", 4) == [0.5, 1.0, 0.0, 0.0]
    for text, beta in (
        ("2", (1.0,)),
        ("2", (1.0,) * 3),
        ("adaptive", (1.0,)),
        ("Adaptive ", (1.0,)),
    ):
        with pytest.raises(UserError, match=f"--beta has {len(beta)} weights"):
            windows.lags(beta, text, 4)


def test_no_window_is_longer_than_what_is_kept_or_than_what_was():
    idle = gauge(0.0, 1.0)
    assert [int(windows.length(reuse(9), None, idle, jnp.int32(k))) for k in (1, 3, 20)] == [
        1,
        3,
        4,
    ]
    assert [int(windows.reach(reuse(0.5, 0.5), jnp.int32(k))) for k in (1, 15, 16)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("drift", "error", "k", "N"),
    [
        (1.0, 27.5, 100, 9),  # 27.5^{2/3} = 9.1
        (2.0, 55.0, 100, 9),
        (1.0, 27.5, 5, 5),  # no more than there were
        (1.0, 1.5, 100, 2),  # no fewer than the least
        (1.0, 1.5, 1, 1),
        (1.0, 1000.5, 100, 12),  # no more than the most
        (0.0, 1.0, 100, 12),  # before anything was measured
    ],
)
def test_an_adaptive_window_balances_drift_and_error(drift, error, k, N):
    found = windows.length(reuse(1), (2, 12), gauge(drift, error), jnp.int32(k))
    assert int(found) == N


@pytest.mark.parametrize(
    ("shape", "beta"),
    [
        ("uniform", [1 / 3, 1 / 3, 1 / 3, 0, 0]),
        ("triangular", [3 / 6, 2 / 6, 1 / 6, 0, 0]),
        ("geometric", [16 / 37, 12 / 37, 9 / 37, 0, 0]),  # 1, ¾, 9⁄16
        ("given", [2 / 9, 3 / 9, 4 / 9, 0, 0]),
        ("optimal", [0.75, 0.25, 0, 0, 0]),
    ],
)
def test_three_policies_of_five_in_every_shape(shape, beta):
    """Of the optimal ones: β ∝ (x − n)₊ with x = 1.5 where r² = 1.5² + 0.5²."""
    weighing = reuse(3, slots=5, lag=[2.0, 3.0, 4.0, 5.0, 6.0])
    found = windows.weights(weighing, shape, jnp.int32(3), gauge(2.0, 2 * np.sqrt(2.5)))
    np.testing.assert_allclose(found, beta, atol=1e-12)


@pytest.mark.parametrize("x", [0.25, 1.0, 1.5, 2.0, 2.75, 3.5])
def test_optimal_weights_fall_by_one_a_lag(x):
    falling = np.maximum(x - np.arange(6), 0)
    found = windows.waterfill(jnp.float64(np.sqrt((falling**2).sum())), 6)
    np.testing.assert_allclose(found, falling, atol=1e-9)


def test_beyond_what_is_kept_optimal_weights_are_those_of_a_full_window():
    """From r² = Σ n² on, n = 1 … 6, they fall from 6 to 1."""
    for r in (np.sqrt(91), 20.0, 1e12):
        np.testing.assert_allclose(windows.waterfill(jnp.float64(r), 6), [6, 5, 4, 3, 2, 1])


@pytest.mark.parametrize("points", [None, 60])
def test_a_window_that_is_not_full_yet_recalls_from_the_first_policy_on(points):
    window = windows.empty({"x": jnp.zeros((3, 2)), "n": jnp.zeros(3, jnp.int32)}, 4)
    assert (window.slots, window.size, window.label.tolist()) == (4, 3, [-1] * 4)
    for n in range(2):
        segment = {"x": jnp.full((3, 2), n + 1.0), "n": jnp.arange(3, dtype=jnp.int32)}
        window = windows.append(window, segment, jnp.int32(n))
    beta = jnp.array([0.75, 0.25, 0.0, 0.0])
    taken, weight = windows.recall(window, beta, jnp.int32(2), points, key=jax.random.key(0))
    assert float(weight.sum()) == pytest.approx(1)
    share = {v: float(weight[taken["x"][..., 0] == v].sum()) for v in (0.0, 1.0, 2.0)}
    assert share == pytest.approx({0.0: 0, 1.0: 0.25, 2.0: 0.75})
    for n in range(3):  # each point of a policy alike
        assert float(weight[(taken["n"] == n) & (taken["x"][..., 0] > 0)].sum()) == pytest.approx(
            1 / 3
        )
    assert taken["x"].shape == ((4, 3, 2) if points is None else (60, 2))


# --- what a learner believes ---------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_optimistic_values_of_a_few_transitions_by_hand(shared):
    """Two states, an action that leads to either, three stages; four transitions were seen."""
    from understudy.core import mdp as mdps

    succ = np.tile([1, 0], (1, 2, 1, 1))  # place 0 is state 1
    mdp = mdps.build(succ, np.full((1, 2, 1, 2), 0.5), horizon=3, nu=np.array([1.0, 0]))
    counts = models.no_counts(mdp, shared=shared)
    assert counts.shape == (1 if shared else 3, 2, 1, 2)
    points = Points(*(jnp.array(x) for x in ([0, 1, 1, 2], [0, 0, 1, 1], [0, 0, 0, 0])))
    counts = models.observe(counts, points, jnp.array([0, 1, 0, 0]))
    n = np.zeros((3, 2, 2))  # n[h, s, s']
    for h, s, to in ((0, 0, 1), (1, 0, 0), (1, 1, 1), (2, 1, 1)):
        n[slice(None) if shared else h, s, to] += 1
    mu = np.array([[0.1, -0.4], [0.3, 0.2], [-0.9, 0.8]])
    for span in ((0.0, 1.0), (-0.5, 0.75)):
        V, Q = np.zeros(2), np.zeros((3, 2))
        for h in (2, 1, 0):
            total = n[h].sum(-1)
            mean = [n[h, s] @ V / total[s] if total[s] else V.mean() for s in range(2)]
            Q[h] = mu[h] + 0.5 / np.sqrt(np.maximum(total, 1)) + mean
            V = Q[h] = np.clip(Q[h], span[0] * (3 - h), span[1] * (3 - h))
        model = models.Counted(mdp, counts, jnp.float64(0.5))
        pi, reward = jnp.ones((3, 2, 1)), jnp.asarray(mu)[..., None]
        np.testing.assert_allclose(models.evaluate(model, pi, reward, span)[..., 0], Q, atol=1e-12)
        if span == (0.0, 1.0):
            np.testing.assert_allclose(models.evaluate(model, pi, reward)[..., 0], Q, atol=1e-12)
    known = models.Known(mdp)
    assert known.bonus(0).shape == (2, 1)
    np.testing.assert_array_equal(known.bonus(0), 0)


def test_the_scale_of_the_theorys_bonus_in_numbers():
    """H √(4 S log(3 S A H K / δ)), H = 5, S = 4, A = 3, K = 7."""
    assert models.theory_scale(5, 4, 3, 7) == pytest.approx(5 * np.sqrt(16 * np.log(1260 / 0.05)))
    assert models.theory_scale(5, 4, 3, 7, 0.1) == pytest.approx(5 * np.sqrt(16 * np.log(12_600)))


def test_demonstrations_that_ended_wait_in_the_sink():
    """One ended after a step, in state 1; another goes on for longer than the horizon."""
    short = np.array([0, 1]), np.array([1]), True
    long = np.array([0, 0, 2, 1, 1]), np.array([0, 0, 1, 0]), True
    states, actions, ended = map(list, zip(short, long, strict=True))
    shape = 3, 4, 2
    d = np.asarray(occupancies.of_demonstrations(states, actions, ended, shape, sink=3))
    by_hand = np.zeros(shape)
    by_hand[0, 0] = 0.5, 0.5
    by_hand[1:, 3] = 0.25  # half the demonstrations, either action
    by_hand[1, 0, 0] = by_hand[2, 2, 1] = 0.5
    np.testing.assert_allclose(d, by_hand)
    d = np.asarray(occupancies.of_demonstrations(states, actions, ended, shape))
    by_hand[1:, [1, 3]] = by_hand[1:, [3, 1]]
    np.testing.assert_allclose(d, by_hand)


@pytest.mark.parametrize(
    ("states", "actions", "says"),
    [
        ([0, 2], [1], None),
        ([0, 3], [1], "state 3, outside 0 … 2"),
        ([-1, 2], [1], "state -1, outside 0 … 2"),
        ([0, 2], [2], "action 2, outside 0 … 1"),
    ],
)
def test_states_and_actions_are_counted_from_zero(states, actions, says):
    given = [np.array(states)], [np.array(actions)], [True], (1, 3, 2)
    if says is None:
        assert float(occupancies.of_demonstrations(*given)[0, 0, 1]) == 1
        return
    with pytest.raises(UserError, match=says):
        occupancies.of_demonstrations(*given)


def test_a_reward_is_one_only_where_it_pays():
    gain = jnp.array([[-1.0, 0.0, 1e-300, 2.0]])
    np.testing.assert_array_equal(updates.best_in_box(gain), [[0, 0, 1, 1]])


def test_the_gradient_of_the_value_is_that_of_differences():
    """∂J/∂θ of a softmax policy, against central differences of J itself."""
    from random_mdps import random_mdp

    from understudy.core import mdp as mdps

    mdp = random_mdp(3, 2, 2, 2, staged=True, seed=8)
    theta = np.random.default_rng(1).normal(size=mdp.shape)

    def pi(theta):
        return updates.policy(jnp.asarray(theta - theta.max(-1, keepdims=True)))

    def J(theta):
        return float(mdps.value(mdp, pi(theta), mdp.reward))

    here = pi(theta)
    Q = mdps.evaluate(mdp, here, mdp.reward)
    slope = updates.policy_gradient(mdps.occupancy(mdp, here), here, Q)
    for at in np.ndindex(mdp.shape):
        step = np.zeros(mdp.shape)
        step[at] = 1e-5
        by_difference = (J(theta + step) - J(theta - step)) / 2e-5
        assert float(slope[at]) == pytest.approx(by_difference, abs=1e-8)


def test_an_impossible_action_has_a_ratio_of_nothing():
    """The old policy took an action that the new one never does; and one that both take alike."""
    old, new = jnp.array([[[0.5, 0.5]]] * 2), jnp.array([[[0.0, 1.0]], [[0.5, 0.5]]])
    points = Points(*(jnp.array(x) for x in ([0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0])))
    logs = [importance.path_log(pi, points, 2) for pi in (new, old)]
    np.testing.assert_allclose(jnp.exp(logs[0] - logs[1]), [0, 2, 0, 2], atol=1e-200)
    d = [jnp.array([[[0.0, 1.0]], [[0.25, 0.75]]]), jnp.array([[[0.5, 0.5]]] * 2)]
    logs = [importance.marginal_log(x, points) for x in d]
    np.testing.assert_allclose(jnp.exp(logs[0] - logs[1]), [0, 2, 1.5, 0.5], atol=1e-200)
