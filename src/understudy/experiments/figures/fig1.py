"""Figure 1: mirror descent in three rooms, under the equal estimation budget.

Every reward update sees m = 32 points; a window of N policies supplies them, so each iteration owes
max(1, 32 // N) interactions.
"""

import itertools
from typing import Any

import numpy as np

from understudy.experiments.figures import drawing
from understudy.experiments.figures.claims import (
    MATCHES,
    SIMILAR,
    Curves,
    decide,
    each,
    small,
    when,
)
from understudy.experiments.figures.figure import Figure, on_curves, return_table
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners.config import Config

SWEEP = Sweep(
    name="fig1",
    envs=("EmptyRoom-3x3", "EmptyRoom-5x5", "EmptyRoom-9x9"),
    seeds=(0, 1, 2, 3, 4),
    config=Config(
        interactions=10_000, points=32, steps="paper", visits="sampled", handed="last", replay=True
    ),
    grid={"window": ("1", "4", "32", "128")},
)


def claims(
    curves: Curves, *, unit: str = "interactions", matches: float = MATCHES
) -> list[dict[str, Any]]:
    """Mirror descent: reuse saves most of the interactions, up to N = 32. What the paper calls
    interactions can be read as other units of practice."""
    rooms, found = curves.rooms, []
    at = {room: curves.share(room, 32, 1_000) for room in rooms}
    found.append(
        decide(
            "N = 32 matches the expert at about 1,000 interactions in each room",
            each(at, lambda v: f"{v:.3f} of the expert"),
            min(at.values()) >= matches,
            f"mean return at 1,000 is at least {matches} of the expert's in every room",
        )
    )
    smallest, *larger = rooms
    needed = curves.reached(smallest, 1, matches)
    found.append(
        decide(
            f"N = 1 needs the whole 10,000 interactions in {small(smallest)}",
            f"reaches {matches} at {when(needed)}",
            needed is not None and needed > 5_000,
            f"reaches {matches} of the expert by 10,000, and not within 5,000",
        )
    )
    for room in larger:
        share = curves.share(room, 1, 10_000)
        found.append(
            decide(
                f"N = 1 needs more than 10,000 in {small(room)}",
                f"{share:.3f} of the expert at 10,000",
                share < matches,
                f"mean return at 10,000 is below {matches} of the expert's",
            )
        )
    times = {room: curves.reached(room, 4, 0.9) for room in rooms}
    ordered = [np.inf if t is None else t for t in times.values()]
    found.append(
        decide(
            "Small N suffers as the room grows",
            "N = 4 reaches 0.9 at " + each(times, when),
            all(a < b for a, b in itertools.pairwise(ordered)),
            f"{unit} that N = 4 needs to 0.9 of the expert grow with the room",
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


FIGURE = Figure(SWEEP, drawing.curves, on_curves(claims), return_table)
