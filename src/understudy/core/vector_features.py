"""Fixed bases for states given as vectors, and features φ(x, a) from them. NumPy only.

A feature map takes observations (n, m) to features (n, A, d) with ‖φ‖₂ ≤ 1. A user's function will
do; here are a Fourier basis and radial ones, with a block of coordinates for each action.
"""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from understudy.core.errors import UserError

MOST = 4096  # functions of a basis


@dataclass(frozen=True)
class FeatureMap:
    """φ, and its sizes."""

    of: Callable[[np.ndarray], np.ndarray]  # (n, m) → (n, A, d)
    actions: int
    size: int  # d

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """φ(x, ·) of some observations, checked."""
        phi = np.asarray(self.of(x), float)
        if phi.shape != (len(x), self.actions, self.size):
            raise UserError(
                f"The features of {len(x)} observations have shape {phi.shape}; "
                f"they must have {(len(x), self.actions, self.size)} (n, A, d)."
            )
        norm = np.sqrt(np.einsum("nad,nad->na", phi, phi).max())
        if not norm <= 1 + 1e-9:
            raise UserError(
                f"The features of an observation have norm {norm:.4g}; the theory needs ‖φ‖ ≤ 1, "
                f"so divide all of them by their largest norm."
            )
        return phi


def per_action(basis: Callable[[np.ndarray], np.ndarray], size: int, actions: int) -> FeatureMap:
    """φ(x, a) = e_a ⊗ b(x): each action has weights of its own."""

    def of(x: np.ndarray) -> np.ndarray:
        return np.einsum("np,ab->nabp", basis(x), np.eye(actions)).reshape(len(x), actions, -1)

    return FeatureMap(of, actions, actions * size)


def fourier(order: int, low: np.ndarray, high: np.ndarray, actions: int) -> FeatureMap:
    """cos(π cᵀx) for every c in {0 … order}ᵐ, x scaled from [low, high] to [0, 1] (Konidaris et
    al. 2011), divided by √p for the norm."""
    p = _size("fourier", order, order + 1, len(low))
    c = np.array(list(itertools.product(range(order + 1), repeat=len(low))))

    def basis(x: np.ndarray) -> np.ndarray:
        return np.cos(np.pi * _unit(x, low, high) @ c.T) / np.sqrt(p)

    return per_action(basis, p, actions)


def radial(count: int, low: np.ndarray, high: np.ndarray, actions: int) -> FeatureMap:
    """Gaussian bumps on a grid of `count` a side over [low, high], as wide as the grid's steps,
    divided by their sum: features that average, so ‖φ‖₂ ≤ 1."""
    p = _size("radial", count, count, len(low))
    centres = np.array(list(itertools.product(np.linspace(0, 1, count), repeat=len(low))))
    width = 1 / max(count - 1, 1)

    def basis(x: np.ndarray) -> np.ndarray:
        z = _unit(x, low, high)
        apart = (z**2).sum(1)[:, None] - 2 * z @ centres.T + (centres**2).sum(1)
        bump = np.exp(-(apart - apart.min(1, keepdims=True)) / (2 * width**2))
        return bump / bump.sum(1, keepdims=True)

    return per_action(basis, p, actions)


def parse(text: str, low: np.ndarray, high: np.ndarray, actions: int) -> FeatureMap:
    """From words: 'fourier:3' or 'radial:6'."""
    known = re.fullmatch(r"(fourier|radial):([0-9]{1,4})", text)
    if known is None:
        raise UserError(
            f"--features is '{text[:40]}'; for observations that are vectors give 'fourier:ORDER' "
            f"or 'radial:COUNT' with a number from 1, such as fourier:2 or radial:6."
        )
    name, number = known.groups()
    return {"fourier": fourier, "radial": radial}[name](int(number), low, high, actions)


def _size(name: str, number: int, base: int, dimensions: int) -> int:
    size = base**dimensions
    if number < 1 or size > MOST:
        raise UserError(
            f"--features {name}:{number} of {dimensions} numbers makes {size:,} features; give one "
            f"with a number from 1 that makes at most {MOST:,}."
        )
    return size


def _unit(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Scaled to [0, 1], and cut there."""
    return np.clip((np.asarray(x, float) - low) / (high - low), 0, 1)
