"""understudy: learn to act by watching an expert, with as little practice as possible.

The public names are loaded when first used, so that `import understudy` stays fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.core.demonstrations import Demonstrations
    from understudy.core.errors import UserError
    from understudy.core.linear_mdp import LinearMDP
    from understudy.core.mdp import MDP, from_arrays, from_function, occupancy, optimum, value
    from understudy.demos.reading import read as read_demos
    from understudy.demos.recording import acting, predicting, record
    from understudy.demos.writing import write as write_demos
    from understudy.envs.empty_room import empty_room
    from understudy.envs.explore import explore
    from understudy.envs.registration import register as register_envs
    from understudy.experiments.training import Result, load_policy, load_reward, train
    from understudy.learners.config import Config, VectorConfig
    from understudy.learners.deep.config import DeepConfig
    from understudy.learners.deep.paying import LearnedReward
    from understudy.learners.finite import imitate

_HOME = {
    "Config": "understudy.learners.config:Config",
    "DeepConfig": "understudy.learners.deep.config:DeepConfig",
    "Demonstrations": "understudy.core.demonstrations:Demonstrations",
    "LearnedReward": "understudy.learners.deep.paying:LearnedReward",
    "LinearMDP": "understudy.core.linear_mdp:LinearMDP",
    "MDP": "understudy.core.mdp:MDP",
    "Result": "understudy.experiments.training:Result",
    "UserError": "understudy.core.errors:UserError",
    "VectorConfig": "understudy.learners.config:VectorConfig",
    "acting": "understudy.demos.recording:acting",
    "empty_room": "understudy.envs.empty_room:empty_room",
    "explore": "understudy.envs.explore:explore",
    "from_arrays": "understudy.core.mdp:from_arrays",
    "from_function": "understudy.core.mdp:from_function",
    "imitate": "understudy.learners.finite:imitate",
    "load_policy": "understudy.experiments.training:load_policy",
    "load_reward": "understudy.experiments.training:load_reward",
    "occupancy": "understudy.core.mdp:occupancy",
    "optimum": "understudy.core.mdp:optimum",
    "predicting": "understudy.demos.recording:predicting",
    "register_envs": "understudy.envs.registration:register",
    "read_demos": "understudy.demos.reading:read",
    "record": "understudy.demos.recording:record",
    "train": "understudy.experiments.training:train",
    "value": "understudy.core.mdp:value",
    "write_demos": "understudy.demos.writing:write",
}

__version__ = "0.1.0"
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'understudy' has no attribute '{name}'")
    module, _, attribute = _HOME[name].partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
