"""An environment of your own, your own demonstrations, and a policy to keep."""

import gymnasium
import numpy as np

import understudy


class Cart(gymnasium.Env):  # on a line; it is to be pushed to the middle, and kept there
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)  # place and speed
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)  # force

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.array([self.np_random.uniform(-1, 1), 0.0], np.float32)
        return self.at, {}

    def step(self, action):
        speed = 0.9 * self.at[1] + 0.1 * action[0]
        self.at = np.array([self.at[0] + 0.2 * speed, speed], np.float32)
        return self.at, 1 - min(abs(float(self.at[0])), 1.0), False, False, {}


# Episodes must end, so one is cut off after 50 steps. The object itself is all that `train` needs.
env = gymnasium.wrappers.TimeLimit(Cart(), 50)
expert = lambda x: np.clip([-2 * x.sum()], -1, 1).astype(np.float32)  # noqa: E731
demos = understudy.record(env, lambda x, first: expert(x), episodes=10)
# Small networks, for a small task; and no cloning first, so that there is something to see.
small = understudy.DeepConfig(interactions=1_400, marks=4, warm_start="none", warmup=0, hidden=64)
result = understudy.train(env, demos, small, seed=0)
print("after", result.interactions, "interactions it earns", result.returns.round(1))
policy = understudy.load_policy(result.save("cart"))  # `understudy report cart` reads it too
for name, act in {"expert": expert, "policy": lambda x: policy.predict(x)[0]}.items():
    total = 0.0
    for seed in range(100, 120):  # twenty starts that neither was seen from, the same for both
        x, over = env.reset(seed=seed)[0], False
        while not over:
            x, reward, _, over, _ = env.step(act(x))
            total += reward
    print(f"{name} {total / 20:.2f}")
