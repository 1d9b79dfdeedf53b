"""How a run stands in its folder: new, stopped, failed, done; or damaged, or another's, which is
refused. Everybody who is about to write a run asks here first."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from understudy.core.errors import Diverged, UserError
from understudy.experiments import console, run_files, store
from understudy.experiments.run_files import CHECKPOINT, CONFIG, FAILED, MARKER, METRICS, RESULTS

# What older runs do not say, and so is no part of a run's name: the demonstrations' rewards, by
# which runs are measured, and the kind of its learner.
YOUNGER = ("shown_rewards", "kind")
Standing = Literal["new", "stopped", "failed", "done"]


def prepare(
    folder: Path, request: Mapping[str, Any], *, restart: bool = False, tables: bool = False
) -> Standing:
    """Make a folder that is this process's own ready for a run, new or gone on with; with
    `restart`, what is there of it is moved aside first. Runs with `tables` have no checkpoint."""
    if restart:
        move_aside(folder, request)
    standing = of_run(folder, request)
    if standing == "failed":
        why = failure(folder)
        raise Diverged(
            f"The run in {folder}, which --restart begins anew, has failed before: {why}"
        )
    if standing == "stopped" and tables:
        raise run_files.Damaged(folder, f"it holds {CHECKPOINT}, which such a run never writes")
    if standing == "done":  # a kill may have come right after its marker
        run_files.remove_drafts(folder)
    return standing


def mend(folder: Path, request: Mapping[str, Any]) -> None:
    """Move a run aside that is damaged or has failed; others stay as they are."""
    try:
        lost = of_run(folder, request) == "failed"
    except run_files.Damaged:
        lost = True
    if lost:
        move_aside(folder, request)


def of_run(folder: Path, request: Mapping[str, Any]) -> Standing:
    """How the run stands; a sentence where what is there cannot be accounted for."""
    names = run_files.found(folder) if folder.is_dir() else []
    if request.get("method") == "sac":
        names += run_files.datasets(folder)
    if not names:
        return "new"
    if CONFIG not in names:
        raise run_files.Damaged(folder, f"it holds {names[0]}, but its {CONFIG} is missing")
    config = run_files.read(folder / CONFIG)
    if config is None:
        raise run_files.Damaged(folder, f"its {CONFIG} cannot be read")
    if not asks(config, request):
        raise UserError(
            f"The folder {folder} holds another run ({CONFIG}); choose another folder (--out)."
        )
    if MARKER in names:
        if why := run_files.amiss(folder, run_files.read(folder / MARKER)):
            raise run_files.Damaged(folder, why)
        return "done"
    if FAILED in names:
        if failure(folder) is None:
            raise run_files.Damaged(folder, f"its {FAILED} is not one that understudy wrote")
        return "failed"
    if (folder / CONFIG).read_text(encoding="utf-8") != store.rendered(config):
        raise run_files.Damaged(folder, f"its {CONFIG} was changed")
    ending = run_files.unfinished(folder)
    for name in RESULTS:
        if name in names and not run_files.accounted(folder, name, ending):
            raise run_files.Damaged(folder, f"it holds {name}, though it has not finished")
    if CHECKPOINT in names:
        return "stopped"
    if METRICS in names and not run_files.written((folder / METRICS).read_bytes()):
        raise run_files.Damaged(folder, f"its {METRICS} holds what understudy did not write")
    return "new"


def asks(config: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Whether a run's config is of this request, whatever versions it ran with."""
    there = {k: v for k, v in config.items() if k != "versions"}
    asked = store.plain(request)
    return there == {k: v for k, v in asked.items() if k not in YOUNGER or k in there}


def failure(folder: Path) -> str | None:
    """Why the run in `folder` cannot go on, if it cannot."""
    said = (run_files.read(folder / FAILED) or {}).get("failed")
    return said if isinstance(said, str) else None


def clear(folder: Path, *, metrics: bool = True) -> None:
    """Take away what a killed process left of a run that `of_run` has accounted for; drafts last,
    for they account for the others."""
    store.still(folder)
    for name in (*RESULTS, *([METRICS] if metrics else [])):
        (folder / name).unlink(missing_ok=True)
    run_files.remove_drafts(folder)


def move_aside(folder: Path, request: Mapping[str, Any]) -> Path | None:
    """Move the run's own files into a dated folder beside it, and say where they are. Another run
    is refused: this one is begun anew, not that one."""
    names = run_files.found(folder)
    config = run_files.read(folder / CONFIG)
    if config is not None and not asks(config, request):
        raise UserError(
            f"The folder {folder} holds another run ({CONFIG}); choose another folder (--out)."
        )
    if request.get("method") == "sac":
        names += run_files.datasets(folder)
    if not names:
        return None
    with store.room_for(folder):
        store.still(folder)
        to = _beside(folder.resolve())
        run_files.move_aside(folder, to, names)
    console.say(f"The run that was in {folder} is in {to.name} beside it now.")
    return to


def _beside(folder: Path) -> Path:
    """A new folder, named after the run's and the time."""
    dated = f"{folder.name}.{time.strftime('%Y-%m-%d-%H%M%S')}"
    for number in range(1, 10_000):
        to = folder.with_name(dated if number == 1 else f"{dated}-{number}")
        try:
            to.mkdir()
        except FileExistsError:
            continue
        return to
    raise UserError(f"There are too many folders {dated} beside {folder}{os.sep}.")
