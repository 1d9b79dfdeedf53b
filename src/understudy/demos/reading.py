"""Demonstrations from wherever they are: the format is told by what is there, not by its name."""

from pathlib import Path

from understudy.core.demonstrations import Demonstrations
from understudy.demos import csv, npz, sb2, shipped, trajectories

OURS = "npz, of the package"


def read(source: str | Path) -> Demonstrations:
    """What the package has, by its name; a `.npz` (ours or Stable-Baselines 2's), a `.csv`, a
    folder of `imitation`'s trajectories, or a Minari dataset by its folder or its id."""
    return {
        OURS: shipped.read,
        "npz": npz.read,
        "sb2": sb2.read,
        "csv": csv.read,
        "imitation": trajectories.read,
        "minari": _minari,
    }[format_of(source)](source)


def format_of(source: str | Path) -> str:
    """The name of the format."""
    path = Path(source)
    if str(source) in shipped.names():
        return OURS
    if path.suffix == ".csv":
        return "csv"
    if path.suffix == ".npz" or (path.exists() and not path.is_dir()):
        return "sb2" if npz.holds(path, ("obs", "episode_starts")) else "npz"
    if trajectories.holds(path):
        return "imitation"
    return "minari"


def _minari(source: str | Path) -> Demonstrations:
    from understudy.demos import minari  # slow to import

    return minari.read(source)
