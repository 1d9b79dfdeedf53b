"""Demonstrations from wherever they are: the format is told by what is there, not by its name."""

from collections.abc import Sequence
from pathlib import Path

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.demos import csv, d4rl, hdf5, lerobot, npz, robomimic, sb2, shipped, trajectories

OURS = "npz, of the package"
PLAIN = {
    OURS: shipped.read,
    "npz": npz.read,
    "sb2": sb2.read,
    "csv": csv.read,
    "imitation": trajectories.read,
    "d4rl": d4rl.read,
}


def read(source: str | Path, keys: Sequence[str] = ()) -> Demonstrations:
    """What the package has, by its name; a `.npz` (ours or Stable-Baselines 2's), a `.csv`, a file
    of D4RL or robomimic, a folder of `imitation`'s trajectories or of LeRobot, or a Minari dataset
    by its folder or its id. Of what is seen by name, only the `keys`, if any are given."""
    format = format_of(source)
    if keys and not has_names(source):
        raise UserError(
            f"The demonstrations {source} ({format}) show nothing by name; leave --keys out."
        )
    if format == "robomimic":
        return robomimic.read(source, keys)
    if format == "lerobot":
        return lerobot.read(source, keys)
    if format == "minari":
        from understudy.demos import minari  # slow to import

        return minari.read(source, keys)
    return PLAIN[format](source)


def format_of(source: str | Path) -> str:
    """The name of the format."""
    path = Path(source)
    if str(source) in shipped.names():
        return OURS
    if path.suffix == ".csv":
        return "csv"
    if hdf5.looks_so(path):
        return _of_hdf5(path)
    if path.suffix == ".npz" or (path.exists() and not path.is_dir()):
        return "sb2" if npz.holds(path, ("obs", "episode_starts")) else "npz"
    if trajectories.holds(path):
        return "imitation"
    return "lerobot" if lerobot.holds(path) else "minari"


def _of_hdf5(path: Path) -> str:
    held = hdf5.kept(path)
    if any(name.startswith("episode_") for name in held):
        raise UserError(
            f"{path} is a part of a Minari dataset; give the folder of the whole dataset, in which "
            f"it is data/{path.name}."
        )
    return "robomimic" if "data" in held else "d4rl"


def has_names(source: str | Path) -> bool:
    """Whether what is seen there is named, part by part."""
    format = format_of(source)
    if format == "minari":
        from understudy.demos import minari  # slow to import

        return minari.has_names(source)
    return format in ("robomimic", "lerobot")
