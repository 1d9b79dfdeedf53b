"""stdout belongs to the command's result: whatever else is printed, by whomever, goes to stderr."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from understudy.core.errors import UserError

_results: list[Any] = []  # where the result goes while a command runs; None: nowhere


@contextlib.contextmanager
def reserved() -> Iterator[None]:
    """Only `write` reaches stdout: an environment's prints do not, nor do those of libraries that
    know nothing of Python's streams, nor those of processes started by us. Where stdout is the
    process's own, it stays so after this ends: what an environment prints as the process exits is
    no part of the result either."""
    closed = _fill_closed()
    real = sys.stdout
    ours = None if closed or real is None else real
    kept = None
    if ours is not None and ours is sys.__stdout__ and _number(ours) == 1:
        ours.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
        ours = os.fdopen(kept, "w", encoding=ours.encoding, errors="backslashreplace")
    _results.append(ours)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        _results.pop()
        if kept is None or ours is None:
            sys.stdout = real
        else:
            with contextlib.suppress(OSError):  # whoever read it has gone
                ours.close()


def result() -> Any:
    """Where a result is written to."""
    stream = _results[-1] if _results else sys.stdout
    if stream is None:
        raise UserError("stdout is closed, and the result has nowhere to go; send it to a file.")
    return stream


def open_one() -> Any:
    """Where the result goes, or stderr: for help, which is nobody's result."""
    return (_results[-1] if _results else sys.stdout) or sys.stderr


def write(text: str) -> None:
    """A result, at once."""
    stream = result()
    stream.write(text + "\n")
    stream.flush()


def _fill_closed() -> bool:
    """Give the closed ones of the three streams a place in nowhere: else the next file that is
    opened would take their number, and receive what is printed. Whether stdout was closed."""
    closed = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            closed.append(number)
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    return 1 in closed


def _number(stream: Any) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None
