"""A policy that plays in a window: the frames are those of its film, in the time of its world."""

import time

import numpy as np
import pygame
import pytest
from test_cli import understudy

from understudy.core.errors import UserError
from understudy.experiments import live, runs, watch


@pytest.fixture
def run(tmp_path):
    """A run in FrozenLake, three steps to the right and no more."""
    folder, pi = tmp_path / "run", np.zeros((3, 16, 4))
    pi[:, :, 2] = 1
    request = {"env": "FrozenLake-v1", "horizon": 3, "seed": 0, "config": {"window": "1"}}
    runs.begin(folder, request)
    runs.append(folder, [{"interactions": 0, "updates": 0, "return": 0.0}])
    runs.finish(folder, {"policy": pi}, {"expert_return": 1.0})
    return folder


@pytest.fixture
def unseen(monkeypatch):
    """A screen that nobody looks at, chosen as a user would."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def test_it_plays_the_episodes_of_its_film_at_their_pace(run, unseen, monkeypatch):
    seen, flip = [], pygame.display.flip

    def look():
        seen.append(pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1))
        flip()

    monkeypatch.setattr(pygame.display, "flip", look)
    begun = time.monotonic()
    told = live.live(run, episodes=2, seed=4)
    filmed = watch.watch(run, episodes=2, seed=4)
    assert told == {"run": str(run), "live": True, "episodes": 2, "returns": filmed["returns"]}
    assert len(seen) == filmed["frames"]
    assert time.monotonic() - begun >= len(seen) / 8  # frames a second of a table
    assert {picture.shape for picture in seen} == {(536, 512, 3)}
    assert any((picture[30:] != seen[0][30:]).any() for picture in seen)
    assert not pygame.display.get_init()


@pytest.mark.parametrize(
    "event",
    [
        pygame.event.Event(pygame.QUIT),
        pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE),
        pygame.event.Event(pygame.KEYDOWN, key=pygame.K_q),
    ],
    ids=["button", "escape", "q"],
)
def test_the_window_can_be_closed(run, unseen, monkeypatch, event):
    flip = pygame.display.flip

    def leave():
        flip()
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_a))  # which does nothing
        pygame.event.post(event)

    monkeypatch.setattr(pygame.display, "flip", leave)
    told = live.live(run, episodes=50)
    assert (told["episodes"], told["returns"]) == (0, [])
    assert {path.name for path in run.iterdir()} == {
        "config.json", "metrics.jsonl", "policy.safetensors", "done.json"
    }  # fmt: skip


def test_without_a_screen_it_is_one_sentence(run, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match=r"No window can be opened here .* a film is made"):
        live.live(run)


def test_mistakes_are_one_sentence(run, tmp_path):
    with pytest.raises(UserError, match="--episodes is 0"):
        live.live(run, episodes=0)
    with pytest.raises(UserError, match="does not exist"):
        live.live(tmp_path / "nowhere")
    done = understudy("watch", str(run), "--live", "--out", "film.gif", cwd=tmp_path)
    assert done.returncode == 2
    assert "are of films" in done.stderr
