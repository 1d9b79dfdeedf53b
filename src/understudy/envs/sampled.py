"""An MDP from a discrete Gymnasium environment that can only be played."""

from dataclasses import dataclass

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from understudy import mdp as mdps
from understudy.errors import UserError
from understudy.mdp import MDP


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
    env: gymnasium.Env, *, horizon: int, interactions: int = 50_000, seed: int = 0
) -> Sampled:
    """Play the environment for `interactions` steps and count.

    Each step takes the action tried least in its state, so that coverage does not depend on luck.
    Terminal states are absorbing without reward. A pair never tried stays where it is without
    reward: the model must not promise what nobody has seen. Look at `coverage` before trusting it.
    """
    states, actions = env.observation_space, env.action_space
    if not isinstance(states, Discrete) or not isinstance(actions, Discrete):
        raise UserError(
            f"The environment has observations {states} and actions {actions}; "
            f"sampling an MDP needs both Discrete."
        )
    S, A = int(states.n), int(actions.n)
    rng = np.random.default_rng(seed)
    visits = np.zeros((S, A), dtype=np.int64)
    gains = np.zeros((S, A))
    onward: list[list[dict[int, int]]] = [[{} for _ in range(A)] for _ in range(S)]
    starts, terminal = np.zeros(S), np.zeros(S, dtype=bool)

    s = int(env.reset(seed=seed)[0] - states.start)
    starts[s] += 1
    age = 0
    for _ in range(interactions):
        a = int(rng.choice(np.flatnonzero(visits[s] == visits[s].min())))
        to, r, terminated, truncated, _ = env.step(a + int(actions.start))
        to = int(to - states.start)
        visits[s, a] += 1
        gains[s, a] += float(r)
        onward[s][a][to] = onward[s][a].get(to, 0) + 1
        terminal[to] |= terminated
        s, age = to, age + 1
        if terminated or truncated or age == horizon:
            s, age = int(env.reset()[0] - states.start), 0
            starts[s] += 1

    def outcomes(s: int, a: int) -> list[tuple[float, int, float]]:
        n = visits[s, a]
        if terminal[s] or n == 0:
            return [(1.0, s, 0.0)]
        return [(count / n, to, gains[s, a] / n) for to, count in onward[s][a].items()]

    mdp = mdps.from_function(
        outcomes, states=S, actions=A, horizon=horizon, nu=starts / starts.sum()
    )
    return Sampled(mdp, visits)
