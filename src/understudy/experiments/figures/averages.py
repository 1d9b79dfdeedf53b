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
