"""Demonstrations to a file or a folder, whole or not at all."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Literal

import gymnasium

from understudy.core import extras
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.demos import csv, d4rl, npz, robomimic, sb2, trajectories

Format = Literal["npz", "csv", "sb2", "d4rl", "robomimic", "imitation", "minari", "minari-arrow"]
FILES = {"npz": npz.write, "csv": csv.write, "sb2": sb2.write}
HDF5 = ("d4rl", "robomimic")


def write(
    target: str | Path,
    demos: Demonstrations,
    format: Format | None = None,
    env: gymnasium.Env | None = None,
) -> Path:
    """Write in a format, or in the one that the name of the target suggests: `.npz`, `.csv`, or a
    folder, which is a Minari dataset. What is there already stays. The environment is named in
    datasets that say of what they are."""
    target = Path(target)
    chosen = format or {".npz": "npz", ".csv": "csv", "": "minari"}.get(target.suffix)
    if chosen is None:
        raise UserError(f"{target} ends in no known format; give --format.")
    if chosen in HDF5 and target.suffix not in (".hdf5", ".h5"):
        raise UserError(f"A file of the format {chosen} ends in .hdf5; {target} does not.")
    if chosen in FILES and target.suffix not in (".npz", ".csv"):
        raise UserError(f"A file of the format {chosen} ends in .npz or .csv; {target} does not.")
    if (target.suffix == ".csv") != (chosen == "csv") and target.suffix:
        raise UserError(f"{target} does not fit the format {chosen}; name it otherwise.")
    if target.exists():
        raise UserError(f"{target} exists already; give another name, or remove it.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".draft-") as draft:
        made = Path(draft) / f"demos{target.suffix}"
        if chosen in FILES:
            FILES[chosen](made, demos)
        elif chosen in HDF5:
            extras.refuse_missing(f"A file of the format {chosen}", "h5py")
            d4rl.write(made, demos) if chosen == "d4rl" else robomimic.write(made, demos, env)
        elif chosen == "imitation":
            trajectories.write(made, demos)
        else:
            from understudy.demos import minari  # slow to import

            arrow = chosen == "minari-arrow"
            made = minari.write(Path(draft), "demos/all-v0", demos, env, arrow=arrow)
        (shutil.move if made.is_dir() else os.replace)(made, target)
    return target
