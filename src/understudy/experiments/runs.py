"""Runs on disk. A run's folder holds

- `config.json`: what was asked, which is the run's identity, and the versions that ran it;
- `metrics.jsonl`: a line a mark, appended as the run goes: interactions, updates, return, regret,
  and the checksum of all that;
- `policy.safetensors`: the policy and the reward reached;
- `replay.safetensors`, where asked for: at each mark the visits and the mean reward, (marks, S, A);
- `done.json`: the summary, written last. A folder without it is a run that was stopped, or, where
  it has `failed.json` in its place, one that cannot go on, and why.
"""

import dataclasses
import functools
import hashlib
import importlib.metadata
import importlib.resources
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from understudy.baselines.methods import TITLES
from understudy.config import Config, as_option
from understudy.deep.config import DeepConfig
from understudy.errors import UserError
from understudy.experiments import store

MARKER = "done.json"
FAILED = "failed.json"


@dataclass(frozen=True)
class StoredRun:
    """A finished run, read back."""

    folder: Path
    request: dict[str, Any]  # env, horizon, seed, demos, expert, demonstrations, config
    summary: dict[str, Any]  # return, expert_return, ledger, …
    interactions: np.ndarray
    updates: np.ndarray
    returns: np.ndarray
    regret: dict[str, np.ndarray] | None  # by term, an entry a mark

    @property
    def env(self) -> str:
        """The environment's name; a room's without the id's prefix and version."""
        return short(self.request["env"])

    @property
    def seed(self) -> int:
        return self.request["seed"]

    @property
    def asked(self) -> dict[str, Any]:
        """The request beside environment, seed and config; what only some requests have is None."""
        flat = {k: v for k, v in self.request.items() if k not in ("env", "seed", "config")}
        return {"method": None, "thin": None} | flat

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
        return tensors(path, "The replay") if path.exists() else None


def short(env: str) -> str:
    return re.sub(r"^understudy/(EmptyRoom-\d+x\d+)-v0$", r"\1", env)


def identity(request: Mapping[str, Any]) -> str:
    """A stable hash of what was asked: the same on every machine and in every version."""
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def name(request: Mapping[str, Any]) -> str:
    """The folder of a run within a sweep: readable, and unique by its hash."""
    window = str(request["config"]["window"]).replace("*", "x").replace("^", "to")
    # One folder, whatever they are called: no name leads out of the output folder.
    env, window = (re.sub(r"[^\w.:+-]", "-", part)[:80] for part in (short(request["env"]), window))
    return f"{env}-N{window}-seed{request['seed']}-{identity(request)}"


def default(name: str, seed: int) -> Path:
    """Where a run goes if nobody says where."""
    return Path("runs") / f"{re.sub('[/:]', '-', name)}-seed{seed}"


@functools.cache
def versions() -> dict[str, str]:
    """What ran: recorded with each run, not part of its identity. `code` is a hash of the package's
    own source, which tells two states of one version apart."""
    listed = {package: importlib.metadata.version(package) for package in ("understudy", "jax")}
    root = importlib.resources.files("understudy")
    code = hashlib.sha256()
    with importlib.resources.as_file(root) as folder:
        for path in sorted(folder.rglob("*.py")):
            code.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return {**listed, "code": code.hexdigest()[:12]}


def playable(run: Path, named: str, given: str | None) -> str:
    """The environment to play a run in. Nothing that is loaded may run code, so its folder can name
    no module; the user can."""
    if given is None and ":" in named:
        raise UserError(
            f"The run {run} is of '{named}', code outside Gymnasium; if you trust it, say "
            f"--env {named}."
        )
    return given or named


def method(folder: Path) -> str | None:
    """By which method the run learned; None in a finite MDP, or where there is no run."""
    try:
        return store.read_json(folder / "config.json", "The run's").get("method")
    except UserError:
        return None


def done(folder: Path) -> bool:
    """Whether the marker is there, and the files that it names are as long as it says."""
    try:
        summary(folder)
    except UserError:
        return False
    return True


def ended(folder: Path) -> bool:
    """Whether there is nothing left to do: the run is done, or it cannot go on."""
    return done(folder) or failure(folder) is not None


def summary(folder: Path) -> dict[str, Any]:
    """What the marker says of a finished run."""
    try:
        marker = json.loads((folder / MARKER).read_text())
        files = marker.get("files", {})
        if {name: (folder / name).stat().st_size for name in files} == files:
            return marker
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        pass
    if sentence := failure(folder):
        raise UserError(f"The run {folder} failed: {sentence}")
    raise UserError(f"The run {folder} has not finished, or a file of it was cut short.")


def fail(folder: Path, sentence: str, **about: Any) -> None:
    """The run cannot go on: its settings lead to NaN, and would again."""
    store.write_json(folder / FAILED, {"failed": sentence, **about})


def failure(folder: Path) -> str | None:
    """Why the run in `folder` cannot go on, if it cannot."""
    if not (folder / FAILED).exists():
        return None
    return str(store.read_json(folder / FAILED, "The failure").get("failed"))


def same(folder: Path, request: Mapping[str, Any]) -> bool:
    """Whether the run in `folder`, whatever became of it, was asked the same."""
    try:
        there = store.read_json(folder / "config.json", "The run's")
    except UserError:
        return False
    there.pop("versions", None)
    return there == store.plain(request)


def begin(folder: Path, request: Mapping[str, Any]) -> None:
    """An empty run, in place of what a stopped one left."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.iterdir():  # not the folder itself, which may be locked
        shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
    store.write_json(folder / "config.json", {**request, "versions": versions()})


def append(folder: Path, rows: list[dict[str, Any]]) -> int:
    """Add lines to the metrics, each with its checksum; returns how many bytes they are."""
    bodies = [json.dumps(row, allow_nan=False) for row in rows]
    lines = "".join(f'{body[:-1]}, "crc32": {crc32(body.encode())}}}\n' for body in bodies).encode()
    with (folder / "metrics.jsonl").open("ab") as file:
        return file.write(lines)


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of the metrics, checked; those of older versions have no checksum."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for number, row in enumerate(rows, start=1):
        asked = row.pop("crc32", None)
        if asked is not None and asked != crc32(json.dumps(row).encode()):
            raise UserError(
                f"The run {folder} is damaged: line {number} of its metrics.jsonl does not fit its "
                f"checksum."
            )
    return rows


def finish(
    folder: Path,
    policy: Mapping[str, np.ndarray],
    summary: Mapping[str, Any],
    replay: Mapping[str, np.ndarray] | None = None,
) -> None:
    with store.whole(folder / "policy.safetensors") as draft:
        save_file(dict(policy), draft)
    if replay is not None:
        with store.whole(folder / "replay.safetensors") as draft:
            save_file(dict(replay), draft)
    mark(folder, summary)


def mark(folder: Path, summary: Mapping[str, Any], apart: str = "") -> None:
    """The run is finished: what is in its folder counts, but for the file `apart`."""
    others = ("config.json", apart)
    results = [path for path in sorted(folder.iterdir()) if path.name not in others]
    files = {path.name: path.stat().st_size for path in results if path.is_file()}
    store.write_json(folder / MARKER, {**summary, "files": files})


def tensors(path: Path, what: str) -> dict[str, np.ndarray]:
    try:
        return load_file(path)
    except FileNotFoundError:
        raise UserError(f"{what} {path} does not exist.") from None
    except (OSError, SafetensorError, ValueError) as error:
        raise UserError(f"{what} {path} cannot be read: {error}") from None


def folders(root: Path) -> Iterator[Path]:
    """Every folder at or below `root` that looks like a run, in order of name."""
    if not root.is_dir():
        raise UserError(f"{root} is not a folder of runs: there is no such folder.")
    for config in sorted(root.rglob("config.json")):
        yield config.parent


def load(root: Path) -> tuple[list[StoredRun], list[str]]:
    """The finished runs at or below `root`; and a sentence on each folder that was skipped."""
    runs, skipped = [], []
    for folder in folders(root):
        try:
            runs.append(read(folder))
        except UserError as error:
            skipped.append(str(error))
    return runs, skipped


def _check_kinds(request: dict[str, Any], expert_return: Any) -> None:
    """What a run was asked must be what could have been asked."""
    config = request["config"]
    deep = request.get("method") in TITLES
    kinds: dict[str, tuple[Any, Any]] = {
        "env": (request["env"], str),
        "seed": (request["seed"], int),
        "horizon": (request["horizon"], int | None if deep else int),
        "config": (config, dict),
    }
    for name, (value, kind) in kinds.items():
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"its {name} is {value!r}")
    asked = DeepConfig if deep else Config
    for name in {field.name for field in dataclasses.fields(asked)} & set(config):
        as_option(name, config[name], asked)
    if "window" not in config or not np.isfinite(expert_return):
        raise ValueError("it has no window, or no expert")


def read(folder: Path) -> StoredRun:
    """One finished run, checked."""
    request = store.read_json(folder / "config.json", "The run's")
    told = summary(folder)
    request.pop("versions", None)
    if request.get("method") == "sac":
        raise UserError(f"The run {folder} is an expert's, which imitates nobody.")
    try:
        rows = metrics(folder)
        regret = None
        if "regret" in rows[0]:
            terms = rows[0]["regret"]
            regret = {t: np.array([row["regret"][t] for row in rows]) for t in terms}
        run = StoredRun(
            folder=folder,
            request=request,
            summary=told,
            interactions=np.array([row["interactions"] for row in rows], dtype=int),
            updates=np.array([row["updates"] for row in rows], dtype=int),
            returns=np.array([row["return"] for row in rows], dtype=float),
            regret=regret,
        )
        _check_kinds(request, run.expert_return)
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"The run {folder} is not one of ours or is damaged ({reason}).") from None
    return run
