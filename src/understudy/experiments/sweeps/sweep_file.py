"""A sweep from its TOML file, checked by name.

name = "windows"
envs = ["EmptyRoom-3x3", "EmptyRoom-5x5"]
seeds = 5                     # 0 … 4, or a list
[config]                      # the options of `understudy train`, for all runs
interactions = 2000
gradients = "sampled"         # or a window of 1 would take none, and the others would
[grid]                        # every combination of these
window = ["1", "4", "32"]
[vary]                        # each of these alone, the rest as in [config]
eta = [0.01, 0.1]
"batch, beta" = [[1, "uniform"], [4, "geometric"]]     # these change together

Environments with continuous observations are for the deep learner, and then [config] has its
options; besides, there may be `preset`, `trajectories` and `demos`, as of `understudy train`. In
finite environments `trajectories` is how many are sampled from the optimal policy.
"""

import dataclasses
import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from understudy.core import files
from understudy.core.errors import UserError
from understudy.envs import catalog
from understudy.experiments import kinds
from understudy.experiments.sweeps.sweep import Sweep, names_in
from understudy.learners.config import Config, as_option
from understudy.learners.deep.config import PRESETS, DeepConfig

LARGEST = 1_000_000  # bytes of a file
MOST = 100_000  # runs
DEEPEST = 100  # parts of a name


def read(path: Path, *, allow_code: bool = False, named: Collection[str] = ()) -> Sweep:
    """A sweep from its TOML file, checked by name. A file may name code to run, 'module:Class',
    only where the user allows it, or has `named` an environment of that module too."""
    try:
        return _read(path, allow_code, {module(name) for name in named} - {""})
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"The sweep {path} does not exist.") from None
    # Whatever is in it: ValueError is also a number with more digits than Python reads or shows,
    # RecursionError a table in a table in a table.
    except RecursionError:
        raise UserError(f"The sweep {path} cannot be read: it is nested too deeply.") from None
    except (OSError, ValueError, OverflowError, MemoryError) as error:
        long = "integer string conversion" in str(error)
        why = "it has a number of too many digits" if long else error
        raise UserError(f"The sweep {path} cannot be read: {why}.") from None


def module(env: str) -> str:
    """The module that an environment's name is in, "" for one that Gymnasium knows."""
    return env.rpartition(":")[0]


def _refuse_code(path: Path, envs: Sequence[str], modules: Collection[str]) -> None:
    for env in envs:
        if ":" in env and module(env) not in modules:
            raise UserError(
                f"The sweep {path} names code to run, '{env}'; if you trust it, say --env {env}, "
                f"or --allow-code for all that it names."
            )


def _read(path: Path, allow_code: bool, modules: Collection[str]) -> Sweep:
    text = files.text(path, LARGEST)
    # Tomllib takes the square of the depth in time; no option is deeper than a table.
    if any(name.count(".") > DEEPEST for name in re.split(r"[=,\[\]{}\n]", text)):
        raise RecursionError
    document = tomllib.loads(text)
    known = ("name", "envs", "seeds", "horizon", "trajectories", "demos", "preset",
             "config", "grid", "vary")  # fmt: skip
    unknown = set(document) - set(known)
    if unknown:
        raise UserError(f"The sweep {path} has '{min(unknown)}'; it may have {', '.join(known)}.")
    name = document.get("name", path.stem)
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]*", name):
        raise UserError(
            f"The sweep {path}: name = {name!r} must be a folder's name: letters, digits, - and _."
        )
    for count in ("horizon", "trajectories"):
        value = document.get(count)
        if value is not None and (type(value) is not int or not 1 <= value <= 10**6):
            raise UserError(
                f"The sweep {path}: {count} = {value!r} must be a whole number, 1 to 1,000,000."
            )
    envs: Any = document.get("envs")
    seeds = _seeds(document.get("seeds", 1))
    if not _list_of(envs, str):
        raise UserError(f"The sweep {path} needs envs, a list of environments by name.")
    if seeds is None:
        raise UserError(
            f"The sweep {path}: seeds must be how many (1 to 100,000), or a list of whole numbers."
        )
    if not allow_code:
        _refuse_code(path, envs, modules)
    deep, broken = _learners(envs)
    if not deep:
        raise UserError(f"The sweep {path}: {next(iter(broken.values()))}")
    base = _base(path, document, set(deep.values()))
    config, grid, vary = (document.get(table, {}) for table in ("config", "grid", "vary"))
    if not all(isinstance(table, dict) for table in (config, grid, vary)):
        raise UserError(f"The sweep {path}: [config], [grid] and [vary] must be tables.")
    for title, table in (("grid", grid), ("vary", vary)):
        for option, values in table.items():
            if not isinstance(values, list) or not values:
                raise UserError(f"The sweep {path}: {title}.{option} must be a list of values.")
            if title == "grid" and set(names_in(option)) & set(config):
                raise UserError(
                    f"The sweep {path} has {option} in [config] and in [grid]; keep one."
                )

    count = len(seeds) * len(envs) * _combinations(grid, vary)
    if count > MOST:
        raise UserError(f"The sweep {path} has {count:,} runs; it may have {MOST:,}.")

    def lists(table: dict[str, list[Any]]) -> dict[str, tuple[Any, ...]]:
        return {o: tuple(_value(path, o, v, base) for v in values) for o, values in table.items()}

    changes = {o: _option(path, o, value, base) for o, value in config.items()}
    sweep = Sweep(
        name=name,
        envs=tuple(deep),
        seeds=seeds,
        horizon=document.get("horizon"),
        config=dataclasses.replace(base, **changes),
        grid=lists(grid),
        vary=lists(vary),
        trajectories=document.get("trajectories"),
        demos=document.get("demos"),
        broken=broken,
    )
    for setting in sweep.settings():
        try:
            kinds.of_config(setting).check(setting)
        except UserError as error:
            raise UserError(f"The sweep {path}: {error}") from None
    return sweep


def _combinations(grid: Mapping[str, list[Any]], vary: Mapping[str, list[Any]]) -> int:
    return math.prod(map(len, grid.values())) + sum(map(len, vary.values()))


def _learners(envs: Sequence[str]) -> tuple[dict[str, bool], dict[str, str]]:
    """Whether each environment is for networks; and why not, for those that cannot be made."""
    deep, broken = {}, {}
    for env in dict.fromkeys(envs):
        try:
            networks = kinds.of_env(env) is kinds.NETWORKS
            if not networks and not catalog.LINEAR.fullmatch(env):
                catalog.make(env).close()  # tells a name that nobody knows
            deep[env] = networks
        except UserError as error:
            broken[env] = str(error)
    return deep, broken


def _base(path: Path, document: Mapping[str, Any], deep: set[bool]) -> Config | DeepConfig:
    """The defaults that [config] changes: those of the learner that the environments are for."""
    if len(deep) == 2:
        raise UserError(
            f"The sweep {path} mixes finite environments with continuous ones; make it two sweeps."
        )
    preset = document.get("preset", "fast")
    if preset not in PRESETS:
        raise UserError(
            f"The sweep {path}: preset = {preset!r} is not one of {', '.join(PRESETS)}."
        )
    if not isinstance(document.get("demos", ""), str):
        raise UserError(f"The sweep {path}: demos must be the name of a file or of a dataset.")
    if deep == {True}:
        return PRESETS[preset]
    for option in ("preset", "demos"):
        if option in document:
            raise UserError(
                f"The sweep {path}: {option} is for environments with continuous observations."
            )
    return Config()


def _seeds(given: Any) -> tuple[int, ...] | None:
    """From how many, or from a list; None where it is neither."""
    if type(given) is int and 1 <= given <= 100_000:
        return tuple(range(given))
    listed: Any = given if _list_of(given, int) else None
    return None if listed is None else tuple(dict.fromkeys(listed))


def _list_of(values: object, kind: type) -> bool:
    return (
        isinstance(values, list)
        and bool(values)
        and all(isinstance(v, kind) and not isinstance(v, bool) for v in values)
    )


def _value(path: Path, name: str, value: Any, base: Config | DeepConfig) -> Any:
    """A value of [grid] or [vary]: as many as there are names."""
    names = names_in(name)
    if len(names) == 1:
        return _option(path, name, value, base)
    if not isinstance(value, list) or len(value) != len(names):
        raise UserError(
            f'The sweep {path}: "{name}" needs lists of {len(names)} values, one an option.'
        )
    return tuple(_option(path, o, v, base) for o, v in zip(names, value, strict=True))


def _option(path: Path, name: str, value: Any, base: Config | DeepConfig) -> Any:
    """A value for the option of that name: as its config annotates it, or a sentence that says
    so. TOML has no None: there it is "none"."""
    options = [field.name for field in dataclasses.fields(base)]
    if name not in options:
        near = ", ".join(options)
        raise UserError(f"The sweep {path}: there is no option '{name}'; the options are {near}.")
    read = str(value) if name == "window" and type(value) is int else value  # N as a number
    for way in (read, None) if read == "none" else (read,):
        try:
            return as_option(name, way, type(base))
        except ValueError:
            continue
    raise UserError(
        f"The sweep {path}: {name} = {value!r} is not what that option takes; "
        f"see understudy train --help."
    )
