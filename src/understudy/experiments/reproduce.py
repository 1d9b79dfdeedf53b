"""`understudy reproduce`: run a figure's sweep, draw it from the stored runs, judge its claims."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

from understudy.core.errors import UserError
from understudy.experiments import store, stored_runs
from understudy.experiments.figures import fig1, fig2, fig3, linear, readings
from understudy.experiments.figures.figure import part
from understudy.experiments.figures.figure import quick as made_quick
from understudy.experiments.stored_runs import StoredRun
from understudy.experiments.sweeps import sweep_run
from understudy.learners.deep.config import Preset

Protocol = Literal["budget", "authors"]
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
    protocol: Protocol = "budget",
    restart: bool = False,
) -> dict[str, Any]:
    """Run the figure's sweep into `out` where it is not done yet, and return its document. With
    `restart`, runs that are damaged or have failed are moved aside first."""
    figure = FIGURES[name]
    if protocol == "authors":
        if figure is not FIGURES["fig1"] or (preset, fresh, windows) != ("fast", None, ()):
            raise UserError("--protocol authors is for fig1, with all of its N.")
        return side_by_side(out, quick=quick, seeds=seeds, episodes=episodes, restart=restart)
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
        "curves": told(stored),
        "expert": {run.env: run.expert_return for run in stored},
        **done,
        "figure": str(out / f"{name}.png"),
        "verdicts": judged,
        "tables": [figure.table(stored), verdict_table(judged)],
    }


def side_by_side(
    out: Path | None,
    *,
    quick: bool,
    seeds: int | None,
    episodes: int | None,
    restart: bool,
) -> dict[str, Any]:
    """Figure 1 by the protocol of the authors' code, and beside it the other ways to read it: all
    their runs below one folder, and one report of them."""
    name = "fig1-authors-quick" if quick else "fig1-authors"
    out = out or Path("runs") / name
    refuse_another_figure(out / "verdicts.json", name)
    whole: dict[str, Any] = {"runs": 0, "resumed": 0, "seconds": 0.0}
    runs: dict[str, list[StoredRun]] = {}
    for reading in readings.READINGS:
        if reading.sweep.name not in runs:
            asked = made_quick(reading.sweep) if quick else reading.sweep
            asked = part(asked, (), seeds, episodes)
            done = sweep_run.run(asked, out / reading.folder, restart=restart)
            runs[reading.sweep.name] = [stored_runs.read(Path(one)) for one in done["folders"]]
            whole = {key: round(before + done[key], 3) for key, before in whole.items()}
    found = [(one, [one.view(run) for run in runs[one.sweep.name]]) for one in readings.READINGS]
    seen = {one.title: of_it for one, of_it in found}
    code, handed = seen[readings.CODE.title], seen[readings.HANDED.title]
    judged, beside = readings.judge(found)
    rule = (
        f"mean over seeds of exact returns; with the code's, of {readings.SMOOTHED} episodes; all "
        f"readings by one rule, {readings.MATCHES} of the expert where something is to match"
    )
    document = {"figure": name, "rule": rule, "verdicts": judged, "readings": beside}
    store.write_json(out / "verdicts.json", document)
    return {
        "curves": told(code),
        "expert": {run.env: run.expert_return for run in code},
        "out": str(out),
        **whole,
        "figure": str(readings.draw(code, handed, out / "fig1")),
        "verdicts": judged,
        "readings": beside,
        "tables": [*readings.tables(code, handed), readings.side_by_side(beside)],
    }


def told(stored: Sequence[StoredRun]) -> list[dict[str, Any]]:
    """Each run's curve."""
    return [
        {
            "env": run.env,
            "N": int(run.window) if run.window.isdecimal() else run.window,
            "seed": run.seed,
            "interactions": run.interactions.tolist(),
            "return": run.returns.tolist(),
        }
        for run in stored
    ]


def refuse_another_figure(verdicts: Path, name: str) -> None:
    """A folder has the verdicts of one figure."""
    there = store.read_json(verdicts, "The verdicts'").get("figure") if verdicts.exists() else name
    if there != name:
        raise UserError(
            f"The folder {verdicts.parent} holds the figure '{there}'; choose another (--out)."
        )


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
