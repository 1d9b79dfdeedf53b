"""`understudy demos`: what there is, whether it fits, other formats, a picture, and new ones."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import matplotlib
import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.demos import inspection, recording
from understudy.demos import keys as keyboard
from understudy.demos.reading import format_of, has_names, read
from understudy.demos.recording import Player
from understudy.demos.writing import Format, write
from understudy.envs import catalog, empty_room, making, named
from understudy.envs.guard import calling, first_line
from understudy.experiments import console, kinds, store
from understudy.experiments.figures import drawing

LONGEST = 12  # lines of a table of dimensions


def find(source: str, keys: Sequence[str] = ()) -> tuple[Demonstrations, str]:
    """Demonstrations, and the name of their format; an environment's are the package's."""
    if n := catalog.room_size(source):
        return empty_room.demonstrations(n), "written by hand, of the package"
    return read(source, keys), format_of(source)


def info(source: str, env: str | None, keys: Sequence[str] = ()) -> dict[str, Any]:
    demos, format = find(source, keys)
    with _world(env, keys) as world:
        return {"source": source, "format": format, **inspection.describe(demos, world)}


def check(source: str, env: str, keys: Sequence[str] = ()) -> dict[str, Any]:
    """What does not fit the environment, and what is odd."""
    by_name = has_names(source)
    demos, _ = find(source, keys if by_name else ())
    with _world(env, keys) as world:
        assert world is not None
        if keys and not (by_name or named.has_names(world)):
            raise UserError(f"Neither {source} nor {env} shows anything by name; leave --keys out.")
        wrong, odd = inspection.misfits(demos, world), inspection.oddities(demos, world)
    return {"source": source, "env": env, "wrong": wrong, "odd": odd}


def convert(
    source: str,
    target: Path,
    format: Format | None,
    env: str | None,
    episodes: int | None,
    keys: Sequence[str] = (),
) -> dict[str, Any]:
    demos, before = find(source, keys)
    if episodes is not None:
        if not 1 <= episodes <= len(demos):
            raise UserError(f"--episodes is {episodes}; there are {len(demos)} in {source}.")
        demos = demos.first(episodes)
    with _world(env) as world:
        written = write(target, demos, format, world)
    return {
        "source": source,
        "from": before,
        "out": str(written),
        "to": format or format_of(written),
        "episodes": len(demos),
        "steps": sum(len(a) for a in demos.actions),
    }


def record(
    env: str,
    out: Path,
    *,
    player: str,
    episodes: int,
    window: bool,
    seed: int,
    horizon: int | None,
    format: Format | None,
    keys: Sequence[str] = (),
) -> dict[str, Any]:
    """Play, and write what was played."""
    if not 1 <= episodes <= 100_000:
        raise UserError(f"--episodes is {episodes}; it must be from 1 to 100,000.")
    if out.exists():
        raise UserError(f"{out} exists already; give another name, or remove it.")
    with (
        _stage(env, player, window, horizon, keys) as (world, play),
        store.output_folder(out.parent),
    ):
        refuse_unwritable(out, format, world)
        if keys and not named.has_names(world):
            raise UserError(f"Environment {env} shows nothing by name; leave --keys out.")
        number = iter(range(1, episodes + 1))
        demos = recording.record(
            world,
            play,
            episodes,
            seed=seed,
            told=lambda gained: console.say(
                f"episode {next(number)} of {episodes}: return {gained:,.2f}"
            ),
        )
        written = write(out, demos, format, world)
    return {"env": env, "player": player, "out": str(written), "seed": seed,
            **inspection.describe(demos)}  # fmt: skip


def refuse_unwritable(out: Path, format: Format | None, world: gymnasium.Env) -> None:
    """Before anybody plays: a Minari dataset cannot be of every space."""
    if (format or ("" if out.suffix else "minari")).startswith("minari"):
        from understudy.demos import minari  # slow to import

        minari.refuse_unwritable(world)


@contextlib.contextmanager
def _stage(
    env: str, player: str, window: bool, horizon: int | None, keys: Sequence[str]
) -> Iterator[tuple[gymnasium.Env, Player]]:
    """The environment, and who plays in it."""
    if player == "keys":
        by_hand = keyboard.window if window else keyboard.terminal
        with (
            contextlib.closing(_seen(env, horizon, keys, text=not window)) as world,
            by_hand(world) as play,
        ):
            yield world, play
        return
    if window:
        raise UserError("--window is for playing with keys; leave --player or --window out.")
    with contextlib.closing(catalog.make(env, horizon=horizon, keys=keys)) as world:
        yield world, _player(player, world)


def _seen(env: str, horizon: int | None, keys: Sequence[str], *, text: bool) -> gymnasium.Env:
    """The environment with its picture, or with its text where it has some and that is enough."""
    with (
        contextlib.closing(catalog.make(env)) as world,
        calling(f"Environment {env} cannot be drawn; its metadata is no dictionary"),
    ):
        modes = world.metadata.get("render_modes") or ()
        wanted = [mode for mode in (("ansi",) if text else ()) + ("rgb_array",) if mode in modes]
    if not wanted:
        raise UserError(f"Environment {env} cannot be drawn, so nobody can play it by hand.")
    return catalog.make(env, horizon=horizon, render_mode=wanted[0], keys=keys)


def _player(player: str, world: gymnasium.Env) -> Player:
    """A function 'module:name', a run of ours, or a policy that Stable-Baselines3 saved."""
    if player.endswith(".zip"):
        from understudy.demos import sb3

        return recording.predicting(sb3.load(player, world))
    if Path(player).is_dir():
        return recording.predicting(kinds.of_run(Path(player)).load(Path(player), None))
    module, _, name = player.partition(":")
    if not name:
        raise UserError(
            f"The player '{player}' is neither 'keys', nor a function ('module:name'), nor a "
            "run's folder, nor a .zip."
        )
    try:
        act = getattr(making.imported(module), name)
    except AttributeError as error:
        reason = first_line(error)
        raise UserError(f"The player '{player}' cannot be imported: {reason}.") from None
    if not callable(act):
        raise UserError(f"The player '{player}' is not a function of the observation.")
    return recording.acting(act)


@contextlib.contextmanager
def _world(env: str | None, keys: Sequence[str] = ()) -> Iterator[gymnasium.Env | None]:
    """The environment, if one is meant; where it shows nothing by name, it is as it is."""
    if env is None:
        yield None
        return
    with contextlib.closing(catalog.make(env, keys=keys)) as world:
        yield world


# --- for the eye ---------------------------------------------------------------------------------


def table(told: dict[str, Any]) -> Table:
    """What `info` found, on a screen."""
    grid = Table(show_header=False)
    lengths, returns = told["lengths"], told["returns"]
    rows = {
        "demonstrations": told.get("source", told.get("out", "")),
        "format": told.get("format", ""),
        "episodes": f"{told['episodes']:,}: {told['terminated']:,} ended by the task, "
        f"{told['truncated']:,} cut off",
        "steps": f"{told['steps']:,}: {lengths['min']:,.0f} to {lengths['max']:,.0f} an episode",
        "return": f"{returns['mean']:,.2f} ± {returns['std']:,.2f}, from {returns['min']:,.2f} to "
        f"{returns['max']:,.2f}",
        **{noun: _ranges(told[noun]) for noun in ("observations", "actions")},
        "distinct observations": f"{told['distinct_observations']:,}",
        "repeated episodes": f"{told['repeated_episodes']:,}",
        "coverage": ", ".join(f"{v:.0%} of {k}" for k, v in told.get("coverage", {}).items()),
    }
    for name, value in rows.items():
        if value:
            grid.add_row(name, value)
    return grid


def _ranges(array: dict[str, Any]) -> str:
    """The type, and the range of each dimension, a line each."""
    ranges = [f"{a:.4g} to {b:.4g}" for a, b in zip(array["low"], array["high"], strict=True)]
    if not array["shape"]:
        return f"a number, {array['type']}, {ranges[0]}"
    shape = "×".join(map(str, array["shape"]))
    lines = [f"{i}: {told}" for i, told in enumerate(ranges[:LONGEST])]
    more = [f"… {len(ranges) - LONGEST} more"] if len(ranges) > LONGEST else []
    return "\n".join([f"{shape}, {array['type']}", *lines, *more])


def plot(source: str, out: Path, keys: Sequence[str] = ()) -> Path:
    """Four panels: returns and lengths, rewards along the way, where it went, what it did."""
    demos, _ = find(source, keys)
    if out.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise UserError(f"The picture {out} has no known suffix; choose .png, .pdf or .svg.")
    with matplotlib.rc_context(drawing.STYLE), store.output_folder(out.parent):
        figure = Figure(figsize=(7.2, 5.4), layout="constrained")
        (episodes, reward), (where, what) = figure.subplots(2, 2)
        _episodes(episodes, demos)
        for r in demos.rewards:
            reward.plot(np.cumsum(r), color="#0072B2", lw=0.9, alpha=0.6)
        reward.set(title="return so far", xlabel="step")
        _where(where, demos)
        _what(what, demos)
        figure.suptitle(f"{len(demos)} demonstrations: {Path(source).name}", fontsize=10)
        with store.whole(out) as draft:
            figure.savefig(draft, dpi=160)
    return out


def _episodes(axes: Any, demos: Demonstrations) -> None:
    """A bar an episode, its return; coloured by how it ended, its length written above."""
    colours = ["#D55E00" if ended else "#0072B2" for ended in demos.terminated]
    axes.bar(np.arange(len(demos)), demos.returns, color=colours, width=0.8)
    if len(demos) <= 12:
        for i, (gained, a) in enumerate(zip(demos.returns, demos.actions, strict=True)):
            axes.annotate(f"{len(a)}", (i, gained), ha="center", fontsize=6,
                          va="bottom" if gained >= 0 else "top")  # fmt: skip
    axes.margins(y=0.12)
    axes.xaxis.get_major_locator().set_params(integer=True)
    above = "; its steps above" if len(demos) <= 12 else ""
    ends = {"#0072B2": "blue: cut off", "#D55E00": "orange: ended by the task"}
    told = ", ".join(text for colour, text in ends.items() if colour in colours)
    axes.set(title=f"return of each{above}", xlabel=f"episode ({told})")


def _where(axes: Any, demos: Demonstrations) -> None:
    """Visits of each state; of vectors, the plane in which they vary most."""
    seen = np.concatenate(demos.observations)
    if seen.ndim == 1 and seen.dtype.kind in "iu":
        states, visits = np.unique(seen, return_counts=True)
        axes.bar(states, visits, color="#009E73", width=0.9)
        axes.set(title="visits of each state", xlabel="state")
        return
    flat = [o.reshape(len(o), -1).astype(float) for o in demos.observations]
    whole = np.concatenate(flat)
    mean, std = whole.mean(0), whole.std(0)
    std[std < 1e-9] = 1
    if whole.shape[1] == 1:
        for o in flat:
            axes.plot(o[:, 0], color="#009E73", lw=0.7, alpha=0.6)
        axes.set(title="observations", xlabel="step")
        return
    _, size, axis = np.linalg.svd((whole - mean) / std, full_matrices=False)
    share = (size**2 / (size**2).sum())[:2].sum()
    for o in flat:
        x, y = (((o - mean) / std) @ axis[:2].T).T
        axes.plot(x, y, color="#009E73", lw=0.6, alpha=0.6)
        axes.plot(x[0], y[0], "o", color="black", ms=2.5)
    axes.set(
        title=f"observations in the plane of most change ({share:.0%} of it)",
        xlabel="first axis; dots: where episodes begin",
        ylabel="second axis",
    )


def _what(axes: Any, demos: Demonstrations) -> None:
    taken = np.concatenate(demos.actions)
    if taken.ndim == 1 and taken.dtype.kind in "iu":
        actions, times = np.unique(taken, return_counts=True)
        axes.bar(actions, times / times.sum(), color="#CC79A7", width=0.8)
        axes.set(title="share of each action", xlabel="action")
        axes.set_xticks(actions)
        return
    flat = taken.reshape(len(taken), -1)
    axes.violinplot(list(flat.T), positions=range(flat.shape[1]), widths=0.8)
    axes.set(title="actions", xlabel="dimension")
    axes.set_xticks(range(flat.shape[1]))
