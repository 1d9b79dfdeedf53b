"""What in a run's folder is understudy's own: the files that a run may hold, known by name, and
what it calls them while they are being written. Nothing else is ever deleted, replaced or moved.

A draft is `.PID.NAME`, where NAME is one of those files, or `run`: a folder that holds all files of
the end of a run, which move to their places one by one, the marker last. So a process that is
killed leaves files that can be accounted for: by the marker, by the marker in such a draft, or,
where they are lines of metrics, by the checksum of each.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from understudy.core.errors import UserError

CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.jsonl", "checkpoint.safetensors"
MARKER, FAILED = "done.json", "failed.json"
RESULTS = ("policy.json", "policy.safetensors", "reward.safetensors", "replay.safetensors")
NAMES = (CONFIG, METRICS, *RESULTS, CHECKPOINT, FAILED, MARKER)  # in the order of their writing
LISTED = (METRICS, *RESULTS)  # those that a marker names
DATASET = ("data/main_data.hdf5", "data/metadata.json")  # of an expert's demonstrations
DATASETS = "demos/understudy/*/expert-v0"
SHARED = ("namespace_metadata.json",)  # Minari's, in a draft alone
DRAFT = re.compile(r"\.\d+\.(run|" + "|".join(map(re.escape, NAMES)) + ")")


class Damaged(UserError):
    """A run that cannot be gone on with, and that nobody but its owner may throw away."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(
            f"The run in {folder} is damaged: {why}; put that right, or begin anew with --restart, "
            f"which moves the run's own files into a dated folder beside it."
        )


def found(folder: Path) -> list[str]:
    """Which of a run's files are there. A link, or a folder of such a name, is nobody's that we
    know."""
    names = [name for name in NAMES if os.path.lexists(folder / name)]
    for name in names:
        if not stat.S_ISREG((folder / name).lstat().st_mode):
            raise UserError(
                f"{folder / name} is a folder or a link, where a file is to be written; choose "
                f"another --out."
            )
    return names


def datasets(folder: Path) -> list[str]:
    """The files of an expert's demonstrations that are there, by their paths in the folder."""
    within = ("demos", "demos/understudy", "demos/understudy/*", DATASETS, f"{DATASETS}/data")
    for place in (path for pattern in within for path in folder.glob(pattern)):
        if place.is_symlink():
            raise UserError(f"{place} is a link, where a folder is to be; choose another --out.")
    places = [place.relative_to(folder) for place in folder.glob(DATASETS)]
    listed = [str(place / name) for place in sorted(places) for name in DATASET]
    return [name for name in listed if (folder / name).is_file()]


# --- drafts --------------------------------------------------------------------------------------


def drafts(folder: Path) -> list[Path]:
    """What killed processes were writing."""
    return [path for path in sorted(folder.iterdir()) if DRAFT.fullmatch(path.name)]


def remove_drafts(folder: Path) -> None:
    """Whoever calls this is the only one at work in the folder."""
    for path in drafts(folder):
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink()


def remove_tree(draft: Path) -> None:
    """A draft folder, but for what somebody else may have put there."""
    known = {*NAMES, *SHARED, *(Path(name).name for name in DATASET)}
    for root, _, files in os.walk(draft, topdown=False):
        for name in files:
            if name in known or DRAFT.fullmatch(name):
                (Path(root) / name).unlink()
        with contextlib.suppress(OSError):  # not empty
            Path(root).rmdir()


def unfinished(folder: Path) -> Mapping[str, Any] | None:
    """The marker of an end that was being written when the process was killed."""
    for path in drafts(folder):
        marker = read(path / MARKER) if path.name.endswith(".run") else None
        if marker is not None:
            return marker
    return None


# --- accounting for files ------------------------------------------------------------------------


def read(path: Path) -> dict[str, Any] | None:
    """A JSON object; None where there is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def digest(path: Path) -> str:
    """Tells the content of two files apart."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def listing(*folders: Path) -> dict[str, dict[str, Any]]:
    """What a marker says of the files of a run; a later folder's stand for an earlier one's."""
    places = {name: f / name for f in folders for name in LISTED if (f / name).is_file()}
    files = {name: place.stat().st_size for name, place in sorted(places.items())}
    return {"files": files, "sums": {name: digest(places[name]) for name in files}}


def amiss(folder: Path, marker: Mapping[str, Any] | None) -> str | None:
    """Why the marker does not account for what is in the folder; None if it does. Markers of older
    versions have sizes only, and may name files of others, which do not matter."""
    files, sums = (marker or {}).get("files"), (marker or {}).get("sums", {})
    if not isinstance(files, dict) or not isinstance(sums, dict) or METRICS not in files:
        return f"its {MARKER} is not one that understudy wrote"
    for name in [name for name in LISTED if name in files]:
        if why := _differs(folder / name, files[name], sums.get(name)):
            return why
    return None


def accounted(folder: Path, name: str, marker: Mapping[str, Any] | None) -> bool:
    """Whether a marker that was being written knows this file as it is."""
    files, sums = (marker or {}).get("files"), (marker or {}).get("sums")
    if not isinstance(files, dict) or not isinstance(sums, dict) or name not in files:
        return False
    return _differs(folder / name, files[name], sums.get(name)) is None


def _differs(path: Path, size: Any, known: Any) -> str | None:
    try:
        there = path.stat().st_size
        if type(size) is not int or there != size:
            return f"{path.name} has {there:,} bytes, and its {MARKER} says {size!r}"
        if known is not None and digest(path) != known:
            return f"{path.name} cannot be read as it was written, for it was changed since"
    except OSError:
        return f"{path.name} is missing"
    return None


# --- metrics -------------------------------------------------------------------------------------


def line(row: Mapping[str, Any]) -> bytes:
    """A row of the metrics, with its checksum."""
    body = json.dumps(row, allow_nan=False)
    return f'{body[:-1]}, "crc32": {crc32(body.encode())}}}\n'.encode()


def written(metrics: bytes) -> bool:
    """Whether these are rows as we write them, the last of them perhaps in part."""
    *whole, part = metrics.split(b"\n")
    first = b'{"interactions": '
    return all(map(_is_ours, whole)) and (part.startswith(first) or first.startswith(part))


def _is_ours(text: bytes) -> bool:
    try:
        row = json.loads(text)
        row.pop("crc32")
        return line(row) == text + b"\n"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


# --- moving aside --------------------------------------------------------------------------------


def move_aside(folder: Path, to: Path, names: list[str]) -> None:
    """Move a run's files to another folder. All are there before the first is gone from here, so a
    kill loses none; what then is left here is less and less of a run, its config last."""
    order = [MARKER, FAILED, CHECKPOINT, *RESULTS, METRICS, CONFIG]
    here = [name for name in order if name in names]
    here = [*here[:-1], *(name for name in names if name not in order), *here[-1:]]
    try:
        for name in reversed(here):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            _copy(folder / name, to / name)
    except OSError:
        shutil.rmtree(to)  # copies, in a folder made for them
        raise
    for name in here:
        (folder / name).unlink()
        for parent in _between(folder, name):
            with contextlib.suppress(OSError):  # holds something else
                parent.rmdir()


def _between(folder: Path, name: str) -> Iterator[Path]:
    """The folders of a file below the run's, from the inside."""
    yield from [folder / parent for parent in Path(name).parents][:-1]


def _copy(source: Path, target: Path) -> None:
    """The same file under another name, or where that cannot be, a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
