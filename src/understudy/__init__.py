"""understudy: learn to act by watching an expert, with as little practice as possible.

The public names are loaded when first used, so that `import understudy` stays fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

from understudy.registration import register_when_imported as _register

if TYPE_CHECKING:
    from understudy.config import Config
    from understudy.deep.config import DeepConfig
    from understudy.deep.policy import load as load_policy
    from understudy.demos import Demonstrations
    from understudy.demos.reading import read as read_demos
    from understudy.demos.recording import predicting, record
    from understudy.demos.writing import write as write_demos
    from understudy.envs.empty_room import empty_room
    from understudy.errors import UserError
    from understudy.experiments.deep_train import train
    from understudy.imitation import Result, imitate
    from understudy.mdp import MDP, from_arrays, from_function

_HOME = {
    "Config": "understudy.config:Config",
    "DeepConfig": "understudy.deep.config:DeepConfig",
    "Demonstrations": "understudy.demos:Demonstrations",
    "MDP": "understudy.mdp:MDP",
    "Result": "understudy.imitation:Result",
    "UserError": "understudy.errors:UserError",
    "empty_room": "understudy.envs.empty_room:empty_room",
    "from_arrays": "understudy.mdp:from_arrays",
    "from_function": "understudy.mdp:from_function",
    "imitate": "understudy.imitation:imitate",
    "load_policy": "understudy.deep.policy:load",
    "predicting": "understudy.demos.recording:predicting",
    "read_demos": "understudy.demos.reading:read",
    "record": "understudy.demos.recording:record",
    "train": "understudy.experiments.deep_train:train",
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
