"""A share of the environment's own reward: what critics and auditions are paid, what is refused,
and a finished run that goes on with it alone."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import probe
import pytest

import understudy
from understudy.core import window as windows
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.demos import npz
from understudy.experiments import runs, stored_runs, train_networks
from understudy.learners.baselines.methods import options
from understudy.learners.deep import discriminator, going_on, lead, learner
from understudy.learners.deep.actor_critic import Transitions, transitions
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.lead import Auditions, Judging

SMALL = DeepConfig(
    interactions=160, marks=2, episodes=2, hidden=16, discriminator_hidden=8, batch=16, points=32,
    policy_steps=2, reward_steps=2, warmup=0, clone_least=60, clone_most=60, audition=2,
)  # fmt: skip
MIX = dataclasses.replace(SMALL, task_reward=0.5)
RNG = np.random.default_rng(0)


def some(n, reward):
    s, after = RNG.normal(size=(2, n, 3)).astype(np.float32)
    a = RNG.uniform(-1, 1, (n, 2)).astype(np.float32)
    gained = None if reward is None else jnp.asarray(np.broadcast_to(np.float32(reward), n))
    return Transitions(*map(jnp.asarray, (s, a, after, np.zeros(n, bool))), gained)


def begun(config, expert, *, level=0.0):
    """A learner whose discriminator has the same logit everywhere, and hardly moves."""
    settings = learner.measured(
        learner.resolve(dataclasses.replace(config, discriminator_rate=1e-9)), expert
    )
    state = learner.init(settings, 3, 2, discrete=False, key=jax.random.key(0))
    flat = jax.tree.map(jnp.zeros_like, state.judge)
    judge = jax.tree.map(lambda x: x + level if x.shape == (1,) else x, flat)
    return dataclasses.replace(state, judge=judge), settings


def stepped(config, practised, expert, *, level):
    state, settings = begun(config, expert, level=level)
    ended = jnp.zeros(settings.fresh, bool)
    return learner.step(state, practised, expert, settings=settings, ended=ended)[1]


@pytest.mark.parametrize(("share", "paid"), [(0.0, 3.0), (0.25, 2.75), (1.0, 2.0)])
def test_what_is_paid_is_the_mix_in_units_of_the_demonstrations(share, paid):
    """A logit of 3; rewards of 8 where the expert's are of size 4, and so of two units."""
    rewarded = share > 0
    config = dataclasses.replace(SMALL, task_reward=share, demo_share=0.0)
    practised = some(8, 8.0 if rewarded else None)
    expert = some(6, [4, -4, 4, 4, -4, 4] if rewarded else None)
    info = stepped(config, practised, expert, level=3.0)
    assert float(info.reward) == pytest.approx(paid, rel=1e-5)


def test_demonstrations_are_paid_theirs():
    config = dataclasses.replace(SMALL, task_reward=1.0, demo_share=0.5)
    info = stepped(config, some(8, 8.0), some(6, 4.0), level=3.0)
    assert float(info.reward) == pytest.approx((2 + 1) / 2, rel=1e-5)  # half of each


def test_alone_it_leaves_nothing_to_the_learned_reward():
    expert, practised = some(6, 2.0), some(8, RNG.normal(size=8))
    config = dataclasses.replace(SMALL, task_reward=1.0)
    one, other = (stepped(config, practised, expert, level=level) for level in (-5.0, 5.0))
    assert float(one.critic_loss) == float(other.critic_loss)
    mixed = [stepped(MIX, practised, expert, level=level) for level in (-5.0, 5.0)]
    assert float(mixed[0].critic_loss) != float(mixed[1].critic_loss)


def test_an_audition_earns_the_mix():
    """Three iterations of three steps; two auditions, from step 1 to 5 and from 5 to 7."""
    own = RNG.normal(size=9).astype(np.float32)
    practised = some(9, own)
    window = windows.empty(some(3, 0.0), 3)
    for label in range(3):
        segment = jax.tree.map(lambda x, i=label: x[3 * i : 3 * i + 3], practised)
        window = windows.append(window, segment, label=jnp.int32(label))
    judge = discriminator.discriminator(5, (4, 4), spectral=False, key=jax.random.key(2))
    lane, begun, ended = jnp.array([[0, 0, 0], [1, 5, 0], [5, 7, 0]], jnp.int32)
    heard = Auditions(lane, begun, ended, jnp.int32(2))
    x = jnp.concatenate([practised.obs, practised.action], axis=-1)
    learned, none = np.asarray(judge(x)), jnp.zeros((), bool)
    for share in (0.25, 1.0):
        paid = (1 - share) * learned + share * own / 2
        by = Judging(window, judge, none, 1, "logit", False, 4, share, 2.0)
        got, whole = lead.earned(heard, by)
        assert whole.tolist() == [True, True, False]
        np.testing.assert_allclose(got[:2], [paid[1:5].sum(), paid[5:7].sum()], rtol=1e-4)


def test_practice_keeps_its_reward_where_it_is_asked_for():
    kept = {"obs": np.zeros((2, 3), np.float32), "action": np.zeros((2, 2), np.float32),
            "next_obs": np.zeros((2, 3), np.float32), "terminated": np.zeros(2, bool),
            "reward": np.float32([3, 4]), "ended": np.zeros(2, bool)}  # fmt: skip
    assert transitions(kept).reward is None
    assert transitions(kept, rewarded=True).reward.tolist() == [3, 4]


# --- runs ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    path = tmp_path_factory.mktemp("demos") / "point.npz"
    npz.write(path, probe.straight())
    return str(path)


@pytest.fixture(scope="module")
def imitated(shown, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "imitated"
    train_networks.train("probe:Point", SMALL, demos=shown, out=out)
    return out


def test_off_it_is_not_even_noted(imitated):
    noted = json.loads((imitated / "config.json").read_text())
    assert "task_reward" not in noted["config"]
    assert "begin" not in noted
    assert "task_reward" not in runs.summary(imitated)
    assert stored_runs.read(imitated).request["config"]["task_reward"] == 0


def test_the_result_says_that_it_was_paid(shown, imitated, tmp_path):
    told = train_networks.train("probe:Point", MIX, demos=shown, out=tmp_path / "mix")
    assert told["task_reward"] == runs.summary(tmp_path / "mix")["task_reward"] == 0.5
    noted = json.loads((tmp_path / "mix/config.json").read_text())
    assert noted["config"]["task_reward"] == 0.5
    mixed, plain = ((run / "metrics.jsonl").read_bytes() for run in (tmp_path / "mix", imitated))
    assert mixed.splitlines()[-1] != plain.splitlines()[-1]
    result = understudy.train(probe.Point, probe.straight(), MIX)
    assert result.summary["task_reward"] == 0.5


def test_a_finished_run_goes_on_with_the_environments_reward_alone(shown, imitated, tmp_path):
    alone = dataclasses.replace(SMALL, task_reward=1.0, cloning=0.0, hidden=12)
    out = tmp_path / "alone"
    told = train_networks.train("probe:Point", alone, demos=shown, begin=imitated, out=out)
    assert (told["task_reward"], told["begun_as"]) == (1.0, str(imitated))
    first, last = runs.metrics(out)[0], runs.metrics(imitated)[-1]
    assert first["return"] == last["return"]  # it begins as what the other ended as
    before, after = (understudy.load_policy(run) for run in (imitated, out))
    assert before.scaling.mean.tolist() == after.scaling.mean.tolist()
    assert json.loads((out / "policy.json").read_text())["hidden"] == [16] * 3  # its own size
    again = train_networks.train("probe:Point", alone, demos=shown, begin=imitated, out=out)
    assert again["return"] == told["return"]  # it is done
    with pytest.raises(UserError, match="holds another run"):
        train_networks.train("probe:Point", alone, demos=shown, out=out)


@pytest.mark.parametrize(
    ("other", "changes", "says"),
    [
        ({"env": "CartPole-v1", "demos": None}, {}, r"takes observations \(2,\)"),
        ({}, {"warm_start": "none"}, "say --warm-start clone"),
        ({}, {"absorbing": True}, "learned without --absorbing"),
        ({}, {"task_reward": 1.5}, "--task-reward is 1.5; it must be from 0 to 1"),
    ],
)
def test_what_cannot_be_gone_on_with(other, changes, says, shown, imitated, tmp_path):
    asked = {"env": "probe:Point", "demos": shown, **other}
    with pytest.raises(UserError, match=says):
        train_networks.train(
            asked.pop("env"), dataclasses.replace(SMALL, **changes), begin=imitated,
            out=tmp_path / "run", **asked,
        )  # fmt: skip
    with pytest.raises(UserError, match="leave --method out"):
        going_on.policy(imitated, "bc", SMALL)
    with pytest.raises(UserError, match="There is no policy in"):
        train_networks.train(
            "probe:Point", SMALL, demos=shown, begin=tmp_path, out=tmp_path / "run"
        )
    assert not (tmp_path / "run").exists()


def test_demonstrations_without_rewards_are_refused(tmp_path):
    there = probe.straight()
    none = Demonstrations(
        there.observations, there.actions, [0 * r for r in there.rewards], there.terminated
    )
    with pytest.raises(UserError, match="give demonstrations with the task's rewards"):
        understudy.train(probe.Point, none, MIX, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_methods_without_a_learned_reward_refuse_it(shown, tmp_path):
    for method in ("sqil", "bc"):
        config = dataclasses.replace(options(method, DeepConfig()), task_reward=0.5)
        with pytest.raises(UserError, match="--task-reward changes nothing"):
            train_networks.train(
                "probe:Point", config, method=method, demos=shown, out=tmp_path / "run"
            )
