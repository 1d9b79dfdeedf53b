"""All that the page shows, as one JSON document. No curve of a single run is in it, so a thousand
runs stay light."""

from collections.abc import Iterable, Sequence

from understudy.experiments.figures import palette
from understudy.experiments.report.cells import Json, by_size, gather
from understudy.experiments.report.judged import judgements, readings
from understudy.experiments.report.networks import learned
from understudy.experiments.report.sections import (
    dimensions,
    learning_curves,
    ledger_of,
    rates,
    replays,
)
from understudy.experiments.stored_runs import StoredRun

DASHES = {"-": "solid", "--": "dash", "-.": "dashdot", ":": "dot"}


def collect(stored: Sequence[StoredRun], verdicts: Iterable[Json] = ()) -> Json:
    """All that the page shows, as one JSON document."""
    cells, repeated = gather(stored)
    windows = sorted({cell.window for cell in cells}, key=by_size)
    return {
        "runs": len(stored),
        "repeated": repeated,
        "verdicts": [
            {
                "figure": str(document.get("figure", "")),
                "rule": str(document.get("rule", "")),
                "rows": judgements(document),
                "readings": readings(document),
            }
            for document in verdicts
        ],
        "windows": [
            {"N": N, "colour": palette.colour(N), "dash": DASHES[palette.line_style(N)]}
            for N in windows
        ],
        "curves": learning_curves(cells),
        "networks": learned(cells),
        "finite": not stored or any(run.kind != "networks" for run in stored),
        "ledgers": [ledger for cell in cells if (ledger := ledger_of(cell)) is not None],
        "cells": len(cells),
        "rates": rates(cells),
        "dimensions": dimensions(stored),
        "replays": replays(cells),
    }
