"""How good a clone is, by its depth and by what it is fitted to: the share of the expert's return,
and how often an episode stays below 0.8 of it.

    python benchmarks/cloning.py                                  # HalfCheetah-v5, ten trajectories
    python benchmarks/cloning.py Walker2d-v5 --trajectories 1

Each clone is `deep/clone.py`'s, with three seeds; `square` has the squared distance of mode and
action in place of their cross-entropy. Episodes are none of those that demonstrations begin with.
"""

import argparse
import contextlib
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from understudy.envs import catalog
from understudy.experiments import train_networks as deep_train
from understudy.learners.deep import acting, clone, expert_points, scaling
from understudy.learners.deep.actor import Gaussian, actor
from understudy.learners.deep.config import PRESETS
from understudy.learners.deep.evaluation import Evaluator

CONFIG = PRESETS["fast"]
FIRST_SEED = 50_000
LOSSES = {
    "cross-entropy": Gaussian.miss,
    "square": lambda self, action: jnp.sum((self.mode() - action) ** 2, axis=-1),
}


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("env", nargs="?", default="HalfCheetah-v5")
    asked.add_argument("--trajectories", type=int)
    asked.add_argument("--depths", type=int, nargs="+", default=[2, 3])
    asked.add_argument("--seeds", type=int, default=3)
    asked.add_argument("--episodes", type=int, default=40)
    asked = asked.parse_args()
    shown = deep_train.demonstrations(asked.env, None, asked.trajectories)
    make = functools.partial(catalog.make, asked.env)
    with contextlib.closing(make()) as world:
        border = scaling.of_spaces(world, asked.env)
        expert, border = expert_points.expert_points(shown, world, border, CONFIG, asked.env)
    evaluator = Evaluator(make, border, episodes=asked.episodes, name=asked.env)
    print("| hidden layers | fitted by | share of the expert's, by seed | episodes below 0.8 |")
    print("|---:|---|---|---:|")
    for depth, loss in itertools.product(asked.depths, LOSSES):
        Gaussian.miss = LOSSES[loss]
        jax.clear_caches()
        shares = []
        for seed in range(asked.seeds):
            beginning, fitting = jax.random.split(jax.random.key(seed))
            sizes = (CONFIG.hidden,) * depth
            pi = actor(border.observations, border.actions, sizes, discrete=False, key=beginning)
            pi = clone.clone(pi, expert.obs, expert.action, CONFIG, key=fitting)
            played = evaluator(acting.deterministic(pi), seed=FIRST_SEED)
            shares.append(np.asarray(played.returns) / shown.returns.mean())
        each = ", ".join(f"{share.mean():.2f}" for share in shares)
        print(f"| {depth} | {loss} | {each} | {np.mean(np.stack(shares) < 0.8):.0%} |", flush=True)


if __name__ == "__main__":
    main()
