"""The reward that was learned, to keep and to use: `reward.safetensors`, and a function of it.

`load(folder)(obs, action)` is the discriminator's reward in the environment's own units, as the
learner's policy was paid it at the end of the run. Nothing in the file can run code.
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import jax
import numpy as np
from jaxtyping import Array
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from understudy.core import files
from understudy.core.errors import UserError
from understudy.learners.deep import checkpoint, stored_border
from understudy.learners.deep import discriminator as discriminators
from understudy.learners.deep.absorbing import alive
from understudy.learners.deep.discriminator import Discriminator, RewardMap
from understudy.learners.deep.scaling import Scaling

FORMAT = 1
TENSORS = "reward.safetensors"


@functools.partial(jax.jit, static_argnames="kind")
def _pay(judge: Discriminator, x: Array, terminates: Array, *, kind: RewardMap) -> Array:
    return discriminators.reward(judge(x), kind, terminates)


@dataclass(frozen=True)
class Reward:
    """A discriminator, its scaling, and the map that makes a reward of its logit."""

    judge: Discriminator
    scaling: Scaling
    env: str
    observation_shape: tuple[int, ...]
    action_shape: tuple[int, ...]
    absorbing: bool  # an ended episode is a state too, with a reward of its own: `absorbed`
    kind: RewardMap
    terminates: bool  # an episode had ended early, by which `auto` decides

    def __call__(self, observation: Any, action: Any) -> Any:
        """What the action is worth there: a number, or an array of them for a batch. An action
        beyond its box counts as one at the border, where the reward was learned."""
        obs, act = np.asarray(observation), np.asarray(action)
        shape = self.observation_shape
        if obs.shape != shape and obs.shape[1:] != shape:
            raise UserError(
                f"The observation has shape {obs.shape}; the reward of {self.env} takes {shape}, "
                f"or a batch of it."
            )
        count = () if obs.shape == shape else obs.shape[:1]
        if act.shape != (*count, *self.action_shape):
            raise UserError(
                f"The action has shape {act.shape}; with observations of shape {obs.shape} the "
                f"reward of {self.env} takes {(*count, *self.action_shape)}."
            )
        seen = obs.reshape(-1, *shape)
        seen = self.scaling.obs(alive(seen) if self.absorbing else seen)
        paid = self._paid(seen, self._encoded(act.reshape(len(seen), -1)))
        return paid if count else float(paid[0])

    @property
    def absorbed(self) -> float:
        """What each step in the state of ended episodes is worth; zero where that is none."""
        if not self.absorbing:
            return 0.0
        end = np.zeros((1, self.scaling.observations), np.float32)
        end[:, -1] = 1
        none = np.zeros((1, self.scaling.actions), np.float32)
        return float(self._paid(self.scaling.obs(end), none)[0])

    def _encoded(self, act: np.ndarray) -> np.ndarray:
        """Actions (n, A) as the discriminator sees them."""
        low, high = self.scaling.low, self.scaling.high
        if not self.scaling.discrete:
            return self.scaling.encode(np.clip(act, low, high))
        if not ((act >= low) & (act <= high) & (act == np.round(act))).all():
            each = [f"{a:g} to {b:g}" for a, b in zip(low, high, strict=True)]
            raise UserError(
                f"The reward of {self.env} takes a whole number from {', from '.join(each)} for an "
                f"action."
            )
        return self.scaling.encode(act)

    def _paid(self, obs: np.ndarray, act: np.ndarray) -> np.ndarray:
        x = np.concatenate([obs, act], axis=-1)
        paid = np.asarray(_pay(self.judge, x, np.asarray(self.terminates), kind=self.kind))
        if not np.isfinite(paid).all():
            raise UserError(
                f"The reward of {self.env} is NaN: what it saw is not finite, or too far off."
            )
        return paid


def save(folder: Path, reward: Reward) -> None:
    """Write the file to `folder`."""
    about = {
        "format": FORMAT,
        **stored_border.told(
            reward.scaling,
            env=reward.env,
            shapes=(reward.observation_shape, reward.action_shape),
            hidden=[layer.w.shape[1] for layer in reward.judge.net.layers[:-1]],
            absorbing=reward.absorbing,
        ),
        "spectral": reward.judge.spectral,
        "map": reward.kind,
        "terminates": reward.terminates,
    }
    judge = {f"judge{name}": x for name, x in checkpoint.named(reward.judge).items()}
    arrays = {k: np.asarray(x, order="C") for k, x in judge.items()}
    # One entry: of several, the file's writer has the order differ from time to time.
    said = {"about": json.dumps(about, allow_nan=False)}
    save_file(stored_border.arrays(reward.scaling) | arrays, folder / TENSORS, said)


def load(folder: str | Path) -> Reward:
    """Read it back, checked."""
    path = Path(folder) / TENSORS
    about, arrays = _file(path)
    try:
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']!r:.60}, and {FORMAT} is read")
        scaling, shapes = stored_border.checked(about, arrays)
        said = about["spectral"], about["terminates"]
        if not all(type(bit) is bool for bit in said):
            raise ValueError("spectral or terminates is neither true nor false")
        if about["map"] not in get_args(RewardMap):
            raise ValueError(f"its map is {about['map']!r:.60}")
        like = jax.eval_shape(
            lambda key: discriminators.discriminator(
                scaling.observations + scaling.actions,
                tuple(about["hidden"]),
                spectral=about["spectral"],
                key=key,
            ),
            jax.random.key(0),
        )
        judge = checkpoint.fill(like, arrays, f"The learned reward {path}", prefix="judge")
        return Reward(
            judge, scaling, about["env"], *shapes, about["absorbing"], about["map"], said[1]
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        raise UserError(f"The learned reward {path} is not one of ours ({reason}).") from None


def _file(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    """What it says, and its arrays."""
    try:
        with safe_open(files.regular(path, 2**32), framework="numpy") as file:
            about = json.loads((file.metadata() or {})["about"])
            return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
        reason = "it is missing" if isinstance(error, FileNotFoundError) else error
        raise UserError(f"The learned reward {path} cannot be read: {reason}.") from None
