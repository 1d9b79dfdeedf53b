"""`understudy report`, `draw` and `table`: their arguments."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from understudy.cli.demos import Json
from understudy.core.errors import UserError
from understudy.experiments import streams


@dataclass(frozen=True)
class Report:
    """One self-contained HTML page about stored runs: verdicts, curves, regret, replay, theory."""

    runs: Positional[Path]
    """A folder of runs, or of folders of runs."""
    out: Path | None = None
    """The page; RUNS/report.html if not given."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, report

        written = report.write(self.runs, self.out or self.runs / "report.html")
        for sentence in written["skipped"]:
            console.say(f"Skipped: {sentence}")
        console.say(f"Report on {written['runs']} runs: {written['report']}")
        if self.json:
            console.print_json(written)


def _stored(folder: Path) -> tuple[list[Any], list[str]]:
    """The finished runs at or below a folder, at least one; what is skipped is told."""
    from understudy.experiments import console, stored_runs

    stored, skipped = stored_runs.load(folder)
    for sentence in skipped:
        console.say(f"Skipped: {sentence}")
    if not stored:
        raise UserError(f"There is no finished run at or below {folder}.")
    return stored, skipped


@dataclass(frozen=True)
class Draw:
    """Draw the learning curves of stored runs, as PNG and PDF."""

    runs: Positional[Path]
    """A folder of runs, or of folders of runs."""
    band: Literal["std", "stderr", "iqm"] = "std"
    """Mean ± standard deviation, ± standard error, or interquartile mean with 95 % bootstrap."""
    out: Path | None = None
    """Where to, without a suffix; RUNS/curves if not given."""
    title: str | None = None
    """A title above the panels."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, figures

        stored, skipped = _stored(self.runs)
        drawn = figures.curves(
            stored, self.out or self.runs / "curves", band=self.band, title=self.title
        )
        console.say(f"{len(stored)} runs: {' and '.join(map(str, drawn))}")
        if self.json:
            console.print_json(
                {"figures": [*map(str, drawn)], "runs": len(stored), "skipped": skipped}
            )


@dataclass(frozen=True)
class Table:
    """Tabulate stored runs in Markdown: a row a setting, shares of the expert's return."""

    runs: Positional[Path]
    """A folder of runs, or of folders of runs."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, tables

        stored, _ = _stored(self.runs)
        found = tables.rows(stored)
        if self.json:
            console.print_json({"rows": [vars(row) for row in found]})
            return
        if told := tables.shared(stored):
            console.say(f"All with: {told}.")
        streams.write(tables.markdown(found))
