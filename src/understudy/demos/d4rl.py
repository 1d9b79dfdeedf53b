"""Demonstrations as D4RL keeps them: one HDF5 file of steps, one after another.

Arrays: `observations`, `actions`, `rewards`, `terminals` (the task ended the episode in that step)
and `timeouts` (it was cut off there), as rail-berkeley/d4rl's `offline_env.py` reads them; in most
files `next_observations` as well. Its groups `infos` and `metadata` are not looked at.

- Without `next_observations` the last observation stands in for the final one.
- The oldest files have no `timeouts`. Where they have `next_observations`, an episode is cut off
  where the next observation is not the one that follows; otherwise such a file is refused.
- Steps after the last end are of an episode that the file does not finish. They are left out, as
  D4RL's own `sequence_dataset` leaves them out.
"""

from pathlib import Path
from typing import Any

import numpy as np

from understudy.core.demonstrations import Demonstrations, finished
from understudy.core.errors import UserError
from understudy.demos import hdf5

WHAT = "A file of D4RL"
NAMES = ("observations", "actions", "rewards", "terminals")


def read(path: str | Path) -> Demonstrations:
    path = Path(path)
    with hdf5.opened(path, WHAT) as file:
        observations, actions = (hdf5.numbers(file, name, path) for name in NAMES[:2])
        rewards = hdf5.numbers(file, "rewards", path, flat=True)
        terminals = hdf5.marks(file, "terminals", path)
        after = None
        if "next_observations" in file:
            after = hdf5.numbers(file, "next_observations", path)
        arrays = {"actions": actions, "rewards": rewards, "terminals": terminals}
        arrays |= {} if after is None else {"next_observations": after}
        _refuse_uneven(path, len(observations), arrays)
        if after is not None and after.shape != observations.shape:
            raise UserError(
                f"Demonstrations file {path} has observations of shape {observations.shape} and "
                f"next_observations of shape {after.shape}."
            )
        cut = _cuts(file, path, observations, after)
        _refuse_uneven(path, len(observations), {"timeouts": cut})
    ends = np.flatnonzero(terminals | cut) + 1
    if not len(ends):
        raise UserError(
            f"Demonstrations file {path} says nowhere that an episode ends: its terminals and "
            f"timeouts are all false."
        )
    episodes = [np.split(x[: ends[-1]], ends[:-1]) for x in (observations, actions, rewards)]
    final = None if after is None else list(after[ends - 1])
    return Demonstrations(
        finished(episodes[0], final), episodes[1], episodes[2], terminals[ends - 1].tolist()
    )


def _cuts(file: Any, path: Path, observations: np.ndarray, after: np.ndarray | None) -> np.ndarray:
    """Where episodes were cut off, a mark a step."""
    if "timeouts" in file:
        return hdf5.marks(file, "timeouts", path)
    if after is None:
        raise UserError(
            f"Demonstrations file {path} has neither 'timeouts' nor 'next_observations', and so "
            f"does not say where episodes are cut off; use a newer version of the dataset."
        )
    apart = (after[:-1] != observations[1:]).reshape(len(after[:-1]), -1).any(1)
    return np.append(apart, False)


def _refuse_uneven(path: Path, steps: int, arrays: dict[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if len(array) != steps:
            raise UserError(
                f"Demonstrations file {path} has {steps} observations and {len(array)} {name}; "
                f"there must be as many of each."
            )


def write(path: str | Path, demos: Demonstrations) -> None:
    """With next observations, and so with every final one."""
    import h5py

    lengths = np.array([len(a) for a in demos.actions])
    last = np.zeros(lengths.sum(), dtype=bool)
    last[np.cumsum(lengths) - 1] = True
    terminals = last & np.repeat(demos.terminated, lengths)
    arrays = {
        "observations": np.concatenate([o[:-1] for o in demos.observations]),
        "actions": np.concatenate(demos.actions),
        "rewards": np.concatenate(demos.rewards),
        "terminals": terminals,
        "timeouts": last & ~terminals,
        "next_observations": np.concatenate([o[1:] for o in demos.observations]),
    }
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip")
