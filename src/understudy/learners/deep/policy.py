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

from understudy.core import files
from understudy.core.errors import UserError
from understudy.core.precision import double
from understudy.learners.deep import acting, checkpoint, stored_border
from understudy.learners.deep import actor as actors
from understudy.learners.deep.absorbing import alive
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.scaling import Scaling

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
        **stored_border.told(
            scaling,
            env=policy.env,
            shapes=(policy.observation_shape, policy.action_shape),
            hidden=[layer.w.shape[1] for layer in net.layers[:-1]],
            absorbing=policy.absorbing,
        ),
    }
    border = stored_border.arrays(scaling)
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
        scaling, shapes = stored_border.checked(about, arrays)
        like = jax.eval_shape(
            lambda key: actors.actor(
                about["observations"],
                about["actions"],
                tuple(about["hidden"]),
                discrete=scaling.discrete,
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
