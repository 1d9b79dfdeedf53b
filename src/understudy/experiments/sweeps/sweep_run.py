"""Run a sweep, with the learner that its config is of."""

from pathlib import Path
from typing import Any

from understudy.core.errors import UserError
from understudy.experiments import kinds, store
from understudy.experiments.sweeps.cluster import Cluster
from understudy.experiments.sweeps.sweep import Sweep


def run(
    sweep: Sweep,
    out: Path,
    on: Cluster | None = None,
    checkpoint: float | None = None,
    *,
    restart: bool = False,
) -> dict[str, Any]:
    """Run what is not done yet, each run in a folder of its own below `out`: here, or on a cluster.
    A deep run keeps where it is every `checkpoint` seconds. With `restart`, runs that are damaged
    or have failed are moved aside first."""
    with store.workplace(out):
        kind = kinds.of_config(sweep.config)
        if kind.sweep is None:
            raise UserError(f"There are no sweeps of runs with {kind.name}; use understudy train.")
        return kind.sweep(sweep, out, on, checkpoint, restart=restart)
