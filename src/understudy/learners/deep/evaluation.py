"""How good a policy is: deterministic episodes, the same ones each time."""

import itertools
from collections.abc import Callable

import numpy as np

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import Diverged, UserError
from understudy.envs import action_fit as acts
from understudy.envs import guard
from understudy.learners.deep import asking
from understudy.learners.deep.collect import Make
from understudy.learners.deep.scaling import Scaling

FIRST_SEED = 10_000  # episode i is reset with this + i
LONGEST = guard.LONGEST


class Evaluator:
    """Plays `episodes` episodes side by side, so that the network is asked for all at once."""

    def __init__(self, make: Make, scaling: Scaling, *, episodes: int, name: str) -> None:
        self.scaling, self.name = scaling, name
        self.envs = [guard.guarded(make(), name) for _ in range(episodes)]
        self.shape = self.envs[0].action_space.shape or ()
        self.fit = acts.fitting(self.envs[0].action_space)

    def __call__(
        self, act: Callable[[np.ndarray], np.ndarray], *, seed: int = FIRST_SEED
    ) -> Demonstrations:
        """Whole episodes of the policy."""
        n = len(self.envs)
        observations = [[asking.begin(env, seed=seed + i)] for i, env in enumerate(self.envs)]
        actions: list[list[np.ndarray]] = [[] for _ in range(n)]
        rewards: list[list[float]] = [[] for _ in range(n)]
        terminated, going = [False] * n, set(range(n))
        for step in itertools.count():
            if not going:
                break
            if step == LONGEST:
                raise UserError(guard.endless(self.name, LONGEST))
            # Ended episodes keep their row, so that the compiled program keeps its shape.
            seen = np.stack([seen[-1] for seen in observations])
            action = act(asking.scaled(self.scaling, seen, self.name))
            if not np.isfinite(action).all():
                raise Diverged(f"The policy's action in {self.name} became NaN; use smaller steps.")
            taken = asking.as_sent(self.fit, self.shape, self.scaling.decode(action))
            for i in sorted(going):
                obs, reward, ended, cut = asking.step(self.envs[i], taken[i])
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
