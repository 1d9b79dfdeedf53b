"""The reward that was learned: what it pays, in a world too, and how its file can be wrong."""

import dataclasses
import json

import gymnasium
import jax
import numpy as np
import probe
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import understudy
from understudy.core.errors import UserError
from understudy.demos import shipped
from understudy.experiments import train_networks
from understudy.learners.config import Config
from understudy.learners.deep import discriminator, learned_reward
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.learned_reward import Reward
from understudy.learners.deep.paying import LearnedReward
from understudy.learners.deep.scaling import Scaling

SMALL = DeepConfig(
    interactions=160, marks=2, episodes=1, hidden=16, discriminator_hidden=8, batch=16, points=32,
    policy_steps=2, reward_steps=2, warmup=0, warm_start="none",
)  # fmt: skip
BOX = Scaling(
    np.float32([1, 2, 3]), np.float32([1, 2, 4]), np.float32([-1, -4]), np.float32([3, 4]),
    discrete=False,
)  # fmt: skip
CHOICE = Scaling(
    np.float32([0] * 3), np.float32([1] * 3), np.float32([5]), np.float32([7]), discrete=True
)


def kept(border, *, kind="logit", terminates=False, absorbing=False, spectral=False):
    judge = discriminator.discriminator(
        border.observations + border.actions, (4, 6), spectral=spectral, key=jax.random.key(3)
    )
    judge = jax.tree.map(lambda x: x + 0.3 if x.ndim == 1 else x, judge)
    shapes = (border.observations - absorbing,), () if border.discrete else (2,)
    return Reward(judge, border, "World-v0", *shapes, absorbing, kind, terminates)


def logit(judge, x):
    layers = [
        (np.asarray(layer.w, float), np.asarray(layer.b, float)) for layer in judge.net.layers
    ]
    for w, b in layers:
        x = np.maximum(x, 0) if w is not layers[0][0] else x
        x = x @ w + b
    return x[:, 0]


RNG = np.random.default_rng(0)
SEEN, TAKEN = RNG.normal(size=(5, 3)), RNG.uniform([-1, -4], [3, 4], (5, 2))
ELL = logit(
    kept(BOX).judge,
    np.column_stack([(SEEN - [1, 2, 3]) / [1, 2, 4], (TAKEN - [1, 0]) / [2, 4]]),
)


@pytest.mark.parametrize(
    ("kind", "terminates", "expected"),
    [
        ("logit", True, ELL),
        ("positive", False, np.log(1 + np.exp(ELL))),
        ("negative", True, -np.log(1 + np.exp(-ELL))),
        ("auto", False, ELL),
        ("auto", True, np.log(1 + np.exp(ELL))),
    ],
)
def test_it_pays_what_the_logit_stands_for_in_the_worlds_units(kind, terminates, expected):
    reward = kept(BOX, kind=kind, terminates=terminates)
    np.testing.assert_allclose(reward(SEEN, TAKEN), expected, rtol=2e-4, atol=1e-5)
    one = reward(SEEN[2], list(TAKEN[2]))
    assert type(one) is float
    assert one == pytest.approx(expected[2], rel=2e-4)


def test_a_choice_is_paid_by_its_number():
    reward, chosen = kept(CHOICE), np.array([5, 7, 6, 5, 7])
    expected = logit(reward.judge, np.column_stack([SEEN, np.eye(3)[chosen - 5]]))
    np.testing.assert_allclose(reward(SEEN, chosen), expected, rtol=2e-4, atol=1e-5)
    assert reward(SEEN[1], np.int64(7)) == pytest.approx(expected[1], rel=2e-4)
    for wrong in (4, 8, 5.5):
        with pytest.raises(UserError, match="whole number from 5 to 7"):
            reward(SEEN[0], wrong)


def test_an_action_beyond_its_box_counts_as_one_at_the_border():
    reward = kept(BOX)
    assert reward(SEEN[0], [9, -9]) == reward(SEEN[0], [3, -4])
    assert reward(SEEN[0], [3, -4]) != reward(SEEN[0], [2, -4])


def test_the_norm_of_a_spectral_layer_is_the_largest_singular_value():
    reward = kept(BOX, spectral=True)
    layers = reward.judge.net.layers
    norms = [np.linalg.norm(np.asarray(layer.w, float), 2) for layer in layers]
    x = np.column_stack([(SEEN - [1, 2, 3]) / [1, 2, 4], (TAKEN - [1, 0]) / [2, 4]])
    for layer, norm in zip(layers, norms, strict=True):
        x = np.maximum(x, 0) if layer is not layers[0] else x
        x = x @ (np.asarray(layer.w, float) / norm) + np.asarray(layer.b, float)
    np.testing.assert_allclose(reward(SEEN, TAKEN), x[:, 0], rtol=0.05)  # power iteration: near


@pytest.mark.parametrize(
    ("obs", "action", "says"),
    [
        (np.zeros(2), np.zeros(2), "observation has shape"),
        (np.zeros((2, 5, 3)), np.zeros((2, 5, 2)), "observation has shape"),
        (np.zeros(3), np.zeros((1, 2)), r"action has shape \(1, 2\).*takes \(2,\)"),
        (np.zeros((4, 3)), np.zeros((3, 2)), r"takes \(4, 2\)"),
        (np.full(3, np.nan), np.zeros(2), "is NaN"),
    ],
)
def test_what_does_not_fit_is_one_sentence(obs, action, says):
    with pytest.raises(UserError, match=says):
        kept(BOX)(obs, action)


# --- in a world ----------------------------------------------------------------------------------


def test_a_world_pays_it_and_tells_its_own():
    env, plain = (gymnasium.make("Pendulum-v1") for _ in range(2))
    border = Scaling(
        np.zeros(3, np.float32), np.ones(3, np.float32), np.float32([-2]), np.float32([2]),
        discrete=False,
    )  # fmt: skip
    reward = dataclasses.replace(kept(border), action_shape=(1,))
    world = LearnedReward(env, reward)
    seen, _ = world.reset(seed=3)
    plain.reset(seed=3)
    for action in ([0.5], [-1.0], [2.0]):
        after, paid, *_, info = world.step(np.float32(action))
        _, own, *_ = plain.step(np.float32(action))
        assert paid == reward(seen, np.float32(action)) != own
        assert info["task_reward"] == own
        seen = after


def test_the_end_of_an_episode_is_worth_its_absorbing_state():
    ends = np.float32([0]), np.float32([1])
    border = Scaling(np.zeros(5, np.float32), np.ones(5, np.float32), *ends, discrete=True)
    reward = kept(border, absorbing=True)
    absorbed = logit(reward.judge, np.array([[0, 0, 0, 0, 1.0, 0, 0]]))[0]
    assert reward.absorbed == pytest.approx(absorbed, rel=1e-4)
    assert kept(CHOICE).absorbed == 0
    world = LearnedReward(gymnasium.make("CartPole-v1"), reward, gamma=0.9)
    seen, _ = world.reset(seed=0)
    ended = False
    while not ended:
        before = reward(seen, 1)
        seen, paid, ended, cut, _ = world.step(1)
        assert not cut
        assert paid == pytest.approx(before + (9 * absorbed if ended else 0), rel=1e-4)


def test_worlds_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match=r"observations of shape \(4,\).*World-v0 takes \(3,\)"):
        LearnedReward(gymnasium.make("CartPole-v1"), kept(CHOICE))
    with pytest.raises(UserError, match=r"actions of shape \(1,\).*takes \(2,\)"):
        LearnedReward(gymnasium.make("Pendulum-v1"), kept(BOX))
    with pytest.raises(UserError, match="gamma is 1"):
        LearnedReward(
            probe.Point(), dataclasses.replace(kept(BOX), observation_shape=(2,)), gamma=1.0
        )


# --- its file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("border", [BOX, CHOICE], ids=["box", "choice"])
@pytest.mark.parametrize("absorbing", [True, False])
def test_it_comes_back_as_it_was(border, absorbing, tmp_path):
    given = kept(border, kind="auto", terminates=True, absorbing=absorbing, spectral=True)
    learned_reward.save(tmp_path, given)
    assert [path.name for path in tmp_path.iterdir()] == ["reward.safetensors"]
    back = learned_reward.load(tmp_path)
    obs = SEEN[:, : 3 - absorbing]
    act = TAKEN if border is BOX else np.array([5, 6, 7, 5, 6])
    np.testing.assert_array_equal(back(obs, act), given(obs, act))
    assert (back.env, back.kind, back.terminates) == ("World-v0", "auto", True)
    assert back.absorbed == given.absorbed


def file_of(path):
    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()["about"]), {n: file.get_tensor(n) for n in file.keys()}  # noqa: SIM118


def write(path, arrays, about):
    save_file(arrays, path, {"about": json.dumps(about)})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "format is 2, and 1 is read"),
        ({"map": "other"}, "its map is 'other'"),
        ({"map": ["logit"]}, r"its map is \['logit'\]"),
        ({"terminates": 1}, "neither true nor false"),
        ({"spectral": None}, "neither true nor false"),
        ({"hidden": [4, 5]}, "does not fit"),
        ({"observation_shape": [4]}, "do not have the shape"),
        ({"absorbing": True}, "do not have the shape"),
        ({"kind": "categorical"}, "do not fit its actions"),
    ],
)
def test_what_is_said_of_it_is_checked(change, says, tmp_path):
    learned_reward.save(tmp_path, kept(BOX))
    path = tmp_path / "reward.safetensors"
    about, arrays = file_of(path)
    write(path, arrays, about | change)
    with pytest.raises(UserError, match=says):
        learned_reward.load(tmp_path)
    write(path, arrays, {k: v for k, v in about.items() if k not in change})
    with pytest.raises(UserError, match="KeyError"):
        learned_reward.load(tmp_path)


def test_a_damaged_file_is_one_sentence(tmp_path):
    learned_reward.save(tmp_path, kept(BOX))
    path = tmp_path / "reward.safetensors"
    whole = path.read_bytes()
    for spoilt in (whole[:-4], b"", b"?" * 400, whole.replace(b"about", b"other")):
        path.write_bytes(spoilt)
        with pytest.raises(UserError, match=r"The learned reward .* cannot be read"):
            learned_reward.load(tmp_path)
    path.unlink()
    with pytest.raises(UserError, match="it is missing"):
        learned_reward.load(tmp_path)
    for about in ({}, [], 3):
        write(path, {"scaling.mean": np.zeros(3)}, about)
        with pytest.raises(UserError, match="not one of ours"):
            learned_reward.load(tmp_path)
    learned_reward.save(tmp_path, kept(BOX))
    about, arrays = file_of(path)
    name = next(n for n in arrays if n.startswith("judge"))
    write(path, arrays | {name: arrays[name] * np.nan}, about)
    with pytest.raises(UserError, match="NaN"):
        learned_reward.load(tmp_path)


# --- of a run ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    understudy.train("CartPole-v1", config=SMALL, out=folder)
    return folder


def test_a_run_keeps_it_and_it_tells_the_expert_from_chance(run):
    reward, shown = understudy.load_reward(run), shipped.find("CartPole-v1")
    assert (reward.env, reward.terminates) == ("CartPole-v1", True)
    obs = np.concatenate([o[:-1] for o in shown.observations])
    taken = np.concatenate(shown.actions)
    paid, other = reward(obs, taken), reward(obs, 1 - taken)
    assert paid.shape == taken.shape
    assert (paid > 0).all()  # `auto` where episodes end
    assert np.mean(paid > other) > 0.5
    assert "reward.safetensors" in json.loads((run / "done.json").read_text())["files"]


def test_a_result_saves_the_same(run, tmp_path):
    result = understudy.train("CartPole-v1", config=SMALL)
    saved = result.save(tmp_path / "saved")
    for name in ("policy.safetensors", "reward.safetensors"):
        assert (saved / name).read_bytes() == (run / name).read_bytes()
    copied = understudy.train("CartPole-v1", config=SMALL, out=run).save(tmp_path / "copied")
    assert (copied / "reward.safetensors").read_bytes() == (run / "reward.safetensors").read_bytes()


def test_a_run_without_one_says_so(tmp_path):
    train_networks.train(
        "CartPole-v1",
        DeepConfig(clone_least=1, clone_most=1, marks=1, episodes=1, hidden=8),
        method="bc",
        out=tmp_path / "bc",
    )
    assert not (tmp_path / "bc/reward.safetensors").exists()
    with pytest.raises(UserError, match=r"has no reward.safetensors: its method \(bc\)"):
        understudy.load_reward(tmp_path / "bc")
    table = understudy.train("EmptyRoom-3x3", config=Config(interactions=40), out=tmp_path / "room")
    assert table.policy is not None
    with pytest.raises(UserError, match="one with tables"):
        understudy.load_reward(tmp_path / "room")
    with pytest.raises(UserError, match="does not exist"):
        understudy.load_reward(tmp_path / "nowhere")
