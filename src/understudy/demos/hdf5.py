"""An HDF5 file is read only if all of it is in it.

Links can lead to other files, and datasets can keep their values in other files: a downloaded
dataset would so read whatever its user can read. Minari writes neither. Nor does it write soft
links, behind which one to another file can hide.
"""

import importlib
from pathlib import Path
from typing import Any

from understudy.core import files
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
