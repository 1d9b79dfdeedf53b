"""What is seen by name: all of it as one vector, or the chosen parts; and images, from which
nothing here learns yet. A sentence says so before they are flattened into numbers."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import FlattenObservation

from understudy.core.errors import UserError
from understudy.envs.guard import Guard, plain

SIDE = 16  # an image's sides are at least so long; MiniGrid's views of 7×7 are codes, not pixels


def is_picture(shape: Sequence[int], kind: Any) -> bool:
    """Whether numbers of this shape are an image, or a stack of them: pixels as bytes, or at least
    three axes, with two long sides."""
    bytes_ = np.dtype(kind) == np.uint8
    axes = 2 if bytes_ else 3
    return len(shape) >= axes and sorted(shape)[-2] >= SIDE


def pictured(space: Any, prefix: str = "") -> list[str]:
    """The names of the images in a space; the empty name where it is one itself."""
    if isinstance(space, spaces.Box):
        return [prefix] if is_picture(space.shape, space.dtype) else []
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return [name for key, part in parts for name in pictured(part, _join(prefix, str(key)))]
    return []


def other_than_pictures(space: Any) -> list[str]:
    """The names in a dictionary that have no image in them."""
    if not isinstance(space, spaces.Dict):
        return []
    return [key for key, part in space.spaces.items() if not pictured(part)]


def _join(prefix: str, name: str) -> str:
    return f"{prefix}/{name}" if prefix else name


def refuse_pictures(what: str, names: Sequence[str], others: Sequence[str] = ()) -> None:
    """One sentence, where there are images; `others` could be chosen in their place."""
    if not names:
        return
    shown = ", ".join(name for name in names if name)
    told = f"{what} shows images{f' ({plain(shown)})' if shown else ''}, from which understudy "
    if others:
        raise UserError(f"{told}cannot learn yet; choose other names with --keys, such as: "
                        f"{plain(' '.join(others))}.")  # fmt: skip
    raise UserError(f"{told}cannot learn yet; wrap it so that it shows features.")


def refuse_pictured(env: gymnasium.Env, name: str) -> None:
    """The same of an environment, as it was before it was made a vector by us. What a user has
    flattened stays flat."""
    seen = as_shown(env)
    whole = seen.env if isinstance(seen, Chosen) else seen
    found, others = pictured(seen.observation_space), other_than_pictures(whole.observation_space)
    refuse_pictures(f"Environment {plain(name)}", found, others)


def as_shown(env: gymnasium.Env) -> gymnasium.Env:
    """An environment behind its guard, without our wrapper that makes it a vector."""
    outer: Any = env
    while isinstance(outer, gymnasium.Wrapper):
        if isinstance(outer, FlattenObservation):
            return outer.env
        if isinstance(outer, Chosen | Guard):
            return outer
        outer = outer.env
    return env


def has_names(env: gymnasium.Env) -> bool:
    """Whether what is seen in it is named, part by part."""
    return isinstance(as_shown(env).observation_space, spaces.Dict)


def chosen(what: str, known: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The names that were chosen, in the order given, each of them known; all, if none was."""
    if len(set(keys)) < len(keys):
        raise UserError(f"--keys names {plain(_twice(keys))} twice; name each part once.")
    for key in keys:
        if key not in known:
            raise UserError(f"{what} has no '{plain(key)}'; --keys chooses among: "
                            f"{plain(' '.join(known)) or 'nothing'}.")  # fmt: skip
    return list(keys) or list(known)


def _twice(keys: Sequence[str]) -> str:
    return next(key for key in keys if list(keys).count(key) > 1)


def joined(what: str, parts: Mapping[str, np.ndarray], keys: Sequence[str]) -> np.ndarray:
    """Named observations (n, …) as vectors (n, S): the chosen, in the order given, or all, by
    name."""
    names = chosen(what, sorted(parts), keys)
    images = [name for name in names if is_picture(parts[name].shape[1:], parts[name].dtype)]
    refuse_pictures(what, images, [name for name in sorted(parts) if name not in images])
    if len(names) == 1 and parts[names[0]].ndim <= 2:
        return parts[names[0]]
    return np.concatenate([parts[name].reshape(len(parts[name]), -1) for name in names], axis=1)


class Chosen(gymnasium.ObservationWrapper, RecordConstructorArgs):
    """Some of what an environment shows by name, in the order given."""

    def __init__(self, env: gymnasium.Env, keys: Sequence[str]) -> None:
        RecordConstructorArgs.__init__(self, keys=list(keys))
        super().__init__(env)
        self.keys, shown = list(keys), env.observation_space
        assert isinstance(shown, spaces.Dict)
        self.observation_space = spaces.Dict(OrderedDict((key, shown[key]) for key in keys))

    def observation(self, observation: Any) -> Any:
        return {key: observation[key] for key in self.keys}


def choosing(env: gymnasium.Env, keys: Sequence[str], name: str) -> gymnasium.Env:
    """The environment, showing the chosen names alone; one without names, as it is."""
    shown: Any = env.observation_space
    if not isinstance(shown, spaces.Dict):
        return env
    return Chosen(env, chosen(f"Environment {plain(name)}", list(shown.spaces), keys))
