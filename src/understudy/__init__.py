"""understudy: learn to act by watching an expert, with as little practice as possible.

The public names are loaded when first used, so that `import understudy` stays fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

from understudy.envs.registration import register_when_imported as _register

if TYPE_CHECKING:
    from understudy.core.demonstrations import Demonstrations
    from understudy.core.errors import UserError
    from understudy.core.mdp import MDP, from_arrays, from_function
    from understudy.demos.reading import read as read_demos
    from understudy.demos.recording import predicting, record
    from understudy.demos.writing import write as write_demos
    from understudy.envs.empty_room import empty_room
    from understudy.experiments.train_networks import train
    from understudy.learners.config import Config
    from understudy.learners.deep.config import DeepConfig
    from understudy.learners.deep.policy import load as load_policy
    from understudy.learners.finite import Result, imitate

_HOME = {
    "Config": "understudy.learners.config:Config",
    "DeepConfig": "understudy.learners.deep.config:DeepConfig",
    "Demonstrations": "understudy.demos:Demonstrations",
    "MDP": "understudy.core.mdp:MDP",
    "Result": "understudy.learners.finite:Result",
    "UserError": "understudy.core.errors:UserError",
    "empty_room": "understudy.envs.empty_room:empty_room",
    "from_arrays": "understudy.core.mdp:from_arrays",
    "from_function": "understudy.core.mdp:from_function",
    "imitate": "understudy.learners.finite:imitate",
    "load_policy": "understudy.learners.deep.policy:load",
    "predicting": "understudy.demos.recording:predicting",
    "read_demos": "understudy.demos.reading:read",
    "record": "understudy.demos.recording:record",
    "train": "understudy.experiments.train_networks:train",
    "write_demos": "understudy.demos.writing:write",
}

__version__ = "0.1.0"
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]

_register()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'understudy' has no attribute '{name}'")
    module, _, attribute = _HOME[name].partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
