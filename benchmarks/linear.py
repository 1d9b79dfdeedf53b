"""Features where tables are hopeless: a room of 10,000 cells and more, and CartPole.

    python benchmarks/linear.py grid        # returns in WideGrid, beside the tabular learner
    python benchmarks/linear.py time        # an iteration at S and at 4S, the simulator apart
    python benchmarks/linear.py cartpole    # five seeds from a scripted expert
    python benchmarks/linear.py learned     # regressed transitions beside known ones

Each prints a Markdown table.
"""

import argparse
import time
from collections.abc import Iterator

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from understudy.core import mdp as mdps
from understudy.core import vector_features as basis
from understudy.core.linear_mdp import random_linear
from understudy.core.mdp import MDP
from understudy.demos import scripted
from understudy.envs import wide_grid
from understudy.learners import vectors
from understudy.learners.config import Config, VectorConfig
from understudy.learners.finite import imitate

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
            demos = scripted.across_the_wide_grid(n, EPISODES, seed=seed)
            world = wide_grid.WideGridEnv(n)
            result = vectors.imitate(world, phi, demos, config, seed=seed)
            shares.append(exact_value(mdp, everywhere, result.policy) / best)
        each = (time.perf_counter() - begun) / len(SEEDS)
        row = f"{np.mean(shares):.3f} | {np.min(shares):.3f} | {each:.0f}"
        print(f"| linear, stages {stages} | {interactions:,} | {row} |", flush=True)
    for model in ("known", "learned"):
        config = Config(
            interactions=interactions, batch=1, window="4", steps="paper", visits="sampled",
            handed="last", model=model, ledger=False, marks=1,
        )  # fmt: skip
        begun = time.perf_counter()
        share = imitate(mdp, None, config).returns[0, -1] / best
        each = time.perf_counter() - begun
        row = f"{share:.3f} | {share:.3f} | {each:.0f}"
        print(f"| tabular, transitions {model}, 1 seed | {interactions:,} | {row} |", flush=True)


def updates(n: int, config: VectorConfig) -> Iterator[tuple[float, float]]:
    """Seconds of each update, and of the episode before it."""
    phi, rng = wide_grid.features(n), np.random.default_rng(0)
    shape, numbers = vectors.plan(phi, config)
    demos = scripted.across_the_wide_grid(20, EPISODES, seed=0)  # positions: they fit every n
    expert, world = vectors.of_demonstrations(phi, demos, shape), wide_grid.WideGridEnv(n)
    state = vectors.init(phi, shape)
    while True:
        begun = time.perf_counter()
        fresh, _ = vectors.practise(world, phi, np.asarray(state.policy), shape, rng)
        between = time.perf_counter()
        state = jax.block_until_ready(vectors.step(state, fresh, expert, numbers, shape))
        yield time.perf_counter() - between, between - begun


def growth(rounds: int = 80) -> None:
    """The two rooms update by update in alternation, so that both meet the same machine."""
    config = VectorConfig(interactions=4_000, horizon=wide_grid.HORIZON, stages="apart")
    rooms = {n: updates(n, config) for n in (100, 200)}
    times = np.array([[next(room) for room in rooms.values()] for _ in range(rounds)])
    middle = np.median(times[5:], axis=0)  # the first ones compile
    print("| S | ms an update | ms an episode in the simulator |")
    print("|---:|---:|---:|")
    for n, (learning, acting) in zip(rooms, middle, strict=True):
        print(f"| {n * n:,} | {learning * 1e3:.1f} | {acting * 1e3:.1f} |")
    ratio = middle[1] / middle[0]
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


def learned() -> None:
    world, Ks = random_linear(0, S=12, A=3, H=6, d=8), (500, 2_000, 8_000)
    print("RandomLinear-d8, theory's steps, N = 4, one trajectory per update, 3 seeds\n")
    print(
        "| transitions | " + " | ".join(f"regret, K = {K:,}" for K in Ks) + " | exponent |", end=""
    )
    print(" return / expert, K = 8,000 |\n|---|" + "---:|" * (len(Ks) + 2))
    for name, change in (
        ("known", {}),
        ("regressed, no bonus", {"model": "learned", "bonus": 0.0}),
        ("regressed, 10⁻² of the theory's bonus", {"model": "learned", "bonus": 1e-2}),
        ("regressed, the theory's bonus", {"model": "learned", "bonus": 1.0}),
    ):
        ends = []
        for K in Ks:
            config = Config(
                batch=1, window="4", steps="theory", visits="sampled", handed="last",
                counts="stage", marks=1, interactions=6 * K, **change,
            )  # fmt: skip
            result = imitate(world, None, config, seeds=range(3))
            ends.append(float(result.regret.ail[:, -1].mean()))
        rate = np.polyfit(np.log(Ks), np.log(ends), 1)[0]
        share = result.returns[:, -1].mean() / result.expert_return
        cells = " | ".join(f"{end:,.0f}" for end in ends)
        print(f"| {name} | {cells} | {rate:.2f} | {share:.3f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("grid", "time", "cartpole", "learned"))
    parts = {"grid": grid, "time": growth, "cartpole": cartpole, "learned": learned}
    parts[parser.parse_args().what]()
