"""`understudy reproduce`: run a figure's sweep, draw it from the stored runs, judge its claims."""

from pathlib import Path
from typing import Any

from rich.table import Table

from understudy.core.errors import UserError
from understudy.experiments import store, stored_runs
from understudy.experiments.figures import fig1, fig2, fig3, linear
from understudy.experiments.figures.figure import part
from understudy.experiments.figures.figure import quick as made_quick
from understudy.experiments.sweeps import sweep_run
from understudy.learners.deep.config import Preset

FIGURES = {f.name: f for f in (fig1.FIGURE, fig2.FIGURE, fig3.FIGURE, linear.FIGURE)}


def reproduce(
    name: str,
    out: Path | None = None,
    *,
    quick: bool = False,
    episodes: int | None = None,
    windows: tuple[str, ...] = (),
    seeds: int | None = None,
    preset: Preset = "fast",
    fresh: int | None = None,
    restart: bool = False,
) -> dict[str, Any]:
    """Run the figure's sweep into `out` where it is not done yet, and return its document. With
    `restart`, runs that are damaged or have failed are moved aside first."""
    figure = FIGURES[name]
    asked = figure.sweep
    if (preset, fresh) != ("fast", None):
        if figure is not FIGURES["fig2"]:
            raise UserError(f"--preset and --fresh are for fig2; {name} has no networks.")
        if fresh is not None and not 1 <= fresh <= asked.config.interactions:
            raise UserError(
                f"--fresh is {fresh}; it must be from 1 to {asked.config.interactions:,}."
            )
        asked = fig2.sweep(preset, fresh)
    if quick:
        asked = made_quick(asked)
    asked = part(asked, windows, seeds, episodes)
    out = out or Path("runs") / asked.name
    refuse_another_figure(out / "verdicts.json", asked.name)
    done = sweep_run.run(asked, out, restart=restart)
    stored = [stored_runs.read(Path(folder)) for folder in done.pop("folders")]
    judged = figure.claims(stored)
    figure.draw(stored, out / name)
    sampled = asked.config.episodes
    returns = f"{sampled} sampled episodes" if sampled else "exact returns"
    rule = f"mean over seeds of {figure.judged_by if figure.judged_by != 'returns' else returns}"
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
        raise UserError(
            f"The folder {verdicts.parent} holds the figure '{there}'; choose another (--out)."
        )


def table(name: str, stored: list[stored_runs.StoredRun]) -> Table:
    """The figure's numbers."""
    return FIGURES[name].table(stored)


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
