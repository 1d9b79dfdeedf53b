"""Environments by name, behind their guard, with errors that help; and whether one is for networks.
Imports Gymnasium alone: the command line asks first."""

import contextlib
import difflib
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Dict, Discrete, Tuple
from gymnasium.wrappers import FlattenObservation

from understudy.core import extras
from understudy.core.errors import UserError
from understudy.envs import layouts, named
from understudy.envs.guard import Guard, calling, first_line, plain
from understudy.envs.registration import ROOMS, SPECS


def continuous(name: str) -> bool:
    """Whether `name` is an environment whose observations are not a list of states."""
    if layouts.find(name) is not None:
        return False
    known = name in gymnasium.registry or name in SPECS or ":" in name
    if not known:
        return False
    with contextlib.closing(make(name)) as env:
        return not isinstance(env.observation_space, Discrete)


def make(name: str, *, keys: Sequence[str] = (), **options: Any) -> gymnasium.Env:
    """`gymnasium.make`, and environments that are registered nowhere, as 'module:Class'. What is
    seen as a dictionary or a tuple is made a vector, where Gymnasium knows how; of a dictionary,
    only the `keys`, if any are given."""
    with _explained(name):
        return guarded_vectors(_make(name, **options), name, keys)


def bare(name: str, **options: Any) -> gymnasium.Env:
    """The same as it is: no guard, no vector, and no checks of Gymnasium's."""
    with _explained(name):
        layouts.register(name)
        return _make(name, disable_env_checker=True, **options)


def again(spec: EnvSpec, name: str, **options: Any) -> gymnasium.Env:
    """An environment made as it was before, but for the options."""
    with _explained(name):
        return Guard(gymnasium.make(spec, **options), name)


def guarded_vectors(made: gymnasium.Env, name: str, keys: Sequence[str] = ()) -> gymnasium.Env:
    """An environment behind its guard, and what it shows as a vector where Gymnasium knows how."""
    env: gymnasium.Env = Guard(made, name)
    if keys:  # one without names is as it is: they may be of the demonstrations alone
        env = named.choosing(env, keys, name)
    if isinstance(env.observation_space, Dict | Tuple):
        with contextlib.suppress(NotImplementedError):  # words, graphs: the learner refuses them
            return FlattenObservation(env)
    return env


def _make(name: str, **options: Any) -> gymnasium.Env:
    _quieten(name)
    if name in SPECS:
        return gymnasium.make(SPECS[name], **options)
    module, _, attribute = name.partition(":")
    if not attribute or attribute in gymnasium.registry:
        return gymnasium.make(name, **options)
    found = getattr(imported(module), attribute, None)
    if found is None:  # Gymnasium's own form: a module that registers, and an id
        return gymnasium.make(name, **options)
    stem = attribute.replace(".", "-")
    return gymnasium.make(EnvSpec(f"{stem}-v0", entry_point=found), **options)


def imported(module: str) -> ModuleType:
    """A module of the user's, by name: installed, or a file beside them."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        with calling(f"The module '{plain(module)}' cannot be imported"):
            return importlib.import_module(module)
    except UserError as error:
        raise UserError(f"{str(error).rstrip('.')}; give 'module:Class'.") from error.__cause__


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Whatever the making of an environment raises, as one sentence that helps."""
    named = f"Environment '{plain(name)}'"
    before, sys.stdout = sys.stdout, sys.stderr  # what it prints is no part of our document
    try:
        yield
    except (UserError, KeyboardInterrupt):
        raise
    except gymnasium.error.DependencyNotInstalled as error:
        known = next((m for m in extras.EXTRAS if m.lower() in str(error).lower()), None)
        told = f"{named} needs a package: {first_line(error)}."
        raise UserError(extras.sentence(known, named) if known else told) from None
    except ModuleNotFoundError as error:
        told = f"{named} cannot be made: {first_line(error)}."
        raise (extras.explained(error) or UserError(told)) from error
    except gymnasium.error.UnregisteredEnv as error:
        known = [*gymnasium.registry, *SPECS, *(f"EmptyRoom-{n}x{n}" for n in ROOMS)]
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else "use EmptyRoom-5x5 or a Gymnasium id."
        raise UserError(
            f"Unknown environment '{plain(name)}' ({first_line(error)}); {hint}"
        ) from None
    except SystemExit as error:
        raise UserError(f"{named} cannot be made: it called sys.exit.") from error
    except BaseException as error:  # whatever an environment's own constructor raises
        raise UserError(f"{named} cannot be made: {first_line(error)}.") from error
    finally:
        sys.stdout = before


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
