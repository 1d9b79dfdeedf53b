"""Imitate, then go on in Stable-Baselines3 with the task's reward, which imitation never saw."""

import sys

import gymnasium
import numpy as np

import understudy

try:
    from stable_baselines3 import SAC
except ImportError:
    print("This example needs Stable-Baselines3: pip install 'understudy[sb3]'", file=sys.stderr)
    sys.exit(2)


def expert(x, first):  # feeds energy into the swing, and holds the pendulum near the top
    cos, sin, speed = x
    push = (15 * (1 - cos) - speed**2 / 2) * np.sign(speed)
    push = -10 * np.arctan2(sin, cos) - 2 * speed if cos > 0.9 else push
    return np.clip([push], -2, 2).astype(np.float32)


class Corrected(gymnasium.Wrapper):  # the policy acts, and what is added to its action is learned
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action):
        return self.env.step(np.clip(policy.predict(self.unwrapped._get_obs())[0] + action, -2, 2))


env = gymnasium.make("Pendulum-v1")
config = understudy.DeepConfig(interactions=1_000, marks=1, hidden=64)
policy = understudy.train(env, understudy.record(env, expert, episodes=4), config).policy
# SAC alone begins from nothing; correcting the policy, it begins about where imitation ended.
kind = {"learning_rate": 1e-3, "policy_kwargs": {"net_arch": [64, 64]}, "seed": 0}
players = {name: (SAC("MlpPolicy", world, **kind).learn(2_000), world)
           for name, world in (("corrected", Corrected(env)), ("SAC alone", env))}  # fmt: skip
for name, (player, world) in {"imitated": (policy, env), **players}.items():
    played = understudy.record(world, understudy.predicting(player), episodes=30, seed=2_000)
    print(f"{name}: {played.returns.mean():.0f}")  # same starts; 2,000 steps gain nothing yet
