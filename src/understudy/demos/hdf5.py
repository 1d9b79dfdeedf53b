"""An HDF5 file is read only if all of it is in it.

Links can lead to other files, and datasets can keep their values in other files: a downloaded
dataset would so read whatever its user can read. Minari writes neither. Nor does it write soft
links, behind which one to another file can hide.
"""

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core import extras, files
from understudy.core.errors import UserError


def refuse_what_is_elsewhere(path: Path) -> None:
    """Refuse links other than to what is in the file, values kept in other files, and datasets
    that claim to be larger than any that is read. No link is followed to find out."""
    import h5py  # slow to import, and Minari's

    h5o: Any = importlib.import_module("h5py.h5o")  # compiled, and so unknown to type checkers

    with h5py.File(files.regular(path), "r") as file:
        known: set[int] = {h5o.get_info(file.id).addr}  # hard links can go in circles
        left: list[Any] = [file]
        size = 0
        while left:
            group = left.pop()
            for name in group:
                where = f"{group.name.rstrip('/')}/{name}"
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    raise UserError(f"{path} has a link at {where}, which is not followed.")
                thing = group[name]
                address = h5o.get_info(thing.id).addr
                if address in known:
                    continue
                known.add(address)
                if isinstance(thing, h5py.Group):
                    left.append(thing)
                elif isinstance(thing, h5py.Dataset):
                    if thing.is_virtual or thing.external:
                        raise UserError(
                            f"{path} keeps the values of {where} in other files, which are not "
                            f"opened; copy them into it."
                        )
                    size += thing.nbytes
                    files.bounded(size, files.DATA, f"What {path} holds, unpacked,")


SIGNATURE = b"\x89HDF\r\n\x1a\n"


def looks_so(path: Path) -> bool:
    """Whether a file begins as HDF5 does."""
    with contextlib.suppress(OSError, UserError), files.regular(path).open("rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE
    return False


@contextlib.contextmanager
def opened(path: Path, what: str) -> Iterator[Any]:
    """A file to be read, all of which is in it; whatever is wrong with it is one sentence."""
    extras.refuse_missing(what, "h5py")
    import h5py

    try:
        refuse_what_is_elsewhere(path)
        with h5py.File(path, "r") as file:
            yield file
    except FileNotFoundError:
        raise UserError(f"Demonstrations file {path} does not exist.") from None
    except UserError:
        raise
    except Exception as error:  # HDF5 and its filters have many
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"Demonstrations file {path} cannot be read: {reason}.") from None


def kept(path: Path) -> set[str]:
    """The names at its top; nothing where it cannot be read, of which the reader will tell."""
    extras.refuse_missing("An HDF5 file", "h5py")
    import h5py

    try:
        with h5py.File(files.regular(path), "r") as file:
            return set(file)
    except Exception:
        return set()


def numbers(group: Any, name: str, path: Path, *, flat: bool = False) -> np.ndarray:
    """An array of numbers; a flat one may be written as a column."""
    import h5py

    where = f"{group.name.rstrip('/')}/{name}"
    if not isinstance(found := group.get(name), h5py.Dataset):
        raise UserError(f"Demonstrations file {path} lacks the array '{where}'.")
    if found.dtype.kind not in "fiub" or found.ndim < 1:
        raise UserError(
            f"Demonstrations file {path} has '{where}' of type {found.dtype} and shape "
            f"{found.shape}, which it cannot be."
        )
    values = np.asarray(found[()])
    if flat and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if flat and values.ndim != 1:
        raise UserError(
            f"Demonstrations file {path} has '{where}' of shape {values.shape}; it is one number a "
            f"step."
        )
    return values


def marks(group: Any, name: str, path: Path) -> np.ndarray:
    """A true or false a step, or a 1 or 0."""
    values = numbers(group, name, path, flat=True)
    if not np.isin(values, (0, 1)).all():
        odd = values[~np.isin(values, (0, 1))][0]
        raise UserError(
            f"Demonstrations file {path} has '{name}' of {odd}; it is true or false, or 1 or 0."
        )
    return values.astype(bool)
