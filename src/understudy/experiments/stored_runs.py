"""Stored runs, read back: the one border between files that anybody may have written and everything
that is drawn, tabulated or judged.

A run becomes a `StoredRun` whose every number is of its type, finite and of a sane size, and whose
every name can be printed. What does not fit is a `UserError` with the reason, and `load` goes on
with the others.
"""

import dataclasses
import json
import math
import re
import stat
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core.errors import UserError
from understudy.experiments import runs
from understudy.experiments.standing import YOUNGER
from understudy.learners.config import Config, VectorConfig, as_option
from understudy.learners.deep.config import DeepConfig

LARGEST = 1e15  # of a return and of a count; sums and squares of these are numbers still
LARGEST_REGRET = 1e100  # bounds of the theory may be very large
LEAST_EXPERT = 1e-9  # of an expert's return that is not zero: shares of less are no numbers
LONGEST = 1_000  # characters of a name
DEEPEST = 12  # lists and objects within each other
BYTES = {"config.json": 2**24, "done.json": 2**26, "failed.json": 2**20, "metrics.jsonl": 2**30}
BESIDE = ("gap", "last_return", "last_gap")  # measured with tables, beside the return
# What a run with networks tells of itself at each mark.
TOLD = (
    "practice_return", "window", "drift", "discriminator_loss", "expert_logit", "agent_logit",
    "reward", "critic_loss", "q", "kl", "entropy", "missed", "held", "lead", "lead_since",
    "clone_earned", "earned",
)  # fmt: skip
WINDOW = re.compile(r"adaptive|all|[0-9]{1,10}|[0-9k.*^ +e-]{1,60}")
ONCE_OPEN = ("warmup",)  # options that could be None in older runs: the learner saw to them
BOOKED = ("optimisation", "shift", "estimation", "demonstrations", "reward", "policy", "ail")


@dataclass(frozen=True)
class StoredRun:
    """A finished run, read back."""

    folder: Path
    request: dict[str, Any]  # env, horizon, seed, demos, expert, demonstrations, config
    summary: dict[str, Any]  # expert_return; seconds and ledger where they were kept
    interactions: np.ndarray
    updates: np.ndarray
    returns: np.ndarray
    regret: dict[str, np.ndarray] | None  # by term, an entry a mark
    beside: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # of BESIDE, if kept
    told: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # of TOLD; NaN: not then

    @property
    def env(self) -> str:
        """The environment's name; a room's without the id's prefix and version."""
        return runs.short(self.request["env"])

    @property
    def seed(self) -> int:
        return self.request["seed"]

    @property
    def asked(self) -> dict[str, Any]:
        """The request beside environment, seed and config; what only some requests have is None."""
        apart = ("env", "seed", "config", "explored", *YOUNGER)  # explored: of the environment
        flat = {k: v for k, v in self.request.items() if k not in apart}
        return {"method": None, "thin": None, "begin": None, "begun": None} | flat

    @property
    def kind(self) -> str:
        """Of its learner."""
        return runs.kind_of(self.request)

    @property
    def window(self) -> str:
        return self.request["config"]["window"]

    @property
    def cloned(self) -> bool:
        """Whether it began with a clone of the expert."""
        return self.request["config"].get("warm_start") == "clone"

    @property
    def expert_return(self) -> float:
        return self.summary["expert_return"]

    def at(self, interactions: int) -> float:
        """The return at the last mark up to so many interactions."""
        place = np.searchsorted(self.interactions, interactions, side="right") - 1
        return float(self.returns[max(place, 0)])

    def near(self, share: float) -> int | None:
        """The first mark whose return is within 1 − share of the expert's, whatever its sign."""
        enough = self.expert_return - (1 - share) * abs(self.expert_return)
        return next(
            (int(n) for n, R in zip(self.interactions, self.returns, strict=True) if R >= enough),
            None,
        )

    @cached_property
    def replay(self) -> dict[str, np.ndarray] | None:
        """Visits and mean reward at each mark, where they were kept."""
        path = self.folder / "replay.safetensors"
        return _replay(path, self.env, len(self.interactions)) if path.exists() else None


def load(root: Path) -> tuple[list[StoredRun], list[str]]:
    """The finished runs at or below `root`; and a sentence on each folder that was skipped."""
    return read_all(runs.folders(root))


def read_all(folders: Iterable[Path]) -> tuple[list[StoredRun], list[str]]:
    """The runs that can be read, and a sentence on each that cannot."""
    found, skipped = [], []
    for folder in folders:
        try:
            found.append(read(folder))
        except UserError as error:
            skipped.append(legible(str(error)))
    return found, skipped


def read(folder: Path) -> StoredRun:
    """One finished run, checked."""
    for name in BYTES:  # before anything opens them: a pipe would wait for ever
        regular(folder / name, BYTES[name])
    told = runs.summary(folder)  # first, for it says why where a run has failed
    config = document(folder / "config.json", "The run's")
    config.pop("versions", None)
    if config.get("method") == "sac":
        raise UserError(f"The run {folder} is an expert's, which imitates nobody.")
    try:
        rows = runs.metrics(folder)
        if not rows:
            raise ValueError("its metrics.jsonl is empty")
        request = _request(config)
        run = StoredRun(
            folder=folder,
            request=request,
            summary=_summary(told),
            interactions=_counts(rows, "interactions"),
            updates=_counts(rows, "updates"),
            returns=np.array([number(row["return"], "return") for row in rows]),
            regret=_regret(rows),
            beside={
                name: np.array([number(row[name], name) for row in rows])
                for name in BESIDE
                if all(name in row for row in rows)
            },
            told=_told(rows) if runs.kind_of(config) == "networks" else {},
        )
        _ = run.replay
    except KeyError as error:
        raise _damaged(folder, f"it has no {legible(str(error))}") from None
    except (OSError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise _damaged(folder, str(error) or type(error).__name__) from None
    del run.__dict__["replay"]  # it was read to be checked; a thousand of them would be heavy
    return run


def _damaged(folder: Path, reason: str) -> UserError:
    return UserError(f"The run {folder} is not one of ours or is damaged ({legible(reason)}).")


# --- the parts of a run -------------------------------------------------------------------------


def _request(config: dict[str, Any]) -> dict[str, Any]:
    """What a run was asked must be what could have been asked."""
    deep = runs.kind_of(config) == "networks"
    name(config["env"], "env", longest=200)
    whole(config["seed"], "seed", -(2**63))
    if not (deep and config["horizon"] is None):
        whole(config["horizon"], "horizon", 1)
    options = config["config"]
    if not isinstance(options, dict):
        raise ValueError(f"its config is {shown(options)}")
    if not isinstance(config.get("method"), str | None):
        raise ValueError(f"its method is {shown(config['method'])}")
    kind = runs.kind_of(config)
    asked = {"networks": DeepConfig, "features": VectorConfig, "tables": Config}[kind]
    for option in {field.name for field in dataclasses.fields(asked)} & set(options):
        if not (option in ONCE_OPEN and options[option] is None):
            as_option(option, options[option], asked)
    if deep:
        options.setdefault("task_reward", DeepConfig.task_reward)  # noted where it is on
    window = name(options["window"], "window")
    if not WINDOW.fullmatch(window.strip().lower()):
        raise ValueError(f"its window is {shown(window)}")
    return config


def _summary(told: Mapping[str, Any]) -> dict[str, Any]:
    expert = number(told["expert_return"], "expert_return")
    if 0 < abs(expert) < LEAST_EXPERT:
        raise ValueError(f"its expert_return is {expert:g}, which no return is a share of")
    summary: dict[str, Any] = {"expert_return": expert}
    if told.get("seconds") is not None:
        summary["seconds"] = number(told["seconds"], "seconds", least=0.0)
    if told.get("ledger") is not None:
        summary["ledger"] = _ledger(told["ledger"])
    return summary


def _ledger(told: Any) -> dict[str, dict[str, Any]]:
    """By term: what was measured, its bounds where there are any, and whether they hold."""
    if not isinstance(told, dict) or not all(isinstance(row, dict) for row in told.values()):
        raise ValueError(f"its ledger is {shown(told)}")
    ledger = {}
    for term, row in told.items():
        cells: dict[str, Any] = {
            key: number(row[key], f"{term} {key}", most=LARGEST_REGRET)
            for key in ("measured", "bound", "sharp_bound")
            if row.get(key) is not None
        }
        holds = row.get("holds")
        if not isinstance(holds, bool | None):
            raise ValueError(f"its ledger's {term} holds {shown(holds)}")
        ledger[name(term, "ledger's term")] = {**cells, "holds": holds}
    return ledger


def _counts(rows: list[dict[str, Any]], key: str) -> np.ndarray:
    """A count a mark, which never falls."""
    counts = np.array([whole(row[key], key, 0) for row in rows], dtype=int)
    if (np.diff(counts) < 0).any():
        raise ValueError(f"its {key} fall from one mark to the next")
    return counts


def _told(rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """By name, an entry a mark; NaN where nothing was told. A method tells what it has; before any
    practice nothing is told, and no episode need have ended since the mark before."""
    told = {}
    for key in TOLD:
        if not any(row.get(key) is not None for row in rows):
            continue
        at_most = [float(row["interactions"]) if key == "lead_since" else LARGEST for row in rows]
        least = 0.0 if key == "lead_since" else -math.inf
        told[key] = np.array(
            [
                math.nan if row.get(key) is None else number(row[key], key, least=least, most=most)
                for row, most in zip(rows, at_most, strict=True)
            ]
        )
    return told


def _regret(rows: list[dict[str, Any]]) -> dict[str, np.ndarray] | None:
    """By term, an entry a mark: a number, or as many as at the other marks."""
    kept = ["regret" in row for row in rows]
    if not any(kept):
        return None
    if not all(kept) or not all(isinstance(row["regret"], dict) for row in rows):
        raise ValueError("it has a regret at some marks only")
    terms = [*rows[0]["regret"]]
    if missing := [term for term in BOOKED if term not in terms]:
        raise ValueError(f"its regret lacks {missing[0]}")
    regret = {}
    for term in terms:
        values = [_numbers(row["regret"][term], f"regret's {term}") for row in rows]
        if term in BOOKED and not isinstance(values[0], float):
            raise ValueError(f"its regret's {term} is {shown(values[0])}")
        regret[name(term, "regret's term")] = np.array(values, dtype=float)
    return regret


def _numbers(value: Any, what: str) -> float | list[float]:
    if isinstance(value, list):
        return [number(each, what, most=LARGEST_REGRET) for each in value]
    return number(value, what, most=LARGEST_REGRET)


def _replay(path: Path, env: str, marks: int) -> dict[str, np.ndarray]:
    """Visits and reward, (marks, S, A) each; a room's S and A are known by its name."""
    arrays = runs.tensors(path, "The replay")
    room = re.fullmatch(r"EmptyRoom-(\d{1,3})x(\d{1,3})", env)
    size = (int(room[1]) * int(room[2]), 5) if room else None
    first = next(iter(arrays.values()), np.zeros(0))
    for key in ("visits", "reward"):
        x = arrays.get(key)
        if x is None or x.dtype.kind not in "fiu":
            raise UserError(f"The replay {path} has no numbers named '{key}'.")
        fits = x.ndim == 3 and x.shape == first.shape and len(x) == marks
        if not fits or (size is not None and x.shape[1:] != size):
            raise UserError(f"The replay {path} has {key} of shape {x.shape}, {marks} marks.")
        if not np.isfinite(x).all() or np.abs(x).max(initial=0) > LARGEST:
            raise UserError(f"The replay {path} has {key} that are NaN or too large.")
    return {key: arrays[key] for key in ("visits", "reward")}


# --- checks ---------------------------------------------------------------------------------------


def document(path: Path, what: str) -> dict[str, Any]:
    """A JSON object of bounded size and depth, all of whose numbers are finite and whose strings
    can be printed."""
    regular(path, 2**26)
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        plain(read)
    except FileNotFoundError:
        raise UserError(f"{what} {path} does not exist.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{what} {path} cannot be read: {legible(str(error))}") from None
    if not isinstance(read, dict):
        raise UserError(f"{what} {path} is not a JSON object.")
    return read


def plain(value: Any, deep: int = 0) -> None:
    """ValueError if something within is no finite number, no printable string, or too deep."""
    if deep > DEEPEST:
        raise ValueError(f"it is more than {DEEPEST} levels deep")
    if isinstance(value, str):
        name(value, "text", longest=20_000)
    elif isinstance(value, int | float) and not abs(value) <= LARGEST_REGRET:
        raise ValueError(f"a number is {shown(value)}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            name(key, "key")
            plain(inner, deep + 1)
    elif isinstance(value, list):
        for inner in value:
            plain(inner, deep + 1)


def regular(path: Path, most: int) -> None:
    """Refuse what is there and is no regular file of bounded size: a pipe or a device would never
    end."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {legible(str(error))}") from None
    if not stat.S_ISREG(found.st_mode):
        raise UserError(f"{path} cannot be read: it is no regular file.")
    if found.st_size > most:
        raise UserError(f"{path} cannot be read: it has {found.st_size:,} bytes.")


def number(value: Any, what: str, *, least: float = -math.inf, most: float = LARGEST) -> float:
    """A finite number of a sane size."""
    if type(value) not in (int, float) or not (least <= value and abs(value) <= most):
        raise ValueError(f"its {what} is {shown(value)}")
    return float(value)


def whole(value: Any, what: str, least: int) -> int:
    if type(value) is not int or not least <= value <= LARGEST:
        raise ValueError(f"its {what} is {shown(value)}")
    return value


def name(value: Any, what: str, *, longest: int = LONGEST) -> str:
    """A string that a terminal, a picture and a page can show."""
    if not isinstance(value, str) or len(value) > longest or legible(value) != value:
        raise ValueError(f"its {what} is {shown(value)}")
    return value


def legible(text: str) -> str:
    """On one line, without what cannot be encoded or would steer a terminal."""
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cs") else c
                   for c in text)  # fmt: skip


def shown(value: Any) -> str:
    """What was found there, in short."""
    told = ascii(value)
    return told if len(told) <= 60 else told[:57] + "…"
