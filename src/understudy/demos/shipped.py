"""The experts that come with the package: ten trajectories of each task.

`data/ENV.npz` holds them; docs/experts.md tells how each was made, and how good it is.
"""

import importlib.resources

from understudy.core.demonstrations import Demonstrations
from understudy.demos import npz

DATA = importlib.resources.files("understudy.demos") / "data"


def find(env: str) -> Demonstrations | None:
    """The shipped demonstrations of an environment, if there are any."""
    file = DATA / f"{env}.npz"
    if "/" in env or not file.is_file():
        return None
    with importlib.resources.as_file(file) as path:
        return npz.read(path)
