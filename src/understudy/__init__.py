"""understudy: learn to act by watching an expert, with as little practice as possible.

The public names are loaded when first used, so that `import understudy` stays fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

from understudy.registration import register_when_imported as _register

if TYPE_CHECKING:
    from understudy.config import Config
    from understudy.demos import Demonstrations
    from understudy.envs.empty_room import empty_room
    from understudy.errors import UserError
    from understudy.imitation import Result, imitate
    from understudy.mdp import MDP, from_arrays, from_function

_HOME = {
    "Config": "understudy.config",
    "Demonstrations": "understudy.demos",
    "MDP": "understudy.mdp",
    "Result": "understudy.imitation",
    "UserError": "understudy.errors",
    "empty_room": "understudy.envs.empty_room",
    "from_arrays": "understudy.mdp",
    "from_function": "understudy.mdp",
    "imitate": "understudy.imitation",
}

__version__ = "0.1.0"
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]

_register()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'understudy' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
