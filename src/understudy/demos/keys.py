"""A person at the keyboard. The world waits for each key, so there is time to think.

In the terminal the world is its own text where it has some, otherwise its picture in half blocks;
in a window it is its picture. Arrow keys and the space bar are for the environments named here; a
digit is the action of that number everywhere.
"""

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from understudy.core import extras
from understudy.core.errors import UserError
from understudy.demos.recording import Done, Player
from understudy.envs.empty_room import MOVES

ARROWS: dict[str, dict[str, int]] = {
    "EmptyRoom": {name if name != "stay" else "space": a for a, name in enumerate(MOVES)},
    "FrozenLake": {"left": 0, "down": 1, "right": 2, "up": 3},
    "CliffWalking": {"up": 0, "right": 1, "down": 2, "left": 3},
    "Taxi": {"down": 0, "up": 1, "right": 2, "left": 3, "p": 4, "d": 5},
    "MiniGrid": {"left": 0, "right": 1, "up": 2, "p": 3, "d": 4, "space": 5},
    "BabyAI": {"left": 0, "right": 1, "up": 2, "p": 3, "d": 4, "space": 5},
    "CartPole": {"left": 0, "right": 1},
    "MountainCar": {"left": 0, "space": 1, "right": 2},
    "Acrobot": {"left": 0, "space": 1, "right": 2},
    "LunarLander": {"space": 0, "left": 1, "up": 2, "right": 3},
}
LEAVE = ("q", "escape")
SEQUENCES = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left",
             "\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left",
             " ": "space", "\x1b": "escape"}  # fmt: skip
COLUMNS = 40  # of a picture in the terminal, which has 24 lines or more


def keys_of(world: gymnasium.Env) -> dict[str, int]:
    """From the names of keys to actions."""
    space = world.action_space
    if not isinstance(space, Discrete):
        raise UserError(
            f"Keys choose among few actions, and there are {space}; give --player a function "
            "('module:name') or a policy."
        )
    first = int(space.start)
    digits = {str(a): a for a in range(first, first + min(int(space.n), 10)) if 0 <= a < 10}
    id = world.spec.id if world.spec else ""
    named = next((keys for name, keys in ARROWS.items() if name in id), {})
    return digits | {key: a for key, a in named.items() if space.contains(a)}


def legend(keys: dict[str, int]) -> str:
    """One line for the person: which key is which action."""
    signs = {"up": "↑", "down": "↓", "left": "←", "right": "→"}
    named = {signs.get(key, key): action for key, action in keys.items() if not key.isdigit()}
    told = [f"{sign} = {action}" for sign, action in sorted(named.items(), key=lambda x: x[1])]
    digits = sorted(action for key, action in keys.items() if key.isdigit())
    told += [f"digits {digits[0]} to {digits[-1]}"] if digits else []
    return f"Actions: {', '.join(told)}; q ends"


def choosing(
    keys: dict[str, int], press: Callable[[], str], show: Callable[[bool], None]
) -> Player:
    """A player who looks, and presses keys until one means something."""

    def play(obs: Any, first: bool) -> int:
        show(first)
        while (key := press()) not in keys:
            if key in LEAVE:
                raise Done
        return keys[key]

    return play


# --- in the terminal -----------------------------------------------------------------------------


@contextlib.contextmanager
def terminal(world: gymnasium.Env) -> Iterator[Player]:
    """Keys from the terminal, the world drawn above its cursor."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(
            "There is no terminal to play in; give --player a function ('module:name') or a "
            "policy, or play in a window with --window."
        )
    try:
        import termios
        import tty
    except ImportError:  # Windows
        raise UserError("This terminal cannot be read key by key; play with --window.") from None
    keys, before = keys_of(world), termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield choosing(keys, _press, lambda first: _show(world, legend(keys)))
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _press() -> str:
    """The next key's name. An arrow arrives as three characters, an escape first."""
    terminal = sys.stdin.fileno()
    text = os.read(terminal, 1)
    if not text:
        raise Done  # the terminal has gone
    if text == b"\x1b" and select.select([terminal], [], [], 0.05)[0]:
        text += os.read(terminal, 2)
    key = text.decode(errors="ignore")
    return SEQUENCES.get(key, key.lower())


def _show(world: gymnasium.Env, below: str) -> None:
    from rich.console import Console

    drawn: Any = world.render()
    console = Console(stderr=True, highlight=False, markup=False)
    console.clear()
    if isinstance(drawn, np.ndarray):
        console.print(half_blocks(drawn))
    else:
        sys.stderr.write(str(drawn) + "\n")  # its own colours
    console.print(below, soft_wrap=True)


def half_blocks(picture: np.ndarray) -> Any:
    """A picture in text: each character is two pixels, one above the other."""
    from PIL import Image
    from rich.text import Text

    image = Image.fromarray(picture)
    height = max(2, round(COLUMNS * image.height / image.width) // 2 * 2)
    pixels = np.asarray(image.resize((COLUMNS, height), Image.Resampling.BOX).convert("RGB"))
    text = Text()
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):
        for a, b in zip(upper.tolist(), lower.tolist(), strict=True):
            text.append("▀", f"rgb({a[0]},{a[1]},{a[2]}) on rgb({b[0]},{b[1]},{b[2]})")
        text.append("\n")
    return text


# --- in a window ---------------------------------------------------------------------------------


@contextlib.contextmanager
def window(world: gymnasium.Env) -> Iterator[Player]:
    """Keys and picture in a window of Pygame's."""
    keys = keys_of(world)
    extras.refuse_missing("A window", "pygame")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import pygame

    try:
        pygame.display.init()
        pygame.display.set_caption(legend(keys))
    except pygame.error as error:
        raise UserError(f"No window can be opened here ({error}); play in the terminal.") from None

    def show(first: bool) -> None:
        drawn: Any = world.render()
        times = max(1, 480 // max(drawn.shape[:2]))
        surface = pygame.surfarray.make_surface(np.asarray(drawn).swapaxes(0, 1))
        size = (drawn.shape[1] * times, drawn.shape[0] * times)
        pygame.display.set_mode(size).blit(pygame.transform.scale(surface, size), (0, 0))
        pygame.display.flip()

    def press() -> str:
        while True:
            event = pygame.event.wait()
            if event.type == pygame.QUIT:
                raise Done
            if event.type == pygame.KEYDOWN:
                return pygame.key.name(event.key)

    try:
        yield choosing(keys, press, show)
    finally:
        pygame.display.quit()
