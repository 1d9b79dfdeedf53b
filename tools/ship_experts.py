"""The demonstrations that come with the package, by the experts of results/experts.

    python tools/ship_experts.py              # all of them; or their names

Each policy is played deterministically, episode i reset with seed 10,000 + i, and written in single
precision. Where observations are large there are four episodes in place of ten.
"""

import argparse
import dataclasses
from pathlib import Path

import numpy as np

from understudy.core.demonstrations import Demonstrations
from understudy.core.precision import double
from understudy.demos import npz, recording
from understudy.experiments import train_networks
from understudy.learners.deep.evaluation import FIRST_SEED

HOME = Path(__file__).resolve().parent.parent
EXPERTS = HOME / "results" / "experts"
DATA = HOME / "src" / "understudy" / "demos" / "data"
LARGE = 50  # numbers in an observation


@double
def played(run: Path) -> Demonstrations:
    """Episodes of the expert in a run's folder."""
    policy, env, _ = train_networks.stored(run, None)
    episodes = 4 if np.prod(policy.observation_shape) > LARGE else 10
    shown = recording.record(env, recording.predicting(policy), episodes, seed=FIRST_SEED)
    return dataclasses.replace(
        shown,
        observations=[x.astype(np.float32) for x in shown.observations],
        actions=[x if x.dtype.kind in "iu" else x.astype(np.float32) for x in shown.actions],
        rewards=[x.astype(np.float32) for x in shown.rewards],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("envs", nargs="*", help="all with a finished run, if not given")
    parser.add_argument("--to", type=Path, default=DATA, help="the folder they are written to")
    asked = parser.parse_args()
    done = sorted(path.parent.name for path in EXPERTS.glob("*/done.json"))
    for env in asked.envs or done:
        shown = played(EXPERTS / env)
        target = asked.to / f"{env}.npz"
        npz.write(target, shown)
        lengths = [len(actions) for actions in shown.actions]
        print(
            f"{env}: {len(shown)} episodes of {min(lengths):,} to {max(lengths):,} steps, return "
            f"{shown.returns.mean():,.1f} ± {shown.returns.std():,.1f}, "
            f"{target.stat().st_size / 1e6:.2f} MB"
        )


if __name__ == "__main__":
    main()
