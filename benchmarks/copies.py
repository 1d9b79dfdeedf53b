"""Interactions per second of practice with 1, 4 and 16 copies of an environment, by how they are
stepped: one after another in this process, or each in a process of its own.

    python benchmarks/copies.py                    # Hopper-v5, and a world of 5 ms a step
    python benchmarks/copies.py Pendulum-v1        # another
    python benchmarks/copies.py --seconds 10

The actor is the learner's, fresh, with its usual sizes: it is asked once a step for all copies.
Nothing is learned. `slow:World` waits, as one does that asks another program or a robot.
"""

import argparse
import functools
import sys
import time
from pathlib import Path

import jax

from understudy.envs.given import given
from understudy.learners.deep import acting, copies, scaling
from understudy.learners.deep import actor as actors
from understudy.learners.deep.collect import Collector

COPIES, HIDDEN = (1, 4, 16), (256, 256, 256)


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("envs", nargs="*", default=["Hopper-v5", "slow:World"])
    asked.add_argument("--seconds", type=float, default=5.0)
    asked = asked.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    print(
        f"| environment | copies | one process | processes | auto ({len(copies._cores())} cores) |"
    )
    print("|---|---|---|---|---|")
    for env in asked.envs:
        make = functools.partial(given(env).make, None)
        with make() as world:
            auto = "processes" if copies.slow(world) else "one process"
        for lanes in COPIES:
            rates = [rate(make, env, lanes, processes, asked.seconds) for processes in (False, True)
                     if lanes > 1 or not processes]  # fmt: skip
            told = [f"{each:,.0f}" for each in rates] + ["–"] * (2 - len(rates))
            print(f"| {env} | {lanes} | {' | '.join(told)} | {auto if lanes > 1 else '–'} |")


def rate(make, env: str, lanes: int, processes: bool, seconds: float) -> float:
    """Interactions of all copies, a second."""
    with make() as world:
        border = scaling.of_spaces(world, env)
    actor = actors.actor(
        border.observations, border.actions, HIDDEN, discrete=border.discrete, key=jax.random.key(0)
    )
    sampled = acting.sampling(actor, jax.random.key(1), 0)
    collector = Collector(make, border, lanes=lanes, seed=0, name=env, processes=processes)
    try:
        collector.practise(lambda obs, _: sampled(obs), 50)  # compiles
        steps, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            collector.practise(lambda obs, _: sampled(obs), 10)
            steps += 10 * lanes
        return steps / (time.perf_counter() - begun)
    finally:
        collector.close()


if __name__ == "__main__":
    main()
