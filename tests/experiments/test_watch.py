"""Films of real environments, opened again and looked at."""

import itertools
import os
import shutil
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from PIL import Image, ImageSequence

from understudy.core.errors import UserError
from understudy.experiments import runs, watch
from understudy.experiments import train_tables as train
from understudy.learners.config import Config


@pytest.fixture(scope="module")
def room(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "room"
    train.train("EmptyRoom-3x3", Config(window="16", interactions=1000, ledger=False), out=out)
    return out


def pictures(path: Path) -> list[np.ndarray]:
    with Image.open(path) as film:
        shown = ImageSequence.Iterator(film)
        return [np.asarray(frame.convert("RGB")).astype(int) for frame in shown]


def hand_made(folder: Path, env: str, pi: np.ndarray) -> Path:
    request = {"env": env, "horizon": len(pi), "seed": 0, "config": {"window": "1"}}
    runs.begin(folder, request)
    runs.append(folder, [{"interactions": 0, "updates": 0, "return": 0.0}])
    runs.finish(folder, {"policy": pi}, {"expert_return": 1.0})
    return folder


def test_a_room_is_filmed_as_it_is_evaluated(room):
    before = {path.name for path in room.iterdir()}
    told = watch.watch(room, episodes=2, seed=3)
    assert {path.name for path in room.iterdir()} - before == {"watch.gif"}
    assert told["run"] == str(room)
    assert told["out"] == str(room / "watch.gif")
    assert (told["episodes"], told["frames"]) == (2, 2 * (9 + 1))
    evaluated = train.evaluate(room, episodes=2, seed=3)
    assert np.mean(told["returns"]) == evaluated["sampled_return"]

    shown = pictures(room / "watch.gif")
    assert len(shown) == told["frames"]
    assert {frame.shape for frame in shown} == {(344, 320, 3)}
    worlds = [frame[watch.CAPTION :] for frame in shown]
    assert np.abs(worlds[0] - worlds[4]).max() > 100  # the agent has moved
    np.testing.assert_allclose(worlds[0], worlds[10], atol=8)  # the next episode begins anew
    captions = [frame[: watch.CAPTION] for frame in shown]
    assert all((a != b).any() for a, b in itertools.pairwise(captions))
    red = (worlds[0] - [255, 0, 0] == 0).all(-1)
    assert red[64:128, 64:128].sum() == red.sum() > 500  # the agent, in the first tile
    with Image.open(room / "watch.gif") as film:
        film.seek(9)
        assert film.info["duration"] >= 900  # the last frame is held


def test_a_frozen_lake_is_filmed(tmp_path):
    train.train(
        "FrozenLake-v1",
        Config(window="16", interactions=500, ledger=False),
        horizon=12,
        out=tmp_path / "lake",
    )
    asked = os.environ.get("SDL_VIDEODRIVER")
    told = watch.watch(tmp_path / "lake", tmp_path / "films/lake.GIF", episodes=2)
    assert os.environ.get("SDL_VIDEODRIVER") == asked
    shown = pictures(tmp_path / "films/lake.GIF")
    assert len(shown) == told["frames"] <= 2 * 13
    assert len(told["returns"]) == 2
    assert shown[0].shape == (536, 512, 3)
    assert any((a[30:] != shown[0][30:]).any() for a in shown)


def test_an_mp4_goes_through_ffmpeg(room, tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    watch.watch(room, tmp_path / "film.mp4", episodes=1)
    assert (tmp_path / "film.mp4").read_bytes()[4:8] == b"ftyp"
    assert [path.name for path in tmp_path.iterdir()] == ["film.mp4"]


def test_an_mp4_without_its_package_is_one_sentence(room, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UserError, match=r"An MP4 needs imageio_ffmpeg.*understudy\[video\]"):
        watch.watch(room, tmp_path / "film.mp4")
    assert not list(tmp_path.iterdir())


def test_what_is_no_finished_run_is_refused(room, tmp_path):
    with pytest.raises(UserError, match="nowhere does not exist"):
        watch.watch(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="does not exist"):
        watch.watch(tmp_path / "empty")
    shutil.copytree(room, tmp_path / "stopped")
    (tmp_path / "stopped" / runs.MARKER).unlink()
    with pytest.raises(UserError, match="has not finished"):
        watch.watch(tmp_path / "stopped")
    shutil.copytree(room, tmp_path / "damaged")
    damaged = tmp_path / "damaged/policy.safetensors"
    damaged.write_bytes(b"?" * damaged.stat().st_size)
    with pytest.raises(UserError, match="cannot be read"):
        watch.watch(tmp_path / "damaged")
    other = hand_made(tmp_path / "other", "EmptyRoom-5x5", np.full((15, 9, 5), 0.2))
    with pytest.raises(UserError, match="9 states and 5 actions"):
        watch.watch(other)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"out": "film.avi"}, r"film.avi has no known suffix; choose .gif or .mp4"),
        ({"out": "film"}, "no known suffix"),
        ({"out": "folder.gif"}, "is a folder"),
        ({"out": "file/film.gif"}, "output folder"),
        ({"episodes": 0}, "--episodes is 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_input_is_one_sentence(room, tmp_path, asked, says):
    (tmp_path / "folder.gif").mkdir()
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.rglob("*"))
    out = tmp_path / asked.pop("out", "film.gif")
    with pytest.raises(UserError, match=says):
        watch.watch(room, out, **asked)
    assert sorted(tmp_path.rglob("*")) == before


class Blind(gymnasium.Env):
    """Two states, and nothing to see."""

    observation_space, action_space = Discrete(2), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return int(action), 1.0, False, False, {}


class Broken(Blind):
    """Says that it can be seen."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012 (Gymnasium's way)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def render(self):
        raise RuntimeError("no screen\nat all")


@pytest.mark.parametrize(
    ("kind", "says"), [(Blind, "does not render pictures"), (Broken, r"watched: no screen\.$")]
)
def test_an_environment_without_pictures_is_one_sentence(tmp_path, kind, says):
    name = f"Test{kind.__name__}-v0"
    gymnasium.register(id=name, entry_point=kind)
    try:
        run = hand_made(tmp_path / "run", name, np.full((4, 2, 2), 0.5))
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(UserError, match=says):
            watch.watch(run)
        assert sorted(tmp_path.rglob("*")) == before
    finally:
        del gymnasium.registry[name]


@pytest.mark.parametrize(
    ("size", "expected"),
    [((10, 10), (320, 320)), ((100, 10), (800, 80)), ((3000, 1500), (800, 400))],
)
def test_frames_are_brought_to_a_legible_size(size, expected):
    class World(Blind):
        def render(self):
            return np.zeros((size[1], size[0], 3), dtype=np.uint8)

    assert watch.frame(World(), "World").size == expected
    odd = watch.caption(Image.new("RGB", (321, 333)), "text")
    assert (odd.width % 2, odd.height % 2) == (0, 0)
