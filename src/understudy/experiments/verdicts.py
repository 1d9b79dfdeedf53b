"""The paper's claims about its figures, each with the rule that decides it.

A claim holds or it does not; what was measured stands beside it either way.
"""

import itertools
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
    return room.removeprefix("EmptyRoom-").replace("x", "×")


def when(interactions: int | None) -> str:
    return "no time" if interactions is None else f"{interactions:,}"


def decide(claim: str, measured: str, holds: bool, rule: str) -> dict[str, Any]:
    return {"claim": claim, "measured": measured, "holds": bool(holds), "rule": rule}


def figure_1(curves: Curves) -> list[dict[str, Any]]:
    """Mirror descent: reuse saves most of the interactions, up to N = 32."""
    rooms, found = curves.rooms, []
    at = {room: curves.share(room, 32, 1_000) for room in rooms}
    found.append(
        decide(
            "N = 32 matches the expert at about 1,000 interactions in each room",
            each(at, lambda v: f"{v:.3f} of the expert"),
            min(at.values()) >= MATCHES,
            f"mean return at 1,000 is at least {MATCHES} of the expert's in every room",
        )
    )
    smallest, *larger = rooms
    needed = curves.reached(smallest, 1, MATCHES)
    found.append(
        decide(
            f"N = 1 needs the whole 10,000 interactions in {small(smallest)}",
            f"reaches {MATCHES} at {when(needed)}",
            needed is not None and needed > 5_000,
            f"reaches {MATCHES} of the expert by 10,000, and not within 5,000",
        )
    )
    for room in larger:
        share = curves.share(room, 1, 10_000)
        found.append(
            decide(
                f"N = 1 needs more than 10,000 in {small(room)}",
                f"{share:.3f} of the expert at 10,000",
                share < MATCHES,
                f"mean return at 10,000 is below {MATCHES} of the expert's",
            )
        )
    times = {room: curves.reached(room, 4, 0.9) for room in rooms}
    ordered = [np.inf if t is None else t for t in times.values()]
    found.append(
        decide(
            "Small N suffers as the room grows",
            "N = 4 reaches 0.9 at " + each(times, when),
            all(a < b for a, b in itertools.pairwise(ordered)),
            "interactions that N = 4 needs to 0.9 of the expert grow with the room",
        )
    )
    gap = {
        room: max(
            abs(curves.share(room, 128, t) - curves.share(room, 32, t)) for t in (500, 1_000, 2_000)
        )
        for room in rooms
    }
    found.append(
        decide(
            "There is little benefit beyond N = 32",
            "N = 128 and 32 differ by at most " + each(gap, lambda v: f"{v:.3f}"),
            max(gap.values()) <= SIMILAR,
            f"N = 128 and N = 32 within {SIMILAR} of the expert at 500, 1,000 and 2,000",
        )
    )
    return found


def figure_3(curves: Curves) -> list[dict[str, Any]]:
    """Policy gradient in place of mirror descent: the same picture."""
    found = []
    for room in curves.rooms:
        times = {N: curves.reached(room, N, 0.9) for N in (1, 4, 32, 128)}
        slowest = np.inf if times[1] is None else times[1]
        listed = ", ".join(f"N = {N}: {when(t)}" for N, t in times.items())
        found.append(
            decide(
                f"Every N > 1 converges faster than N = 1 in {small(room)}",
                f"interactions to 0.9 of the expert: {listed}",
                all(t is not None and t < slowest for N, t in times.items() if N > 1),
                "fewer interactions to 0.9 of the expert than N = 1",
            )
        )
        ends = {N: curves.end(room, N) for N in times}
        found.append(
            decide(
                f"Every N > 1 ends at least as high as N = 1 in {small(room)}",
                ", ".join(f"N = {N}: {share:.4f}" for N, share in ends.items()),
                min(ends[4], ends[32], ends[128]) >= ends[1],
                "mean return at the last mark, as a share of the expert's, is not below N = 1's",
            )
        )
    for room in curves.rooms:
        wide, wider = (curves.share(room, N, 1_000) for N in (32, 128))
        ends = curves.end(room, 32), curves.end(room, 128)
        shown = f"at 1,000: {wide:.4f} and {wider:.4f}; at the end: {ends[0]:.4f} and {ends[1]:.4f}"
        if small(room) == "5×5":
            found.append(
                decide(
                    "In 5×5 N = 32 beats N = 128",
                    shown,
                    wide > wider and ends[0] >= ends[1],
                    "N = 32 is above N = 128 at 1,000 interactions and not below at the end",
                )
            )
        if small(room) == "9×9":
            found.append(
                decide(
                    "In 9×9 N = 128 is about as good as N = 32",
                    shown,
                    abs(wide - wider) <= SIMILAR and abs(ends[0] - ends[1]) <= SIMILAR,
                    f"within {SIMILAR} of the expert of each other, at 1,000 and at the end",
                )
            )
    return found


def figure_2(curves: Curves) -> list[dict[str, Any]]:
    """Networks in three MuJoCo tasks: every N > 1 beats N = 1, and a very large one adds little."""
    reused = [N for N in curves.windows if N != "1"]
    large = [N for N in reused if N == "all" or int(N) > 32]
    small_ones = [N for N in reused if N not in large]
    found = []
    for task in curves.rooms:
        by = {N: curves.shares(task, N) for N in curves.windows}
        gains = {N: apart(by[N], by["1"]) for N in reused}
        found.append(
            decide(
                f"Every N > 1 beats N = 1 in {task}",
                ", ".join(f"N = {N}: {spread(y)}" for N, y in by.items()),
                all(gain > 0 for gain, _ in gains.values()),
                "the share of the expert's return, averaged over the run, is above N = 1's in the "
                "mean over seeds",
            )
        )
        least = min(small_ones, key=int)
        gain, error = gains[least]
        found.append(
            decide(
                f"A small N already helps in {task}",
                f"N = {least} is {gain:+.2f} ± {error:.2f} of the expert above N = 1",
                gain > 2 * error,
                f"N = {least} is above N = 1 by more than two standard errors of the difference",
            )
        )
        if not large:
            continue
        best, top = (max(some, key=lambda N: by[N].mean()) for some in (small_ones, large))
        gain, error = apart(by[top], by[best])
        found.append(
            decide(
                f"A very large N gains nothing significant in {task}",
                f"N = {top} against N = {best}: {gain:+.2f} ± {error:.2f} of the expert",
                gain <= 2 * error,
                "the best of the large windows is not above the best of N ≤ 32 by more than two "
                "standard errors of the difference",
            )
        )
    return found


def apart(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """The difference of two means over seeds, and its standard error."""
    return float(a.mean() - b.mean()), math.hypot(standard_error(a), standard_error(b))


def spread(y: np.ndarray) -> str:
    return f"{y.mean():.2f} ± {standard_error(y):.2f}"


def standard_error(y: np.ndarray) -> float:
    """Of the mean over seeds; of one seed, none is known."""
    return float(y.std(ddof=1)) / math.sqrt(len(y)) if len(y) > 1 else 0.0


def each(values: dict[str, Any], show: Callable[[Any], str]) -> str:
    return ", ".join(f"{small(room)}: {show(value)}" for room, value in values.items())


CLAIMS: dict[str, Callable[[Curves], list[dict[str, Any]]]] = {
    "fig1": figure_1,
    "fig2": figure_2,
    "fig3": figure_3,
}
