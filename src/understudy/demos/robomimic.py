"""Demonstrations as robomimic keeps them: one HDF5 file, a group an episode.

`data/demo_0`, `data/demo_1` … each have `actions`, `obs/NAME` (T of each) and usually
`next_obs/NAME`, `rewards` and `dones`; `data` says in its attributes `total` and `env_args` how
many steps there are and of what (robomimic.github.io, "Dataset Structure"). What is seen is named,
and becomes one vector. The simulator's `states` and the lists of `mask` are not looked at.

- Without `next_obs` the last observation stands in for the final one; without `rewards` they are
  zero.
- `dones` marks success in some files and the mere end in others, and may go on after the first
  success. So only the last one counts: an episode is terminated if it is marked there.
- Files straight from a simulator have `states` and no `obs`: robomimic's own
  `dataset_states_to_obs.py` makes observations of them.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from understudy.core.demonstrations import Demonstrations, finished
from understudy.core.errors import UserError
from understudy.demos import hdf5
from understudy.envs import named

WHAT = "A file of robomimic"
DEMO = re.compile(r"demo_(\d{1,9})")
FLAT = "flat"  # robomimic's own name for what a Gym environment shows
GYM = 2  # its number for Gym environments


def read(path: str | Path, keys: Sequence[str] = ()) -> Demonstrations:
    path = Path(path)
    with hdf5.opened(path, WHAT) as file:
        data: Any = file["data"]
        numbered = [(int(found[1]), name) for name in data if (found := DEMO.fullmatch(name))]
        episodes = [_episode(data[name], path, keys) for _, name in sorted(numbered)]
    if not episodes:
        raise UserError(f"Demonstrations file {path} has no episode 'data/demo_0'.")
    return Demonstrations(*map(list, zip(*episodes, strict=True)))


def _episode(
    demo: Any, path: Path, keys: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    if "obs" not in demo:
        raise UserError(
            f"Demonstrations file {path} has no observations in {demo.name}/obs; make some of its "
            f"simulator states with robomimic's dataset_states_to_obs.py."
        )
    actions = hdf5.numbers(demo, "actions", path)
    seen, (steps,) = _seen(demo["obs"], path, keys), actions.shape[:1]
    if len(seen) != steps or not steps:
        raise UserError(
            f"Demonstrations file {path} has {len(seen)} observations and {steps} actions in "
            f"{demo.name}; there must be as many of each, and one at least."
        )
    final = None
    if "next_obs" in demo:
        after = _seen(demo["next_obs"], path, keys)
        final = list(after[-1:])
    rewards = np.zeros(steps)
    if "rewards" in demo:
        rewards = hdf5.numbers(demo, "rewards", path, flat=True)
    ended = bool("dones" in demo and hdf5.marks(demo, "dones", path)[-1:].any())
    return finished([seen], final)[0], actions, rewards, ended


def _seen(group: Any, path: Path, keys: Sequence[str]) -> np.ndarray:
    """What is seen at each step, as a vector."""
    what = f"Demonstrations file {path}"
    names = named.chosen(what, sorted(group), keys)
    images = [name for name in group if named.is_picture(group[name].shape[1:], group[name].dtype)]
    others = [name for name in names if name not in images]
    named.refuse_pictures(what, [name for name in names if name in images], others)
    parts = {name: hdf5.numbers(group, name, path) for name in names}
    if len({len(part) for part in parts.values()}) != 1:
        raise UserError(f"{what} has not as many of each observation in {group.name}.")
    return named.joined(what, parts, keys)


def write(path: str | Path, demos: Demonstrations, env: gymnasium.Env | None = None) -> None:
    """As robomimic writes those of D4RL: the one observation is called 'flat'."""
    import h5py

    id = env.spec.id if env is not None and env.spec is not None else "unknown"
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["total"] = sum(len(a) for a in demos.actions)
        data.attrs["env_args"] = json.dumps({"env_name": id, "type": GYM, "env_kwargs": {}})
        for i, (o, a, r, ended) in enumerate(
            zip(demos.observations, demos.actions, demos.rewards, demos.terminated, strict=True)
        ):
            demo = data.create_group(f"demo_{i}")
            demo.attrs["num_samples"] = len(a)
            dones = np.zeros(len(a), np.int64)
            dones[-1] = ended
            arrays = {"actions": a, "rewards": r, "dones": dones, f"obs/{FLAT}": o[:-1],
                      f"next_obs/{FLAT}": o[1:]}  # fmt: skip
            for name, array in arrays.items():
                demo.create_dataset(name, data=array)
