"""The command that a run with networks was made by, read off its config."""

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from understudy.learners.baselines.methods import options
from understudy.learners.config import as_option
from understudy.learners.deep.config import PRESETS, DeepConfig

NAMED = ("demos", "trajectories", "thin", "begin", "horizon", "seed")
PATHS = ("demos", "begin")


def train(request: Mapping[str, Any]) -> str:
    """`understudy train …`, with the options that are not those of the preset: of the preset that
    leaves the fewest to be said. Of a path, its last part."""
    asked, method = request["config"], request["method"]
    kept = {
        field.name: as_option(field.name, asked[field.name], DeepConfig)
        for field in dataclasses.fields(DeepConfig)
        if field.name in asked
    }
    changes = {
        preset: {k: v for k, v in kept.items() if getattr(options(method, base), k) != v}
        for preset, base in PRESETS.items()
    }
    preset = min(changes, key=lambda name: len(changes[name]))
    words = ["understudy", "train", request["env"]]
    words += [] if preset == "fast" else ["--preset", preset]
    words += [] if method == "mdpo" else ["--method", method]
    for name in NAMED:
        if (value := request.get(name)) not in (None, 0):
            words += [f"--{name}", Path(value).name if name in PATHS else str(value)]
    for name, value in changes[preset].items():
        words += _words(name.replace("_", "-"), value)
    return shlex.join(words)


def _words(flag: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    values = value if isinstance(value, tuple) else (value,)
    return [f"--{flag}", *map(str, values)]
