"""An MDP from a discrete Gymnasium environment that can only be played."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from understudy.core.errors import UserError
from understudy.core.mdp import MDP
from understudy.envs.guard import guarded
from understudy.envs.toy_text import from_table

INTERACTIONS = 50_000
MOST = 2_000_000  # pairs of state and action, far more than so many steps can tell


@dataclass(frozen=True)
class Sampled:
    """The empirical MDP, and how much of it was seen."""

    mdp: MDP
    visits: np.ndarray  # (S, A)

    @property
    def coverage(self) -> float:
        """The share of state-action pairs, among the states seen, that were tried."""
        seen = self.visits.sum(-1) > 0
        return float((self.visits[seen] > 0).mean())


def from_samples(
    env: gymnasium.Env, *, horizon: int, interactions: int = INTERACTIONS, seed: int = 0
) -> Sampled:
    """Play the environment for `interactions` steps and count.

    Each step takes the action tried least in its state, so that coverage does not depend on luck.
    A pair never tried stays where it is at the worst reward seen: the model must not promise what
    nobody has seen. Look at `coverage` before trusting it.
    """
    states, actions = env.observation_space, env.action_space
    if not isinstance(states, Discrete) or not isinstance(actions, Discrete):
        raise UserError(
            f"The environment has observations {states} and actions {actions}; "
            f"sampling an MDP needs both Discrete."
        )
    S, A = int(states.n), int(actions.n)
    if S * A > MOST:
        raise UserError(
            f"The environment has {S:,} states and {A:,} actions, more than {interactions:,} steps "
            f"can tell about; sampling takes at most {MOST:,} pairs of them."
        )
    env = guarded(env)
    rng = np.random.default_rng(seed)
    visits = np.zeros((S, A), dtype=np.int64)
    gains = np.zeros((S, A))
    seen: dict[tuple[int, int], Counter[tuple[int, bool]]] = defaultdict(Counter)
    starts = np.zeros(S)
    worst, age = math.inf, horizon

    s, terminated, truncated = 0, False, False
    for step in range(interactions):
        if terminated or truncated or age == horizon:
            s, age = int(env.reset(seed=None if step else seed)[0] - states.start), 0
            starts[s] += 1
        a = int(rng.choice(np.flatnonzero(visits[s] == visits[s].min())))
        to, r, terminated, truncated, _ = env.step(a + int(actions.start))
        visits[s, a] += 1
        gains[s, a] += float(r)
        worst = min(worst, float(r))
        seen[s, a][int(to - states.start), bool(terminated)] += 1
        s, age = int(to - states.start), age + 1

    def outcomes(s: int, a: int) -> list[tuple[float, int, float, bool]]:
        n = visits[s, a]
        if n == 0:
            return [(1.0, s, worst, False)]
        return [(c / n, to, gains[s, a] / n, over) for (to, over), c in seen[s, a].items()]

    table = {s: {a: outcomes(s, a) for a in range(A)} for s in range(S)}
    return Sampled(from_table(table, nu=starts / starts.sum(), horizon=horizon), visits)
