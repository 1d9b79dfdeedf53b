"""A policy as arrays alone: what a file in another format needs of it, and whether that file
answers as the policy does."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from understudy.core.errors import UserError
from understudy.learners.deep.policy import Policy

OBSERVATIONS = 1_000  # that an exported policy is tried on
TOLERANCE = 1e-5  # of half an action's range where that is above 1; of the action where it is below
SPREAD = 2.0  # of those observations, in the demonstrations' deviations


class Plain(NamedTuple):
    """Observations are standardised, go through the layers with a rectifier between two, and come
    out as the modes of a squashed normal, or as a choice's logits."""

    mean: np.ndarray
    std: np.ndarray
    layers: list[tuple[np.ndarray, np.ndarray]]  # weights (i, o) and biases (o,)
    low: np.ndarray
    high: np.ndarray
    discrete: bool
    observation_shape: tuple[int, ...]
    action_shape: tuple[int, ...]
    env: str

    @property
    def seen(self) -> type[np.floating]:
        """The type that observations are rounded to."""
        return np.float64 if self.mean.dtype == np.float64 else np.float32


def plain(policy: Policy) -> Plain:
    """What the deterministic policy is made of; the spread of its actions is left out."""
    scaling = policy.scaling
    mean, std = scaling.mean, scaling.std
    layers = [(np.asarray(layer.w), np.asarray(layer.b)) for layer in policy.actor.net.layers]
    if policy.absorbing:  # in a world that goes on its last number is zero, and so is a bias
        (w, b), *others = layers
        zero = np.float32(-mean[-1] / std[-1])
        layers = [(w[:-1], b + zero * w[-1]), *others]
        mean, std = mean[:-1], std[:-1]
    if not scaling.discrete:
        w, b = layers[-1]
        layers[-1] = w[:, : scaling.actions], b[: scaling.actions]
    return Plain(
        mean, std, layers, scaling.low, scaling.high, scaling.discrete,
        policy.observation_shape, policy.action_shape, policy.env,
    )  # fmt: skip


def refuse_apart(policy: Policy, act: Callable[[np.ndarray], np.ndarray], what: str) -> float:
    """How far `act` is from the policy's own `predict` over many observations; a sentence where
    that is too far."""
    made, rng = plain(policy), np.random.default_rng(0)
    spread = SPREAD * rng.normal(size=(OBSERVATIONS, len(made.mean)))
    seen = (made.mean + spread * made.std).reshape(-1, *made.observation_shape)
    expected, got = np.asarray(policy.predict(seen)[0]), np.asarray(act(seen))
    if got.shape != expected.shape:
        raise UserError(f"{what} answers with shape {got.shape}, not {expected.shape}.")
    apart = _lost(made, seen, expected, got) if made.discrete else _missed(made, expected, got)
    if not apart <= TOLERANCE:
        raise UserError(
            f"{what} is {apart:.2g} from the policy of {policy.env} on {OBSERVATIONS:,} "
            f"observations, more than {TOLERANCE:g}; it is not written."
        )
    return apart


def _missed(made: Plain, expected: np.ndarray, got: np.ndarray) -> float:
    """The farthest action, where half the range is the unit if it is above 1."""
    unit = np.maximum(1, (made.high - made.low) / 2).reshape(made.action_shape)
    return float((np.abs(got - expected) / unit).max())


def _lost(made: Plain, seen: np.ndarray, expected: np.ndarray, got: np.ndarray) -> float:
    """By how much the logit of what was chosen falls behind, where another was: choices that are
    worth the same but for rounding are the same."""
    x = (seen.reshape(len(seen), -1) - made.mean) / made.std
    for w, b in made.layers[:-1]:
        x = np.maximum(x @ w.astype(np.float64) + b, 0)
    w, b = made.layers[-1]
    logit = x @ w.astype(np.float64) + b
    row, counts = np.arange(len(seen)), (made.high - made.low + 1).astype(int)
    chosen = [x.reshape(len(seen), -1) - made.low.astype(int) for x in (expected, got)]
    if not ((chosen[1] >= 0) & (chosen[1] < counts)).all():
        return float("inf")
    best, other = (np.ravel_multi_index(tuple(x.T), tuple(counts)) for x in chosen)
    behind = np.abs(logit[row, best] - logit[row, other])
    return float((behind / (1 + np.abs(logit).max(-1))).max())
