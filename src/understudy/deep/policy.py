"""A policy to keep and to use: a folder of `policy.json` and `policy.safetensors`.

`load(folder).predict(obs)` answers as Stable-Baselines3's policies do: `(action, state)`, in the
environment's own units, for one observation or for a batch of them. Nothing in the folder can run
code.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from understudy.deep import acting, checkpoint
from understudy.deep import actor as actors
from understudy.deep.absorbing import alive
from understudy.deep.actor import Actor
from understudy.deep.scaling import Scaling
from understudy.errors import UserError

FORMAT = 1
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
        obs = np.asarray(observation, np.float32)
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
        return self.scaling.decode(act(self.scaling.obs(seen)))


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
    (folder / JSON).write_text(json.dumps(about, indent=2) + "\n")
    save_file({k: np.asarray(v, order="C") for k, v in (border | arrays).items()}, folder / TENSORS)


def load(folder: str | Path) -> Policy:
    """Read a policy back, checked."""
    folder = Path(folder)
    try:
        about = json.loads((folder / JSON).read_text())
        arrays = load_file(folder / TENSORS)
    except FileNotFoundError as error:
        raise UserError(
            f"There is no policy in {folder}: {Path(error.filename or JSON).name} is missing."
        ) from None
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        raise UserError(f"The policy in {folder} cannot be read: {error}") from None
    try:
        if about["format"] != FORMAT:
            raise UserError(
                f"The policy in {folder} has format {about['format']!r}; this version of "
                f"understudy reads {FORMAT}."
            )
        sizes = [*about["hidden"], about["observations"], about["actions"]]
        if not all(type(n) is int and 0 < n <= 1_000_000 for n in sizes):
            raise ValueError(f"sizes are {sizes}")
        discrete = {"categorical": True, "squashed gaussian": False}[about["kind"]]
        shapes = (tuple(about["observation_shape"]), tuple(about["action_shape"]))
        scaling = Scaling(**{n: arrays[f"scaling.{n}"] for n in ("mean", "std", "low", "high")},
                          discrete=discrete)  # fmt: skip
        fits = scaling.observations == about["observations"] and scaling.actions == about["actions"]
        if not fits or not all(np.isfinite(x).all() for x in arrays.values()):
            raise ValueError("its arrays do not fit, or are not finite")
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
        return Policy(actor, scaling, str(about["env"]), *shapes, bool(about["absorbing"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"The policy in {folder} is not one of ours ({reason}).") from None
