"""Demonstrations in a plain `.npz`: episodes one after another, no pickle.

Arrays: `observations` (each episode has length + 1 of them, the last one final), `actions`,
`rewards`, `terminations`, `truncations`, `lengths`.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from understudy.demos.demonstrations import Demonstrations
from understudy.errors import UserError

ANY = "fiub"  # the kinds of numbers
NEEDED = {"observations": ANY, "actions": ANY, "rewards": "fiu", "terminations": "b",
          "lengths": "iu"}  # fmt: skip


def read(path: str | Path) -> Demonstrations:
    """Episodes from our own format, a few plain arrays."""
    arrays = load(Path(path), NEEDED, flat=("rewards", "terminations", "lengths"))
    lengths = arrays["lengths"].astype(np.int64)
    if len(lengths) == 0 or (lengths < 1).any():
        raise UserError(f"Demonstrations file {path} has no episode, or one without a step.")
    total = int(lengths.sum())
    expected = {
        "observations": total + len(lengths),
        "actions": total,
        "rewards": total,
        "terminations": total,
    }
    for name, count in expected.items():
        if len(arrays[name]) != count:
            raise UserError(
                f"Demonstrations file {path} has {len(arrays[name])} {name}; its lengths, "
                f"{total} steps in {len(lengths)} episodes, call for {count}."
            )
    ends = np.cumsum(lengths)
    return Demonstrations(
        observations=np.split(arrays["observations"], np.cumsum(lengths + 1)[:-1]),
        actions=np.split(arrays["actions"], ends[:-1]),
        rewards=np.split(arrays["rewards"], ends[:-1]),
        terminated=[bool(arrays["terminations"][end - 1]) for end in ends],
    )


def load(path: Path, needed: Mapping[str, str], flat: Collection[str]) -> dict[str, np.ndarray]:
    """The arrays that are needed, of the kinds that they must be; the others are never looked at,
    for some writers pickle them."""
    if not path.exists():
        raise UserError(f"Demonstrations file {path} does not exist.")
    try:
        # Opened here: NumPy leaves a file open that is no archive.
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in needed if name in file}
    except Exception as error:  # NumPy, zip and zlib each have their own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"Demonstrations file {path} is not a readable .npz: {reason}") from None
    for name, kinds in needed.items():
        if name not in arrays:
            raise UserError(
                f"Demonstrations file {path} lacks the array '{name}'; "
                f"it needs {', '.join(needed)}."
            )
        array = arrays[name]
        if array.dtype.kind not in kinds or array.ndim < 1 or (name in flat and array.ndim != 1):
            raise UserError(
                f"Demonstrations file {path} has '{name}' of type {array.dtype} and shape "
                f"{array.shape}, which it cannot be."
            )
    return arrays


def holds(path: Path, names: Collection[str]) -> bool:
    """Whether a file has all these arrays."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return isinstance(file, np.lib.npyio.NpzFile) and set(names) <= set(file.files)
    except Exception:  # the reader tells what is wrong
        return False


def write(path: str | Path, demos: Demonstrations) -> None:
    """Episodes one after another, with their lengths."""
    lengths = np.array([len(a) for a in demos.actions])
    last = np.zeros(lengths.sum(), dtype=bool)
    last[np.cumsum(lengths) - 1] = True
    terminations = last & np.repeat(demos.terminated, lengths)
    np.savez_compressed(
        path,
        observations=np.concatenate(demos.observations),
        actions=np.concatenate(demos.actions),
        rewards=np.concatenate(demos.rewards),
        terminations=terminations,
        truncations=last & ~terminations,
        lengths=lengths,
    )
