"""The linear learner against plain NumPy, against the tabular learner, and against its bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import dense, random_mdp, random_policy, seeds

from understudy.core import features, linear_mdp, regression
from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.core.linear_mdp import random_linear
from understudy.core.occupancy import Points
from understudy.core.updates import best_in_ball, project_ball
from understudy.demos import rollout
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.experiments.outcome import ledger
from understudy.learners import linear, loop
from understudy.learners.config import Config
from understudy.learners.finite import imitate, plan, pose

SMALL = random_linear(3, S=6, A=3, H=4, d=5, C=3, p=2)


def test_features_are_what_their_lists_say():
    rng = np.random.default_rng(0)
    full = rng.normal(size=(4, 3, 5)) * rng.integers(0, 2, (4, 3, 5))
    phi, w, x = features.dense(full), rng.normal(size=(2, 5)), rng.random((2, 4, 3))
    np.testing.assert_allclose(features.vectors(phi), full)
    np.testing.assert_allclose(features.dot(phi, jnp.asarray(w)), np.einsum("sad,hd->hsa", full, w))
    np.testing.assert_allclose(
        features.collect(phi, jnp.asarray(x)), np.einsum("hsa,sad->hd", x, full)
    )
    np.testing.assert_allclose(features.norms(phi), np.linalg.norm(full, axis=-1))
    hot = features.one_hot((4, 3))
    np.testing.assert_array_equal(features.vectors(hot), np.eye(12).reshape(4, 3, 12))
    assert hot.value.size == 12  # and not 144


def test_random_linear_mdps_are_linear():
    """P and r against the definition, from the dense arrays."""
    lin = SMALL
    P, psi = dense(lin.mdp), np.asarray(features.vectors(lin.psi))
    succ = np.asarray(lin.mdp.succ[0])
    for h, s, a in np.ndindex(4, 6, 3):
        np.testing.assert_allclose(P[h, s, a, succ[s, a]], psi[s, a] @ lin.theta[h], atol=1e-12)
        assert P[h, s, a].sum() == pytest.approx(1)
    phi = np.asarray(features.vectors(lin.phi))
    mu = np.stack([np.linalg.lstsq(phi.reshape(-1, 5), r.ravel())[0] for r in lin.mdp.reward])
    np.testing.assert_allclose(np.einsum("sad,hd->hsa", phi, mu), lin.mdp.reward, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(mu, axis=-1), np.sqrt(5))
    assert np.linalg.norm(phi, axis=-1).max() == pytest.approx(1)


def test_a_finite_mdp_is_the_one_hot_case():
    mdp = random_mdp(5, 6, 3, 2, staged=False, seed=4)
    lin = linear_mdp.one_hot(mdp)
    assert (lin.d, lin.p) == (18, 36)
    prob = features.dot(lin.psi, lin.theta)[0]
    np.testing.assert_array_equal(prob, mdp.prob[0])
    V = jnp.asarray(np.random.default_rng(0).normal(size=6))
    np.testing.assert_allclose(jnp.sum(prob * V[mdp.succ[0]], -1), mdps.expect(mdp, 0, V))


def bad(**change):
    rng = np.random.default_rng(0)
    given = {
        "succ": np.tile(np.arange(2), (3, 2, 1)),
        "psi": np.full((3, 2, 2, 2), 0.5),
        "theta": np.array([0.5, 0.5]),
        "phi": rng.random((3, 2, 4)) / 4,
        "horizon": 3,
        "nu": np.ones(3) / 3,
    }
    return linear_mdp.build(**{**given, **change})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, None),
        ({"phi": np.full((3, 2, 4), 0.6)}, "norm 1.2; the theory needs ‖φ‖ ≤ 1, so divide"),
        ({"theta": np.array([1.2, -0.2]), "psi": np.eye(2) * np.ones((3, 2, 1, 1))}, "negative"),
        ({"theta": np.array([0.4, 0.5])}, "the probability 0.9 in all; it must be one"),
        ({"phi": np.zeros((2, 3, 4))}, "φ have shape"),
        ({"psi": np.zeros((3, 2, 2))}, "ψ have shape"),
        ({"theta": np.zeros((2, 2))}, "θ have shape"),
        ({"theta": np.array([2.0, -1.0])}, "θ have norm 2.236"),
        ({"mu": np.full(4, 1.1)}, "μ have norm 2.2; the theory needs at most √d = 2"),
        ({"mu": np.zeros(3)}, "μ have shape"),
        ({"phi": np.full((3, 2, 4), np.nan)}, "not finite"),
        ({"succ": np.zeros((3, 2))}, "successors have shape"),
    ],
)
def test_what_is_not_a_linear_mdp_is_refused(change, says):
    if says is None:
        assert bad().d == 4
        return
    with pytest.raises(UserError, match=says.replace("(", r"\(")):
        bad(**change)


# --- the learner -----------------------------------------------------------------------------

PAPERS = {"steps": "paper", "visits": "sampled", "handed": "last"}
MATCHING = {
    "equal budget": {**PAPERS, "window": "32", "points": 32, "interactions": 1000},
    "trajectories": {**PAPERS, "window": "4", "batch": 1, "interactions": 2700},
    "stationary": {**PAPERS, "batch": 2, "reward": "stationary", "interactions": 3600},
    "the default": {"interactions": 400},
    "leader": {"batch": 1, "gradients": "sampled", "rewarder": "leader", "interactions": 2700},
}


@pytest.mark.parametrize(
    "name",
    [
        "equal budget",
        "the default",
        "leader",
        pytest.param("trajectories", marks=pytest.mark.slow),
        pytest.param("stationary", marks=pytest.mark.slow),
    ],
)
def test_with_one_hot_features_it_is_the_tabular_learner(name):
    """Same draws, box, known transitions: the same policies and returns over the whole run."""
    config = Config(**MATCHING[name], marks=20)
    room, shown = empty_room(3), demonstrations(3)
    table = imitate(room, shown, config, seeds=[3])
    hot = imitate(linear_mdp.one_hot(room), shown, config, rewards="box", seeds=[3])
    np.testing.assert_allclose(hot.policy, table.policy, atol=1e-6)
    np.testing.assert_allclose(hot.last_policy, table.last_policy, atol=1e-6)
    np.testing.assert_allclose(hot.returns, table.returns, atol=1e-6)
    np.testing.assert_allclose(hot.gap, table.gap, atol=1e-6)
    np.testing.assert_allclose(hot.reward[0], table.reward[0].reshape(-1, 45), atol=1e-6)
    for term in ("ail", "policy", "reward", "optimisation", "shift", "estimation"):
        by_features, by_table = getattr(hot.regret, term), getattr(table.regret, term)
        np.testing.assert_allclose(by_features, by_table, atol=1e-6, err_msg=term)
    assert np.abs(table.policy - 0.2).max() > 0.1  # it did learn something


def test_rank_one_steps_are_the_inverse():
    rng = np.random.default_rng(0)
    inverse, full = jnp.eye(6), np.eye(6)
    for x in rng.normal(size=(500, 6)):
        inverse, full = regression.add(inverse, jnp.asarray(x)), full + np.outer(x, x)
    np.testing.assert_allclose(inverse, np.linalg.inv(full), atol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_regression_is_ridge_least_squares(shared):
    """Against NumPy's least squares on the rows (x, y), with √λ I stacked below."""
    rng, lin, reach = np.random.default_rng(2), SMALL, 7.0
    points = Points(*(jnp.asarray(rng.integers(0, n, 80), jnp.int32) for n in (4, 6, 3)))
    slot, V = jnp.asarray(rng.integers(0, 3, 80), jnp.int32), rng.normal(size=(4, 6))
    found = regression.nothing(lin, shared=shared)
    found = regression.observe(found, lin, points, slot, jnp.asarray(V), reach)
    ahead = np.concatenate([V[1:], np.zeros((1, 6))]) / reach
    psi, succ = np.asarray(features.vectors(lin.psi)), np.asarray(lin.mdp.succ[0])
    h, s, a, c = (np.asarray(x) for x in (points.h, points.s, points.a, slot))
    x = np.einsum("nc,ncp->np", ahead[h[:, None], succ[s, a]], psi[s, a])
    y = ahead[h, succ[s, a, c]]
    for m in range(1 if shared else 4):
        rows = np.ones_like(h, bool) if shared else h == m
        stacked = np.concatenate([x[rows], np.eye(2)])
        ridge = np.linalg.lstsq(stacked, np.concatenate([y[rows], np.zeros(2)]))[0]
        np.testing.assert_allclose(found.theta[m], ridge, atol=1e-10)
        np.testing.assert_allclose(found.inverse[m], np.linalg.inv(stacked.T @ stacked), atol=1e-10)


def test_the_regressed_backup_by_hand():
    """xᵀθ̂ + κ‖x‖_{Λ⁻¹} at every state-action, from dense arrays."""
    rng, lin = np.random.default_rng(5), SMALL
    V, theta = rng.normal(size=6), rng.normal(size=(4, 2))
    root = rng.normal(size=(4, 2, 2))
    inverse = np.einsum("hij,hkj->hik", root, root)
    model = regression.Regressed(lin, *map(jnp.asarray, (theta, inverse, 0.3)))
    x = np.einsum("sac,sacp->sap", V[np.asarray(lin.mdp.succ[0])], features.vectors(lin.psi))
    width = np.sqrt(np.einsum("sap,pq,saq->sa", x, inverse[2], x))
    np.testing.assert_allclose(model.expect(2, jnp.asarray(V)), x @ theta[2] + 0.3 * width)


@pytest.mark.slow
def test_learned_transitions_come_close_to_the_truth_and_the_expert():
    lin = random_linear(1, S=8, A=3, H=5, d=4, p=3)
    asked = {"model": "learned", "counts": "stage", "batch": 4, "window": "4"}
    config = Config(**PAPERS, **asked, interactions=20_000)
    result = imitate(lin, None, config, seeds=range(2))
    assert (result.returns[:, -1] >= 0.95 * result.expert_return).all()


def test_the_theorys_bonus_by_hand():
    """√(p log(1 + n L²/p) + 2 log(H/δ)) + √p, and L² by the definition."""
    by_hand = np.sqrt(5 * np.log(1 + 300 * 2.5 / 5) + 2 * np.log(3 / 0.05)) + np.sqrt(5)
    assert regression.theory_scale(5, 3, 300, 2.5) == pytest.approx(by_hand)
    lin = random_linear(7, S=6, A=2, H=3, d=3)
    whole = np.abs(features.vectors(lin.psi)).sum(2)  # (S, A, p)
    assert regression.largest(lin.psi) == pytest.approx((whole**2).sum(-1).max())
    assert regression.largest(linear_mdp.one_hot(lin.mdp).psi) == lin.mdp.succ.shape[-1]


def test_an_expert_that_no_policy_can_be_gets_no_verdict():
    """Two episodes of a world that rolls dice are no policy's occupancy: Lemma 3.2 is silent."""
    lin = random_linear(5, S=8, A=3, H=5, d=6)
    best = np.asarray(mdps.optimum(lin.mdp, lin.mdp.reward)[0])
    seen = rollout.sample(lin.mdp, best, 2, seed=0)
    config = Config(batch=1, window="4", steps="paper", interactions=2_000)
    of = {name: imitate(lin, who, config, seeds=[0])
          for name, who in (("shown", seen), ("optimal", None))}  # fmt: skip
    assert of["shown"].regret.slack[0, -1] < 0
    assert of["optimal"].regret.slack[0, -1] >= 0
    planned = plan(lin, config)
    for name, who, verdict in (("shown", seen, None), ("optimal", None, True)):
        seen = jax.tree.map(lambda x: x[0], of[name].measured)
        told = ledger(seen, planned, pose(lin, who))
        assert told["slack"]["holds"] is verdict
        assert (told["ail"]["bound"] is None) == (verdict is None)


def test_the_theorys_bonus_is_optimistic():
    """xᵀθ̂ + κ‖x‖ ≥ xᵀθ at every (h, s, a) and any V, after few and after many transitions."""
    lin, rng = random_linear(7, S=6, A=2, H=3, d=3), np.random.default_rng(0)
    learned = regression.nothing(lin, shared=False)
    kappa = regression.theory_scale(lin.p, 3, 300, regression.largest(lin.psi))
    observe = jax.jit(lambda *new: regression.observe(*new, 1.0))
    for _ in range(10):
        V = jnp.asarray(rng.uniform(-1, 1, (3, 6)))
        points = Points(*(jnp.asarray(rng.integers(0, n, 90), jnp.int32) for n in (3, 6, 2)))
        prob = np.asarray(lin.mdp.prob)[np.asarray(points.h), np.asarray(points.s), points.a]
        slot = jnp.asarray([rng.choice(4, p=p) for p in prob], jnp.int32)
        learned = observe(learned, lin, points, slot, V)
        model = regression.Regressed(lin, learned.theta, learned.inverse, jnp.asarray(kappa))
        for h in range(3):
            truth = mdps.expect(lin.mdp, h, V[0])
            assert (model.expect(h, V[0]) >= truth - 1e-9).all()


@settings(max_examples=200)
@given(seeds, st.integers(1, 6), st.floats(0.1, 10))
def test_the_ball(seed, d, length):
    """The projection is the nearest point, and the maximiser beats a random search."""
    rng = np.random.default_rng(seed)
    mu, others = rng.normal(size=(2, d)) * length, rng.normal(size=(300, 2, d))
    others *= np.sqrt(d) / np.maximum(np.linalg.norm(others, axis=-1, keepdims=True), np.sqrt(d))
    near = np.asarray(project_ball(jnp.asarray(mu)))
    assert (np.linalg.norm(near, axis=-1) <= np.sqrt(d) + 1e-9).all()
    gaps = np.linalg.norm(others - mu, axis=-1)
    assert (np.linalg.norm(near - mu, axis=-1) <= gaps.min(0) + 1e-9).all()
    best = np.asarray(best_in_ball(jnp.asarray(mu)))
    np.testing.assert_allclose(np.linalg.norm(best, axis=-1), np.sqrt(d))
    assert ((best * mu).sum(-1) >= (others * mu).sum(-1).max(0) - 1e-9).all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"player": "gradient"}, "leave --player"),
        ({"model": "learned", "counts": "stage", "batch": 1, "interactions": 4}, "5 features"),
    ],
)
def test_settings_that_features_cannot_take(change, says):
    with pytest.raises(UserError, match=says):
        plan(random_linear(0, S=4, A=2, H=4, d=5), Config(**change))


def test_too_many_features_to_regress_are_refused():
    with pytest.raises(UserError, match=r"4,500 features.*--model known"):
        plan(linear_mdp.one_hot(empty_room(30)), Config(model="learned"))


def test_the_box_needs_features_that_average():
    with pytest.raises(UserError, match="sum to at most one"):
        imitate(SMALL, None, Config(), rewards="box")


# --- ledger, bounds, rates -------------------------------------------------------------------

RUNS = {
    "on-policy": {"window": "1", "batch": 2},
    "window": {"window": "5", "batch": 1},
    "learned": {"window": "4", "batch": 1, "model": "learned", "counts": "stage"},
    "leader": {"batch": 1, "rewarder": "leader"},
    "expected": {"window": "4", "batch": 1, "visits": "expected", "steps": "anytime"},
}
TERMS = ("optimisation", "shift", "estimation", "demonstrations")


@pytest.mark.parametrize("name", RUNS)
def test_every_term_of_the_ledger_is_its_definition(name):
    """Step by step in features: f_k = Σ d_k φ, μ* = √d g/‖g‖, all sums in plain NumPy."""
    lin, updates = SMALL, 25
    mdp, phi = lin.mdp, np.asarray(features.vectors(lin.phi))
    asked = {"steps": "theory", "visits": "sampled", **RUNS[name]}
    config = Config(**asked, interactions=updates * 4 * asked["batch"])
    p = plan(lin, config)
    truth = mdps.occupancy(mdp, random_policy(mdp, 1, 0.2))
    shown = 0.7 * truth + 0.3 * mdps.occupancy(mdp, random_policy(mdp, 2, 0.2))
    problem = pose(lin, shown, truth)
    key = jax.random.key(4)
    state = linear.init(problem, p.protocol, key=jax.random.fold_in(key, 0))
    step = jax.jit(lambda state, key: linear.step(state, problem, p.settings, p.protocol, key=key))

    def through(d):
        return np.einsum("hsa,sad->hd", np.asarray(d), phi)

    occupancy = jax.jit(lambda pi: mdps.occupancy(mdp, pi))
    f, mus, hats, betas = [], [], [], []
    for k in range(1, updates + 1):
        f.append(through(occupancy(state.pi)))
        mus.append(np.asarray(state.mu))
        state, info = step(state, jax.random.fold_in(key, k))
        hats.append(through(info.d_mix))
        betas.append(np.asarray(info.beta))
    mixes = [sum(b * f[k - n] for n, b in enumerate(beta) if b > 0) for k, beta in enumerate(betas)]
    f_E, f_shown = through(truth), through(shown)
    g = sum(f_E - x for x in f)
    star = np.sqrt(5) * g / np.linalg.norm(g, axis=-1, keepdims=True)

    def against(xs):
        return sum(((star - mu) * x).sum() for mu, x in zip(mus, xs, strict=True))

    total = np.einsum("sad,hd->hsa", phi, sum(mus))
    expected = {
        "ail": np.sqrt(5) * np.linalg.norm(g, axis=-1).sum(),
        "policy": float(mdps.optimum(mdp, jnp.asarray(total))[1])
        - sum((x * mu).sum() for x, mu in zip(f, mus, strict=True)),
        "reward": against([f_E - x for x in f]),
        "optimisation": against([f_shown - x for x in hats]),
        "shift": against([m - x for m, x in zip(mixes, f, strict=True)]),
        "estimation": against([e - m for e, m in zip(hats, mixes, strict=True)]),
        "demonstrations": against([f_E - f_shown] * updates),
    }
    regret = loop.at_a_mark(linear.LEARNER, state, problem, p.protocol, key=key).regret
    measured = {term: float(getattr(regret, term)) for term in expected}
    scale = max(abs(value) for value in expected.values())
    assert measured == pytest.approx(expected, abs=1e-9 * scale)
    assert sum(measured[t] for t in TERMS) == pytest.approx(measured["reward"], abs=1e-9 * scale)
    assert float(regret.slack) >= -1e-9
    assert np.linalg.norm(state.mu, axis=-1).max() <= np.sqrt(5) + 1e-9


@pytest.mark.slow
def test_regret_grows_as_the_root_of_k_and_every_bound_holds():
    """Each K a run of its own, since the steps depend on it."""
    lin = random_linear(5, S=8, A=3, H=5, d=6)
    problem, ends, Ks = pose(lin, None), {"1": [], "8": []}, (125, 500, 2000)
    for window, found in ends.items():
        for K in Ks:
            asked = {**PAPERS, "steps": "theory", "window": window, "batch": 1}
            config = Config(**asked, interactions=5 * K, marks=1)
            result = imitate(lin, None, config, seeds=range(2))
            for i in range(2):
                one = jax.tree.map(lambda x, i=i: x[i], result.measured)
                account = ledger(one, plan(lin, config), problem)
                assert all(row["holds"] is not False for row in account.values()), account
                bounded = account["ail"]
                assert bounded["measured"] <= bounded["sharp_bound"] <= bounded["bound"]
            found.append(result.regret.ail[:, -1].mean())
        assert np.polyfit(np.log(Ks), np.log(found), 1)[0] <= 0.6
