"""`understudy reproduce`: run a figure's sweep, draw it from the stored runs, judge its claims."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from understudy.core.errors import UserError
from understudy.experiments import figures, paper, rates, store, stored_runs, verdicts
from understudy.experiments.stored_runs import StoredRun
from understudy.experiments.sweeps import sweep_run


def reproduce(
    name: str,
    out: Path | None = None,
    *,
    quick: bool = False,
    episodes: int | None = None,
    windows: tuple[str, ...] = (),
    seeds: int | None = None,
    restart: bool = False,
) -> dict[str, Any]:
    """Run the figure's sweep into `out` where it is not done yet, and return its document. With
    `restart`, runs that are damaged or have failed are moved aside first."""
    asked = paper.FIGURES[name]
    asked = paper.quick(asked) if quick else asked
    asked = paper.part(asked, windows, seeds, episodes)
    out = out or Path("runs") / asked.name
    refuse_another_figure(out / "verdicts.json", asked.name)
    done = sweep_run.run(asked, out, restart=restart)
    stored = [stored_runs.read(Path(folder)) for folder in done.pop("folders")]
    if name == "linear":
        if len(rates.covered(stored)) < len(stored):
            raise UserError(f"A run in {out} has no regret; take its folder away to run it anew.")
        rates.draw(stored, out / name)
        judged = rates.claims(stored)
    else:
        figures.curves(stored, out / name, band="stderr" if name == "fig2" else "std")
        judged = verdicts.CLAIMS[name](verdicts.Curves(stored))
    sampled = asked.config.episodes
    judged_by = f"{sampled} sampled episodes" if sampled else "exact returns"
    rule = f"mean over seeds of {'the AIL regret' if name == 'linear' else judged_by}"
    store.write_json(
        out / "verdicts.json", {"figure": asked.name, "rule": rule, "verdicts": judged}
    )
    return {
        "curves": [
            {
                "env": run.env,
                "N": int(run.window) if run.window.isdecimal() else run.window,
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
    """Mean return over seeds at a few interactions, a block an environment."""
    end = stored[0].interactions[-1]
    shown = [at for at in paper.SHOWN if end / 50 <= at <= end]
    t = Table(title="Return after so many interactions (mean over seeds)")
    t.add_column("environment (expert)")
    t.add_column("N", justify="right")
    for at in shown:
        t.add_column(f"@{at:,}", justify="right")
    for env, cells in figures.by_panel(stored).items():
        t.add_section()
        for place, (window, cell) in enumerate(cells.items()):
            label = "" if place else f"{verdicts.small(env)} ({number(cell[0].expert_return)})"
            means = [np.mean([run.at(at) for run in cell]) for at in shown]
            t.add_row(label, window, *(number(float(mean)) for mean in means))
    return t


def number(value: float) -> str:
    """6.20, or 8,154 where hundredths say nothing."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


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
