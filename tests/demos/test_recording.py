"""Demonstrations recorded from a person in a terminal or a window, a function, and policies."""

import os
import pty
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest
from test_cli import understudy

from understudy.cli import program as cli
from understudy.core.errors import UserError
from understudy.demos import keys, npz, recording
from understudy.demos.reading import read
from understudy.envs import catalog
from understudy.envs.empty_room import DOWN, RIGHT, STAY

ARROW = {"right": b"\x1b[C", "down": b"\x1b[B"}


def test_a_person_plays_in_a_terminal(tmp_path):
    """A real terminal: arrows, a key that means nothing, the space bar, and q in the second
    episode, which is then left out."""
    ours, theirs = pty.openpty()
    program = [sys.executable, "-m", "understudy", "demos", "record", "EmptyRoom-3x3"]
    playing = subprocess.Popen(
        [*program, "--out", "mine.npz", "--episodes", "2"],
        cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    down, nothing = ARROW["down"], b"x"
    pressed = [ARROW["right"], ARROW["right"], nothing + down, down, *[b" "] * 5, b"q"]
    shown = b""
    for key in pressed:
        shown += _until(ours, b"q ends")
        os.write(ours, key)
    assert playing.wait(60) == 0
    assert "▀".encode() in shown
    assert "→".encode() in shown
    mine = npz.read(tmp_path / "mine.npz")
    assert len(mine) == 1
    assert mine.actions[0].tolist() == [RIGHT, RIGHT, DOWN, DOWN, *[STAY] * 5]
    assert mine.observations[0].tolist() == [0, 1, 2, 5, *[8] * 6]


def _until(terminal, words):
    seen, since = b"", time.monotonic()
    while words not in seen:
        assert time.monotonic() - since < 60, seen
        seen += os.read(terminal, 65536)
    return seen


def test_a_person_plays_in_a_window(monkeypatch):
    """Real Pygame, with no screen behind it."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    import pygame

    with (
        catalog.make("EmptyRoom-3x3", render_mode="rgb_array") as world,
        keys.window(world) as play,
    ):
        for key in (pygame.K_RIGHT, pygame.K_F1, pygame.K_DOWN, *[pygame.K_SPACE] * 7):
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))
        pygame.event.post(pygame.event.Event(pygame.QUIT))
        shown = recording.record(world, play, 2)
    assert [a.tolist() for a in shown.actions] == [[RIGHT, DOWN, *[STAY] * 7]]


def test_every_action_has_a_key():
    with gymnasium.make("Taxi-v4") as taxi:
        found = keys.keys_of(taxi)
    assert {found[key] for key in ("0", "up", "p", "d", "left")} == {0, 1, 4, 5, 3}
    assert "↑ = 1, → = 2" in keys.legend(found)
    with gymnasium.make("Pendulum-v1") as pendulum, pytest.raises(UserError, match="few actions"):
        keys.keys_of(pendulum)


def test_a_function_is_recorded_and_its_ends_are_kept(tmp_path):
    (tmp_path / "mine.py").write_text("def fall(obs):\n    return 1\n")
    done = understudy("demos", "record", "CartPole-v1", "--player", "mine:fall", "--episodes", "3",
                      "--out", "fallen.csv", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    fallen = read(tmp_path / "fallen.csv")
    assert fallen.terminated == [True] * 3
    with gymnasium.make("CartPole-v1") as world:  # the same by hand
        first, _ = world.reset(seed=2)
        gained, over = 0.0, False
        while not over:
            _, r, over, _, _ = world.step(1)
            gained += float(r)
    np.testing.assert_array_equal(fallen.observations[2][0], first)
    assert fallen.returns[2] == gained


class Counting:
    """Remembers how often it was asked in this episode."""

    def predict(self, observation, state, episode_start, deterministic):
        assert bool(episode_start[0]) == (state is None)
        count = 0 if state is None else state
        return np.int64(count % 2), count + 1


def test_a_policy_that_remembers_begins_anew_with_each_episode():
    with gymnasium.make("CartPole-v1") as world:
        shown = recording.record(world, recording.predicting(Counting()), 2, seed=5)
    for actions in shown.actions:
        assert actions.tolist() == [i % 2 for i in range(len(actions))]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--player", "nobody"], "neither 'keys'"),
        (["--player", "math:nothing"], "cannot be imported"),
        (["--player", "math:pi"], "not a function"),
        (["--player", "math:sqrt", "--window"], "--window is for playing with keys"),
        (["--player", "none.zip"], "does not exist"),
        (["--episodes", "0"], "--episodes is 0"),
        ([], "no terminal to play in"),
        (["--out", "there.npz"], "exists already"),
        (["--player", "operator:inv"], "is not in Discrete"),
    ],
)
def test_what_cannot_be_recorded_is_refused(options, said, tmp_path, monkeypatch):
    (tmp_path / "there.npz").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["understudy", "demos", "record", "EmptyRoom-3x3", *options])
    with pytest.raises(UserError, match=said):
        cli.parse().main()
    assert [p.name for p in tmp_path.iterdir()] == ["there.npz"]
