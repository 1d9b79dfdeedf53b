"""Demonstrations in a plain `.csv`, for spreadsheets and other languages: a row a step.

Columns: `episode`; `observation`, or `observation_0`, `observation_1`, …; the same of `action`;
`reward`; `terminated` (1 in the last row of an episode that the task ended). The last row of each
episode is its final observation, with no action and no reward. Where a file has no such rows, the
last observation stands in for the final one; where it has no rewards, they are zero. Numbers
without a point are whole; all are written so that reading gives the same value back.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core import files
from understudy.core.demonstrations import Demonstrations, ended, finished, unrewarded
from understudy.core.errors import UserError

TRUE, FALSE = {"1", "1.0", "true"}, {"", "0", "0.0", "false"}


def read(path: str | Path) -> Demonstrations:
    path = Path(path)
    try:
        # Spreadsheets put a mark in front, which is no part of the first name.
        with files.regular(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            names = list(reader.fieldnames or ())
            seen, taken = _understood(names)
            return _read(list(reader), names, seen, taken)
    except FileNotFoundError:
        raise UserError(f"Demonstrations file {path} does not exist.") from None
    except UnicodeDecodeError:
        raise UserError(
            f"Demonstrations file {path} cannot be read: it is not in UTF-8; save it as that."
        ) from None
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"Demonstrations file {path} cannot be read: {error}.") from None


def _understood(names: list[str]) -> tuple[list[str], list[str]]:
    """The columns of the observation and of the action. Every column is one that we know, and
    there once: what is not understood might be data, and is not left out in silence."""
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise ValueError(f"it has the column '{twice[0]}' twice")
    seen, taken = _columns(names, "observation"), _columns(names, "action")
    if "episode" not in names:
        raise ValueError("it lacks the column 'episode'")
    known = {"episode", *seen, *taken, "reward", "terminated"}
    if other := [name for name in names if name not in known]:
        raise ValueError(
            f"it has the column '{other[0]}' beside {', '.join(n for n in names if n in known)}; "
            "leave it out, or number the columns from 0 without a gap"
        )
    return seen, taken


def _read(
    rows: list[dict[Any, Any]], names: list[str], seen: list[str], taken: list[str]
) -> Demonstrations:
    if not rows:
        raise ValueError("it has no rows")
    for i, row in enumerate(rows, start=2):
        if any(cell is None for cell in (*row, *row.values())):  # too many, too few
            raise ValueError(f"line {i} has not as many values as the first line has names")
    marks = [row["episode"] for row in rows]
    first = [i for i, mark in enumerate(marks) if i == 0 or mark != marks[i - 1]]
    if len(first) > len(set(marks)):
        raise ValueError("the rows of an episode are not one below another")
    episodes = [rows[i:j] for i, j in zip(first, [*first[1:], len(rows)], strict=True)]
    closed = [all(not episode[-1][name].strip() for name in taken) for episode in episodes]
    if any(closed) and not all(closed):
        raise ValueError("some episodes end with a row without an action, and some do not")
    final = closed[0]
    steps = [episode[:-1] if final else episode for episode in episodes]
    if any(not episode for episode in steps):
        raise ValueError("it has an episode without a step")
    observations, actions = _arrays(episodes, seen), _arrays(steps, taken)
    rewarded = "reward" in names
    return Demonstrations(
        observations=observations if final else finished(observations),
        actions=actions,
        rewards=[r.astype(float) for r in _arrays(steps, ["reward"])]
        if rewarded
        else unrewarded(actions),
        terminated=[
            ended(
                np.array([_truth(row.get("terminated", "")) for row in episode]),
                None,
                f"Episode {episode[0]['episode']}",
            )
            for episode in episodes
        ],
    )


def write(path: str | Path, demos: Demonstrations) -> None:
    if demos.observations[0].ndim > 2 or demos.actions[0].ndim > 2:
        raise UserError("A .csv holds numbers and vectors; write observations like these as .npz.")
    seen = _names("observation", demos.observations[0])
    taken = _names("action", demos.actions[0])
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["episode", *seen, *taken, "reward", "terminated"])
        for i, (o, a, r, ended) in enumerate(
            zip(demos.observations, demos.actions, demos.rewards, demos.terminated, strict=True)
        ):
            for here, action, reward in zip(o[:-1], a, r, strict=True):
                out.writerow([i, *_written(here), *_written(action), *_written(reward), 0])
            out.writerow([i, *_written(o[-1]), *[""] * len(taken), "", int(ended)])


def _names(noun: str, array: np.ndarray) -> list[str]:
    return [noun] if array.ndim == 1 else [f"{noun}_{i}" for i in range(array.shape[1])]


def _columns(names: list[str], noun: str) -> list[str]:
    """`noun`, or `noun_0` up to the last."""
    if noun in names:
        return [noun]
    found = [name for name in (f"{noun}_{i}" for i in range(len(names))) if name in names]
    if not found or found != [f"{noun}_{i}" for i in range(len(found))]:
        raise ValueError(f"it lacks the column '{noun}', or '{noun}_0' and so on")
    return found


def _arrays(episodes: list[list[dict[str, str]]], columns: list[str]) -> list[np.ndarray]:
    """The columns of each episode, whole numbers if all of them are."""
    texts = [[[row[name] for name in columns] for row in episode] for episode in episodes]
    try:
        arrays = [np.array([[int(x) for x in row] for row in one], np.int64) for one in texts]
    except (ValueError, OverflowError):
        arrays = [np.array([[float(x) for x in row] for row in one]) for one in texts]
    flat = "_" not in columns[0]
    return [array[:, 0] if flat else array for array in arrays]


def _written(values: np.ndarray | np.generic) -> list[str]:
    return [repr(+x) for x in np.atleast_1d(values).tolist()]  # + makes 0 and 1 of truths


def _truth(text: str) -> bool:
    if text.strip().lower() not in TRUE | FALSE:
        raise ValueError(f"'terminated' is '{text}' in place of 0 or 1")
    return text.strip().lower() in TRUE
