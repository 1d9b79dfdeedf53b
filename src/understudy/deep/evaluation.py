"""How good a policy is: deterministic episodes, the same ones each time."""

import itertools
from collections.abc import Callable

import numpy as np

from understudy.deep.collect import Make, _shape
from understudy.deep.scaling import Scaling
from understudy.demos import Demonstrations
from understudy.errors import UserError

FIRST_SEED = 10_000  # episode i is reset with this + i
LONGEST = 100_000  # steps of an episode; longer ones have no limit at all


class Evaluator:
    """Plays `episodes` episodes side by side, so that the network is asked for all at once."""

    def __init__(self, make: Make, scaling: Scaling, *, episodes: int, name: str) -> None:
        self.scaling, self.name = scaling, name
        self.envs = [make() for _ in range(episodes)]

    def __call__(
        self, act: Callable[[np.ndarray], np.ndarray], *, seed: int = FIRST_SEED
    ) -> Demonstrations:
        """Whole episodes of the policy."""
        n = len(self.envs)
        observations = [
            [np.asarray(env.reset(seed=seed + i)[0])] for i, env in enumerate(self.envs)
        ]
        actions: list[list] = [[] for _ in range(n)]
        rewards: list[list] = [[] for _ in range(n)]
        terminated, going = [False] * n, set(range(n))
        for step in itertools.count():
            if not going:
                break
            if step == LONGEST:
                raise UserError(
                    f"An episode of {self.name} went on for {LONGEST:,} steps; limit it with "
                    f"--horizon."
                )
            # Ended episodes keep their row, so that the compiled program keeps its shape.
            taken = self.scaling.decode(
                act(self.scaling.obs(np.stack([seen[-1] for seen in observations])))
            )
            for i in sorted(going):
                env = self.envs[i]
                action = int(taken[i]) if self.scaling.discrete else taken[i].reshape(_shape(env))
                obs, reward, ended, cut, _ = env.step(action)
                observations[i].append(np.asarray(obs))
                actions[i].append(action)
                rewards[i].append(float(reward))
                if ended or cut:
                    terminated[i] = bool(ended)
                    going.remove(i)
        return Demonstrations(
            [np.stack(x) for x in observations],
            [np.array(x) for x in actions],
            [np.array(x) for x in rewards],
            terminated,
        )

    def close(self) -> None:
        for env in self.envs:
            env.close()
