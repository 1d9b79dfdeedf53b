"""What a person sees: everything on stderr, so that stdout stays for `--json`."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from understudy.core.errors import plain
from understudy.experiments import streams

err = Console(stderr=True, highlight=False, markup=False)  # a path may look like markup


class Rate(ProgressColumn):
    """So many a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.{0 if speed >= 10 else 1}f}/s")


def bar() -> Progress:
    """A progress bar with counts, their rate, time gone and time left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,  # a log needs no bar, nor the blank line it would leave
    )


@contextlib.contextmanager
def watching(
    env: str, total: int, done: int, expert_return: float | None
) -> Iterator[Callable[[int, Mapping[str, Any] | None], None]]:
    """A run with networks as it goes: its interactions, and its return beside the expert's."""
    with bar() as shown:
        task = shown.add_task(f"{env}, interactions", total=total)
        shown.update(task, completed=done)

        def tell(n: int, row: Mapping[str, Any] | None) -> None:
            if row is not None:
                told = f"return {row['return']:,.0f}"
                if expert_return and expert_return > 0:
                    told += f", {row['return'] / expert_return:.0%} of the expert's"
                shown.update(task, description=f"{env}, {told}, interactions")
                if not err.is_terminal:
                    say(f"{n:,} interactions: {told}")
            shown.update(task, completed=n)

        yield tell


def working(what: str) -> contextlib.AbstractContextManager[object]:
    """Says what takes a while, where someone is looking."""
    return err.status(what) if err.is_terminal else contextlib.nullcontext()


def print_json(document: Mapping[str, Any]) -> None:
    """All of it, or nothing."""
    streams.write(json.dumps(document, allow_nan=False))


def say(sentence: str) -> None:
    """One line, however long: a path or a command must stay in one piece to be copied."""
    err.print(plain(sentence), soft_wrap=True)
