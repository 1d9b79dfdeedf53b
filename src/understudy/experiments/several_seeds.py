"""`understudy train --seeds 4`: one run several times, a process a core, a folder a seed."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from understudy.core.errors import UserError
from understudy.envs.given import given
from understudy.experiments import deep_run, runs, train_networks
from understudy.experiments.sweeps import networks
from understudy.experiments.sweeps.networks import Asked
from understudy.experiments.sweeps.sweep import refuse_failed
from understudy.learners.deep import learner
from understudy.learners.deep.config import DeepConfig, check_deep
from understudy.learners.seeds import check_seed

MOST = 1_000


def train(
    env: str,
    config: DeepConfig,
    *,
    seeds: int,
    seed: int = 0,
    out: Path | None = None,
    checkpoint: float = deep_run.SECONDS,
    restart: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """The seeds from `seed` on; each run is the one of its seed alone, in `out`/seedSEED or where
    that one goes. Stopped, the same call goes on in the middle of each."""
    if not 1 <= seeds <= MOST:
        raise UserError(f"--seeds is {seeds}; it must be from 1 to {MOST:,}.")
    check_deep(config)
    check_seed(seed + seeds - 1)
    learner.resolve(config)  # refuses now what each would refuse later
    keys = options.get("keys", ())
    world = given(env, keys)
    shown = train_networks.demonstrations(env, options["demos"], options["trajectories"], keys)
    asked = []
    for one in range(seed, seed + seeds):
        named = {**options, "seed": one}
        request = train_networks.request(world.name, config, shown, **named, named=world.named())
        folder = runs.default(world.name, one) if out is None else out / f"seed{one}"
        asked.append(Asked(env, config, named, request, folder))
    done = networks.work(asked, checkpoint=checkpoint, restart=restart)
    refuse_failed(done["failed"], seeds)
    ended = [runs.summary(one.folder) for one in asked]
    return {
        "env": world.name,
        "return": float(np.mean([of["return"] for of in ended])),
        "worst": min(of["return"] for of in ended),
        "expert_return": ended[0]["expert_return"],
        "seconds": done["seconds"],
        "runs": ended,
    }


def table(summary: dict[str, Any]) -> Table:
    """A line a seed, and their mean."""
    expert = summary["expert_return"]
    t = Table()
    for column in ("seed", "return", "±", *(["of the expert's"] if expert > 0 else []), "run"):
        t.add_column(column, justify="left" if column == "run" else "right")

    def share(of: float) -> list[str]:
        return [f"{of / expert:.3f}"] if expert > 0 else []  # a share of a loss would mislead

    for one in summary["runs"]:
        gained, spread = one["return"], one["return_std"]
        told = [str(one["seed"]), f"{gained:,.1f}", f"{spread:,.1f}", *share(gained)]
        t.add_row(*told, one["run"])
    t.add_section()
    t.add_row("mean", f"{summary['return']:,.1f}", "", *share(summary["return"]))
    return t
