"""`understudy watch --live`: the learned policy at work in a window, in the time of its world."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
from PIL import Image

from understudy.core import extras
from understudy.core.errors import UserError
from understudy.core.precision import double
from understudy.experiments import kinds
from understudy.experiments.shows import Show
from understudy.experiments.watch import caption, check, frame, no_display, rendered

UNSEEN = ("dummy", "offscreen")  # drivers that show nothing

Draw = Callable[[Image.Image], bool]


class Closed(Exception):
    """Whoever was watching has left."""


@double
def live(run: Path, *, episodes: int = 3, seed: int = 0, env: str | None = None) -> dict[str, Any]:
    """Play whole episodes of a run's policy in a window, those that a film with this seed shows,
    until they are over or the window is closed."""
    check(run, episodes, seed)
    returns: list[float] = []
    with no_display(window=True), window(f"understudy watch {run}") as draw:
        show = kinds.of_run(run).show(run, seed, 1, env)
        with (
            contextlib.closing(rendered(show.env, show.horizon)) as world,
            contextlib.suppress(Closed),
        ):
            for i in range(episodes):
                returns.append(_episode(world, show, i, episodes, draw))
    return {"run": str(run), "live": True, "episodes": len(returns), "returns": returns}


def _episode(world: gymnasium.Env, show: Show, i: int, episodes: int, draw: Draw) -> float:
    """A whole one, drawn as fast as its world is; its return."""
    due, gained = time.monotonic(), 0.0
    for step, gained in enumerate(show.play(world, i)):
        if step % show.stride:
            continue
        text = f"episode {i + 1}/{episodes}   step {step}   return = {gained:.4g}"
        if not draw(caption(frame(world, show.env), text)):
            raise Closed
        due = max(due + 1 / show.fps, time.monotonic())  # who is late does not hurry
        time.sleep(max(0.0, due - time.monotonic()))
    return gained


@contextlib.contextmanager
def window(title: str) -> Iterator[Draw]:
    """A window of Pygame's: a function that shows a picture there, and answers whether the window
    is still open. Esc, q and its own button close it."""
    extras.refuse_missing("A window", "pygame")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import pygame

    try:
        pygame.display.init()
        shown = pygame.display.get_driver()
    except pygame.error as error:
        shown, reason = None, str(error)
    else:
        reason = "there is no screen"
    if shown is None or (shown in UNSEEN and not os.environ.get("SDL_VIDEODRIVER")):
        raise UserError(
            f"No window can be opened here ({reason}); leave --live out, and a film is made."
        )
    pygame.display.set_caption(title)

    def draw(picture: Image.Image) -> bool:
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return False
            if event.type == pygame.KEYDOWN and event.key in (pygame.K_ESCAPE, pygame.K_q):
                return False
        surface = pygame.display.get_surface()
        if surface is None or surface.get_size() != picture.size:
            surface = pygame.display.set_mode(picture.size)
        drawn = pygame.image.frombytes(picture.tobytes(), picture.size, "RGB")
        surface.blit(drawn, (0, 0))
        pygame.display.flip()
        return True

    try:
        yield draw
    finally:
        pygame.display.quit()
