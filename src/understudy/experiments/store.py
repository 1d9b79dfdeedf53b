"""Where results go: folders whose files appear whole or not at all."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from understudy.core import files
from understudy.core.errors import UserError
from understudy.experiments import run_files

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

_held: dict[str, int] = {}  # the folders that this process is at work in, and a handle of each


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
                made.append((parent, parent.stat()))
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        _unmake(made)
        raise UserError(
            f"Cannot write to the output folder {path}: {error.strerror}; choose another."
        ) from None
    try:
        yield path
    except BaseException:
        _unmake(made)
        raise


def _unmake(made: list[tuple[Path, os.stat_result]]) -> None:
    """Remove folders that are still those that were made, and empty."""
    for folder, then in reversed(made):
        with contextlib.suppress(OSError):  # not empty: something was finished in it
            if os.path.samestat(folder.stat(), then):
                folder.rmdir()


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
                    f"Another process is at work in {path}; wait, or choose another folder (--out)."
                ) from None
            except OSError:  # a file system without locks
                pass
            stack.enter_context(_holding(path, place))
        yield path


@contextlib.contextmanager
def _holding(path: Path, place: int) -> Iterator[None]:
    name = os.path.abspath(path)
    _held[name] = place
    try:
        yield
    finally:
        del _held[name]


def still(folder: Path) -> None:
    """Refuse to write where this process is not at work any more: its folder, or one around it, was
    moved away, and whatever is there now is another's."""
    here = Path(os.path.abspath(folder))
    for place in (here, *here.parents):
        handle = _held.get(str(place))
        if handle is None:
            continue
        try:
            there = os.path.samestat(os.stat(place), os.fstat(handle))
        except OSError:
            there = False
        if not there:
            raise UserError(
                f"The folder {folder} was moved away while it was being written to; nothing more "
                f"is written; move it back, then give the same command again."
            )


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
    still(path.parent)
    try:
        yield draft
        still(path.parent)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def together(folder: Path) -> Iterator[Path]:
    """A draft folder to write files of a run to; they move to `folder` once all are complete, in
    the order of their writing, the marker last."""
    run_files.found(folder)  # refuses a folder or a link in the place of a file
    still(folder)
    draft = folder / f".{os.getpid()}.run"
    draft.mkdir()
    try:
        yield draft
        still(folder)
        for name in [*run_files.datasets(draft), *run_files.found(draft)]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).replace(folder / name)
    finally:
        run_files.remove_tree(draft)


def plain(document: Mapping[str, Any]) -> dict[str, Any]:
    """As it would come back from JSON: lists for tuples."""
    return json.loads(json.dumps(document))


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    with whole(path) as draft:
        draft.write_text(rendered(document), encoding="utf-8")


def rendered(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def read_json(path: Path, what: str) -> dict[str, Any]:
    try:
        document = json.loads(files.text(path))
    except FileNotFoundError:
        raise UserError(f"{what} {path} does not exist.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{what} {path} cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise UserError(f"{what} {path} is not a JSON object.")
    return document
