"""Several seeds at once: a process a core, or one process that maps over seeds (`vmap`)?

    python benchmarks/seeds.py

An iteration is that of `understudy train HalfCheetah-v5` without practice. `understudy sweep`,
`compare` and `train --seeds` give each seed a process, and each process a core; the rival is one
process with all cores whose state has an axis of seeds. Both are run in turns on the same cores,
and told as milliseconds of wall time and of CPU time, an iteration and seed.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time

ITERATIONS = 12  # timed in a round, after two that are not
ROUNDS = 5


def iteration(seeds: int):
    """A function that takes one iteration of so many seeds; one seed has no axis."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from understudy.learners.deep import learner
    from understudy.learners.deep.actor_critic import Transitions
    from understudy.learners.deep.config import PRESETS

    states, actions = 17, 6  # HalfCheetah's
    settings = learner.resolve(PRESETS["fast"])
    rng = np.random.default_rng(0)

    def some(n):
        obs, after = rng.normal(size=(2, n, states)).astype(np.float32)
        action = rng.uniform(-1, 1, (n, actions)).astype(np.float32)
        return Transitions(*map(jnp.asarray, (obs, action, after)), jnp.zeros(n, bool))

    practised, expert = some(settings.fresh), some(10_000)
    none = jnp.zeros(settings.fresh, bool)
    begin = functools.partial(learner.init, settings, states, actions, discrete=False)
    step = functools.partial(learner.step, settings=settings, ended=none)
    if seeds == 1:
        state = begin(key=jax.random.key(0))
    else:
        keys = jax.vmap(jax.random.key)(jnp.arange(seeds))
        state = jax.vmap(lambda key: begin(key=key))(keys)
        step = jax.jit(jax.vmap(step, in_axes=(0, None, None)), donate_argnums=0)
    holder = [state]

    def once():
        holder[0] = step(holder[0], practised, expert)[0]
        jax.block_until_ready(holder[0].k)

    return once


def serve(seeds: int) -> None:
    """Time a round whenever a line comes, and answer with wall and CPU seconds."""
    once = iteration(seeds)
    once(), once()
    print("ready", flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(ITERATIONS):
            once()
        print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]), flush=True)


def server(seeds: int, cores: set[int]) -> subprocess.Popen:
    found = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(seeds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )  # fmt: skip
    assert found.stdout is not None
    assert found.stdout.readline() == "ready\n"
    return found


def rounds(servers: list[subprocess.Popen], seeds: int) -> tuple[float, float]:
    """Milliseconds of wall and CPU time, an iteration and seed, where all run at once."""
    for one in servers:
        one.stdin.write("go\n")
        one.stdin.flush()
    told = [json.loads(one.stdout.readline()) for one in servers]
    every = ITERATIONS * seeds * len(servers)
    return 1e3 * max(t[0] for t in told) / every, 1e3 * sum(t[1] for t in told) / every


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    asked.add_argument("--seeds", type=int, nargs="*", default=[2, 4])
    asked = asked.parse_args()
    if asked.serve:
        return serve(asked.serve)
    cores = os.sched_getaffinity(0)
    ways = {"a process a core": ([server(1, {core}) for core in cores], 1)}
    ways |= {f"{n} seeds by vmap": ([server(n, cores)], n) for n in asked.seeds}
    told = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, (servers, seeds) in ways.items():
            told[way].append(rounds(servers, seeds))
    for servers, _ in ways.values():
        for one in servers:
            one.stdin.close()
            one.wait()
    print(f"{len(cores)} cores; median of {ROUNDS}, milliseconds an iteration and seed")
    for way, pairs in told.items():
        wall, cpu = (statistics.median(x) for x in zip(*pairs, strict=True))
        print(f"{way:20} wall {wall:6.1f}   CPU {cpu:6.1f}")


if __name__ == "__main__":
    main()
