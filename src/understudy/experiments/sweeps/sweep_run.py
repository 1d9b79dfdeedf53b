"""Run a sweep, with the learner that its config is of."""

from pathlib import Path
from typing import Any

from understudy.core.errors import UserError
from understudy.experiments import deep_run, store
from understudy.experiments.sweeps import networks, tables
from understudy.experiments.sweeps.cluster import Cluster
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners.deep.config import DeepConfig


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
        if isinstance(sweep.config, DeepConfig):
            seconds = deep_run.SECONDS if checkpoint is None else checkpoint
            return networks.run(sweep, out, on, seconds, restart=restart)
        if checkpoint is not None:
            raise UserError("--checkpoint is for runs with networks; those with tables have none.")
        return tables.run(sweep, out, on, restart=restart)
