"""A table of stored runs: a row a setting and an environment, shares of the expert's return.

What all runs share is not repeated in every row; a row says where it differs from most. Where the
expert's return is not positive there are no shares of it, and a row has returns.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.core.errors import UserError
from understudy.experiments.figures import averages, palette
from understudy.experiments.figures.cells import settings as settings_of
from understudy.experiments.runs import identity
from understudy.experiments.stored_runs import StoredRun
from understudy.learners.config import Config
from understudy.learners.deep.config import PRESETS

PARTS = (0.1, 0.25, 0.5, 0.75, 1.0)  # of a run, where it is shown
NEAR = 0.9  # the share of the expert whose first time is shown


@dataclass(frozen=True)
class Row:
    """One setting in one environment, over seeds."""

    env: str
    setting: str  # where it differs from the other rows
    interactions: int
    seeds: int
    expert: float | None  # its return, where the numbers below are returns and not shares of it
    began: float  # before any practice: the clone's, where there is one
    along: tuple[float, ...]  # interquartile mean over seeds, at PARTS
    worst: float  # seed, at the end
    lowest: float  # of all seeds and marks in the second half
    near: tuple[int | None, ...]  # by seed: the first mark that is near the expert


def rows(runs: Sequence[StoredRun]) -> list[Row]:
    """The rows, by environment and in order of the settings."""
    if not runs:
        raise UserError("There are no finished runs to tabulate.")
    once = {identity(run.request): run for run in runs}.values()
    flat = {id(run): settings_of(run) for run in once}
    names = sorted({name for settings in flat.values() for name in settings})
    shown = "shown"  # a fingerprint of the demonstrations, which differ by environment
    varied = [n for n in names if len({s.get(n) for s in flat.values()}) > 1 and n != shown]
    settings = {id(run): tuple(flat[id(run)].get(name, "null") for name in varied) for run in once}
    usual = [_usual(column) for column in zip(*set(settings.values()), strict=True)]
    cells: dict[tuple[str, str], list[StoredRun]] = {}
    for run in once:
        values = zip(varied, settings[id(run)], usual, strict=True)
        differs = {name: value for name, value, most in values if value != most}
        cells.setdefault((run.env, _told(differs)), []).append(run)
    order = sorted(cells, key=lambda cell: (cell[0], palette.natural(cell[1])))
    return [_row(env, setting, cells[env, setting]) for env, setting in order]


def _usual(values: Sequence[str]) -> str | None:
    """What more than half of the settings have, and so need not say."""
    value, count = Counter(values).most_common(1)[0]
    return value if 2 * count > len(values) else None


def _row(env: str, setting: str, cell: list[StoredRun]) -> Row:
    shares = all(run.expert_return > 0 for run in cell)
    unit = [run.expert_return if shares else 1.0 for run in cell]
    y = [run.returns / of for run, of in zip(cell, unit, strict=True)]
    end = min(int(run.interactions[-1]) for run in cell)
    at = [
        np.array([run.at(round(part * end)) / of for run, of in zip(cell, unit, strict=True)])
        for part in PARTS
    ]
    return Row(
        env=env,
        setting=setting,
        interactions=end,
        seeds=len(cell),
        expert=None if shares else float(np.mean([run.expert_return for run in cell])),
        began=float(np.mean([R[0] for R in y])),
        along=tuple(float(averages.interquartile_mean(x[:, None])[0]) for x in at),
        worst=float(at[-1].min()),
        lowest=min(float(R[len(R) // 2 :].min()) for R in y),
        near=tuple(run.near(NEAR) for run in cell),
    )


def _told(settings: dict[str, str]) -> str:
    """Options and values, as one would type them."""
    words = []
    for name, value in settings.items():
        read = json.loads(value)
        shown = "none" if read is None else str(read).lower() if isinstance(read, bool) else read
        words.append(f"{name} {shown}".replace("_", " "))
    return ", ".join(words)


def shared(runs: Sequence[StoredRun]) -> str:
    """Where all runs differ alike from the defaults, or from the preset `fast`."""
    deep = runs[0].kind == "networks"
    usual = vars(PRESETS["fast"] if deep else Config())
    preset = {k: json.dumps(v) for k, v in usual.items()}
    flat = [settings_of(run) for run in runs]
    same = {
        name: value
        for name, value in flat[0].items()
        if name in preset and value != preset[name] and all(s.get(name) == value for s in flat)
    }
    return _told(same)


def markdown(found: Sequence[Row]) -> str:
    """As it stands in the docs."""
    parts = [f"{part:.0%}" for part in PARTS]
    head = ["task", "setting", "interactions", "seeds", "at 0", *parts, "worst seed", "dips to",
            f"{NEAR} at"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * 2}{'---:|' * (len(head) - 2)}"]
    for row in found:
        seen = [n for n in row.near if n is not None]
        when = f"{int(np.median(seen)):,}" if seen else "never"
        if 0 < len(seen) < row.seeds:
            when += f" ({len(seen)} of {row.seeds})"
        numbers = [row.began, *row.along, row.worst, row.lowest]
        task = row.env if row.expert is None else f"{row.env} (returns; expert {row.expert:,.0f})"
        digits = ".2f" if row.expert is None else ",.0f"
        cells = [task, row.setting or "as it is", f"{row.interactions:,}", str(row.seeds),
                 *(f"{number:{digits}}" for number in numbers), when]  # fmt: skip
        cells = [cell.replace("|", r"\|") for cell in cells]  # a name's own is no column's end
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
