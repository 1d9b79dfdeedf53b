"""A policy in its folder: what it answers, and every way in which its two files can be wrong."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from understudy.core.errors import UserError
from understudy.learners.deep import actor as actors
from understudy.learners.deep import checkpoint, policy
from understudy.learners.deep.policy import Policy
from understudy.learners.deep.scaling import Scaling

LOW, HIGH = np.float32([-1, -4]), np.float32([3, 4])
BOX = Scaling(np.float32([1, 2, 3]), np.float32([1, 2, 4]), LOW, HIGH, discrete=False)
CHOICE = Scaling(
    np.float32([0] * 3), np.float32([1] * 3), np.float32([5]), np.float32([7]), discrete=True
)


def kept(border, shape=(3,), *, absorbing=False):
    discrete, key = border.discrete, jax.random.key(3)
    net = actors.actor(border.observations, border.actions, (4, 6), discrete=discrete, key=key)
    net = jax.tree.map(lambda x: x + 0.3 if x.ndim == 1 else x, net)
    return Policy(net, border, "World-v0", shape, () if discrete else (2,), absorbing)


def by_hand(net, x):
    *hidden, last = net.layers
    for layer in hidden:
        x = np.maximum(x @ np.asarray(layer.w, float) + np.asarray(layer.b, float), 0)
    return x @ np.asarray(last.w, float) + np.asarray(last.b, float)


def test_a_policy_answers_in_the_worlds_units():
    box, choice = kept(BOX), kept(CHOICE)
    obs = np.random.default_rng(0).normal(size=(5, 3))
    mean = by_hand(box.actor.net, (obs - [1, 2, 3]) / [1, 2, 4])[:, :2]
    expected = LOW + (np.tanh(mean) + 1) / 2 * (HIGH - LOW)
    got, state = box.predict(obs, "mine")
    assert state == "mine"
    np.testing.assert_allclose(got, expected, rtol=1e-4)
    one, _ = box.predict(obs[2])
    np.testing.assert_allclose(one, expected[2], rtol=1e-4)
    chosen, _ = choice.predict(obs)
    np.testing.assert_array_equal(chosen, 5 + by_hand(choice.actor.net, obs).argmax(-1))
    assert np.ndim(choice.predict(obs[0])[0]) == 0
    for shape in ((2,), (5, 2), (5, 3, 1), (2, 5, 3)):
        with pytest.raises(UserError, match="takes \\(3,\\)"):
            box.predict(np.zeros(shape))


def test_a_policy_can_be_drawn_from():
    box, obs = kept(BOX), np.zeros((400, 3))
    first, again, other = (
        box.predict(obs, deterministic=False, seed=seed)[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (first.std(0) > 0.01).all()
    assert not np.array_equal(*(box.predict(obs, deterministic=False)[0] for _ in range(2)))


def test_pictures_and_ended_episodes():
    shaped = kept(BOX, (1, 3))
    obs = np.random.default_rng(0).normal(size=(4, 1, 3))
    np.testing.assert_array_equal(shaped.predict(obs)[0], kept(BOX).predict(obs[:, 0])[0])
    ended = kept(BOX, (2,), absorbing=True)
    two = obs[:, 0, :2]
    same = kept(BOX).predict(np.column_stack([two, np.zeros(4)]))[0]
    np.testing.assert_array_equal(ended.predict(two)[0], same)


def test_a_policy_that_answers_nan_says_so():
    with pytest.raises(UserError, match="answers NaN"):
        kept(BOX).predict(np.full(3, 1e300))


@pytest.mark.parametrize("border", [BOX, CHOICE], ids=["box", "choice"])
@pytest.mark.parametrize("absorbing", [True, False])
def test_a_policy_comes_back_as_it_was(border, absorbing, tmp_path):
    given = kept(border, (2,) if absorbing else (3,), absorbing=absorbing)
    policy.save(tmp_path, given)
    back = policy.load(tmp_path)
    obs = np.random.default_rng(1).normal(size=(6, 2 if absorbing else 3))
    np.testing.assert_array_equal(back.predict(obs)[0], given.predict(obs)[0])
    about = json.loads((tmp_path / "policy.json").read_text())
    assert (about["format"], about["hidden"], about["env"]) == (1, [4, 6], "World-v0")
    assert about["kind"] == ("categorical" if border.discrete else "squashed gaussian")
    assert (back.absorbing, back.env) == (absorbing, "World-v0")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "has format 2"),
        ({"hidden": [4, 5]}, "does not fit"),
        ({"hidden": [4] * 65}, "no short list"),
        ({"hidden": "46"}, "no short list"),
        ({"observation_shape": 3}, "no short list"),
        ({"hidden": [4, 0]}, "a size is not"),
        ({"hidden": [4, True]}, "a size is not"),
        ({"hidden": [4, 1_000_001]}, "a size is not"),
        ({"hidden": [4, 1_000_000]}, "does not fit"),
        ({"observations": 0}, "a size is not"),
        ({"observation_shape": [4]}, "observations do not have the shape"),
        ({"absorbing": True}, "observations do not have the shape"),
        ({"absorbing": 0}, "neither true nor false"),
        ({"action_shape": [3]}, "actions do not have the shape"),
        ({"kind": "categorical"}, "do not fit its actions"),
        ({"kind": "other"}, "KeyError"),
        ({"env": ""}, "no name"),
        ({"env": "x" * 1001}, "no name"),
        ({"env": "a\nb"}, "no name"),
        ({"env": 3}, "no name"),
        ({"actions": 3}, "do not have the shape"),
    ],
)
def test_what_is_said_of_a_policy_is_checked(change, says, tmp_path):
    policy.save(tmp_path, kept(BOX))
    about = json.loads((tmp_path / "policy.json").read_text())
    (tmp_path / "policy.json").write_text(json.dumps(about | change))
    with pytest.raises(UserError, match=says):
        policy.load(tmp_path)


def test_a_name_of_a_thousand_letters_is_a_name(tmp_path):
    policy.save(tmp_path, kept(BOX))
    about = json.loads((tmp_path / "policy.json").read_text())
    (tmp_path / "policy.json").write_text(json.dumps(about | {"env": "x" * 1000}))
    assert policy.load(tmp_path).env == "x" * 1000


@pytest.mark.parametrize(
    ("border", "name", "values", "says"),
    [
        (BOX, "mean", [1, 2], "not of 3 numbers"),
        (BOX, "low", [-1], "not of 2 numbers"),
        (BOX, "mean", [1, 2, 1.1e30], "beyond 1e30"),
        (BOX, "mean", [1, 2, 0.9e30], None),
        (BOX, "std", [1, 2, 0], "std is not positive"),
        (BOX, "std", [1, 2, -1], "std is not positive"),
        (BOX, "std", [1, 2, 1.1e-30], None),
        (BOX, "std", [1, 2, 0.9e-30], "std is not positive"),
        (BOX, "low", [3, -4], "low is not below"),
        (BOX, "low", [4, -4], "low is not below"),
        (BOX, "high", [np.nan, 4], "NaN"),
        (CHOICE, "low", [8], "low is not below"),
        (CHOICE, "low", [5.5], "not numbered"),
        (CHOICE, "low", [6], "do not fit its actions"),
        (CHOICE, "high", [2.0**31], "not numbered"),
    ],
)
def test_the_border_of_a_policy_is_checked(border, name, values, says, tmp_path):
    policy.save(tmp_path, kept(border))
    arrays = load_file(tmp_path / "policy.safetensors")
    kind = np.float64 if name in ("mean", "std") else np.float32
    save_file(arrays | {f"scaling.{name}": np.array(values, kind)}, tmp_path / "policy.safetensors")
    if says is None:
        policy.load(tmp_path)
        return
    with pytest.raises(UserError, match=says):
        policy.load(tmp_path)


def test_weights_and_kinds_are_checked(tmp_path):
    policy.save(tmp_path, kept(BOX))
    arrays = load_file(tmp_path / "policy.safetensors")
    name = next(n for n in arrays if n.startswith("actor"))
    for change, says in (
        ({name: arrays[name] * np.nan}, "NaN or infinity"),
        ({name: arrays[name].astype(np.float64)}, "does not fit"),
        ({"scaling.mean": arrays["scaling.mean"].astype(np.float16)}, "not of 3 numbers"),
    ):
        save_file(arrays | change, tmp_path / "policy.safetensors")
        with pytest.raises(UserError, match=says):
            policy.load(tmp_path)
    (tmp_path / "policy.safetensors").unlink()
    with pytest.raises(UserError, match=r"policy\.safetensors is missing"):
        policy.load(tmp_path)
    (tmp_path / "policy.json").write_text(" " * (2**20 + 1))
    with pytest.raises(UserError, match="at most 1,048,576 are read"):
        policy.load(tmp_path)


# --- checkpoints ---------------------------------------------------------------------------------

TREE = {
    "state": {"agent": {"w": jnp.arange(6.0, dtype=jnp.float32).reshape(2, 3)}},
    "key": jax.random.key(4),
    "k": jnp.int32(7),
}


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    arrays = checkpoint.named(TREE)
    assert {"['state']['agent']['w']", "['key']", "['k']"} == set(arrays)
    checkpoint.save(tmp_path / "c", arrays, {"interactions": 3})
    about, found = checkpoint.load(tmp_path / "c")
    assert about == {"interactions": 3}
    back = checkpoint.fill(TREE, found, "It")
    np.testing.assert_array_equal(back["state"]["agent"]["w"], TREE["state"]["agent"]["w"])
    assert jax.random.key_data(back["key"]).tolist() == jax.random.key_data(TREE["key"]).tolist()
    assert int(back["k"]) == 7


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"['k']": np.int32([7])}, r"\['k'\] is int32\(1,\), not int32\(\)"),
        ({"['k']": np.array(7)}, r"\['k'\] is int64\(\), not int32\(\)"),
        ({"['k']": None}, r"\['k'\] is missing"),
    ],
)
def test_a_checkpoint_of_something_else_does_not_fit(change, says):
    arrays = {k: v for k, v in (checkpoint.named(TREE) | change).items() if v is not None}
    with pytest.raises(UserError, match=f"It does not fit: {says}"):
        checkpoint.fill(TREE, arrays, "It")


def test_a_checkpoint_that_was_changed_is_noticed(tmp_path):
    arrays = {"state.agent['w']": np.arange(6.0), "state.k": np.array(7)}
    checkpoint.save(tmp_path / "c", arrays, {"n": 3})
    whole = (tmp_path / "c").read_bytes()
    for place in (-1, -30, whole.index(b'\\"n\\": 3') + 8):
        spoilt = bytearray(whole)
        spoilt[place] ^= 1
        (tmp_path / "s").write_bytes(bytes(spoilt))
        with pytest.raises(UserError, match="cannot be read"):
            checkpoint.load(tmp_path / "s")
    checkpoint.slim(tmp_path / "c", tmp_path / "slim")
    assert checkpoint.load(tmp_path / "slim")[0] == {"n": 3}
    assert [*checkpoint.networks(tmp_path / "slim")] == ["['w']"]
    checkpoint.save(tmp_path / "none", {"k": np.zeros(1)}, {})
    with pytest.raises(UserError, match="no networks to begin with"):
        checkpoint.networks(tmp_path / "none")


def test_the_checksum_sees_names_types_and_shapes():
    x = np.arange(4, dtype=np.int32)
    sums = {
        checkpoint.checksum(arrays, said)
        for arrays, said in (
            ({"a": x}, ""), ({"b": x}, ""), ({"a": x.reshape(2, 2)}, ""), ({"a": x}, "said"),
            ({"a": x.view(np.uint32)}, ""), ({"a": x[::-1].copy()}, ""),
        )
    }  # fmt: skip
    assert len(sums) == 6
    assert {len(one) for one in sums} == {32}
