"""Which environment `understudy train` is asked for, and so which learner's options it has.

Only the environment's own place on the command line may name code: `--demos expert:v1.npz` is a
file. So the words are read as the command itself will read them, by the same parser, with every
option that a learner has and no care for their values.
"""

import dataclasses
import functools
import typing
from collections.abc import Sequence
from typing import Any

import tyro
from tyro.conf import Positional


def environment(words: Sequence[str], learners: Sequence[type]) -> str | None:
    """The environment in the words after `train`, None where they have none. An option that
    several learners have takes the values that it has with the last of them."""
    words = [word for word in words if word not in ("--help", "-h")]
    while True:
        try:
            asked, unknown = tyro.cli(
                _glance(tuple(learners)),
                args=words,
                console_outputs=False,
                return_unknown_args=True,
                add_help=False,
            )
        except SystemExit:  # no environment, or an option without its value: the parser will tell
            return None
        # What follows an option that nobody has may be its value: only what precedes it is known.
        odd = next((word for word in unknown if word.startswith("-")), None)
        if odd is None:
            return asked.env
        words = words[: words.index(odd)]


def continuous(env: str) -> bool:
    """Whether it is for networks, or for features of vectors; a sentence if it cannot be made."""
    from understudy.envs import making

    return making.continuous(env)


@functools.cache
def _glance(learners: tuple[type, ...]) -> Any:
    """A command with the options of all learners, whose values are words."""
    options: dict[str, Any] = {}
    for learner in learners:
        for name, hint in _hints(learner).items():
            if dataclasses.is_dataclass(hint):  # the config, whose options have no prefix
                options |= {inner: _words(kind) for inner, kind in _hints(hint).items()}
            else:
                options[name] = _words(hint)
    options.pop("env")
    defaults = {bool: False, str: "", tuple[str, ...]: ()}
    listed = [
        (name, kind, dataclasses.field(default=defaults[kind])) for name, kind in options.items()
    ]
    return dataclasses.make_dataclass("Glance", [("env", Positional[str]), *listed], frozen=True)


def _hints(of: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(of)
    return {field.name: hints[field.name] for field in dataclasses.fields(of)}


def _words(hint: Any) -> Any:
    """How many words an option takes: none, one, or as many as follow."""
    if hint is bool:
        return bool
    kinds = [typing.get_origin(kind) for kind in (hint, *typing.get_args(hint))]
    return tuple[str, ...] if tuple in kinds else str
