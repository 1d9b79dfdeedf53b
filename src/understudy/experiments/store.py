"""Where results go: folders whose files appear whole or not at all."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from understudy.errors import UserError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


class Occupied(UserError):
    """Another process is at work there."""


@contextlib.contextmanager
def output_folder(path: Path) -> Iterator[Path]:
    """Make `path` ready to be written, before any work is spent; if the work then fails, take
    away what was made for it."""
    made = []
    try:
        for parent in [*reversed(path.parents), path]:
            if not parent.exists():
                parent.mkdir()
                made.append(parent)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        for folder in reversed(made):
            folder.rmdir()
        raise UserError(
            f"Cannot write to the output folder {path}: {error.strerror}; choose another."
        ) from None
    try:
        yield path
    except BaseException:
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # not empty: something was finished in it
                folder.rmdir()
        raise


@contextlib.contextmanager
def workplace(path: Path) -> Iterator[Path]:
    """An output folder in which this process is the only one at work. The lock is on the folder
    itself and goes with the process, however that ends."""
    with output_folder(path), contextlib.ExitStack() as stack:
        if fcntl is not None:
            place = os.open(path, os.O_RDONLY)
            stack.callback(os.close, place)
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Occupied(
                    f"Another process is at work in {path}; wait for it, or choose --out."
                ) from None
            except OSError:  # a file system without locks
                pass
        yield path


@contextlib.contextmanager
def room_for(folder: Path) -> Iterator[None]:
    """Around what is written to a folder: a full disk is the user's to mend."""
    try:
        yield
    except (OSError, SafetensorError) as error:  # safetensors wraps the system's errors
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(
            f"Cannot write to {folder}: {reason}; make room, then give the same command again."
        ) from None


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary name to write to, renamed to `path` once complete."""
    # The suffix stays: writers such as matplotlib choose the format by it.
    draft = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def together(folder: Path, names: tuple[str, ...]) -> Iterator[Path]:
    """A draft folder to write `names` to; those written move to `folder` once all are complete, in
    that order."""
    for name in names:
        if (folder / name).is_dir():
            raise UserError(f"{folder / name} is a folder, where a file is to be written.")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".draft-") as draft:
        yield Path(draft)
        for name in names:
            if (Path(draft) / name).exists():
                (Path(draft) / name).replace(folder / name)
            else:
                (folder / name).unlink(missing_ok=True)


def plain(document: Mapping[str, Any]) -> dict[str, Any]:
    """As it would come back from JSON: lists for tuples."""
    return json.loads(json.dumps(document))


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    with whole(path) as draft:
        draft.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")


def read_json(path: Path, what: str) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{what} {path} does not exist.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{what} {path} cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise UserError(f"{what} {path} is not a JSON object.")
    return document
