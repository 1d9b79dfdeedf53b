"""What a person sees: everything on stderr, so that stdout stays for `--json`."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

err = Console(stderr=True, highlight=False)


def bar() -> Progress:
    """A progress bar with counts, time gone and time left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    )


def print_json(document: Mapping[str, Any]) -> None:
    json.dump(document, sys.stdout, allow_nan=False)
    sys.stdout.write("\n")
