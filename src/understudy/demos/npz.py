"""Demonstrations in a plain `.npz`: episodes one after another, no pickle.

Arrays: `observations` (each episode has length + 1 of them, the last one final), `actions`,
`rewards`, `terminations`, `truncations`, `lengths`.
"""

import zipfile
from pathlib import Path

import numpy as np

from understudy.demos.demonstrations import Demonstrations
from understudy.errors import UserError

NEEDED = ("observations", "actions", "rewards", "terminations", "lengths")


def read(path: str | Path) -> Demonstrations:
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in NEEDED if name not in file]
            if missing:
                raise UserError(
                    f"Demonstrations file {path} lacks the array '{missing[0]}'; "
                    f"it needs {', '.join(NEEDED)}."
                )
            arrays = {name: file[name] for name in NEEDED}
    except FileNotFoundError:
        raise UserError(f"Demonstrations file {path} does not exist.") from None
    except UserError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"Demonstrations file {path} is not a readable .npz: {error}") from None
    lengths = arrays["lengths"].astype(int)
    total = int(lengths.sum())
    if (
        lengths.ndim != 1
        or (lengths < 1).any()
        or len(arrays["actions"]) != total
        or (len(arrays["observations"]) != total + len(lengths))
    ):
        raise UserError(
            f"Demonstrations file {path} has lengths that add up to {total} steps, "
            f"{len(arrays['actions'])} actions and {len(arrays['observations'])} observations; "
            f"expected {total} and {total + len(lengths)}."
        )
    ends = np.cumsum(lengths)
    return Demonstrations(
        observations=np.split(arrays["observations"], np.cumsum(lengths + 1)[:-1]),
        actions=np.split(arrays["actions"], ends[:-1]),
        rewards=np.split(arrays["rewards"], ends[:-1]),
        terminated=[bool(arrays["terminations"][end - 1]) for end in ends],
    )


def write(path: str | Path, demos: Demonstrations) -> None:
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
