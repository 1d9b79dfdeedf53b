"""A person's keys, and what the person sees, pixel by pixel."""

import os
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from understudy.demos import keys
from understudy.demos.recording import Done


class World(gymnasium.Env):
    def __init__(self, space, id=None, picture=None):
        self.observation_space, self.action_space, self.picture = Discrete(2), space, picture
        if id is not None:
            self.spec = gymnasium.envs.registration.EnvSpec(id)

    def render(self):
        return self.picture


@pytest.mark.parametrize(
    ("space", "digits"),
    [
        (Discrete(3), [0, 1, 2]),
        (Discrete(10), [*range(10)]),
        (Discrete(12), [*range(10)]),
        (Discrete(4, start=-2), [0, 1]),
        (Discrete(4, start=8), [8, 9]),
        (Discrete(2, start=10), []),
    ],
)
def test_a_digit_is_the_action_of_that_number(space, digits):
    assert keys.keys_of(World(space)) == {str(a): a for a in digits}


def test_keys_of_actions_that_are_not_there_mean_nothing():
    assert keys.keys_of(World(Discrete(1), "CartPole-v1")) == {"0": 0, "left": 0}
    room = keys.keys_of(World(Discrete(5), "understudy/EmptyRoom-v0"))
    assert {k: a for k, a in room.items() if not k.isdigit()} == {
        "space": 0,
        "up": 1,
        "down": 2,
        "left": 3,
        "right": 4,
    }


def test_the_legend_names_keys_in_the_order_of_their_actions():
    some = {"0": 0, "1": 1, "2": 2, "up": 2, "left": 1, "space": 0}
    expected = "Actions: space = 0, ← = 1, ↑ = 2, digits 0 to 2; q ends"
    assert keys.legend(some) == expected
    assert keys.legend({"right": 10, "down": 11}) == "Actions: → = 10, ↓ = 11; q ends"


@pytest.mark.parametrize("leave", ["q", "escape"])
def test_keys_are_pressed_until_one_means_something(leave):
    pressed, seen = iter(["x", "up", "q2", "left", "y", leave]), []
    play = keys.choosing({"up": 3, "left": 0}, lambda: next(pressed), seen.append)
    assert (play(None, True), play(None, False)) == (3, 0)
    assert seen == [True, False]
    with pytest.raises(Done):
        play(None, False)


def test_keys_as_they_come_from_a_terminal(monkeypatch):
    ours, theirs = os.pipe()
    with os.fdopen(ours, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(theirs, b"aB\x1b[A\x1bOD 7")
        assert [keys._press() for _ in range(6)] == ["a", "b", "up", "left", "space", "7"]
        os.write(theirs, b"\x1b")
        assert keys._press() == "escape"
        os.close(theirs)
        with pytest.raises(Done):
            keys._press()


def colours(height, width):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(("height", "lines"), [(6, 3), (7, 3), (8, 4), (1, 1)])
def test_a_picture_of_forty_columns_two_pixels_a_character(height, lines):
    picture = colours(height, 40)
    text = keys.half_blocks(picture)
    assert text.plain == ("▀" * 40 + "\n") * lines
    assert len(text.spans) == 40 * lines
    if height != 2 * lines:
        return
    for span in text.spans:
        line, column = divmod(span.start, 41)
        above, below = picture[2 * line : 2 * line + 2, column].tolist()
        assert span.style == "rgb({},{},{}) on rgb({},{},{})".format(*above, *below)


def test_a_larger_picture_is_made_smaller():
    half = np.concatenate([np.full((40, 80, 3), 10, np.uint8), np.full((40, 80, 3), 200, np.uint8)])
    text = keys.half_blocks(half)
    assert text.plain.count("\n") == 20
    styles = [span.style for span in text.spans]
    assert styles[: 40 * 10] == ["rgb(10,10,10) on rgb(10,10,10)"] * 400
    assert styles[40 * 10 :] == ["rgb(200,200,200) on rgb(200,200,200)"] * 400


def test_a_world_of_words_is_shown_in_its_own(capsys):
    keys._show(World(Discrete(2), picture="\x1b[41mS\x1b[0mFFF"), "Actions: [q] ends")
    said = capsys.readouterr()
    assert said.out == ""
    assert "\x1b[41mS\x1b[0mFFF\n" in said.err
    assert said.err.endswith("Actions: [q] ends\n")
    keys._show(World(Discrete(2), picture=colours(4, 40)), "below")
    drawn = capsys.readouterr().err
    assert drawn.count("▀") == 80
    assert drawn.endswith("below\n")


def test_what_the_keys_do_is_not_broken_into_lines(capsys):
    below = " ".join(["[a] left"] * 40)
    keys._show(World(Discrete(2), picture="S"), below)
    assert below in capsys.readouterr().err


def test_a_window_shows_the_picture_as_large_as_fits_in_480(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    import pygame

    for picture, times in ((colours(3, 5), 96), (colours(7, 4), 68), (colours(5, 500), 1)):
        height, width = picture.shape[:2]
        with keys.window(World(Discrete(3), "CartPole-v1", picture)) as play:
            assert pygame.display.get_caption()[0] == keys.legend(
                {"left": 0, "right": 1, "0": 0, "1": 1, "2": 2}
            )
            pygame.event.post(pygame.event.Event(pygame.KEYUP, key=pygame.K_LEFT))
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_RIGHT))
            assert play(None, True) == 1
            shown = pygame.display.get_surface()
            assert shown.get_size() == (width * times, height * times)
            pixels = pygame.surfarray.array3d(shown).swapaxes(0, 1)
            np.testing.assert_array_equal(pixels[::times, ::times], picture)
            np.testing.assert_array_equal(pixels[times - 1 :: times, times - 1 :: times], picture)
        assert not pygame.display.get_init()
