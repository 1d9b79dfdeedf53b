"""Our environments in Gymnasium's registry, without importing Gymnasium for it.

`import understudy` must be light, and `gymnasium.make("understudy/EmptyRoom-9x9-v0")` must work
after it. So where Gymnasium is not there yet, registration waits until somebody imports it.
"""

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ROOMS = (3, 5, 9)  # the paper's


def register() -> None:
    """Add our environments to Gymnasium's registry. Safe to repeat."""
    import gymnasium

    entry = "understudy.envs.empty_room_env:EmptyRoomEnv"
    ids = {f"understudy/EmptyRoom-{n}x{n}-v0": {"size": n} for n in ROOMS}
    ids["understudy/EmptyRoom-v0"] = {}  # any size: make(..., size=50)
    for id, kwargs in ids.items():
        if id not in gymnasium.registry:
            gymnasium.register(id=id, entry_point=entry, kwargs=kwargs)
    wide = "understudy/WideGrid-v0"  # make(..., size=200)
    if wide not in gymnasium.registry:
        gymnasium.register(id=wide, entry_point="understudy.envs.wide_grid:WideGridEnv")


def register_when_imported() -> None:
    """Register now if Gymnasium is loaded, else as soon as it is."""
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


class _Waiting(MetaPathFinder):
    """Lets the import of Gymnasium through, once, and registers after it."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                register()

            spec.loader.exec_module = load_and_register
        return spec
