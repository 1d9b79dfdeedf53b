"""Which learner an environment is for. Imports Gymnasium alone: the command line asks first."""

import contextlib
import importlib
import os
import sys
from types import ModuleType
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Dict, Discrete, Tuple
from gymnasium.wrappers import FlattenObservation

from understudy.errors import UserError


def continuous(name: str) -> bool:
    """Whether `name` is an environment whose observations are not a list of states."""
    known = name in gymnasium.registry or ":" in name
    if not known:
        return False
    with contextlib.closing(make(name)) as env:
        return not isinstance(env.observation_space, Discrete)


def make(name: str, **options: Any) -> gymnasium.Env:
    """`gymnasium.make`, and environments that are registered nowhere, as 'module:Class'. What is
    seen as a dictionary or a tuple is made a vector, where Gymnasium knows how."""
    env = _make(name, **options)
    if isinstance(env.observation_space, Dict | Tuple):
        with contextlib.suppress(NotImplementedError):  # words, graphs: the learner refuses them
            return FlattenObservation(env)
    return env


def _make(name: str, **options: Any) -> gymnasium.Env:
    _quieten(name)
    module, _, attribute = name.partition(":")
    if not attribute or attribute in gymnasium.registry:
        return gymnasium.make(name, **options)
    try:
        found = getattr(imported(module), attribute, None)
    except ImportError as error:
        raise UserError(
            f"Environment '{name}' cannot be imported: {error}; give 'module:Class'."
        ) from None
    if found is None:  # Gymnasium's own form: a module that registers, and an id
        return gymnasium.make(name, **options)
    stem = attribute.replace(".", "-")
    return gymnasium.make(EnvSpec(f"{stem}-v0", entry_point=found), **options)


def imported(module: str) -> ModuleType:
    """A module of the user's, by name: installed, or a file beside them."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return importlib.import_module(module)


def _quieten(name: str) -> None:
    """MuJoCo says with every HalfCheetah that its file uses an old attribute; nobody can act on
    it. Its other warnings are passed on."""
    spec = gymnasium.registry.get(name)
    if spec is None or "gymnasium.envs.mujoco" not in str(spec.entry_point):
        return
    with contextlib.suppress(ImportError):  # Gymnasium explains what is missing
        importlib.import_module("mujoco").set_mju_user_warning(
            lambda text: None if "deprecated" in text else print(text, file=sys.stderr)
        )
