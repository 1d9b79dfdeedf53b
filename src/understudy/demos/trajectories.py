"""Demonstrations as the `imitation` library saves trajectories: a Hugging Face dataset in a folder.

A row an episode: `obs` (T + 1 of them), `acts` (T), `terminal`, and `rews` (T) where they are
known. The column `infos` holds objects encoded by jsonpickle, which could name code to run; it is
never decoded, and written as empty objects. Tables are read and written by PyArrow alone, which is
the format beneath; `datasets`, with its own dependencies, is not needed.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core import files
from understudy.core.demonstrations import Demonstrations, unrewarded
from understudy.core.errors import UserError
from understudy.demos import arrow

WHAT = "A folder of trajectories of `imitation`"
STATE, INFO, TABLE = "state.json", "dataset_info.json", "data-00000-of-00001.arrow"


def holds(folder: Path) -> bool:
    """Whether a folder is such a dataset."""
    return (folder / STATE).is_file() and (folder / INFO).is_file()


def read(folder: str | Path) -> Demonstrations:
    folder = Path(folder)
    try:
        table = _table(folder)
        missing = {"obs", "acts", "terminal"} - set(table.column_names)
        if missing:
            raise ValueError(f"it lacks the column '{min(missing)}'")
        actions = [arrow.dense(row) for row in _rows(table, "acts")]
        return Demonstrations(
            observations=[arrow.dense(row) for row in _rows(table, "obs")],
            actions=actions,
            rewards=[arrow.dense(row).astype(float) for row in _rows(table, "rews")]
            if "rews" in table.column_names
            else unrewarded(actions),
            terminated=[_truth(row) for row in table.column("terminal")],
        )
    except UserError:
        raise
    except Exception as error:  # Arrow, JSON and the file system each have their own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"The trajectories in {folder} cannot be read: {reason}.") from None


def write(folder: str | Path, demos: Demonstrations) -> None:
    """Write into an empty folder."""
    pa = arrow.pyarrow(WHAT)
    folder = Path(folder)
    columns = {
        "obs": demos.observations,
        "acts": demos.actions,
        "infos": [["{}"] * len(a) for a in demos.actions],
        "terminal": demos.terminated,
        "rews": demos.rewards,
    }
    arrays = {name: pa.array([_listed(x) for x in rows]) for name, rows in columns.items()}
    for name in ("obs", "acts", "rews"):  # from lists of numbers it would widen float32
        one = columns[name][0]
        kind: Any = pa.from_numpy_dtype(one.dtype)
        for _ in range(one.ndim):
            kind = pa.list_(kind)
        arrays[name] = arrays[name].cast(kind)
    table = pa.table(arrays)
    folder.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(folder / TABLE), "wb") as file, pa.ipc.new_stream(file, table.schema) as to:
        to.write_table(table)
    features = {field.name: _feature(field.type) for field in table.schema}
    info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
    (folder / INFO).write_text(json.dumps(info, indent=2), encoding="utf-8")
    state = {
        "_data_files": [{"filename": TABLE}],
        "_fingerprint": "understudy",
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    (folder / STATE).write_text(json.dumps(state, indent=2), encoding="utf-8")


def _table(folder: Path) -> Any:
    pa = arrow.pyarrow(WHAT)
    listed = json.loads(files.text(folder / STATE))["_data_files"]
    names = [str(file["filename"]) for file in listed]
    if not names or any(Path(name).name != name for name in names):
        raise ValueError(f"{STATE} must name files of this folder, and names {names}")
    tables = []
    for name in names:
        with pa.OSFile(str(files.regular(folder / name)), "rb") as file:
            tables.append(pa.ipc.open_stream(file).read_all())
            tables[-1].validate(full=True)  # a bad offset would end the process, not the reading
    return pa.concat_tables(tables)


def _rows(table: Any, name: str) -> list[Any]:
    """The rows of a column of lists, each as an array of what is in it."""
    rows = [
        getattr(row, "value", row) for row in table.column(name)
    ]  # of an extension: its storage
    if any(getattr(row, "values", None) is None for row in rows):
        raise ValueError(f"its column '{name}' has an episode without a list")
    return [row.values for row in rows]


def _truth(scalar: Any) -> bool:
    value = scalar.as_py()
    if not isinstance(value, bool):
        raise ValueError(f"'terminal' is {value!r} in place of true or false")
    return value


def _listed(x: Any) -> Any:
    return x.tolist() if isinstance(x, np.ndarray) else x


def _feature(kind: Any) -> dict[str, Any]:
    """A column's type in words of `datasets`, of all its versions."""
    if hasattr(kind, "value_type"):
        return {"feature": _feature(kind.value_type), "_type": "Sequence"}
    names = {"float": "float32", "double": "float64"}
    return {"dtype": names.get(str(kind), str(kind)), "_type": "Value"}
