"""Demonstrations as Stable-Baselines 2 and OAL keep them: one `.npz` of steps.

Arrays: `obs`, `actions`, `rewards`, `episode_starts` (true where an episode begins) and
`episode_returns`; numbers of a discrete space are columns. Whatever else is inside may be pickled,
and is not looked at.

The format has no final observations, and does not say how an episode ended. We write both in
arrays of our own, which its other readers ignore. Where they are missing, the last observation
stands in for the final one, and the episode counts as cut off: every (s, a) is kept, and one s' of
each episode is made up.
"""

from pathlib import Path

import numpy as np

from understudy.core.demonstrations import Demonstrations, finished
from understudy.core.errors import UserError
from understudy.demos import npz

NEEDED = {"obs": npz.ANY, "actions": npz.ANY, "rewards": "fiu", "episode_starts": "biuf"}
OURS = {"final_obs": npz.ANY, "terminated": "b"}


def read(path: str | Path) -> Demonstrations:
    path = Path(path)
    arrays = npz.load(path, NEEDED, flat=())
    steps = len(arrays["obs"])
    for name in NEEDED:
        count = len(arrays[name]) if name in ("obs", "actions") else arrays[name].size
        if count != steps:
            raise UserError(
                f"Demonstrations file {path} has {steps} obs and {count} {name}; "
                "there must be as many of each."
            )
    marks = arrays["episode_starts"].ravel()
    if not np.isin(marks, (0, 1)).all():
        raise UserError(
            f"Demonstrations file {path} has episode_starts of {marks[~np.isin(marks, (0, 1))][0]};"
            " they must be true or false, or 1 or 0."
        )
    starts = marks.astype(bool)
    if steps == 0 or not starts[0]:
        raise UserError(
            f"Demonstrations file {path} does not begin with an episode: its first episode_starts "
            "must be true."
        )
    cuts = np.flatnonzero(starts)[1:]
    observations = np.split(_numbers(arrays["obs"]), cuts)
    ended = [False] * len(observations)
    if npz.holds(path, OURS):
        ours = npz.load(path, OURS, flat=("terminated",))
        if any(len(array) != len(observations) for array in ours.values()):
            raise UserError(
                f"Demonstrations file {path} has {len(observations)} episodes, but not as many "
                "final_obs and terminated."
            )
        final, ended = _numbers(ours["final_obs"]), ours["terminated"].tolist()
        observations = finished(observations, list(final))
    else:
        observations = finished(observations)
    return Demonstrations(
        observations=observations,
        actions=np.split(_numbers(arrays["actions"]), cuts),
        rewards=np.split(arrays["rewards"].reshape(steps), cuts),
        terminated=ended,
    )


def write(path: str | Path, demos: Demonstrations) -> None:
    starts = [np.arange(len(a)) == 0 for a in demos.actions]
    np.savez_compressed(
        path,
        obs=_column(np.concatenate([o[:-1] for o in demos.observations])),
        actions=_column(np.concatenate(demos.actions)),
        rewards=np.concatenate(demos.rewards),
        episode_starts=np.concatenate(starts),
        episode_returns=demos.returns,
        final_obs=_column(np.stack([o[-1] for o in demos.observations])),
        terminated=np.array(demos.terminated),
    )


def _column(array: np.ndarray) -> np.ndarray:
    """Numbers one below another, as the format has them; vectors as they are."""
    return array[:, None] if array.ndim == 1 else array


def _numbers(array: np.ndarray) -> np.ndarray:
    """A column of whole numbers, which is how the format writes a discrete space, as numbers."""
    discrete = array.dtype.kind in "iu" and array.ndim == 2 and array.shape[1] == 1
    return array[:, 0] if discrete else array
