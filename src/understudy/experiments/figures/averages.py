"""Averages over seeds, and how sure they are."""

from typing import Literal

import numpy as np
from jaxtyping import Float

RESAMPLES = 1000  # of the bootstrap

Band = Literal["std", "stderr", "iqm"]


def summarise(
    y: Float[np.ndarray, "seeds points"], band: Band
) -> tuple[
    Float[np.ndarray, " points"], Float[np.ndarray, " points"], Float[np.ndarray, " points"]
]:
    """The middle and the two edges of the band, over seeds."""
    if band == "iqm":
        return interquartile_mean(y), *bootstrap_interval(y)
    mean = y.mean(0)
    spread = y.std(0, ddof=1) if len(y) > 1 else np.zeros_like(mean)
    if band == "stderr":
        spread = spread / np.sqrt(len(y))
    return mean, mean - spread, mean + spread


def interquartile_mean(y: Float[np.ndarray, "seeds *points"]) -> Float[np.ndarray, "*points"]:
    """The mean of the middle half of the seeds; of fewer than four seeds, of all."""
    cut = len(y) // 4
    return np.sort(y, axis=0)[cut : len(y) - cut].mean(0)


def bootstrap_interval(
    y: Float[np.ndarray, "seeds points"], level: float = 0.95
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """Percentile bootstrap of the interquartile mean over seeds, at each point by itself.

    Seeds are drawn by rank. A draw's interquartile mean is then a weighting of the sorted values,
    the same at every point, and all draws are one matrix product.
    """
    n, cut = len(y), len(y) // 4
    rng = np.random.default_rng(0)
    ranks = np.sort(rng.integers(n, size=(RESAMPLES, n)), axis=1)[:, cut : n - cut]
    flat = (ranks + n * np.arange(RESAMPLES)[:, None]).ravel()
    counts = np.bincount(flat, minlength=RESAMPLES * n).reshape(RESAMPLES, n)
    drawn = counts / ranks.shape[1] @ np.sort(y, axis=0)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def mean_interval(x: Float[np.ndarray, " episodes"], level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap of the mean."""
    drawn = np.random.default_rng(0).choice(x, size=(RESAMPLES, len(x))).mean(axis=1)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def improvement(x: Float[np.ndarray, " runs"], y: Float[np.ndarray, " others"]) -> float:
    """The probability of improvement (Agarwal et al. 2021): that a run of `x` is above one of `y`,
    ties counted half. It is Mann and Whitney's U, as a share."""
    return float(wins(x, y).mean())


def improvement_interval(
    x: Float[np.ndarray, " runs"], y: Float[np.ndarray, " others"], level: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap of it: both sets of seeds drawn anew, each by itself."""
    won, rng = wins(x, y), np.random.default_rng(0)
    i = rng.integers(len(x), size=(RESAMPLES, len(x)))
    j = rng.integers(len(y), size=(RESAMPLES, len(y)))
    drawn = won[i[:, :, None], j[:, None, :]].mean(axis=(1, 2))
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def wins(
    x: Float[np.ndarray, " runs"], y: Float[np.ndarray, " others"]
) -> Float[np.ndarray, "runs others"]:
    """Of each pair: 1 where the first is above, ½ where they are the same but for rounding."""
    apart = x[:, None] - y[None, :]
    same = np.isclose(x[:, None], y[None, :], rtol=1e-9, atol=1e-12)
    return (np.where(same, 0, np.sign(apart)) + 1) / 2
