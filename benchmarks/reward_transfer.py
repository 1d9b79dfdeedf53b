"""A reward that was learned, and PPO of Stable-Baselines3 on it: where it was learned, and in a
changed body.

    python benchmarks/reward_transfer.py runs/Hopper-v5-seed0                 # hours
    python benchmarks/reward_transfer.py runs/Hopper-v5-seed0 --steps 4096 --seeds 1 --episodes 1

PPO begins from nothing. It is paid the learned reward, or the task's own for comparison; told is
the task's own return in the body that it has learned in, of deterministic episodes, as a share of
the demonstrations' in the usual body. `as it is` plays the run's own policy there, untrained. PPO
has its defaults, but for observations that are standardised as they come, which MuJoCo needs.

Needs `pip install 'understudy[mujoco,sb3]'`; a row appears when its seeds are done.
"""

import argparse
import contextlib
import tempfile
import time
import warnings
from pathlib import Path
from xml.etree import ElementTree

import gymnasium
import numpy as np
import torch
from gymnasium.envs.mujoco import hopper_v5
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import understudy
from understudy.demos import rollout
from understudy.experiments import runs

ENV = "Hopper-v5"
FIRST_SEED = 50_000  # of the episodes that are told
LEG, FRICTION = 0.1, 1.5  # metres more, of 0.5; times as much
REWARDS = ("learned", "task", "as it is")


def usual(body: ElementTree.Element) -> None:
    """As it is."""


def longer_leg(body: ElementTree.Element) -> None:
    """The lower leg, between knee and ankle; all that hangs on it moves along."""
    shift(body, "body[@name='torso']", "pos", LEG)
    for joint in ("rootx", "rootz"):
        shift(body, f"joint[@name='{joint}']", "pos", -LEG)
    shift(body, "joint[@name='rootz']", "ref", LEG)
    shift(body, "body[@name='leg']", "pos", -LEG / 2)
    shift(body, "joint[@name='leg_joint']", "pos", LEG / 2)
    shift(body, "geom[@name='leg_geom']", "size", LEG / 2)
    shift(body, "body[@name='foot']", "pos", -LEG / 2)


def more_friction(body: ElementTree.Element) -> None:
    """Of every part that touches the floor; of two that touch, the rougher counts."""
    for geom in body.iter("geom"):
        if "friction" in geom.attrib:
            geom.set("friction", str(FRICTION * float(geom.get("friction", "1"))))


BODIES = {"usual": usual, "longer leg": longer_leg, "more friction": more_friction}


def shift(body: ElementTree.Element, what: str, name: str, by: float) -> None:
    """Add to the last number of an attribute."""
    found = body.find(f".//{what}")
    assert found is not None, what
    *before, last = found.get(name, "").split()
    found.set(name, " ".join([*before, str(float(last) + by)]))


def changed(body: str, folder: Path) -> str:
    """The simulator's file of a body."""
    assets = Path(hopper_v5.__file__).parent / "assets"
    tree = ElementTree.parse(assets / "hopper.xml")
    BODIES[body](tree.getroot())
    path = folder / f"{body}.xml"
    tree.write(path)
    return str(path)


def learned_in(file: str, reward, steps: int, seed: int):
    """PPO's policy after so many steps: a function that acts as `rollout.follow` asks."""

    def make() -> gymnasium.Env:
        world = gymnasium.make(ENV, xml_file=file)
        return world if reward is None else understudy.LearnedReward(world, reward)

    worlds = VecNormalize(DummyVecEnv([make]))
    ppo = PPO("MlpPolicy", worlds, seed=seed, device="cpu")
    ppo.learn(steps)
    worlds.close()

    def predict(obs, state, deterministic):
        return ppo.predict(worlds.normalize_obs(obs), deterministic=deterministic)

    return predict


def returns(file: str, predict, episodes: int) -> list[float]:
    """Of the task's own reward."""
    with contextlib.closing(gymnasium.make(ENV, xml_file=file)) as world:
        return [[*rollout.follow(world, predict, seed=FIRST_SEED + i)][-1] for i in range(episodes)]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("run", help="a finished run of Hopper-v5 with a reward.safetensors")
    asked.add_argument("--steps", type=int, default=300_000)
    asked.add_argument("--seeds", type=int, default=3)
    asked.add_argument("--episodes", type=int, default=10)
    asked.add_argument("--bodies", nargs="+", choices=BODIES, default=[*BODIES])
    asked.add_argument("--rewards", nargs="+", choices=REWARDS, default=[*REWARDS])
    asked = asked.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="stable_baselines3")
    reward, policy = understudy.load_reward(asked.run), understudy.load_policy(asked.run)
    expert = runs.summary(Path(asked.run))["expert_return"]
    print(f"{asked.steps:,} steps, {asked.episodes} episodes; the expert's return is {expert:,.0f}")
    print("| body | reward | share of the expert's return, by seed | mean | minutes a seed |")
    print("|---|---|---|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for body in asked.bodies:
            file = changed(body, Path(folder))
            for paid in asked.rewards:
                seeds = range(1 if paid == "as it is" else asked.seeds)
                begun, shares = time.perf_counter(), []
                for seed in seeds:
                    if paid == "as it is":
                        predict = policy.predict
                    else:
                        given = reward if paid == "learned" else None
                        predict = learned_in(file, given, asked.steps, seed)
                    shares.append(np.mean(returns(file, predict, asked.episodes)) / expert)
                each = ", ".join(f"{share:.2f}" for share in shares)
                minutes = (time.perf_counter() - begun) / 60 / len(seeds)
                told = f"{np.mean(shares):.2f} | {minutes:.1f}"
                print(f"| {body} | {paid} | {each} | {told} |", flush=True)


if __name__ == "__main__":
    main()
