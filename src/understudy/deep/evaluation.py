"""How good a policy is: deterministic episodes, the same ones each time."""

import itertools
from collections.abc import Callable

import numpy as np

from understudy.deep import world as worlds
from understudy.deep.collect import Make
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
        self.shape = self.envs[0].action_space.shape or ()

    def __call__(
        self, act: Callable[[np.ndarray], np.ndarray], *, seed: int = FIRST_SEED
    ) -> Demonstrations:
        """Whole episodes of the policy."""
        n = len(self.envs)
        observations = [
            [worlds.begin(env, self.name, seed=seed + i)] for i, env in enumerate(self.envs)
        ]
        actions: list[list[np.ndarray]] = [[] for _ in range(n)]
        rewards: list[list[float]] = [[] for _ in range(n)]
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
                obs, reward, ended, cut = worlds.step(self.envs[i], self.name, taken[i], step)
                observations[i].append(obs)
                actions[i].append(taken[i])
                rewards[i].append(reward)
                if ended or cut:
                    terminated[i] = ended
                    going.remove(i)
        return Demonstrations(
            [np.stack(x) for x in observations],
            [np.stack(x).reshape(-1, *self.shape) for x in actions],
            [np.array(x) for x in rewards],
            terminated,
        )

    def close(self) -> None:
        for env in self.envs:
            env.close()
