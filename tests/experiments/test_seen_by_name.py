"""Runs in worlds that are seen by name, that show images, and that take several choices at once."""

import dataclasses
import json

import numpy as np
import pytest
from camera import Camera, Switches, expert
from gymnasium.spaces import Box, Dict, MultiBinary, MultiDiscrete, Tuple
from gymnasium.wrappers import FlattenObservation
from test_cli import understudy
from test_deep_runs import SMALL, Stop, results, stopping

import understudy as package
from understudy.core.errors import UserError
from understudy.demos import inspection, npz, recording
from understudy.envs import catalog, making, named
from understudy.experiments import train_networks
from understudy.learners.baselines.methods import options
from understudy.learners.deep import scaling
from understudy.learners.deep.config import PRESETS

KEYS = ("place", "door")
CLONE = dataclasses.replace(
    options("bc", PRESETS["fast"]), clone_least=1_500, clone_most=1_500, clone_depth=2, hidden=32,
    marks=1, episodes=5,
)  # fmt: skip


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Forty episodes of the expert in the camera's world, as what is left of it by name."""
    path = tmp_path_factory.mktemp("camera") / "expert.npz"
    world = catalog.make("camera:Camera", keys=KEYS)
    npz.write(path, recording.record(world, recording.acting(expert), 40))
    world.close()
    return path


# --- what is seen --------------------------------------------------------------------------------


def test_the_chosen_parts_in_the_order_given():
    world = catalog.make("camera:Camera", keys=("place", "door"))
    obs, _ = world.reset(seed=0)
    place = world.unwrapped.place
    np.testing.assert_array_equal(obs, [*place, 1, 0, 0])
    world = catalog.make("camera:Camera", keys=("door", "place"))
    np.testing.assert_array_equal(world.reset(seed=0)[0], [1, 0, 0, *place])
    assert world.observation_space.shape == (5,)
    assert named.has_names(world)
    with pytest.raises(UserError, match=r"no 'doors'; --keys chooses among: camera door place"):
        catalog.make("camera:Camera", keys=("doors",))
    with pytest.raises(UserError, match="place twice"):
        catalog.make("camera:Camera", keys=("place", "place"))


@pytest.mark.parametrize(
    ("space", "found"),
    [
        (Box(0, 255, (96, 96, 3), np.uint8), [""]),
        (Box(0, 255, (4, 84, 84), np.uint8), [""]),
        (Box(0, 255, (84, 84), np.uint8), [""]),
        (Box(0, 1, (64, 64, 3)), [""]),
        (Box(0, 255, (7, 7, 3), np.uint8), []),  # MiniGrid's view: codes
        (Box(-1, 1, (20, 30)), []),  # a matrix
        (Box(0, 255, (128,), np.uint8), []),  # Atari's memory
        (Dict(a=Box(0, 1, (2,)), b=Dict(c=Box(0, 255, (32, 32, 3), np.uint8))), ["b/c"]),
        (Tuple((Box(0, 1, (2,)), Box(0, 255, (32, 32, 3), np.uint8))), ["1"]),
    ],
)
def test_what_an_image_is(space, found):
    assert named.pictured(space) == found


def test_images_are_refused_in_one_sentence(shown):
    with (
        catalog.make("camera:Camera") as world,
        pytest.raises(UserError, match=r"images \(camera\).*--keys, such as: door place"),
    ):
        scaling.of_spaces(world, "camera:Camera")
    with catalog.make("camera:Camera", keys=KEYS) as world:
        assert scaling.of_spaces(world, "camera:Camera").observations == 5
    flat = making.guarded_vectors(FlattenObservation(Camera()), "mine")  # which was meant
    assert scaling.of_spaces(flat, "mine").observations == 32 * 32 * 3 + 5
    told = understudy("train", "CarRacing-v3", "--demos", str(shown), cwd=shown.parent)
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert "CarRacing-v3 shows images, from which understudy cannot learn yet" in told.stderr


# --- several choices at once ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "space",
    [
        MultiDiscrete([3, 2]),
        MultiDiscrete([2, 3, 4], start=[-1, 0, 5]),
        MultiDiscrete([[2, 3], [4, 5]]),
        MultiDiscrete([7]),
        MultiBinary(3),
        MultiBinary((2, 2)),
    ],
    ids=str,
)
def test_every_combination_is_one_action(space):
    world = Switches()
    world.action_space = space
    border = scaling.of_spaces(world, "any")
    assert border.discrete
    every = border.decode(np.eye(border.actions)).reshape(-1, *space.shape)
    assert len(np.unique(every.reshape(len(every), -1), axis=0)) == border.actions
    assert all(space.contains(action) for action in every)
    np.testing.assert_array_equal(border.encode(every), np.eye(border.actions))
    space.seed(0)
    drawn = np.stack([space.sample() for _ in range(50)])
    np.testing.assert_array_equal(border.decode(border.encode(drawn)).reshape(drawn.shape), drawn)


def test_too_many_combinations_are_refused():
    world = Switches()
    world.action_space = MultiDiscrete([11] * 6)
    with pytest.raises(UserError, match=r"1,771,561 combinations.*up to 1,024"):
        scaling.of_spaces(world, "any")


def test_what_does_not_fit_several_choices(shown):
    demos = npz.read(shown)
    with catalog.make("camera:Camera", keys=KEYS) as world:
        assert inspection.misfits(demos, world) == []
        assert inspection.coverage(demos, world)["coverage"]["actions"] == 1
        odd = dataclasses.replace(demos, actions=[a + 0.5 for a in demos.actions])
        told = inspection.misfits(odd, world)
        assert "actions are not whole numbers" in told[0]
        assert "outside the environment's bounds" in told[1]


# --- runs ----------------------------------------------------------------------------------------


def test_a_clone_of_several_choices_does_as_the_expert(shown, tmp_path):
    summary = train_networks.train(
        "camera:Camera", CLONE, method="bc", demos=str(shown), keys=KEYS, out=tmp_path / "run"
    )
    random = catalog.make("camera:Camera", keys=KEYS)
    random.action_space.seed(0)
    aimless = recording.record(random, recording.acting(lambda _: random.action_space.sample()), 20)
    gap = summary["expert_return"] - aimless.returns.mean()
    assert summary["return"] > summary["expert_return"] - 0.1 * gap
    request = json.loads((tmp_path / "run/config.json").read_text())
    assert request["keys"] == list(KEYS)
    policy = package.load_policy(tmp_path / "run")
    action, _ = policy.predict(np.zeros(5))
    assert Camera.action_space.contains(action)
    told = train_networks.evaluate(tmp_path / "run", episodes=3, env="camera:Camera")
    assert told["return"] > summary["expert_return"] - 0.2 * gap
    again = recording.record(random, recording.predicting(policy), 2)
    assert again.actions[0].shape == (8, 2)


def test_a_run_of_several_choices_goes_on_exactly(shown, tmp_path, monkeypatch):
    def learn(out):
        train_networks.train(
            "camera:Camera", SMALL, demos=str(shown), keys=KEYS, out=out, checkpoint=0.0
        )

    learn(tmp_path / "whole")
    stopping(monkeypatch, at=(3, 8))
    for _ in range(2):
        with pytest.raises(Stop):
            learn(tmp_path / "stopped")
    learn(tmp_path / "stopped")
    assert results(tmp_path / "stopped") == results(tmp_path / "whole")


def test_switches_are_learned_from_python(tmp_path):
    demos = recording.record(
        Switches(),
        recording.acting(lambda obs: np.array([obs[0] < 0, obs[0] < -0.2, obs[0] > 0, 0], np.int8)),
        4,
    )
    learned = package.train(Switches, demos, SMALL)
    assert Switches.action_space.contains(learned.policy.predict(np.zeros(1))[0])
    learned.save(tmp_path / "run")
    back = package.load_policy(tmp_path / "run")
    seen = np.linspace(-2, 2, 9)[:, None]
    np.testing.assert_array_equal(back.predict(seen)[0], learned.policy.predict(seen)[0])


def test_names_are_chosen_only_where_there_are_some(shown, tmp_path):
    with pytest.raises(UserError, match="Neither Pendulum-v1 nor its demonstrations show anything"):
        train_networks.train("Pendulum-v1", SMALL, keys=("x",), out=tmp_path / "run")
    with pytest.raises(UserError, match="Only networks choose"):
        package.train("EmptyRoom-3x3", keys=("x",))
    told = understudy("demos", "record", "CartPole-v1", "--player", "operator:neg", "--keys", "x",
                      cwd=tmp_path)  # fmt: skip
    assert "shows nothing by name" in told.stderr
