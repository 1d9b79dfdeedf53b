"""Features where tables are hopeless: a room of 10,000 cells and more, and CartPole.

    python benchmarks/linear.py grid        # returns in WideGrid, beside the tabular learner
    python benchmarks/linear.py time        # an iteration at S and at 4S, the simulator apart
    python benchmarks/linear.py cartpole    # five seeds from a scripted expert

Each prints a Markdown table.
"""

import argparse
import time

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from understudy import basis, vectors
from understudy import mdp as mdps
from understudy.config import Config, VectorConfig
from understudy.demos import scripted
from understudy.envs import wide_grid
from understudy.imitation import imitate
from understudy.mdp import MDP

SEEDS = range(5)
EPISODES = 50  # of the expert


def exact_value(mdp: MDP, phi: np.ndarray, weights: np.ndarray) -> float:
    """J of the policy that the weights make, in the table."""
    logits = [phi @ weights[min(h, len(weights) - 1)] for h in range(mdp.horizon)]
    return float(mdps.value(mdp, jax.nn.softmax(jnp.asarray(np.stack(logits)), -1), mdp.reward))


def grid(interactions: int = 4_000) -> None:
    n, H = 100, wide_grid.HORIZON
    mdp, phi = wide_grid.table(n), wide_grid.features(n)
    best = float(mdps.optimum(mdp, mdp.reward)[1])
    everywhere = vectors.features(phi, wide_grid.positions(n))
    print(f"WideGrid {n}×{n}: S = {n * n:,}, d = {phi.size}, H = {H}, expert {best:.2f}, ", end="")
    print(f"{EPISODES} demonstrations; values are exact, as shares of the expert's\n")
    print("| learner | interactions | mean share | worst seed | seconds a seed |")
    print("|---|---:|---:|---:|---:|")
    for stages in ("apart", "shared"):
        config = VectorConfig(interactions=interactions, horizon=H, stages=stages, gamma=0.95)
        shares, begun = [], time.perf_counter()
        for seed in SEEDS:
            demos = wide_grid.demonstrations(n, EPISODES, seed=seed)
            world = wide_grid.WideGridEnv(n)
            result = vectors.imitate(world, phi, demos, config, seed=seed)
            shares.append(exact_value(mdp, everywhere, result.policy) / best)
        each = (time.perf_counter() - begun) / len(SEEDS)
        row = f"{np.mean(shares):.3f} | {np.min(shares):.3f} | {each:.0f}"
        print(f"| linear, stages {stages} | {interactions:,} | {row} |", flush=True)
    for model in ("known", "learned"):
        config = Config(
            interactions=interactions, batch=1, window="4", model=model, ledger=False, marks=1
        )
        begun = time.perf_counter()
        share = imitate(mdp, None, config).returns[0, -1] / best
        each = time.perf_counter() - begun
        row = f"{share:.3f} | {share:.3f} | {each:.0f}"
        print(f"| tabular, transitions {model}, 1 seed | {interactions:,} | {row} |", flush=True)


def per_iteration(n: int, config: VectorConfig, updates: int = 40) -> tuple[float, float]:
    """Seconds of an update, and of the episode before it."""
    phi, rng = wide_grid.features(n), np.random.default_rng(0)
    shape, numbers = vectors.plan(phi, config)
    demos = wide_grid.demonstrations(n, EPISODES, seed=0)
    expert, world = vectors.of_demonstrations(phi, demos, shape), wide_grid.WideGridEnv(n)
    state, learning, acting = vectors.init(phi, shape), [], []
    for _ in range(updates):
        begun = time.perf_counter()
        fresh, _ = vectors.practise(world, phi, np.asarray(state.policy), shape, rng)
        between = time.perf_counter()
        state = jax.block_until_ready(vectors.step(state, fresh, expert, numbers, shape))
        learning.append(time.perf_counter() - between)
        acting.append(between - begun)
    return float(np.median(learning[5:])), float(np.median(acting[5:]))


def growth() -> None:
    config = VectorConfig(interactions=4_000, horizon=wide_grid.HORIZON, stages="apart")
    found = {n: [per_iteration(n, config) for _ in range(3)] for n in (100, 200)}
    best = {n: np.min(times, axis=0) for n, times in found.items()}
    print("| S | ms an update | ms an episode in the simulator |")
    print("|---:|---:|---:|")
    for n, (learning, acting) in best.items():
        print(f"| {n * n:,} | {learning * 1e3:.1f} | {acting * 1e3:.1f} |")
    ratio = best[200] / best[100]
    print(f"\nFour times the states: update × {ratio[0]:.2f}, episode × {ratio[1]:.2f}")


def cartpole(interactions: int = 10_000) -> None:
    world = gymnasium.make("CartPole-v1")
    low = np.array([-2.4, -2.5, -0.21, -2.5])
    phi = basis.parse("fourier:2", low, -low, 2)
    config = VectorConfig(interactions=interactions)
    print("| seed | expert | return, 100 episodes | worst episode | share | interactions |")
    print("|---:|---:|---:|---:|---:|---:|")
    for seed in SEEDS:
        demos = scripted.record(world, scripted.EXPERTS["CartPole-v1"], 10, seed=seed)
        result = vectors.imitate(world, phi, demos, config, seed=seed)
        played = vectors.play(world, phi, result.policy, horizon=500, episodes=100, seed=seed)
        expert, mean = demos.returns.mean(), played.mean()
        row = f"{expert:.1f} | {mean:.1f} | {played.min():.0f} | {mean / expert:.3f}"
        print(f"| {seed} | {row} | {result.interactions[-1]:,} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("grid", "time", "cartpole"))
    {"grid": grid, "time": growth, "cartpole": cartpole}[parser.parse_args().what]()
