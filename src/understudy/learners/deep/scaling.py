"""The border between an environment's units and the networks'."""

import dataclasses
import math
from dataclasses import dataclass

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from understudy.core.errors import UserError
from understudy.envs import named
from understudy.envs.action_fit import switches

COMBINATIONS = 1_024  # of several choices at once: expectations sum over all of them


@dataclass(frozen=True)
class Scaling:
    """Observations are standardised; a box of actions becomes [−1, 1]ᵈ, a choice one-hot; of
    several choices at once, each combination is one. The arrays are float32 where that is fine
    enough, else float64, and reckoning is done in theirs."""

    mean: np.ndarray  # of observations, flat
    std: np.ndarray
    low: np.ndarray  # of actions, flat; of choices, the first number of each
    high: np.ndarray  # of choices, the last number of each
    discrete: bool

    @property
    def observations(self) -> int:
        return len(self.mean)

    @property
    def actions(self) -> int:
        return math.prod(self.counts) if self.discrete else len(self.low)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many numbers each choice has."""
        return tuple(int(b - a) + 1 for a, b in zip(self.low, self.high, strict=True))

    def obs(self, raw: np.ndarray) -> np.ndarray:
        """Into the networks: (n, …) → (n, S)."""
        with np.errstate(over="ignore"):  # the callers say whose infinity it is
            flat = np.asarray(raw).astype(self.mean.dtype).reshape(len(raw), -1)
            return ((flat - self.mean) / self.std).astype(np.float32)

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """Actions into the networks: (n, …) → (n, A)."""
        if self.discrete:
            digits = np.asarray(raw, int).reshape(len(raw), -1) - self.low.astype(int)
            index = np.ravel_multi_index(tuple(digits.T), self.counts)
            return np.eye(self.actions, dtype=np.float32)[index]
        flat = np.asarray(raw).astype(self.low.dtype).reshape(len(raw), -1)
        return (2 * (flat - self.low) / (self.high - self.low) - 1).astype(np.float32)

    def decode(self, action: np.ndarray) -> np.ndarray:
        """Actions out of the networks: (n, A) → (n, A), or whole numbers: (n,) of one choice,
        (n, d) of d of them."""
        if self.discrete:
            index = np.argmax(action, axis=-1)
            if len(self.low) == 1:
                return index + int(self.low[0])
            return np.stack(np.unravel_index(index, self.counts), -1) + self.low.astype(int)
        return np.clip(self.low + (action + 1) / 2 * (self.high - self.low), self.low, self.high)

    def check(self, obs: np.ndarray, action: np.ndarray, env: gymnasium.Env, name: str) -> None:
        """Refuse demonstrations that cannot be of this environment."""
        wanted, taken = env.observation_space.shape, env.action_space.shape
        if obs.shape[1:] != wanted:
            raise UserError(
                f"The demonstrations have observations of shape {obs.shape[1:]}; {name} has "
                f"{wanted}. Are they of another environment?"
            )
        if action.shape[1:] != taken:
            raise UserError(
                f"The demonstrations have actions of shape {action.shape[1:]}; {name} has {taken}. "
                f"Are they of another environment?"
            )
        flat = action.reshape(len(action), -1)
        if self.discrete and not np.array_equal(flat, np.round(flat)):
            raise UserError(f"The demonstrations have fractional actions; {name} takes a choice.")
        slack = 1e-3 * np.minimum(1, self.high - self.low)
        beyond = (flat < self.low - slack) | (flat > self.high + slack)
        if beyond.any():
            raise UserError(
                f"The demonstrations have the action {flat[beyond][0]:g}; {name} takes "
                f"{env.action_space}."
            )


def standardised(border: Scaling, obs: np.ndarray, *, absorbing: bool = False) -> Scaling:
    """The border with the mean and the spread of these observations (n, …); with `absorbing`, the
    last number is a bit, and stays one."""
    flat = obs.reshape(len(obs), -1).astype(np.float64)
    mean, std, size = flat.mean(0), flat.std(0), np.abs(flat).max(0)
    # What the expert never varies keeps its unit: a spread that is no more than the rounding of
    # float64, beside the number itself or beside what varies most.
    std[(std <= 1e-12 * size) | (std <= 1e-15 * std.max())] = 1
    if absorbing:
        mean[-1], std[-1], size[-1] = 0, 1, 1
    kind = fine_enough(size, std)
    return dataclasses.replace(border, mean=mean.astype(kind), std=std.astype(kind))


def fine_enough(size: np.ndarray, spread: np.ndarray) -> type[np.floating]:
    """float32, if it holds numbers of this size to some thousandths of their spread."""
    coarse = size > 2**14 * spread  # of its 24 bits, ten are to be left
    beyond = (size > 1e37) | (spread < 1e-35)
    return np.float64 if (coarse | beyond).any() else np.float32


def of_spaces(env: gymnasium.Env, name: str) -> Scaling:
    """The scaling of an environment's spaces; observations as they are."""
    observed, acted = env.observation_space, env.action_space
    named.refuse_pictured(env, name)
    if not isinstance(observed, Box) or observed.dtype.kind not in "fiu":
        raise UserError(
            f"Environment {name} has observations {observed}; the deep learner needs a Box of "
            f"numbers (Gymnasium's FlattenObservation makes one of most others)."
        )
    width = int(np.prod(observed.shape))
    ends: tuple[np.ndarray, np.ndarray]
    choices = switches(acted)
    if choices is not None:
        low, high = (x.ravel() for x in choices)
        combined = math.prod((high - low + 1).tolist())
        if combined > COMBINATIONS:
            raise UserError(
                f"Environment {name} has actions {acted}, {combined:,} combinations; the deep "
                f"learner takes up to {COMBINATIONS:,}. Offer fewer of them, or a bounded Box."
            )
        ends = low.astype(np.float32), high.astype(np.float32)
    elif isinstance(acted, Discrete):
        ends = (
            np.array([acted.start], np.float32),
            np.array([acted.start + acted.n - 1], np.float32),
        )
    elif (
        isinstance(acted, Box)
        and np.isfinite([*acted.low.flat, *acted.high.flat]).all()
        and (acted.low < acted.high).all()
    ):
        low, high = (x.astype(np.float64).ravel() for x in (acted.low, acted.high))
        kind = fine_enough(np.maximum(np.abs(low), np.abs(high)), high - low)
        ends = low.astype(kind), high.astype(kind)
    else:
        raise UserError(
            f"Environment {name} has actions {acted}; the deep learner needs a bounded Box, "
            f"Discrete, MultiDiscrete or MultiBinary."
        )
    return Scaling(
        mean=np.zeros(width, np.float32),
        std=np.ones(width, np.float32),
        low=ends[0],
        high=ends[1],
        discrete=choices is not None or isinstance(acted, Discrete),
    )
