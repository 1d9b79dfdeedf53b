"""`understudy reproduce fig1`: run the grid, keep the curves, draw, and print the table."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from understudy.envs.empty_room import demonstrations, empty_room
from understudy.experiments import console, figures, runner, store
from understudy.experiments.paper import Figure1
from understudy.imitation import expert_occupancy, expert_return, plan
from understudy.tabular import Problem


def jobs(figure: Figure1) -> list[runner.Job]:
    """A job per room and window, in that order."""
    listed = []
    for n in figure.rooms:
        mdp = empty_room(n)
        problem = Problem(mdp, expert_occupancy(mdp, demonstrations(n)))
        for N in figure.windows:
            listed.append(runner.Job(n, problem, plan(mdp, figure.config(N)), figure.seeds))
    return listed


def reproduce(out: Path, figure: Figure1 = Figure1()) -> dict[str, Any]:  # noqa: B008 (frozen)
    """Run Figure 1 into `out` (curves.json, fig1.png) and return its document."""
    begun = time.perf_counter()
    with store.output_folder(out), console.bar() as bar:
        listed = jobs(figure)
        compiling = bar.add_task("compiling programs", total=None)
        running = bar.add_task(
            "interactions", total=sum(j.plan.iterations * j.plan.protocol.fresh for j in listed)
            * len(figure.seeds), visible=False,
        )  # fmt: skip

        def compiled(done: int, of: int) -> None:
            bar.update(compiling, completed=done, total=of)
            bar.update(running, visible=done == of)

        done = runner.run_jobs(
            listed, compiled=compiled, progress=lambda more: bar.advance(running, more)
        )
        cells = [(n, N) for n in figure.rooms for N in figure.windows]
        document = {
            "curves": [
                {
                    "room": n,
                    "N": N,
                    "seed": seed,
                    "interactions": job.plan.interactions.tolist(),
                    "return": np.asarray(result.returns[row]).tolist(),
                }
                for (n, N), job, result in zip(cells, listed, done.runs, strict=True)
                for row, seed in enumerate(figure.seeds)
            ],
            "expert": {str(job.problem_name): expert_return(job.problem) for job in listed},
            "seconds": round(time.perf_counter() - begun, 3),
            "compile_seconds": round(done.compile_seconds, 3),
            "run_seconds": round(done.run_seconds, 3),
        }
        store.write_json(out / "curves.json", document)
        with store.whole(out / "fig1.png") as draft:
            figures.rooms(document, draft)
    return {**document, "figure": str(out / "fig1.png")}


def table(document: dict[str, Any], shown: tuple[int, ...]) -> Table:
    """Mean return over seeds at the shown interactions, a block a room."""
    t = Table(title="Figure 1: return after so many interactions (exact, mean over seeds)")
    t.add_column("room (expert)")
    t.add_column("N", justify="right")
    for at in shown:
        t.add_column(f"@{at:,}", justify="right")
    previous = None
    for (room, N), curves in by_cell(document).items():
        if previous not in (None, room):
            t.add_section()
        expert = document["expert"][str(room)]
        label = f"{room}×{room} ({expert:.2f})" if previous != room else ""
        t.add_row(label, str(N), *(f"{value_at(curves, at).mean():.2f}" for at in shown))
        previous = room
    return t


def by_cell(document: dict[str, Any]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Curves by (room, N), in the document's order."""
    cells: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for curve in document["curves"]:
        cells.setdefault((curve["room"], curve["N"]), []).append(curve)
    return cells


def value_at(curves: list[dict[str, Any]], interactions: int) -> np.ndarray:
    """Each curve's return at the last measurement up to `interactions`."""
    values = []
    for curve in curves:
        place = np.searchsorted(curve["interactions"], interactions, side="right") - 1
        values.append(curve["return"][place])
    return np.array(values)
