"""Demonstrations as a Minari dataset, written and read by Minari itself.

A dataset is a folder, `ROOT/ID`, of `data/main_data.hdf5` and `data/metadata.json`; Minari looks
for ids below MINARI_DATASETS_PATH, or ~/.minari/datasets.
"""

import contextlib
import json
import os
import re
import shutil
import tempfile
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatten, flatten_space

from understudy.core import extras, files
from understudy.core.demonstrations import Demonstrations, ended
from understudy.core.errors import UserError
from understudy.demos import hdf5
from understudy.envs import named as names
from understudy.envs.guard import plain


def write(
    root: Path,
    id: str,
    demos: Demonstrations,
    env: gymnasium.Env | None = None,
    *,
    algorithm: str = "unknown",
    description: str = "",
    seeds: Sequence[int | None] | None = None,
    arrow: bool = False,
) -> Path:
    """Write `ROOT/ID`, in place of a dataset of that name, and return its folder. Without an
    environment, the spaces are those that hold what was shown."""
    extras.refuse_missing("A Minari dataset", "minari", "h5py")
    import minari
    from minari.data_collector import EpisodeBuffer

    episodes = [
        EpisodeBuffer(
            id=i,
            seed=seed,
            observations=list(o),
            actions=list(a),
            rewards=r.tolist(),
            terminations=[False] * (len(a) - 1) + [ended],
            truncations=[False] * (len(a) - 1) + [not ended],
        )
        for i, (o, a, r, ended, seed) in enumerate(
            zip(
                demos.observations,
                demos.actions,
                demos.rewards,
                demos.terminated,
                [None] * len(demos) if seeds is None else seeds,
                strict=True,
            )
        )
    ]
    if env is None:
        where: dict[str, Any] = {
            "observation_space": _space_of(demos.observations),
            "action_space": _space_of(demos.actions),
        }
    else:
        refuse_unwritable(env)
        where = {"env": env}
        if not named(env):
            where = {"observation_space": env.observation_space, "action_space": env.action_space}
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".draft-") as draft:
        with _datasets_at(Path(draft).resolve()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it would like an e-mail address
            minari.create_dataset_from_buffers(
                id,
                episodes,
                **where,
                algorithm_name=algorithm,
                description=description,
                author="understudy",
                data_format="arrow" if arrow else "hdf5",
            )
        if (root / id).exists():
            shutil.rmtree(root / id)
        (root / id).parent.mkdir(parents=True, exist_ok=True)
        (Path(draft) / id).rename(root / id)
    return root / id


def named(env: gymnasium.Env) -> bool:
    """Whether a dataset can say by name which environment it is of. One that is registered nowhere
    ('module:Class') has spaces alone: a dataset must not name code."""
    spec = env.spec
    if spec is None or spec.id not in gymnasium.registry:
        return False
    try:
        spec.to_json()
    except Exception:  # an entry point, or an argument, that is an object
        return False
    return True


def refuse_unwritable(env: gymnasium.Env) -> None:
    """Spaces that Minari has no words for are refused before anything is spent."""
    from minari.serialization import serialize_space

    for space in (env.observation_space, env.action_space):
        try:
            serialize_space(space)
        except Exception:  # its own, or of a space of the user's
            raise UserError(
                f"A Minari dataset cannot hold {plain(space)}; choose .npz, or another space."
            ) from None


def read(source: str | Path, keys: Sequence[str] = ()) -> Demonstrations:
    """A dataset by its folder, or by its id where Minari keeps its own. Of what is seen by name,
    only the `keys`, if any are given."""
    extras.refuse_missing("A Minari dataset", "minari", "h5py")
    import minari

    what = f"The Minari dataset {source}"
    data, metadata = _described(source)
    if not isinstance(metadata, dict) or not {"observation_space", "action_space"} <= set(metadata):
        # Minari would make the environment to find out, and so run code that the file names.
        raise UserError(f"{what} does not say what its spaces are.")
    try:
        for file in sorted(data.rglob("*.arrow")):
            _validate(file)
        for file in sorted(data.rglob("*.hdf5")):
            hdf5.refuse_what_is_elsewhere(file)
        dataset = minari.MinariDataset(data)
        space = _chosen(what, dataset.observation_space, keys)
        episodes = list(dataset.iterate_episodes())
        return Demonstrations(
            observations=[_flat(space, e.observations, len(e.rewards) + 1) for e in episodes],
            actions=[_plain(e.actions) for e in episodes],
            rewards=[np.asarray(e.rewards, float) for e in episodes],
            terminated=[
                ended(e.terminations, e.truncations, f"Episode {e.id} of {source}")
                for e in episodes
            ],
        )
    except UserError:
        raise
    except ImportError as error:
        if "pyarrow" not in str(error):
            raise
        raise UserError(
            f"{what} is in Arrow's format; install PyArrow with: pip install 'understudy[arrow]'"
        ) from None
    except Exception as error:  # Minari, HDF5 and JSON each have their own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{what} cannot be read: {reason}") from None


def has_names(source: str | Path) -> bool:
    """Whether what is seen in it is named."""
    try:
        return json.loads(_described(source)[1]["observation_space"])["type"] == "Dict"
    except (ValueError, TypeError, LookupError, RecursionError):
        return False


def _described(source: str | Path) -> tuple[Path, Any]:
    """Where a dataset keeps its data, and what it says of itself."""
    extras.refuse_missing("A Minari dataset", "minari", "h5py")
    from minari.storage.datasets_root_dir import get_dataset_path

    folder = Path(source) if Path(source).is_dir() else Path(get_dataset_path(str(source)))
    data = folder / "data" if (folder / "data").is_dir() else folder
    try:
        for file in sorted(data.rglob("*")) if data.is_dir() else ():
            if not file.is_dir():
                files.regular(file)
        return data, json.loads(files.text(data / "metadata.json"))
    except OSError:
        hint = f"; fetch it with: minari download {source}" if _is_id(str(source)) else ""
        raise UserError(
            f"There are no demonstrations '{source}': neither a file or folder in a known format, "
            f"nor a local Minari dataset of that id{hint}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"The Minari dataset {source} has damaged metadata: {error}.") from None


def _is_id(source: str) -> bool:
    """Whether it could be the id of a published dataset, such as mujoco/hopper/expert-v0."""
    return re.fullmatch(r"[\w-]+(/[\w-]+)+-v\d+", source) is not None


def _chosen(what: str, space: Any, keys: Sequence[str]) -> Any:
    """The part of what is seen that was chosen, in the order given; no image among it."""
    whole = space
    if isinstance(space, spaces.Dict) and keys:
        some = names.chosen(what, list(space.spaces), keys)
        space = spaces.Dict(OrderedDict((key, space[key]) for key in some))
    if isinstance(space, spaces.Dict | spaces.Tuple):
        names.refuse_pictures(what, names.pictured(space), names.other_than_pictures(whole))
    return space


def _validate(path: Path) -> None:
    """Arrow takes a file's word for where rows begin, and ends the process where that is wrong."""
    from pyarrow import OSFile, ipc

    with OSFile(str(path), "rb") as file:
        ipc.open_file(file).read_all().validate(full=True)


def _flat(space: Any, observations: Any, steps: int) -> np.ndarray:
    """Observations as arrays; of a dictionary or a tuple, one vector a step, as Gymnasium's own
    FlattenObservation makes them."""
    if isinstance(observations, np.ndarray):
        return observations
    parts = flatten_space(space)
    if not isinstance(parts, spaces.Box):
        raise ValueError(f"observations of {space} cannot be made a vector")
    return np.stack([np.asarray(flatten(space, _at(observations, t))) for t in range(steps)])


def _at(observations: Any, t: int) -> Any:
    if isinstance(observations, dict):
        return {name: _at(part, t) for name, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(_at(part, t) for part in observations)
    return observations[t]


def _plain(actions: Any) -> np.ndarray:
    if not isinstance(actions, np.ndarray):
        raise ValueError("actions are not plain arrays")
    return actions


def _space_of(episodes: Sequence[np.ndarray]) -> gymnasium.Space[Any]:
    """A space that holds all of it: numbers from 0, or a box without bounds."""
    one = episodes[0]
    if one.ndim == 1 and one.dtype.kind in "iu":
        least, most = (int(f([f(x) for x in episodes])) for f in (min, max))
        return spaces.Discrete(most - least + 1, start=least)
    shape = one.shape[1:] or (1,)
    bounds = (-np.inf, np.inf) if one.dtype.kind == "f" else (
        np.iinfo(one.dtype).min, np.iinfo(one.dtype).max
    )  # fmt: skip
    return spaces.Box(*bounds, shape, one.dtype.type)


@contextlib.contextmanager
def _datasets_at(root: Path) -> Iterator[None]:
    """Minari is told where its datasets are by the environment alone."""
    before = os.environ.get("MINARI_DATASETS_PATH")
    os.environ["MINARI_DATASETS_PATH"] = str(root)
    try:
        yield
    finally:
        if before is None:
            del os.environ["MINARI_DATASETS_PATH"]
        else:
            os.environ["MINARI_DATASETS_PATH"] = before
