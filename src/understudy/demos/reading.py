"""Demonstrations from wherever they are."""

from pathlib import Path

from understudy.demos import npz
from understudy.demos.demonstrations import Demonstrations


def read(source: str | Path) -> Demonstrations:
    """A `.npz` file, or a Minari dataset by its folder or its id."""
    if Path(source).suffix == ".npz" or Path(source).is_file():
        return npz.read(source)
    from understudy.demos import minari

    return minari.read(source)
