"""The theorems themselves, on thousands of random cases; and every run against its bounds."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import mdps_and_policies, seeds
from test_cli import understudy

from understudy.core import mdp as mdps
from understudy.core import occupancy as occupancies
from understudy.core.errors import UserError
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.experiments.outcome import ledger
from understudy.learners.config import Config
from understudy.learners.finite import expert_occupancy, imitate, plan, pose
from understudy.theory import advisor, bounds, linear_bounds
from understudy.theory.bounds import Sizes

many = settings(max_examples=1000)
occupancy = jax.jit(mdps.occupancy)
optimum = jax.jit(mdps.optimum)


@many
@given(mdps_and_policies(policies=2))
def test_lemma_4_2_occupancy_drift(case):
    mdp, pi, other = case
    d, d2 = np.asarray(occupancy(mdp, pi)), np.asarray(occupancy(mdp, other))
    tv = np.abs(np.asarray(pi - other)).sum(-1) / 2
    bound = bounds.occupancy_drift(d.sum(-1), tv)
    assert (np.abs(d - d2).sum((1, 2)) <= bound + 1e-12).all()


@many
@given(seeds, st.integers(2, 8), st.floats(1e-4, 3.0), st.floats(0.1, 20.0))
def test_both_tv_bounds(seed, A, sigma, span):
    """Thm 4.3 and the sharper bound, for Q ∈ [0, span]."""
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.full(A, rng.choice([0.1, 1.0, 10.0])))
    Q = span * rng.choice([rng.random(A), rng.integers(0, 2, A).astype(float)])
    new = pi * np.exp(sigma * (Q - Q.max()))
    new /= new.sum()
    tv = np.abs(new - pi).sum() / 2
    assert tv <= sigma * span / 4 + 1e-12
    assert sigma * span / 4 <= A * sigma * span  # and so Thm 4.3, with H = span
    assert float(bounds.sharp_tv_step(7, sigma, 3)) == pytest.approx(sigma * 5 / 4)
    assert bounds.tv_step(A, 7, sigma) == pytest.approx(A * 7 * sigma)


def test_the_sharper_bound_is_tight():
    """Two actions, π = ½, Q = (0, H): TV = tanh(σH/2)/2, within 1 % of σH/4."""
    sigma, H = 0.01, 10
    new = np.exp([0, sigma * H]) / np.exp([0, sigma * H]).sum()
    tv = np.abs(new - 0.5).sum() / 2
    bound = float(bounds.sharp_tv_step(H, sigma))
    assert 0.99 * bound <= tv <= bound
    assert tv < 0.2 * bounds.tv_step(2, H, sigma)  # where the paper's is loose


@many
@given(mdps_and_policies(policies=2), st.floats(0, 1))
def test_theorem_4_8_and_corollary_4_9(case, weight):
    """Occupancies are convex and one-to-one with policies; a mixture has its own policy."""
    mdp, pi, other = case
    d, d2 = occupancy(mdp, pi), occupancy(mdp, other)
    mixed = occupancies.mix(jnp.stack([d, d2]), jnp.array([weight, 1 - weight]))
    np.testing.assert_allclose(
        np.asarray(occupancy(mdp, occupancies.policy_of(mixed))), np.asarray(mixed), atol=1e-10
    )
    back = np.asarray(occupancies.policy_of(d))
    visited = np.asarray(d).sum(-1) > 1e-9
    np.testing.assert_allclose(back[visited], np.asarray(pi)[visited], atol=1e-6)


@settings(max_examples=300)
@given(mdps_and_policies(policies=3), seeds)
def test_lemma_3_2_shani(case, seed):
    """AIL regret ≤ policy regret + reward regret, for any policies and rewards in [0, 1]."""
    mdp, expert, *policies = case
    mus = np.random.default_rng(seed).random((2, *mdp.shape))
    d_E = np.asarray(occupancy(mdp, expert))
    ds = [np.asarray(occupancy(mdp, pi)) for pi in policies]
    ail = np.maximum(sum(d_E - d for d in ds), 0).sum()
    best = float(optimum(mdp, jnp.asarray(mus.sum(0)))[1])
    policy = best - sum((mu * d).sum() for mu, d in zip(mus, ds, strict=True))
    reward = ail - sum((mu * (d_E - d)).sum() for mu, d in zip(mus, ds, strict=True))
    assert ail <= policy + reward + 1e-9


def test_shift_bound_adds_up_to_its_closed_forms():
    size, sigma, N = Sizes(S=9, A=5, H=7, K=40), 0.01, 6
    windows = np.full(40, N)
    H, K, A = 7, 40, 5
    assert bounds.shift(size, sigma, windows, sharp=False) == pytest.approx(
        K * (N - 1) * A * sigma * H**2 * (H + 1) / 2
    )
    assert bounds.shift(size, sigma, windows, sharp=True) == pytest.approx(
        K * (N - 1) * sigma * H * (H + 1) * (2 * H + 1) / 24
    )
    assert bounds.shift(size, sigma, np.ones(40, int), sharp=True) == 0


def test_segment_weights_by_hand():
    """N(k) = min(k, 3): segment 0 is used by updates 1, 2, 3 with 1, ½ and ⅓."""
    c = bounds.segment_weights([1, 2, 3, 3, 3])
    np.testing.assert_allclose(c[0], 1 + 1 / 2 + 1 / 3)
    np.testing.assert_allclose(c, [11 / 6, 1 / 2 + 2 / 3, 1, 2 / 3, 1 / 3])
    assert c.sum() == pytest.approx(5)  # each update has weight one to give


def test_printed_orders_and_best_windows():
    size = Sizes(S=64, A=4, H=2, K=100, B=2)
    terms = bounds.order(size, 5.0, sharp=False)
    assert terms.policy == pytest.approx(np.sqrt(2**4 * 64**2 * 4 * 100))
    assert terms.optimisation == pytest.approx(np.sqrt(2**2 * 64 * 4 * 100))
    assert terms.shift == pytest.approx(np.sqrt(2**4 * 4**2 * 4**2 * 100))
    assert terms.estimation == pytest.approx(np.sqrt(2**3 * 64 * 4 * 100 / (2 * 5)))
    assert terms.total == pytest.approx(terms.policy + terms.reward)
    assert bounds.order(size, 5.0, sharp=True).shift == pytest.approx(terms.shift / 4)
    assert bounds.best_window(size, sharp=False) == pytest.approx((64 / 16) ** (1 / 3))
    assert bounds.best_window(size, sharp=True) == pytest.approx((64 * 4 / 4) ** (1 / 3))
    assert [bounds.largest_window(K) for K in (1, 2, 4, 5, 100, 101)] == [1, 1, 1, 2, 9, 10]
    one = linear_bounds.order(size, 1, 5.0, sharp=False)  # d = 1: no factor left
    assert one.shift == pytest.approx(terms.shift)


def test_linear_bounds_by_hand():
    """Those of the ball against the appendix's closed forms, d = 9."""
    size, ball, box = Sizes(S=7, A=4, H=2, K=100, B=2), linear_bounds.ball(9), linear_bounds.box(9)
    assert linear_bounds.tv_step(4, 2, 0.1, ball) == pytest.approx(3 * bounds.tv_step(4, 2, 0.1))
    assert linear_bounds.sharp_tv_step(2, 0.1, ball) == pytest.approx(0.1 * 2 * 6 / 4)
    paper = linear_bounds.shift(size, 0.1, ball, [3, 3], sharp=False)
    assert paper == pytest.approx(2 * 3 * 3 * bounds.shift(size, 0.1, [3, 3], sharp=False))
    assert linear_bounds.optimisation(size, 0.3, ball) == pytest.approx(2 * 2 * 9 / 0.3 + 240)
    # on the box the sizes are the tabular ones, d in place of SA
    assert linear_bounds.shift(size, 0.1, box, [3, 3], sharp=True) == pytest.approx(
        bounds.shift(size, 0.1, [3, 3], sharp=True)
    )
    assert linear_bounds.optimisation(size, 0.3, box) == pytest.approx(9 * 2 / 0.6 + 240)
    # on the ball Q is 12 wide at the first stage and 6 at the last: H log A/σ + σK(12² + 6²)/8,
    # + 2ηHK + H√d
    sigma = 0.02
    mirror = 2 * np.log(4) / sigma + sigma * 100 * (144 + 36) / 8
    assert linear_bounds.policy_regret(size, sigma, 0.3, ball) == pytest.approx(mirror + 120 + 6)
    # N = 1: c = 1 for each of K segments, and nothing is reused
    energy = 100 / 2
    expected = 2 * 6 * np.sqrt(2 * np.log(8 / 0.05) * energy)
    expected += 2 * 6 * np.sqrt(np.log(2 / 0.05) * energy / 2)
    found = linear_bounds.estimation(size, 0.3, ball, np.ones(100, int))
    assert found == pytest.approx(expected)
    # the box, K = 3 and N = 1, 2, 2: c = (1.5, 1, 0.5), and two updates reuse one policy each
    energy = (1.5**2 + 1 + 0.5**2) / 2
    expected = 2 * 3 * np.sqrt(2 * np.log(8 / 0.05) * energy)
    expected += 2 * 1 * np.sqrt(np.log(2 / 0.05) * energy / 2) + 2 * 0.3 * 2 * 2
    assert linear_bounds.estimation(size, 0.3, box, [1, 2, 2]) == pytest.approx(expected)
    boxed = 2 * np.log(4) / sigma + sigma * 100 * (4 + 1) / 8 + 120 + 2
    assert linear_bounds.policy_regret(size, sigma, 0.3, box) == pytest.approx(boxed)


def test_the_sharp_step_on_the_ball_is_tight():
    """Two actions, π = ½, Q = ±R: TV is σR/2 for small σ, the bound of range 2R."""
    ball, sigma = linear_bounds.ball(9), 1e-4
    R = 5 * 3  # H = 5 stages of rewards up to √9
    pi = np.exp(sigma * np.array([R, -R])) / np.exp(sigma * np.array([R, -R])).sum()
    tv = np.abs(pi - 0.5).sum() / 2
    assert tv <= linear_bounds.sharp_tv_step(5, sigma, ball)
    assert tv == pytest.approx(linear_bounds.sharp_tv_step(5, sigma, ball), rel=1e-5)


def test_the_printed_orders_have_the_appendixs_powers_of_d():
    size = Sizes(S=1, A=2, H=3, K=100, B=2)
    one, many = (linear_bounds.order(size, d, 4.0, sharp=False) for d in (1, 16))
    for term, power in (("policy", 3), ("optimisation", 1), ("shift", 1.5), ("estimation", 2)):
        ratio = getattr(many, term) / getattr(one, term)
        assert ratio == pytest.approx(16 ** (power / 2)), term


def test_the_linear_best_window_balances_shift_and_estimation():
    """N* is where the two printed terms are equal, up to N−1 in place of N."""
    size = Sizes(S=1, A=2, H=1, K=100)
    for sharp in (False, True):
        N = linear_bounds.best_window(size, 10_000, sharp=sharp)
        terms = linear_bounds.order(size, 10_000, N + 1, sharp=sharp)
        at_N = linear_bounds.order(size, 10_000, N, sharp=sharp).estimation
        assert terms.shift == pytest.approx(at_N)
    assert linear_bounds.best_window(Sizes(S=1, A=4, H=9, K=10), 4, sharp=False) == 1


# --- runs against their bounds -------------------------------------------------------------------

ROOM = empty_room(3)  # S = 9, A = 5, H = 9
BANDIT = mdps.from_arrays(
    np.ones((1, 3, 1)), horizon=1, nu=np.ones(1), reward=np.array([[0.1, 0.9, 0.4]])
)
LEVER = mdps.from_arrays(np.ones((1, 2, 1)), horizon=1, nu=np.ones(1), reward=np.ones((1, 2)))
OF = {  # who is imitated: demonstrations, or a policy that rolls dice
    "room": (ROOM, expert_occupancy(ROOM, demonstrations(3))),
    "bandit": (BANDIT, np.array([[[0.2, 0.7, 0.1]]])),
    "lever": (LEVER, np.array([[[0.25, 0.75]]])),
}


def grid(world, K, pairs):
    """Both reward players with both ways to count; `pairs` are of visits and steps."""
    return [
        (world, K, {"rewarder": rewarder, "visits": visits, "gradients": "sampled", "steps": steps})
        for rewarder in ("step", "leader")
        for visits, steps in pairs
    ]


PAPERS = {"steps": "theory", "visits": "sampled", "handed": "last"}
BOUNDED = [
    *grid("room", 3_000, [("sampled", "theory"), ("expected", "anytime")]),
    *grid("bandit", 1_000, [("sampled", "anytime"), ("expected", "theory")]),
    ("room", 3_000, {**PAPERS, "window": "4"}),
    ("bandit", 1_000, {**PAPERS, "window": "4", "visits": "expected"}),
    ("lever", 30_000, {**PAPERS, "model": "learned", "bonus": 1.0, "counts": "stage"}),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            *grid("room", 3_000, [("sampled", "anytime"), ("expected", "theory")]),
            ("room", 10_000, {**PAPERS, "window": "8", "batch": 2}),
        )
    ),
]


def accounts(world, K, options, runs):
    """The ledger of some runs of K updates, each beside its bounds."""
    mdp, expert = OF[world]
    asked = {"batch": 1, **options}
    fresh = 1 if asked["batch"] is None else asked["batch"] * mdp.horizon
    config = Config(**asked, interactions=fresh * K, marks=1)
    seen = imitate(mdp, expert, config, seeds=range(runs)).measured
    planned, problem = plan(mdp, config), pose(mdp, expert)
    assert planned.iterations == K
    return [ledger(jax.tree.map(lambda x, i=i: x[i], seen), planned, problem) for i in range(runs)]


@pytest.mark.parametrize(("world", "K", "options"), BOUNDED)
def test_runs_stay_within_their_bounds(world, K, options):
    """Every term; and the bound of the whole says something: it is below H K, which no run can
    exceed."""
    H = OF[world][0].horizon
    for account in accounts(world, K, options, 2):
        assert all(row["holds"] is not False for row in account.values()), account
        ail = account["ail"]
        assert 0 <= ail["measured"] <= ail["sharp_bound"] <= ail["bound"]
        assert ail["sharp_bound"] < H * K
        assert account["shift"]["sharp_bound"] is not None
        assert (account["shift"]["measured"] == 0) == ("window" not in options)
        if options["steps"] == "theory":
            assert account["tv_step"]["measured"] <= account["tv_step"]["sharp_bound"]
        else:  # logits that fade move a policy besides
            assert account["tv_step"]["sharp_bound"] is None


@pytest.mark.parametrize(("steps", "rewarder"), [("theory", "step"), ("anytime", "leader")])
def test_exact_gradients_are_bounded_without_whole_trajectories(steps, rewarder):
    """An interaction an update; what is not sampled has no noise, and the bound is below H K."""
    K, H = 3_000, OF["room"][0].horizon
    options = {"batch": None, "gradients": "exact", "steps": steps, "rewarder": rewarder}
    (account,) = accounts("room", K, options, 1)
    assert all(row["holds"] is not False for row in account.values()), account
    assert account["estimation"]["measured"] == account["estimation"]["bound"] == 0
    assert 0 <= account["ail"]["measured"] <= account["ail"]["sharp_bound"] < H * K


@pytest.mark.parametrize("window", ["4", pytest.param("8", marks=pytest.mark.slow)])
def test_the_measured_shift_is_within_that_of_delayed_feedback(window):
    """With no word of how policies drift, and of any of the reward player's step sizes."""
    K, size = 1_000, Sizes(S=9, A=5, H=9, K=1_000)
    N = np.minimum(np.arange(1, K + 1), int(window))
    for eta in (1e-3, 0.1):
        options = {**PAPERS, "window": window, "eta": eta, "sigma": 1.0}
        for account in accounts("room", K, options, 2):
            assert account["shift"]["measured"] != 0
            assert account["shift"]["measured"] <= bounds.delayed(size, eta, N)


def slow(*args):
    return pytest.param(args, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "args",
    [
        ("--window", "32", "--points", "32", "--steps", "paper", "--interactions", "1000"),
        slow("--batch", "1", "--window", "all", "--steps", "paper", "--interactions", "1800"),
        slow("--batch", "1", "--window", "4", "--model", "learned", "--bonus", "1", "--counts",
         "stage", "--steps", "theory", "--interactions", "1800"),
    ],
)  # fmt: skip
def test_the_command_line_tells_of_bounds_that_hold(args, tmp_path):
    done = understudy("train", "EmptyRoom-3x3", *args, "--json", "--out", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["ledger"]
    assert all(row["holds"] is not False for row in told.values()), told
    assert told["tv_step"]["measured"] <= told["tv_step"]["sharp_bound"]
    assert told["shift"]["sharp_bound"] is not None
    assert "Regret ledger" in done.stderr


def test_advise(tmp_path):
    args = ("--states", "81", "--actions", "5", "--horizon", "27", "--iterations", "10000")
    done = understudy("advise", *args, "--out", "a.png", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["n_star"] == pytest.approx({"paper": 1.0, "sharp": (81 * 5 / 27) ** (1 / 3)})
    assert said["sigma"] == pytest.approx(np.sqrt(2 * np.log(5) / (27**2 * 10_000)))
    assert said["eta"] == pytest.approx(np.sqrt(81 * 5 / 10_000))
    assert said["terms"]["N"][0] == 1
    assert len(said["terms"]["sharp"]["shift"]) == len(said["terms"]["N"])
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "N* = 1.00 by the paper, 2.47 by the sharper bound" in " ".join(done.stderr.split())
    bad = understudy("advise", "--states", "0", "--actions", "5", "--horizon", "3", cwd=tmp_path)
    assert bad.returncode == 2
    assert "--states is 0" in bad.stderr


def test_advice_needs_a_choice():
    with pytest.raises(UserError, match="--actions is 1"):
        advisor.advise(Sizes(S=3, A=1, H=2, K=10))
