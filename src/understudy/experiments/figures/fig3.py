"""Figure 3: Figure 1 with policy gradient in place of mirror descent."""

import dataclasses
from typing import Any

import numpy as np

from understudy.experiments.figures import drawing, fig1
from understudy.experiments.figures.claims import SIMILAR, Curves, decide, small, when
from understudy.experiments.figures.figure import Figure, on_curves, return_table

SWEEP = dataclasses.replace(
    fig1.SWEEP, name="fig3", config=dataclasses.replace(fig1.SWEEP.config, player="gradient")
)


def claims(curves: Curves) -> list[dict[str, Any]]:
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


FIGURE = Figure(SWEEP, drawing.curves, on_curves(claims), return_table)
