"""The compiled tabular learner beside a plain NumPy loop of the same algorithm, in one run.

    python benchmarks/tabular.py            # the whole Figure-1 grid, then growing rooms
    python benchmarks/tabular.py --quick    # one seed of NumPy, scaled up by the number of seeds

Prints the ratio of the two for the whole grid (compile time apart), and the time per iteration of
rooms up to 50×50 divided by H·S·A·C, which stays level if the cost is linear.
"""

import argparse
import dataclasses
import resource
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from understudy.envs import catalog
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.experiments.figures.fig1 import SWEEP as FIGURE_1
from understudy.experiments.sweeps import runner
from understudy.experiments.sweeps.sweep import Sweep
from understudy.learners import tabular
from understudy.learners.config import Config
from understudy.learners.finite import expert_occupancy, plan, stack
from understudy.learners.seeds import keys_of
from understudy.learners.tabular import Problem

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))
import plain  # the loop that the tests rely on

CONFIG = Config(
    window="32", points=32, steps="paper", visits="sampled", handed="last", ledger=False
)  # as in the figure


def numpy_grid(figure: Sweep, jobs: list[runner.Job], quick: bool) -> tuple[float, list[float]]:
    """Seconds of the loop over the grid, and the final returns to see that it learns the same."""
    seconds, returns = 0.0, []
    seeds = figure.seeds[:1] if quick else figure.seeds
    for job in jobs:
        p, mdp = job.plan, job.problem.mdp
        succ, d_E = np.asarray(mdp.succ[0, :, :, 0]), np.asarray(job.problem.expert)
        reward = np.asarray(mdp.reward[0, :, 0])
        for seed in seeds:
            rng = np.random.default_rng(seed)
            begun = time.perf_counter()
            pi, _ = plain.learn(
                succ,
                d_E,
                start=0,
                N=int(p.settings.reuse.c),
                m=32,
                fresh=p.protocol.fresh,
                sigma=float(p.settings.sigma),
                eta=float(p.settings.eta),
                iterations=p.iterations,
                draws=lambda k, rng=rng, fresh=p.protocol.fresh: (
                    rng.random(fresh),
                    rng.random(32),
                ),
            )
            seconds += time.perf_counter() - begun
        returns.append(plain.value(pi, succ, reward, 0))
    return seconds * len(figure.seeds) / len(seeds), returns


def figure_jobs(figure: Sweep) -> list[runner.Job]:
    """The figure's runs without their ledger, which the loop does not keep either."""
    listed = []
    for env in figure.envs:
        task = catalog.find(env)
        problem = Problem(task.mdp, expert_occupancy(task.mdp, task.demonstrations))
        for config in figure.settings():
            planned = plan(task.mdp, dataclasses.replace(config, ledger=False, replay=False))
            listed.append(runner.Job(task.name, problem, planned, figure.seeds))
    return listed


def grid(quick: bool) -> None:
    figure = FIGURE_1
    jobs = figure_jobs(figure)
    ours = runner.run_jobs(jobs)
    again = min(runner.run_jobs(jobs).run_seconds for _ in range(2))
    theirs, returns = numpy_grid(figure, jobs, quick)
    mine = [float(run.returns[:, -1].mean()) for run in ours.runs]
    worst = max(abs(a - b) for a, b in zip(mine, returns, strict=True))
    print(
        f"Figure-1 grid: {len(jobs)} settings × {len(figure.seeds)} seeds, two cores if there are"
    )
    print(f"  plain NumPy loop   {theirs:8.2f} s" + ("  (one seed, scaled)" if quick else ""))
    print(f"  understudy         {again:8.2f} s   + {ours.compile_seconds:.2f} s compiling, once")
    print(f"  ratio              {theirs / again:8.1f}")
    print(f"  largest difference of final mean returns: {worst:.3f} (different random draws)")


def growth() -> None:
    print("\nOne iteration, N = 32, known P, one run, against the room's size")
    print("  room      H·S·A·C    µs/iteration    ns per H·S·A·C")
    for n in (10, 20, 35, 50):
        mdp = empty_room(n)
        problem = Problem(mdp, expert_occupancy(mdp, demonstrations(n)))
        p = plan(mdp, CONFIG)
        keys, batch = keys_of([0]), stack(p.settings, 1)

        def to(k: int, state: tabular.State, args=(problem, batch, p.protocol), keys=keys):
            run = tabular.advance(state, *args, jnp.array([k], jnp.int32), keys=keys)
            return run.returns.block_until_ready()

        to(1, tabular.start(problem, p.protocol, keys=keys))  # which is used up
        state = tabular.start(problem, p.protocol, keys=keys)
        iterations = max(20, 4_000_000 // problem.expert.size)
        begun = time.perf_counter()
        to(iterations, state)
        each = (time.perf_counter() - begun) / iterations
        size = problem.expert.size * mdp.succ.shape[-1]
        print(f"  {n}×{n}  {size:11,d}  {each * 1e6:14.0f}  {each / size * 1e9:16.2f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"  peak memory of this process {peak:.2f} GB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed of the NumPy loop")
    grid(parser.parse_args().quick)
    growth()
