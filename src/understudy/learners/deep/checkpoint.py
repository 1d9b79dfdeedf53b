"""Checkpoints: any tree of arrays in one safetensors file, written whole or not at all, with a
checksum: a bit that flipped on the disk is noticed, not learned from."""

import hashlib
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from understudy.core import files
from understudy.core.errors import UserError

FORMAT = "2"  # 1 had no checksum
AGENT = "state.agent"  # of the arrays' names, those of networks and optimisers


def named(tree: Any) -> dict[str, np.ndarray]:
    """Each array of a tree by its path; keys as their data."""
    leaves, _ = jax.tree.flatten_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(_plain(leaf)) for path, leaf in leaves}


def save(path: Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    """To a draft's path; the caller moves it into place."""
    said = json.dumps(about, allow_nan=False)
    laid = {k: np.asarray(x, order="C") for k, x in arrays.items()}
    save_file(laid, path, {"format": FORMAT, "about": said, "checksum": checksum(laid, said)})


def checksum(arrays: dict[str, np.ndarray], said: str) -> str:
    """Of every array, its name and type, and of what is said of them."""
    digest = hashlib.blake2b(said.encode(), digest_size=16)
    for name, x in sorted(arrays.items()):
        digest.update(f"\0{name}\0{x.dtype}\0{x.shape}\0".encode())
        digest.update(x.data)
    return digest.hexdigest()


def load(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What was said of a checkpoint, and its arrays by path."""
    try:
        with safe_open(files.regular(path), framework="numpy") as file:
            told = file.metadata() or {}
            if told.get("format") != FORMAT:
                raise UserError(
                    f"The checkpoint {path} has format {told.get('format')!r}; this version of "
                    f"understudy reads {FORMAT!r}."
                )
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if checksum(arrays, told["about"]) != told["checksum"]:
            raise ValueError("its checksum does not fit; the disk, or a hand, has changed it")
        return json.loads(told["about"]), arrays
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise UserError(f"The checkpoint {path} cannot be read: {error}") from None


def networks(path: Path) -> dict[str, np.ndarray]:
    """Of a checkpoint, or of a file that `slim` wrote: the agent's networks and optimisers, which a
    run can begin with. What it practised is not among them."""
    _, arrays = load(path)
    found = {k.removeprefix(AGENT): x for k, x in arrays.items() if k.startswith(AGENT)}
    if not found:
        raise UserError(f"The checkpoint {path} has no networks to begin with.")
    return found


def slim(path: Path, out: Path) -> None:
    """A checkpoint without what was practised: small, and enough to begin with."""
    told, arrays = load(path)
    save(out, {k: x for k, x in arrays.items() if k.startswith(AGENT)}, told)


def fill(like: Any, arrays: dict[str, np.ndarray], where: str, prefix: str = "") -> Any:
    """A tree shaped like `like` with the arrays of a checkpoint."""

    def one(path: Any, leaf: Any) -> Any:
        name = prefix + jax.tree_util.keystr(path)
        wanted = _plain(leaf)
        found = arrays.get(name)
        if found is None or found.shape != wanted.shape or found.dtype != wanted.dtype:
            raise UserError(
                f"{where} does not fit: {name} is "
                f"{'missing' if found is None else f'{found.dtype}{found.shape}'}, not "
                f"{wanted.dtype}{wanted.shape}."
            )
        array = jnp.asarray(found)
        return jax.random.wrap_key_data(array) if _is_key(leaf) else array

    return jax.tree.map_with_path(one, like)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf
