"""A policy to keep and to use: a folder of `policy.json` and `policy.safetensors`.

`load(folder).predict(obs)` answers as Stable-Baselines3's policies do: `(action, state)`, in the
environment's own units, for one observation or for a batch of them. Nothing in the folder can run
code.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from understudy.core import files
from understudy.core.errors import UserError
from understudy.core.precision import double
from understudy.learners.deep import acting, checkpoint
from understudy.learners.deep import actor as actors
from understudy.learners.deep.absorbing import alive
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.scaling import Scaling

FORMAT = 1
MOST_LAYERS = 64
JSON, TENSORS = "policy.json", "policy.safetensors"


@dataclass(frozen=True)
class Policy:
    """An actor, its scaling, and the shapes of the spaces between which it stands."""

    actor: Actor
    scaling: Scaling
    env: str
    observation_shape: tuple[int, ...]
    action_shape: tuple[int, ...]
    absorbing: bool = False  # trained with the absorbing bit; see `absorbing`

    @double
    def predict(
        self,
        observation: np.ndarray,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        *,
        seed: int | None = None,
    ) -> tuple[np.ndarray | np.integer, Any]:
        """The action at an observation, or at each of a batch; `state` is handed back."""
        obs = np.asarray(observation)  # its scaling rounds it, not we
        shape = self.observation_shape
        if obs.shape != shape and obs.shape[1:] != shape:
            raise UserError(
                f"The observation has shape {obs.shape}; a policy of {self.env} takes {shape}, "
                f"or a batch of it."
            )
        batch = obs.reshape(-1, *shape)
        if deterministic:
            act = acting.deterministic(self.actor)
        else:
            seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
            act = acting.sampling(self.actor, jax.random.key(seed), 0)
        action = self.act(act, batch).reshape(len(batch), *self.action_shape)
        return (action[0] if obs.shape == shape else action), state

    def act(self, act: Callable[[np.ndarray], np.ndarray], obs: np.ndarray) -> np.ndarray:
        seen = alive(obs) if self.absorbing else obs
        chosen = np.asarray(act(self.scaling.obs(seen)))
        if not np.isfinite(chosen).all():
            raise UserError(
                f"The policy of {self.env} answers NaN: its weights are too large, or what it saw."
            )
        return self.scaling.decode(chosen)


def save(folder: Path, policy: Policy) -> None:
    """Write both files to `folder`."""
    net, scaling = policy.actor.net, policy.scaling
    about = {
        "format": FORMAT,
        "env": policy.env,
        "kind": "categorical" if scaling.discrete else "squashed gaussian",
        "observation_shape": list(policy.observation_shape),
        "action_shape": list(policy.action_shape),
        "observations": scaling.observations,
        "actions": scaling.actions,
        "hidden": [layer.w.shape[1] for layer in net.layers[:-1]],
        "absorbing": policy.absorbing,
    }
    border = {f"scaling.{name}": getattr(scaling, name) for name in ("mean", "std", "low", "high")}
    arrays = {f"actor{name}": x for name, x in checkpoint.named(policy.actor).items()}
    (folder / JSON).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    save_file({k: np.asarray(v, order="C") for k, v in (border | arrays).items()}, folder / TENSORS)


@double
def load(folder: str | Path) -> Policy:
    """Read a policy back, checked."""
    folder = Path(folder)
    about, arrays = _files(folder)
    try:
        if about["format"] != FORMAT:
            raise UserError(
                f"The policy in {folder} has format {about['format']!r}; this version of "
                f"understudy reads {FORMAT}."
            )
        discrete = _spaces(about)
        shapes = (tuple(about["observation_shape"]), tuple(about["action_shape"]))
        scaling = Scaling(**{n: arrays[f"scaling.{n}"] for n in ("mean", "std", "low", "high")},
                          discrete=discrete)  # fmt: skip
        _fits(scaling, about)
        if not all(np.isfinite(x).all() for x in arrays.values()):
            raise ValueError("an array has NaN or infinity")
        like = jax.eval_shape(
            lambda key: actors.actor(
                about["observations"],
                about["actions"],
                tuple(about["hidden"]),
                discrete=discrete,
                key=key,
            ),
            jax.random.key(0),
        )
        actor = checkpoint.fill(like, arrays, f"The policy in {folder}", prefix="actor")
        return Policy(actor, scaling, about["env"], *shapes, about["absorbing"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        raise UserError(f"The policy in {folder} is not one of ours ({reason}).") from None


def _files(folder: Path) -> tuple[Any, dict[str, np.ndarray]]:
    """Both files as they are."""
    try:
        about = json.loads(files.text(folder / JSON, 2**20))
        return about, load_file(files.regular(folder / TENSORS, 2**32))
    except FileNotFoundError as error:
        raise UserError(
            f"There is no policy in {folder}: {Path(error.filename or JSON).name} is missing."
        ) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
        raise UserError(f"The policy in {folder} cannot be read: {error}") from None


def _spaces(about: dict[str, Any]) -> bool:
    """Whether the actions are a choice. Every size is checked before anything is made of it."""
    hidden, shapes = about["hidden"], (about["observation_shape"], about["action_shape"])
    for listed in (hidden, *shapes):
        if type(listed) is not list or len(listed) > MOST_LAYERS:
            raise ValueError("its layers or its shapes are no short list")
    sizes = [*hidden, *shapes[0], *shapes[1], about["observations"], about["actions"]]
    if not all(type(n) is int and 0 < n <= 1_000_000 for n in sizes):
        raise ValueError("a size is not from 1 to 1,000,000")
    if type(about["absorbing"]) is not bool:
        raise ValueError("absorbing is neither true nor false")
    env = about["env"]
    if type(env) is not str or not 0 < len(env) <= 1_000 or not env.isprintable():
        raise ValueError("its env is no name")
    discrete = {"categorical": True, "squashed gaussian": False}[about["kind"]]
    seen, acted = (math.prod(shape) for shape in shapes)
    if seen + about["absorbing"] != about["observations"]:
        raise ValueError("its observations do not have the shape it says")
    if not discrete and acted != about["actions"]:
        raise ValueError("its actions do not have the shape it says")
    return discrete


def _fits(scaling: Scaling, about: dict[str, Any]) -> None:
    """The border has the sizes it says, and divides by nothing that is not positive."""
    actions = math.prod(about["action_shape"]) if scaling.discrete else about["actions"]
    for name in ("mean", "std", "low", "high"):
        x, size = getattr(scaling, name), about["observations"]
        size = size if name in ("mean", "std") else actions
        if x.shape != (size,) or x.dtype not in (np.float32, np.float64):
            raise ValueError(f"scaling.{name} is {x.dtype}{x.shape}, not of {size} numbers")
        if not (np.abs(x) <= 1e30).all():
            raise ValueError(f"scaling.{name} has NaN, or a number beyond 1e30")
    if not (scaling.std > 1e-30).all():
        raise ValueError("scaling.std is not positive")
    ordered = scaling.low <= scaling.high if scaling.discrete else scaling.low < scaling.high
    if not ordered.all():
        raise ValueError("scaling.low is not below scaling.high")
    ends = np.concatenate([scaling.low, scaling.high])
    if scaling.discrete and not (np.array_equal(ends, np.round(ends)) and abs(ends).max() < 2**31):
        raise ValueError("its choices are not numbered")
    if scaling.actions != about["actions"]:
        raise ValueError("scaling.low and scaling.high do not fit its actions")
