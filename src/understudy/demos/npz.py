"""Demonstrations in a plain `.npz`: episodes one after another, no pickle.

Arrays: `observations` (each episode has length + 1 of them, the last one final), `actions`,
`rewards`, `terminations`, `truncations`, `lengths`.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from understudy.core import files
from understudy.core.demonstrations import Demonstrations, ended
from understudy.core.errors import UserError

ANY = "fiub"  # the kinds of numbers
NEEDED = {"observations": ANY, "actions": ANY, "rewards": "fiu", "terminations": "b",
          "lengths": "iu"}  # fmt: skip
OPTIONAL = {"truncations": "b"}
NOTHING: Mapping[str, str] = {}


def read(path: str | Path) -> Demonstrations:
    """Episodes from our own format, a few plain arrays."""
    flat = ("rewards", "terminations", "lengths", "truncations")
    arrays = load(Path(path), NEEDED, flat=flat, optional=OPTIONAL)
    if len(arrays["lengths"]) == 0 or (arrays["lengths"] < 1).any():
        raise UserError(f"Demonstrations file {path} has no episode, or one without a step.")
    lengths = arrays["lengths"].tolist()  # as whole numbers, whose sum does not wrap
    total = sum(lengths)
    expected = {
        "observations": total + len(lengths),
        "actions": total,
        "rewards": total,
        "terminations": total,
        **({"truncations": total} if "truncations" in arrays else {}),
    }
    for name, count in expected.items():
        if len(arrays[name]) != count:
            raise UserError(
                f"Demonstrations file {path} has {len(arrays[name])} {name}; its lengths, "
                f"{total} steps in {len(lengths)} episodes, call for {count}."
            )
    ends = np.cumsum(lengths)
    marks = [
        np.split(arrays[name], ends[:-1]) if name in arrays else [None] * len(lengths)
        for name in ("terminations", "truncations")
    ]
    return Demonstrations(
        observations=np.split(
            arrays["observations"], np.cumsum([length + 1 for length in lengths])[:-1]
        ),
        actions=np.split(arrays["actions"], ends[:-1]),
        rewards=np.split(arrays["rewards"], ends[:-1]),
        terminated=[
            ended(terminations, truncations, f"Episode {i} of the demonstrations file {path}")
            for i, (terminations, truncations) in enumerate(zip(*marks, strict=True))
        ],
    )


def load(
    path: Path,
    needed: Mapping[str, str],
    flat: Collection[str],
    optional: Mapping[str, str] = NOTHING,
) -> dict[str, np.ndarray]:
    """The arrays that are needed, and those of the optional ones that are there, of the kinds that
    they must be; the others are never looked at, for some writers pickle them."""
    wanted = {**needed, **optional}
    try:
        # Opened here: NumPy leaves a file open that is no archive.
        with files.regular(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            unpacked = sum(about.file_size for about in file.zip.infolist())
            files.bounded(unpacked, files.DATA, f"Demonstrations file {path}, unpacked,")
            arrays = {name: file[name] for name in wanted if name in file}
    except FileNotFoundError:
        raise UserError(f"Demonstrations file {path} does not exist.") from None
    except UserError:
        raise
    except Exception as error:  # NumPy, zip and zlib each have their own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"Demonstrations file {path} is not a readable .npz: {reason}") from None
    for name, kinds in wanted.items():
        if name not in arrays:
            if name in optional:
                continue
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
        with files.regular(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
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
