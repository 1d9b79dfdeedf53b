"""How easily a policy of HalfCheetah-v5 falls: pushes in its way, and the falls after them.

    python benchmarks/pushes.py --clones 6                  # clones of ten trajectories, by seed
    python benchmarks/pushes.py runs/a runs/b               # policies of stored runs

From the hundredth step on, every fifty steps, a policy's actions are disturbed by noise for four
steps. It has fallen if its reward, over the last twenty of those fifty, is below 0.3 of the
expert's; that episode then ends. Falls per push are many more than falls per episode, so two
policies are told apart with fewer episodes. The speed is the reward of what was gone on with.
"""

import argparse
import contextlib
import functools
from pathlib import Path

import jax
import numpy as np

from understudy.envs import catalog
from understudy.experiments import train_networks as deep_train
from understudy.learners.deep import acting, clone, expert_points, learner, scaling
from understudy.learners.deep import policy as policies
from understudy.learners.deep.config import PRESETS
from understudy.learners.deep.evaluation import Evaluator

ENV, CONFIG = "HalfCheetah-v5", PRESETS["fast"]
FIRST, EVERY, LENGTH, LOOKED_AT = 100, 50, 4, 20
FIRST_SEED = 60_000


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("runs", nargs="*", type=Path)
    asked.add_argument("--clones", type=int, default=0)
    asked.add_argument("--noise", type=float, nargs="+", default=[0.25, 0.5])
    asked.add_argument("--episodes", type=int, default=50)
    asked = asked.parse_args()
    shown = deep_train.demonstrations(ENV, None, None)
    make = functools.partial(catalog.make, ENV)
    with contextlib.closing(make()) as world:
        border = scaling.of_spaces(world, ENV)
        expert, border = expert_points.expert_points(shown, world, border, CONFIG, ENV)
    usual = shown.returns.mean() / np.mean([len(actions) for actions in shown.actions])

    named = {f"clone, seed {seed}": clone_of(expert, border, seed) for seed in range(asked.clones)}
    named |= {run.name: policies.load(run).actor for run in asked.runs}
    evaluator = Evaluator(make, border, episodes=asked.episodes, name=ENV)
    print("| policy | noise | falls per push | falls | pushes | speed |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, actor in named.items():
        for noise in asked.noise:
            played = evaluator(pushed(acting.deterministic(actor), noise), seed=FIRST_SEED)
            falls, speeds = count(played.rewards, usual)
            pushes = falls + len(speeds)
            rate, speed = falls / pushes, np.mean(speeds)
            print(f"| {name} | {noise} | {rate:.3f} | {falls} | {pushes} | {speed:.2f} |")


def clone_of(expert, border, seed):
    """The clone that a run of the learner with this seed begins with."""
    key, cloning, _ = jax.random.split(jax.random.key(seed), 3)
    settings = learner.resolve(CONFIG)
    state = learner.init(settings, border.observations, border.actions, discrete=False, key=key)
    return clone.clone(state.agent.actor, expert.obs, expert.action, CONFIG, key=cloning)


def pushed(act, noise):
    """The same actions, disturbed in the first steps of every fifty."""
    draws, steps = np.random.default_rng(0), iter(range(1_000_000))

    def acted(obs):
        action, step = act(obs), next(steps)
        if step < FIRST or step % EVERY >= LENGTH:
            return action
        return np.clip(action + noise * draws.normal(size=action.shape), -1, 1).astype(np.float32)

    return acted


def count(episodes, usual):
    """Falls, and the speeds after the pushes that were no fall."""
    falls, speeds = 0, []
    for rewards in episodes:
        for push in range(FIRST, len(rewards), EVERY):
            speed = np.mean(rewards[push + EVERY - LOOKED_AT : push + EVERY]) / usual
            if speed < 0.3:
                falls += 1
                break
            speeds.append(speed)
    return falls, speeds


if __name__ == "__main__":
    main()
