"""`understudy reproduce`: run a figure's sweep, draw it from the stored runs, judge its claims."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from understudy.errors import UserError
from understudy.experiments import figures, paper, rates, runs, store, sweep, verdicts
from understudy.experiments.runs import StoredRun


def reproduce(
    name: str, out: Path | None = None, *, quick: bool = False, episodes: int = 0
) -> dict[str, Any]:
    """Run the figure's sweep into `out` where it is not done yet, and return its document."""
    asked = paper.FIGURES[name]
    asked = dataclasses.replace(asked, config=dataclasses.replace(asked.config, episodes=episodes))
    asked = paper.quick(asked) if quick else asked
    out = out or Path("runs") / asked.name
    refuse_another_figure(out / "verdicts.json", asked.name)
    done = sweep.run(asked, out)
    stored = [runs.read(Path(folder)) for folder in done.pop("folders")]
    if name == "linear":
        rates.draw(stored, out / name)
        judged = rates.claims(stored)
    else:
        figures.curves(stored, out / name)
        judged = verdicts.CLAIMS[name](verdicts.Curves(stored))
    judged_by = "exact returns" if not episodes else f"{episodes} sampled episodes"
    rule = f"mean over seeds of {'the AIL regret' if name == 'linear' else judged_by}"
    store.write_json(
        out / "verdicts.json", {"figure": asked.name, "rule": rule, "verdicts": judged}
    )
    return {
        "curves": [
            {
                "env": run.env,
                "N": int(run.window),
                "seed": run.seed,
                "interactions": run.interactions.tolist(),
                "return": run.returns.tolist(),
            }
            for run in stored
        ],
        "expert": {run.env: run.expert_return for run in stored},
        **done,
        "figure": str(out / f"{name}.png"),
        "verdicts": judged,
        "stored": stored,
    }


def refuse_another_figure(verdicts: Path, name: str) -> None:
    """A folder has the verdicts of one figure."""
    there = store.read_json(verdicts, "The verdicts'").get("figure") if verdicts.exists() else name
    if there != name:
        raise UserError(f"The folder {verdicts.parent} holds the figure '{there}'; choose --out.")


def table(name: str, stored: list[StoredRun]) -> Table:
    """The figure's numbers."""
    return rates.table(stored) if name == "linear" else return_table(stored)


def return_table(stored: list[StoredRun]) -> Table:
    """Mean return over seeds at a few interactions, a block a room."""
    shown = [at for at in paper.SHOWN if at <= stored[0].interactions[-1]]
    t = Table(title="Return after so many interactions (mean over seeds)")
    t.add_column("room (expert)")
    t.add_column("N", justify="right")
    for at in shown:
        t.add_column(f"@{at:,}", justify="right")
    for env, cells in figures.by_panel(stored).items():
        t.add_section()
        for place, (window, cell) in enumerate(cells.items()):
            label = "" if place else f"{verdicts.small(env)} ({cell[0].expert_return:.2f})"
            means = [np.mean([run.at(at) for run in cell]) for at in shown]
            t.add_row(label, window, *(f"{mean:.2f}" for mean in means))
    return t


def verdict_table(judged: list[dict[str, Any]]) -> Table:
    """The paper's claims, what was measured, and whether they hold."""
    t = Table(title="The paper's claims", show_lines=True)
    t.add_column("claim", ratio=3)
    t.add_column("measured", ratio=3)
    t.add_column("decided by", ratio=3, style="dim")
    t.add_column("holds")
    for row in judged:
        t.add_row(row["claim"], row["measured"], row["rule"], "yes" if row["holds"] else "NO")
    return t
