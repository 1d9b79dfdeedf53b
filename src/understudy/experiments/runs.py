"""Runs on disk. A run's folder holds

- `config.json`: what was asked, which is the run's identity, and the versions that ran it;
- `metrics.jsonl`: a line a mark, appended as the run goes: interactions, updates, return, regret,
  and the checksum of all that;
- `policy.safetensors`: the policy and the reward reached;
- `replay.safetensors`, where asked for: at each mark the visits and the mean reward, (marks, S, A);
- `done.json`: the summary, written last. A folder without it is a run that was stopped, or, where
  it has `failed.json` in its place, one that cannot go on, and why.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.resources
import json
import platform
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from understudy.core import files
from understudy.core.errors import UserError
from understudy.experiments import run_files, standing, store
from understudy.experiments.run_files import FAILED, MARKER
from understudy.experiments.standing import YOUNGER
from understudy.experiments.standing import failure as failure


def short(env: str) -> str:
    return re.sub(r"^understudy/(EmptyRoom-\d+x\d+)-v0$", r"\1", env)


def identity(request: Mapping[str, Any]) -> str:
    """A stable hash of what was asked: the same on every machine and in every version."""
    asked = {name: value for name, value in request.items() if name not in YOUNGER}
    canonical = json.dumps(asked, sort_keys=True, separators=(",", ":"), allow_nan=False)
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


@functools.cache
def libraries() -> dict[str, str]:
    """All that a run's numbers may depend on: `versions`, and what a checkpoint notes besides."""
    with_them = ("jaxlib", "numpy", "gymnasium", "mujoco")
    found = {d.name for d in importlib.metadata.distributions()} & set(with_them)
    others = {package: importlib.metadata.version(package) for package in sorted(found)}
    return {**versions(), **others, "python": platform.python_version()}


def versions_of(folder: Path) -> dict[str, str]:
    """The versions that a run's config notes."""
    noted = (run_files.read(folder / run_files.CONFIG) or {}).get("versions")
    return noted if isinstance(noted, dict) else {}


def playable(run: Path, named: str, given: str | None) -> str:
    """The environment to play a run in. Nothing that is loaded may run code, so its folder can name
    no module; the user can. Nor can it tell what was given in Python as an object."""
    if given is None and "given" in (run_files.read(run / run_files.CONFIG) or {}):
        raise UserError(
            f"The run {run} is of an environment that was given in Python, not by its name; if "
            f"'{named}' is the same, say --env {named}."
        )
    if given is None and named in ("MDP", "LinearMDP"):
        raise UserError(
            f"The run {run} is of an MDP that was given in Python, which no folder holds; use "
            f"understudy.load_policy({str(run)!r}) there."
        )
    if given is None and ":" in named:
        raise UserError(
            f"The run {run} is of '{named}', code outside Gymnasium; if you trust it, say "
            f"--env {named}."
        )
    return given or named


def kind(folder: Path) -> str:
    """Which kind of learner the run in a folder is of."""
    return kind_of(store.read_json(folder / "config.json", "The run's"))


def kind_of(config: Mapping[str, Any]) -> str:
    """The same from a run's config. Older ones do not say it, but have a method or none."""
    older = {"None": "tables", "counts": "tables", "linear": "features"}
    found = config.get("kind", older.get(str(config.get("method")), "networks"))
    if found not in ("tables", "features", "networks"):
        raise UserError(f"A run's config says that its kind is {found!r:.60}; there is none.")
    return found


def done(folder: Path) -> bool:
    """Whether the marker is there, and the files that it names are as it says."""
    return run_files.amiss(folder, run_files.read(folder / MARKER)) is None


def ended(folder: Path) -> bool:
    """Whether there is nothing left to do: the run is done, or it cannot go on."""
    return done(folder) or failure(folder) is not None


def summary(folder: Path) -> dict[str, Any]:
    """What the marker says of a finished run."""
    marker = run_files.read(folder / MARKER)
    why = run_files.amiss(folder, marker)
    if marker is not None and why is None:
        return marker
    if sentence := failure(folder):
        raise UserError(f"The run {folder} failed: {sentence}")
    why = "there is no done.json" if marker is None else why
    raise UserError(
        f"The run {folder} has not finished, or a file of it was cut short or changed: {why}."
    )


def fail(folder: Path, sentence: str, **about: Any) -> None:
    """The run cannot go on: its settings lead to NaN, and would again."""
    store.write_json(folder / FAILED, {"failed": sentence, **about})


def same(folder: Path, request: Mapping[str, Any]) -> bool:
    """Whether the run in `folder`, whatever became of it, was asked the same."""
    config = run_files.read(folder / run_files.CONFIG)
    return config is not None and standing.asks(config, request)


def begin(folder: Path, request: Mapping[str, Any]) -> None:
    """An empty run, in place of what a stopped one left; whatever else is there stays."""
    folder.mkdir(parents=True, exist_ok=True)
    if (stands := standing.of_run(folder, request)) != "new":
        raise UserError(
            f"The folder {folder} holds a run that is {stands} already; choose another (--out)."
        )
    standing.clear(folder)
    store.write_json(folder / run_files.CONFIG, {**request, "versions": versions()})


@contextlib.contextmanager
def recording(folder: Path, request: Mapping[str, Any]) -> Iterator[Path]:
    """A draft folder to write a run to that is known whole; what is written appears in `folder`
    when it is finished, or not at all."""
    store.still(folder)
    with store.room_for(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if (stands := standing.of_run(folder, request)) != "new":
            raise UserError(
                f"The folder {folder} holds a run that is {stands}; choose another (--out)."
            )
        standing.clear(folder)
        with store.together(folder) as draft:
            begin(draft, request)
            yield draft


def append(folder: Path, rows: list[dict[str, Any]]) -> int:
    """Add lines to the metrics, each with its checksum; returns how many bytes they are."""
    store.still(folder)
    with (folder / run_files.METRICS).open("ab") as file:
        return file.write(b"".join(map(run_files.line, rows)))


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of the metrics, checked; those of older versions have no checksum."""
    lines = files.text(folder / "metrics.jsonl", files.DATA).splitlines()
    rows = [json.loads(line) for line in lines]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("a line of its metrics.jsonl is not a JSON object")
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


def copy(source: Path, folder: Path) -> None:
    """A finished run's files to another folder, where there is no run yet."""
    summary(source)  # refuses what has not finished
    store.still(folder)
    with store.room_for(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if there := run_files.found(folder):
            raise UserError(f"The folder {folder} holds {there[0]} already; choose another.")
        with store.together(folder) as draft:
            for name in run_files.found(source):
                shutil.copyfile(source / name, draft / name)


def mark(folder: Path, summary: Mapping[str, Any], *, beside: Path | None = None) -> None:
    """The run is finished: its files count as they are, in its folder, or in a draft beside those
    of its folder."""
    listed = run_files.listing(*([] if beside is None else [beside]), folder)
    store.write_json(folder / MARKER, {**summary, **listed})


def tensors(path: Path, what: str) -> dict[str, np.ndarray]:
    if path.exists() and not path.is_file():
        raise UserError(f"{what} {path} cannot be read: it is no regular file.")
    try:
        return load_file(files.regular(path))
    except FileNotFoundError:
        raise UserError(f"{what} {path} does not exist.") from None
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{what} {path} cannot be read: {error}") from None


def folders(root: Path) -> Iterator[Path]:
    """Every folder at or below `root` that looks like a run, in order of name."""
    if not root.is_dir():
        raise UserError(f"{root} is not a folder of runs: there is no such folder.")
    for config in sorted(root.rglob("config.json")):
        yield config.parent
