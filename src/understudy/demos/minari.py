"""Demonstrations as a Minari dataset, written and read by Minari itself.

A dataset is a folder, `ROOT/ID`, of `data/main_data.hdf5` and `data/metadata.json`; Minari looks
for ids below MINARI_DATASETS_PATH, or ~/.minari/datasets.
"""

import contextlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import gymnasium
import numpy as np

from understudy.demos.demonstrations import Demonstrations
from understudy.errors import UserError


def write(
    root: Path,
    id: str,
    demos: Demonstrations,
    env: gymnasium.Env,
    *,
    algorithm: str,
    description: str,
    seeds: Sequence[int],
) -> Path:
    """Write `ROOT/ID`, in place of a dataset of that name, and return its folder."""
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
                seeds,
                strict=True,
            )
        )
    ]
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".draft-") as draft:
        with _datasets_at(Path(draft).resolve()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it would like an e-mail address
            minari.create_dataset_from_buffers(
                id,
                episodes,
                env=env,
                algorithm_name=algorithm,
                description=description,
                author="understudy",
            )
        if (root / id).exists():
            shutil.rmtree(root / id)
        (root / id).parent.mkdir(parents=True, exist_ok=True)
        (Path(draft) / id).rename(root / id)
    return root / id


def read(source: str | Path) -> Demonstrations:
    """A dataset by its folder, or by its id where Minari keeps its own."""
    import minari
    from minari.storage.datasets_root_dir import get_dataset_path

    folder = Path(source) if Path(source).is_dir() else Path(get_dataset_path(str(source)))
    data = folder / "data" if (folder / "data").is_dir() else folder
    try:
        metadata = json.loads((data / "metadata.json").read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"'{source}' is neither a Minari dataset's folder nor the id of a local one ({error})."
        ) from None
    if not isinstance(metadata, dict) or not {"observation_space", "action_space"} <= set(metadata):
        # Minari would make the environment to find out, and so run code that the file names.
        raise UserError(f"The Minari dataset {source} does not say what its spaces are.")
    try:
        episodes = list(minari.MinariDataset(data).iterate_episodes())
        if not all(isinstance(e.observations, np.ndarray) for e in episodes):
            raise ValueError("observations are not plain arrays; flatten them first")
        return Demonstrations(
            observations=[np.asarray(e.observations) for e in episodes],
            actions=[np.asarray(e.actions) for e in episodes],
            rewards=[np.asarray(e.rewards, float) for e in episodes],
            terminated=[bool(e.terminations[-1]) for e in episodes],
        )
    except UserError:
        raise
    except Exception as error:  # Minari, HDF5 and JSON each have their own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"The Minari dataset {source} cannot be read: {reason}") from None


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
