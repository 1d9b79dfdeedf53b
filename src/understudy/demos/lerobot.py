"""Demonstrations as LeRobot keeps them: a folder of Parquet tables, a row a step, and JSON.

`meta/info.json` says what there is: `features`, each with its `dtype` and `shape`, `total_episodes`
and `total_frames`. The rows are in `data/chunk-000/`, a file an episode (`episode_000000.parquet`,
versions 2.0 and 2.1) or many episodes a file (`file-000.parquet`, version 3.0): both are read
alike, by `episode_index` and `frame_index`. What is seen is named `observation.…`, what is done
`action`; `next.reward` and `next.done` are there where they were known.

There is no final observation: the last one stands in for it. An episode is terminated if its last
`next.done` is true, and cut off if it is not, or where nothing is said. Films are never opened.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core import files
from understudy.core.demonstrations import Demonstrations, ended, finished, unrewarded
from understudy.core.errors import UserError
from understudy.demos import arrow
from understudy.envs import named

WHAT = "A dataset of LeRobot"
INFO = Path("meta") / "info.json"
SEEN, DONE, REWARD, OVER = "observation", "action", "next.reward", "next.done"
PLACE = ("episode_index", "frame_index")
PICTURES = ("image", "video")
NUMBERS = ("float", "int", "uint", "bool")


def holds(folder: Path) -> bool:
    """Whether a folder is such a dataset."""
    return (folder / INFO).is_file()


def read(folder: str | Path, keys: Sequence[str] = ()) -> Demonstrations:
    folder = Path(folder)
    what = f"The LeRobot dataset {folder}"
    try:
        info = json.loads(files.text(folder / INFO))
        features = info["features"]
        names = _names(what, features, keys)
        optional = [name for name in (REWARD, OVER) if name in features]
        columns = _columns(folder, [*names, DONE, *PLACE, *optional])
        return _episodes(what, info, columns, names)
    except UserError:
        raise
    except Exception as error:  # Parquet, JSON and the file system each have their own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{what} cannot be read: {type(error).__name__}: {reason}.") from None


def _names(what: str, features: dict[str, Any], keys: Sequence[str]) -> list[str]:
    """The names of what is seen, in their order."""
    seen = sorted(n for n in features if n == SEEN or n.startswith(f"{SEEN}."))
    images = [name for name in seen if features[name]["dtype"] in PICTURES]
    numbers = [name for name in seen if str(features[name]["dtype"]).startswith(NUMBERS)]
    names = named.chosen(what, sorted({*images, *numbers}), keys)
    named.refuse_pictures(what, [name for name in names if name in images], numbers)
    if not names:
        raise UserError(f"{what} has no observations; its features are {', '.join(features)}.")
    return names


def _columns(folder: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The columns of all its files, one below another."""
    pa = arrow.pyarrow(WHAT)
    import pyarrow.parquet

    found = sorted((folder / "data").glob("chunk-*/*.parquet"))
    if not found:
        raise ValueError("there are no files data/chunk-*/*.parquet")
    tables, size = [], 0
    for path in found:
        file = pyarrow.parquet.ParquetFile(files.regular(path))
        about = file.metadata
        size += sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        files.bounded(size, files.DATA, f"What {folder} holds, unpacked,")
        missing = set(names) - set(file.schema_arrow.names)
        if missing:
            raise ValueError(f"{path.name} lacks the column '{min(missing)}'")
        tables.append(file.read(columns=list(names)))
        tables[-1].validate(full=True)
    whole = pa.concat_tables(tables)
    return {name: arrow.dense(_plain(whole.column(name))) for name in names}


def _plain(column: Any) -> Any:
    """A column in one piece; of an extension of Arrow's types, what is beneath."""
    whole = column.combine_chunks()
    whole = whole.chunk(0) if hasattr(whole, "num_chunks") else whole
    return getattr(whole, "storage", whole)


def _episodes(
    what: str, info: dict[str, Any], columns: dict[str, np.ndarray], names: Sequence[str]
) -> Demonstrations:
    episode, frame = (columns[name].ravel() for name in PLACE)
    order = np.lexsort((frame, episode))
    episode, frame = episode[order], frame[order]
    starts = np.flatnonzero(np.diff(episode, prepend=-1))
    for noun, count, told in (
        ("episodes", len(starts), info.get("total_episodes")),
        ("frames", len(frame), info.get("total_frames")),
    ):
        if told is not None and told != count:
            raise UserError(f"{what} says that it has {told} {noun}, and {count} are there.")
    steps = np.arange(len(frame)) - np.repeat(starts, np.diff(starts, append=len(frame)))
    if (frame != steps).any():
        at = int(np.flatnonzero(frame != steps)[0])
        raise UserError(f"{what} has episode {episode[at]} without its frame {steps[at]}.")

    def split(values: np.ndarray) -> list[np.ndarray]:
        return np.split(values[order], starts[1:])

    shaped = {name: _shaped(columns[name], info["features"][name]) for name in (*names, DONE)}
    seen = named.joined(what, {name: shaped[name] for name in names}, names)
    actions, over = split(_numbers(shaped[DONE])), [False] * len(starts)
    if OVER in columns:
        over = [ended(x.ravel().astype(bool), None, f"Episode {i} of {what}")
                for i, x in enumerate(split(columns[OVER]))]  # fmt: skip
    rewards = unrewarded(actions)
    if REWARD in columns:
        rewards = split(columns[REWARD].reshape(len(frame)))
    return Demonstrations(finished(split(seen)), actions, rewards, over)


def _shaped(values: np.ndarray, feature: dict[str, Any]) -> np.ndarray:
    """A feature of one number is a plain column in the table."""
    return values.reshape(len(values), *map(int, feature["shape"]))


def _numbers(actions: np.ndarray) -> np.ndarray:
    """A column of whole numbers is of a choice, and has no axis."""
    return actions[:, 0] if actions.dtype.kind in "iu" and actions.shape[1:] == (1,) else actions
