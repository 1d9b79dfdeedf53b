"""A sweep is data: environments, a grid of settings, seeds. Its runs resume where they stopped.

name = "windows"
envs = ["EmptyRoom-3x3", "EmptyRoom-5x5"]
seeds = 5                     # 0 … 4, or a list
[config]                      # the options of `understudy train`, for all runs
interactions = 2000
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
import itertools
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from understudy import files
from understudy.config import Config, as_option, check
from understudy.deep.config import PRESETS, DeepConfig, check_deep
from understudy.envs import catalog
from understudy.errors import UserError
from understudy.experiments import console, store
from understudy.experiments.cluster import Cluster

LARGEST = 1_000_000  # bytes of a file
MOST = 100_000  # runs
DEEPEST = 100  # parts of a name


@dataclass(frozen=True)
class Sweep:
    """Every setting of the grid, in every environment, for every seed."""

    name: str
    envs: tuple[str, ...]
    seeds: tuple[int, ...]
    horizon: int | None = None  # the environments' own, if not given
    config: Config | DeepConfig = field(default_factory=Config)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    vary: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    # Of the demonstrations, all if not given; with tables, sampled from the optimal policy.
    trajectories: int | None = None
    demos: str | None = None  # those to imitate; the package's own, if not given
    # Environments that cannot be made, and why: the others are run all the same.
    broken: Mapping[str, str] = field(default_factory=dict)

    def settings(self) -> list[Config | DeepConfig]:
        """The configs of the grid, the last name varying fastest; then those that vary alone."""
        combinations = itertools.product(*self.grid.values())
        asked = [tuple(zip(self.grid, values, strict=True)) for values in combinations]
        asked += [((name, value),) for name, values in self.vary.items() for value in values]
        configs = (dataclasses.replace(self.config, **_changes(pairs)) for pairs in asked)
        return list(dict.fromkeys(configs))  # what is listed twice is run once

    def each(self) -> int:
        """How many runs an environment has."""
        return len(self.settings()) * len(self.seeds)


@dataclass(frozen=True)
class Failure:
    """A run, or all of an environment, that failed while the others went on."""

    what: str
    why: str
    runs: int = 1

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def refuse_failed(failed: Sequence[Failure], of: int) -> None:
    """When all others have ended: every failure is named, and the command does not succeed."""
    if not failed:
        return
    for one in failed:
        console.say(f"Failed: {one}")
    count = sum(one.runs for one in failed)
    raise UserError(f"{count} of {of} runs failed; the first: {failed[0]}")


def _names(name: str) -> list[str]:
    """The options of a name: "window, fresh" are two that change together."""
    return [one.strip() for one in name.split(",")]


def _changes(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Options and values, where names may stand for several options."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        names = _names(name)
        found |= dict(zip(names, value if len(names) > 1 else (value,), strict=True))
    return found


def run(
    sweep: Sweep,
    out: Path,
    on: Cluster | None = None,
    checkpoint: float | None = None,
    *,
    restart: bool = False,
) -> dict[str, Any]:
    """Run what is not done yet, each run in a folder of its own below `out`: here, or on a cluster.
    A deep run keeps where it is every `checkpoint` seconds. With `restart`, runs that are damaged
    or have failed are moved aside first."""
    with store.workplace(out):
        if isinstance(sweep.config, DeepConfig):
            from understudy.experiments import rehearsal, sweep_networks

            seconds = rehearsal.SECONDS if checkpoint is None else checkpoint
            return sweep_networks.run(sweep, out, on, seconds, restart=restart)
        if checkpoint is not None:
            raise UserError("--checkpoint is for runs with networks; those with tables have none.")
        from understudy.experiments import sweep_tables

        return sweep_tables.run(sweep, out, on, restart=restart)


# --- from a file ---------------------------------------------------------------------------


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
            if title == "grid" and set(_names(option)) & set(config):
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
            check_deep(setting) if isinstance(setting, DeepConfig) else check(setting)
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
            networks = catalog.continuous(env)
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
    names = _names(name)
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
