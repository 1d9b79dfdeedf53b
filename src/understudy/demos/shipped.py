"""The experts that come with the package, ten trajectories of each.

`data/ENV.npz` holds those of ENV. Some tasks have a second, weaker expert, ENV/medium, in
`data/medium/ENV.npz`. docs/experts.md tells how each was made, and how good it is.
"""

import importlib.resources
from importlib.resources.abc import Traversable

from understudy.core.demonstrations import Demonstrations
from understudy.demos import npz

DATA = importlib.resources.files("understudy.demos") / "data"
MEDIUM = "medium"


def names() -> dict[str, Traversable]:
    """What there is: ENV or ENV/medium, and its file."""
    folders = {"": DATA, f"/{MEDIUM}": DATA / MEDIUM}
    return {
        file.name.removesuffix(".npz") + ending: file
        for ending, folder in folders.items()
        for file in folder.iterdir()
        if file.name.endswith(".npz")
    }


def find(env: str, which: str | None = None) -> Demonstrations | None:
    """The shipped demonstrations of an environment, or its other ones: `find(env, "medium")`."""
    name = env if which is None else f"{env}/{which}"
    return read(name) if name in names() else None


def read(name: str) -> Demonstrations:
    """Those of a name that there is."""
    with importlib.resources.as_file(names()[name]) as path:
        return npz.read(path)
