"""Each baseline does what its paper says it does."""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mdps import random_mdp, random_policy
from test_deep_runs import SMALL, learn, scripted

from understudy.core import mdp as mdps
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.model import Counted, occupancy
from understudy.core.occupancy import policy_of
from understudy.demos import npz, rollout
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.experiments import train_networks as deep_train
from understudy.learners import tabular
from understudy.learners.baselines import iq_learn, methods, sqil
from understudy.learners.config import Config
from understudy.learners.deep import actor_critic, as_method, expert_points, learner
from understudy.learners.deep.actor_critic import Transitions, Tuning
from understudy.learners.deep.config import PRESETS
from understudy.learners.deep.executed import executed
from understudy.learners.deep.scaling import Scaling
from understudy.learners.finite import expert_occupancy, imitate, plan, pose, stack
from understudy.learners.seeds import keys_of

KEY = jax.random.key(0)
TUNING = Tuning(actor_hidden=(16, 16), critic_hidden=(16, 16), norm=False, critic_rate=1e-2)


def some(*shape, key=0):
    return jax.random.normal(jax.random.key(key), shape, jnp.float32)


def rows_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def points(n, key=0):
    obs, action = some(n, 3, key=key), jnp.tanh(some(n, 2, key=key + 1))
    return Transitions(obs, action, some(n, 3, key=key + 2), jnp.zeros(n, bool))


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demos")
    npz.write(folder / "Pendulum-v1.npz", scripted("Pendulum-v1"))
    return folder


# --- behavioural cloning -------------------------------------------------------------------------


def test_counts_are_the_expert_where_it_goes_and_uniform_elsewhere():
    mdp = random_mdp(5, 6, 3, 2, staged=True, seed=1)
    pi = random_policy(mdp, seed=2)
    d = mdps.occupancy(mdp, pi)
    unseen = d.at[2, 3].set(0)
    found = policy_of(unseen)
    seen = np.asarray(unseen.sum(-1) > 0)
    np.testing.assert_allclose(found[seen], pi[seen], atol=1e-12)
    np.testing.assert_allclose(found[~seen], 1 / 3)


def test_counts_come_to_the_expert_as_demonstrations_are_added():
    mdp = random_mdp(5, 6, 3, 2, staged=False, seed=3)
    pi = random_policy(mdp, seed=4, concentration=2.0)
    best = float(mdps.value(mdp, pi, mdp.reward))
    missed = []
    for episodes in (10, 300, 9_000):
        shown = rollout.sample(mdp, np.asarray(pi), episodes, seed=5)
        clone = policy_of(expert_occupancy(mdp, shown))
        d = mdps.occupancy(mdp, pi)
        missed.append(float(jnp.sum(d * jnp.abs(clone - pi))))
    assert missed[2] < missed[1] / 3 < missed[0] / 9  # as 1/√n, 5.5 times less each
    assert float(mdps.value(mdp, clone, mdp.reward)) == pytest.approx(best, abs=0.05)


def cliff(H, states=20):
    """A road of many look-alike places beside a cliff: action 0 goes on, to any place; action 1
    falls, for good. A step on the road pays one."""
    S, fallen = states + 1, states
    P = np.zeros((1, S, 2, S))
    P[0, :states, 0, :states] = 1 / states
    P[0, :states, 1, fallen] = 1
    P[0, fallen, :, fallen] = 1
    reward = np.zeros((H, S, 2))
    reward[:, :states] = 1
    nu = np.r_[np.full(states, 1 / states), 0]
    succ = np.broadcast_to(np.arange(S), (1, S, 2, S))
    return mdps.build(succ, P, horizon=H, nu=nu, reward=reward)


def test_cloning_errs_ever_more_on_a_longer_cliff():
    """Ross & Bagnell (2010): the error compounds, H² and not H."""
    lost = {}
    for H in (4, 8, 16):
        mdp = cliff(H)
        go_on = jnp.zeros(mdp.shape).at[..., 0].set(1)
        losses = []
        for seed in range(10):
            shown = rollout.sample(mdp, np.asarray(go_on), 60, seed=seed)
            clone = policy_of(expert_occupancy(mdp, shown))
            losses.append(H - float(mdps.value(mdp, clone, mdp.reward)))
        lost[H] = np.mean(losses)
    assert lost[8] > 3 * lost[4]
    assert lost[16] > 3 * lost[8]


def test_cloning_is_what_ours_begins_with_to_the_bit(demos, tmp_path):
    """The same policy, and so the same return, for the same seed; another for another."""
    short = {"interactions": 16, "marks": 1, "hidden": 24, "warm_start": "clone"}
    ours = dataclasses.replace(SMALL, **short)
    usual = methods.options("bc", PRESETS["fast"])
    cloning = dataclasses.replace(
        ours, **{name: getattr(usual, name) for name in methods.UNUSED["bc"]}
    )
    ends = {}
    for seed in (0, 1):
        learn("Pendulum-v1", demos, tmp_path / f"ours{seed}", ours, seed=seed)
        learn("Pendulum-v1", demos, tmp_path / f"bc{seed}", cloning, method="bc", seed=seed)
        first, *_ = rows_of(tmp_path / f"ours{seed}")
        (only,) = rows_of(tmp_path / f"bc{seed}")
        names = ("interactions", "return", "return_std", "length")
        assert [first[name] for name in names] == [only[name] for name in names]
        ends[seed] = only["return"]
    assert ends[0] != ends[1]


@pytest.mark.parametrize("discrete", [False, True])
def test_cloning_is_the_actor_that_ours_begins_with(discrete):
    """All of its weights, whatever the preset says of a warm start."""
    sizes = (3, 3, 1, 1) if discrete else (3, 3, 2, 2)
    mean, std, low, high = (np.ones(n, np.float32) for n in sizes)
    border = Scaling(mean, std, -low if not discrete else 0 * low, high, discrete=discrete)
    expert = points(40)
    if discrete:
        expert = dataclasses.replace(
            expert, action=jnp.eye(2, dtype=jnp.float32)[jnp.arange(40) % 2]
        )
    for preset in ("fast", "paper"):
        base = dataclasses.replace(
            PRESETS[preset], interactions=4_096, hidden=8, clone_least=3, clone_most=3
        )
        settings = learner.resolve(methods.options("bc", base))
        alone = as_method.cloning_alone(expert, border, settings, seed=5)
        ours = learner.resolve(dataclasses.replace(base, warm_start="clone"))
        begun = as_method.imitation(expert, border, ours, learner, seed=5)
        pairs = [jax.tree.leaves(method.actor(method.state)) for method in (alone, begun)]
        for one, other in zip(*pairs, strict=True):
            np.testing.assert_array_equal(one, other)
        assert executed("bc", settings).actor == executed("mdpo", ours).actor == (8,) * 3


# --- OAL -----------------------------------------------------------------------------------------


def test_oals_occupancy_is_that_of_the_counted_model():
    """Against P̂ written out, with pairs that were never tried."""
    mdp = random_mdp(5, 6, 3, 2, staged=False, seed=6)
    pi = random_policy(mdp, seed=7)
    counts = np.random.default_rng(8).integers(0, 3, mdp.succ.shape)
    counts[0, 2] = 0
    P = np.zeros((6, 3, 6))
    for s, a in np.ndindex(6, 3):
        n = counts[0, s, a]
        if n.sum():
            np.add.at(P[s, a], np.asarray(mdp.succ[0, s, a]), n / n.sum())
        else:
            P[s, a] = 1 / 6
    mass, expected = np.asarray(mdp.nu), []
    for h in range(5):
        expected.append(mass[:, None] * np.asarray(pi[h]))
        mass = np.einsum("sa,sat->t", expected[-1], P)
    model = Counted(mdp, jnp.asarray(counts, jnp.int32), jnp.zeros(()))
    np.testing.assert_allclose(occupancy(model, pi), expected, atol=1e-12)


def test_oal_with_the_world_in_its_counts_is_exact_imitation():
    """Where P̂ = P, it is the learner with exact gradients, known transitions and N = 1."""
    config = Config(
        batch=1, gradients="exact", steps="paper", handed="last", interactions=10 * 20, marks=1
    )
    room, shown = empty_room(3), demonstrations(3)
    p = plan(room, config)
    exact = imitate(room, shown, config, seeds=[0])
    problem, settings = pose(room, shown), stack(p.settings, 1)
    changes = {"known": False, "ledger": False, "gradients": "modelled"}
    protocol = dataclasses.replace(p.protocol, **changes)
    state = tabular.start(problem, protocol, keys=keys_of([0]))
    sure = jnp.round(1e6 * room.prob).astype(jnp.int32)  # enough of the truth to drown practice
    state = eqx.tree_at(lambda s: s.counts, state, sure[None])
    settings = dataclasses.replace(settings, bonus=0 * settings.bonus)
    marks = jnp.array([p.iterations], jnp.int32)
    ran = tabular.advance(state, problem, settings, protocol, marks, keys=keys_of([0]))
    np.testing.assert_allclose(ran.state.pi[0], exact.policy[0], atol=1e-4)
    assert np.abs(exact.policy[0] - 0.2).max() > 0.01  # they went somewhere


# --- on-policy GAIL and DAC ----------------------------------------------------------------------


def test_gail_sees_its_own_practice_and_no_other():
    config = methods.options("gail", PRESETS["fast"])
    settings = learner.resolve(config)
    assert (settings.slots, settings.fresh, config.window) == (1, 512, "1")
    ours = PRESETS["fast"]
    assert ours.fresh is not None
    assert config.policy_steps / 512 == ours.policy_steps / ours.fresh  # as much work
    assert config.reward_steps / 512 == ours.reward_steps / ours.fresh


def test_dac_samples_all_that_was_practised_alike():
    config = methods.options("dac", PRESETS["fast"])
    settings = learner.resolve(config)
    state = learner.init(settings, 2, 1, discrete=False, key=jax.random.key(0))
    _, beta = learner.recall(dataclasses.replace(state, k=jnp.int32(700)), settings)
    np.testing.assert_allclose(beta[:700], 1 / 700)
    assert not beta[700:].any()
    assert config.absorbing
    assert settings.tuning.kl == 0


# --- SQIL and IQ-Learn ---------------------------------------------------------------------------


def test_sqil_pays_the_expert_one_and_practice_nothing():
    assert sqil.reward(points(2), points(3)).tolist() == [0, 0, 1, 1, 1]


def test_sqil_values_the_expert_above_practice():
    """With γ = 0 its critics regress on that reward alone."""
    tuning = Tuning(
        actor_hidden=(16, 16), critic_hidden=(16, 16), norm=False, critic_rate=1e-2, gamma=1e-6
    )
    agent = actor_critic.init(3, 2, tuning, discrete=False, key=KEY)
    seen, shown = points(32, key=1), points(32, key=9)
    fit = jax.jit(sqil.fit, static_argnames="tuning")
    for i in range(400):
        agent, _ = fit(
            agent, seen, shown, tuning, terminates=jnp.asarray(False), key=jax.random.key(i)
        )
    Q = [float(agent.critic(b.obs, b.action[None]).mean()) for b in (shown, seen)]
    assert pytest.approx([1, 0], abs=0.05) == Q


def test_iq_learns_objective_has_its_closed_form():
    """Were r free at each point, −E_E[r] + E_all[r²]/(4c) is least at r = 2c ρ_E/ρ_all: with half
    of all points the expert's, 4c there and zero at the others."""
    r, none = jnp.zeros((2, 10), jnp.float32), jnp.float32(0)
    slope = jax.jit(jax.grad(lambda r: iq_learn.objective(r[:, 5:], r, none)))
    for _ in range(200):
        r = r - 10 * slope(r)
    expected = np.where(np.arange(10) >= 5, 4 * iq_learn.CHI, 0)
    np.testing.assert_allclose(r, np.tile(expected, (2, 1)), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("terminates", [False, True])
def test_iq_learn_gives_the_expert_a_reward_and_practice_less(terminates):
    agent = actor_critic.init(3, 2, TUNING, discrete=False, key=KEY)
    seen, shown = points(32, key=1), points(32, key=9)
    fit = jax.jit(iq_learn.fit, static_argnames="tuning")
    ends = jnp.asarray(terminates)
    for i in range(300):
        agent, _ = fit(agent, seen, shown, TUNING, terminates=ends, key=jax.random.key(i))

    def reward(batch):
        after = actor_critic.backup(agent, batch, jnp.zeros(32, jnp.float32), TUNING, key=KEY)
        return float(jnp.mean(agent.critic(batch.obs, batch.action[None])[:, 0] - after))

    assert reward(shown) > reward(seen) + 0.5
    # Where episodes end, living costs nothing: else those who fall at once would do best.
    assert not terminates or reward(seen) > -0.2


# --- runs ----------------------------------------------------------------------------------------


LATER = [pytest.param(method, marks=pytest.mark.slow) for method in ("gail", "dac", "iq-learn")]


@pytest.mark.parametrize("method", ["bc", "sqil", *LATER])
def test_a_baseline_is_a_run_like_any_other(method, demos, tmp_path):
    usual, config = (methods.options(method, one) for one in (PRESETS["fast"], SMALL))
    unused = {name: getattr(usual, name) for name in methods.UNUSED.get(method, ())}
    config = dataclasses.replace(config, **unused)
    if method == "gail":
        few = {"interactions": 1_024, "policy_steps": 2, "reward_steps": 2}
        config = dataclasses.replace(config, **few)
    summary = learn("Pendulum-v1", demos, tmp_path / "run", config, method=method)
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert np.isfinite(summary["return"])
    practised = 0 if method == "bc" else config.interactions
    assert (summary["interactions"], rows[-1]["interactions"]) == (practised, practised)
    assert json.loads((tmp_path / "run/config.json").read_text())["method"] == method
    assert np.isfinite(deep_train.evaluate(tmp_path / "run", episodes=1)["return"])


def test_a_thinned_demonstration_keeps_true_steps():
    T = 50
    obs = [np.arange(T + 1.0)[:, None] + 100 * i for i in range(3)]
    shown = Demonstrations(
        obs, [o[:-1] / 1_000 for o in obs], [np.zeros(T)] * 3, [True, False, True]
    )
    rows = expert_points.kept(shown, 20)
    assert all(np.diff(r).tolist() == [20] * (len(r) - 1) and r[0] < 20 for r in rows)
    assert len({int(r[0]) for r in rows}) > 1  # each from a step of its own
    assert [len(r) for r in expert_points.kept(shown, None)] == [T] * 3
    with pytest.raises(UserError, match="--thin is 51"):
        expert_points.kept(shown, 51)


def test_methods_with_tables_are_these_options():
    base = Config(window="32", interactions=500)
    changed = {
        "understudy": {},
        "gail": {"window": "1", "points": 32},
        "dac": {"window": "all", "points": 32},
        "importance": {"window": "4", "batch": 1, "correction": "path"},
        "oal": {"window": "1", "batch": 1, "model": "learned", "gradients": "modelled"},
    }
    for name, options in changed.items():
        published = {} if name == "understudy" else {"visits": "sampled", "handed": "last"}
        expected = dataclasses.replace(base, **published, **options)
        assert methods.tabular_options(name, base) == expected
