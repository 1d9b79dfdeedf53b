"""Figure 1 as it can be read: by the paper's text, by an equal budget, by the authors' code.

The paper says that N policies are reused and that 32 points of a buffer of 128 move the reward. It
does not say how much is collected between two updates, and what it measures hangs on that:

- text: one whole trajectory an update, for every N, in the room of the text;
- budget: max(1, 32 // N) interactions an update, so that every N moves the reward by as many points
  (what `reproduce fig1` shows by itself);
- code: 128/N episodes an update, in the code's own room (`envs/slippery_room.py`,
  `learners/rounds.py`); what the paper calls interactions are episodes there;
- even: the code's, but every N updates after each episode, from what its window holds.

The same claims are judged by the same rule in each, in its own unit.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from understudy.core import mdp as mdps
from understudy.envs import slippery_room
from understudy.envs.catalog import SLIPPERY
from understudy.experiments.figures import drawing, fig1
from understudy.experiments.figures.claims import Curves
from understudy.experiments.figures.figure import Judged, return_table
from understudy.experiments.stored_runs import StoredRun
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners.config import Config

EPISODES, BUFFER = 10_000, 128
SMOOTHED = 100  # episodes whose evaluations are one point of a curve
# Of the expert. A last iterate that is never at rest does not match by 0.999, whatever it learned.
MATCHES = 0.95

_BUDGET = dataclasses.replace(fig1.SWEEP.config, ledger=False, replay=False)
_CODE = Config(
    rollouts=EPISODES,
    points=32,
    rounds=4,
    steps="paper",
    visits="sampled",
    ledger=False,
    marks=500,
)
_ROOMS = tuple(f"SlipperyRoom-{n}x{n}" for n in (3, 5, 9))


def _code(name: str, batches: Sequence[int]) -> Sweep:
    windows = ("1", "4", "32", "128")
    pairs = tuple(zip(windows, batches, strict=True))
    return Sweep(name, _ROOMS, fig1.SWEEP.seeds, config=_CODE, grid={"window, batch": pairs})


@dataclass(frozen=True)
class Reading:
    """One way to read the figure: its runs, and what of them counts."""

    title: str
    folder: str  # of its runs, below that of the figure
    sweep: Sweep
    unit: str = "interactions"
    last: bool = True  # the last iterate's return, or that of the policy handed out

    def view(self, run: StoredRun) -> StoredRun:
        """The run in this reading's unit."""
        return in_episodes(run, last=self.last) if self.unit == "episodes" else run


_TEXT = dataclasses.replace(fig1.SWEEP, name="text", config=dataclasses.replace(_BUDGET, batch=1))
_AUTHORS = _code("fig1-authors", (128, 32, 4, 1))
_EVEN = _code("even", (1, 1, 1, 1))
READINGS = (
    Reading("the text", "text", _TEXT),
    Reading("an equal budget", "budget", dataclasses.replace(fig1.SWEEP, config=_BUDGET)),
    Reading("the code, last policy", "", _AUTHORS, "episodes"),
    Reading("the code, policy handed out", "", _AUTHORS, "episodes", last=False),
    # In the code's own folder: with N = 128 these are the code's runs, and are run once.
    Reading("the code, an update an episode for every N", "", _EVEN, "episodes"),
)
CODE, HANDED = READINGS[2], READINGS[3]


def in_episodes(run: StoredRun, *, last: bool) -> StoredRun:
    """A run of the code's, as the code would plot it: episodes for interactions, the evaluations of
    the latest hundred as one. Its expert is the true one: four episodes of a room that slips may
    have been lucky."""
    episodes = run.interactions // run.request["horizon"]
    y = run.beside["last_return"] if last else run.returns
    smooth = [y[(episodes > e - SMOOTHED) & (episodes <= e)].mean() for e in episodes]
    summary = run.summary | {"expert_return": expert_value(run.env, run.request["horizon"])}
    return dataclasses.replace(
        run, interactions=episodes, returns=np.array(smooth), summary=summary, beside={}
    )


def expert_value(env: str, horizon: int) -> float:
    """J(π_E) of the expert that shows a slippery room's episodes."""
    room = SLIPPERY.fullmatch(env)
    assert room is not None
    mdp = slippery_room.table(int(room[1]), horizon=horizon)
    return float(mdps.value(mdp, slippery_room.expert(int(room[1]), horizon=horizon), mdp.reward))


def judge(found: Sequence[tuple[Reading, Sequence[StoredRun]]]) -> tuple[Judged, dict[str, Any]]:
    """The claims in the code's reading, and all readings side by side."""
    judged = {
        reading.title: fig1.claims(Curves(runs), unit=reading.unit, matches=MATCHES)
        for reading, runs in found
    }
    columns = list(judged)
    rows = [
        {
            "claim": of_claim[0]["claim"],
            "cells": [{"measured": one["measured"], "holds": one["holds"]} for one in of_claim],
        }
        for of_claim in zip(*judged.values(), strict=True)
    ]
    return judged[CODE.title], {"columns": columns, "rows": rows}


def draw(code: Sequence[StoredRun], handed: Sequence[StoredRun], stem: Path) -> Path:
    """The code's reading, its last policies and, beside it, those handed out."""
    drawing.curves(handed, stem.with_name(stem.name + "-handed-out"), unit="episodes")
    return drawing.curves(code, stem, unit="episodes")[0]


def tables(code: Sequence[StoredRun], handed: Sequence[StoredRun]) -> list[Table]:
    """Returns of the code's reading."""
    title = f"{{}} after so many episodes: return, the mean of {SMOOTHED} episodes and over seeds"
    return [
        return_table(code, title.format("Last policy")),
        return_table(handed, title.format("Policy handed out")),
    ]


def side_by_side(readings: dict[str, Any]) -> Table:
    """Claims against readings."""
    t = Table(title="The paper's claims, as Figure 1 can be read", show_lines=True)
    t.add_column("claim", ratio=3)
    for title in readings["columns"]:
        t.add_column(title, ratio=3)
    for row in readings["rows"]:
        cells = [f"{'yes' if one['holds'] else 'NO'}: {one['measured']}" for one in row["cells"]]
        t.add_row(row["claim"], *cells)
    return t
