"""Regret against K and d in random linear MDPs: power laws fitted to stored runs."""

import re
from collections.abc import Sequence

import numpy as np

from understudy.experiments.stored_runs import StoredRun


def features_of(env: str) -> int:
    """d of RandomLinear-dD; 0 of anything else."""
    found = re.match(r"RandomLinear-d(\d+)", env)
    return int(found[1]) if found else 0


def covered(stored: Sequence[StoredRun]) -> list[StoredRun]:
    """The runs in random linear MDPs that kept a ledger and have a fixed window."""
    return [
        run
        for run in stored
        if features_of(run.env) and run.regret and re.fullmatch("[0-9]+", run.window)
    ]


class Regrets:
    """Final AIL regret, the mean over seeds, by d, N and K."""

    def __init__(self, stored: Sequence[StoredRun]):
        cells: dict[tuple[int, int, int], list[float]] = {}
        for run in covered(stored):
            at = features_of(run.env), int(run.window), int(run.updates[-1])
            cells.setdefault(at, []).append(float((run.regret or {})["ail"][-1]))
        self.mean = {at: float(np.mean(values)) for at, values in cells.items()}
        self.ds, self.windows, self.ks = (sorted({at[i] for at in cells}) for i in range(3))

    def against_k(self, d: int, N: int) -> np.ndarray:
        return np.array([self.mean[d, N, K] for K in self.ks])

    def against_d(self, N: int, K: int) -> np.ndarray:
        return np.array([self.mean[d, N, K] for d in self.ds])

    def exponent(self, d: int, N: int) -> float:
        return slope(self.ks, self.against_k(d, N))

    def exponent_in_d(self, N: int) -> float:
        return slope(self.ds, self.against_d(N, self.ks[-1]))


def slope(x: Sequence[int], y: np.ndarray) -> float:
    """The exponent of a power law, by least squares on log axes."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
