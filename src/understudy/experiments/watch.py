"""`understudy watch`: the learned policy at work in the real environment, as a GIF or an MP4."""

import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from understudy.core import extras
from understudy.core.errors import UserError
from understudy.core.precision import double
from understudy.envs import catalog, layouts, making, world_state
from understudy.envs.guard import calling, first_line, guarded
from understudy.experiments import console, kinds, store
from understudy.learners.seeds import check_seed

LEAST, MOST = 320, 800  # pixels: smaller frames are enlarged, larger ones reduced
CAPTION = 24  # pixels above the frame


@double
def watch(
    run: Path,
    out: Path | None = None,
    *,
    episodes: int = 3,
    seed: int = 0,
    seconds: int = 10,
    env: str | None = None,
) -> dict[str, Any]:
    """Film `episodes` episodes of a run's policy; each ends with its last frame held a second.

    The same seed plays the same episodes as `understudy evaluate`. A continuous task is filmed in
    its own time, the first `seconds` of each episode.
    """
    out = run / "watch.gif" if out is None else out
    if out.suffix.lower() not in (".gif", ".mp4"):
        raise UserError(f"The film {out} has no known suffix; choose .gif or .mp4.")
    check(run, episodes, seed)
    if not 1 <= seconds <= 600:
        raise UserError(f"--seconds is {seconds}; it must be from 1 to 600.")
    if out.is_dir():
        raise UserError(f"{out} is a folder, where a film is to be written.")
    write = write_gif if out.suffix.lower() == ".gif" else mp4_writer()
    returns, frames = [], 0
    with no_display():
        show = kinds.of_run(run).show(run, seed, seconds, env)

        def film(world: gymnasium.Env) -> Iterator[Image.Image]:
            nonlocal frames
            with console.bar() as bar:
                task = bar.add_task("episodes", total=episodes)
                for i in range(episodes):
                    picture, gained, filmed = None, 0.0, 0
                    for step, gained in enumerate(show.play(world, i)):
                        if step % show.stride or filmed == show.longest:
                            continue
                        text = f"episode {i + 1}/{episodes}   step {step}   return = {gained:.4g}"
                        picture = caption(frame(world, show.env), text)
                        frames, filmed = frames + 1, filmed + 1
                        yield picture
                    returns.append(gained)
                    bar.advance(task)
                    if picture is not None:
                        yield from [picture] * (show.fps - 1)

        with (
            contextlib.closing(rendered(show.env, show.horizon, show.keys)) as world,
            store.output_folder(out.parent),
        ):
            try:
                with store.whole(out) as draft:
                    write(draft, film(world), show.fps)
            except OSError as error:
                raise UserError(f"Cannot write {out}: {error.strerror or error}.") from None
    return {
        "run": str(run),
        "out": str(out),
        "episodes": episodes,
        "returns": returns,
        "frames": frames,
    }


def check(run: Path, episodes: int, seed: int) -> None:
    """Refuse what nobody can watch."""
    if not 1 <= episodes <= 50:
        raise UserError(f"--episodes is {episodes}; it must be from 1 to 50.")
    check_seed(seed)
    if not run.is_dir():
        raise UserError(f"The run's folder {run} does not exist.")


@contextlib.contextmanager
def no_display(*, window: bool = False) -> Iterator[None]:
    """Let pygame and MuJoCo draw in memory: a machine without a screen has nowhere else. With a
    `window`, pygame draws there."""
    quiet = {"MUJOCO_GL": "egl"} | ({} if window else {"SDL_VIDEODRIVER": "dummy"})
    if os.environ.get("DISPLAY") or sys.platform != "linux":
        del quiet["MUJOCO_GL"]
    missing = [name for name in quiet if name not in os.environ]
    os.environ.update({name: quiet[name] for name in missing})
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]


def rendered(env: str, horizon: int | None, keys: Sequence[str] = ()) -> gymnasium.Env:
    """The environment as the policy was trained in it, drawing its frames as pictures."""
    with (
        contextlib.closing(catalog.make(env, horizon=horizon, keys=keys)) as plain,
        calling(f"Environment {env} cannot be watched; its metadata is no dictionary"),
    ):
        spec, drawn = plain.spec, "rgb_array" in (plain.metadata.get("render_modes") or [])
    if spec is None or not drawn:
        raise UserError(f"Environment {env} cannot be watched: it does not render pictures.")
    if layouts.find(env) is not None:
        world = catalog.make(env, horizon=horizon, render_mode="rgb_array")
        draw_larger(world)
        return world
    options: dict[str, Any] = {}
    if (n := catalog.room_size(env)) is not None:  # MiniGrid's tiles, of a size that fits
        options["tile_size"] = max(-(-LEAST // (n + 2)), 4)
    if "gymnasium.envs.mujoco" in str(spec.entry_point):
        options["camera_name"] = "track"  # or whoever runs runs out of the picture
    return making.again(spec, env, render_mode="rgb_array", disable_env_checker=True, **options)


def draw_larger(world: gymnasium.Env) -> None:
    """MiniGrid's tiles of a size that fits, none of them highlighted: the policy sees all."""
    drawn: Any = world.unwrapped
    if world_state.cells(world):
        short, long = sorted((drawn.width, drawn.height))
        drawn.tile_size = max(min(-(-LEAST // short), MOST // long), 4)
        drawn.highlight = False


def frame(world: gymnasium.Env, env: str) -> Image.Image:
    """What the environment shows now, at a legible size."""
    try:
        pixels: Any = guarded(world, env).render()
        drawn = np.asarray(pixels, dtype=np.uint8)
        if drawn.ndim not in (2, 3):
            raise ValueError(f"its picture has shape {drawn.shape}")
        return legible(Image.fromarray(drawn).convert("RGB"))
    except Exception as error:  # a renderer's own, or its missing package
        told = isinstance(error, UserError) and isinstance(error.__cause__, Exception)
        reason = first_line(error.__cause__ if told else error)  # type: ignore[arg-type]
        raise UserError(f"Environment {env} cannot be watched: {reason}.") from None


def legible(picture: Image.Image) -> Image.Image:
    short, long = min(picture.size), max(picture.size)
    if short < 1:
        raise ValueError("its picture is empty")
    if long > MOST:
        return picture.resize(
            (max(1, picture.width * MOST // long), max(1, picture.height * MOST // long)),
            Image.Resampling.LANCZOS,
        )
    times = max(1, min(-(-LEAST // short), MOST // long))
    return picture.resize((picture.width * times, picture.height * times), Image.Resampling.NEAREST)


def caption(picture: Image.Image, text: str) -> Image.Image:
    """The picture beneath a line of text; its sides even, as video asks."""
    width, height = picture.width, picture.height + CAPTION
    canvas = Image.new("RGB", (width + width % 2, height + height % 2), "white")
    canvas.paste(picture, (0, CAPTION))
    ImageDraw.Draw(canvas).text(
        (6, CAPTION // 2), text, fill="black", font=ImageFont.load_default(15), anchor="lm"
    )
    return canvas


def write_gif(path: Path, pictures: Iterator[Image.Image], fps: int) -> None:
    """Pictures as they come; Pillow turns repeated ones into one that is shown for longer."""
    next(pictures).save(
        path, format="GIF", save_all=True, append_images=pictures, duration=1000 // fps, loop=0
    )


def mp4_writer() -> Any:
    """`write_mp4`, once its extra package is found: before any episode is played."""
    extras.refuse_missing("An MP4", "imageio_ffmpeg")
    ffmpeg = importlib.import_module("imageio_ffmpeg")

    def write_mp4(path: Path, pictures: Iterator[Image.Image], fps: int) -> None:
        first = next(pictures)
        film = ffmpeg.write_frames(str(path), first.size, fps=fps, quality=8, macro_block_size=2)
        with contextlib.closing(film):
            with warnings.catch_warnings():  # JAX warns of forks; this one runs ffmpeg at once
                warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
                film.send(None)
            film.send(first.tobytes())
            for picture in pictures:
                film.send(picture.tobytes())

    return write_mp4
