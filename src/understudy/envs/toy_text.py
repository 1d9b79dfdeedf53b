"""Any Gymnasium environment with a `P` table as an MDP: FrozenLake, CliffWalking, Taxi, yours."""

import gymnasium
import numpy as np

from understudy import mdp as mdps
from understudy.errors import UserError
from understudy.mdp import MDP


def from_table(env: gymnasium.Env, *, horizon: int) -> MDP:
    """P[s][a] = [(p, s', r, terminated), …] → MDP, terminal states absorbing without reward.

    A terminal state stays there by itself. Where a state is reached both with and without the
    end of the episode, the ended episodes go to one extra absorbing state, number S.
    """
    table = getattr(env.unwrapped, "P", None)
    if table is None:
        raise UserError(
            f"Environment {_name(env)} has no P table; use understudy.envs.sampled to build an "
            f"MDP by sampling it."
        )
    S, A = len(table), len(table[0])
    nu = initial_distribution(env, S)
    live = _reachable(table, nu)
    ended = {
        int(to) for s in live for a in range(A) for p, to, _, over in table[s][a] if over and p
    }
    ambiguous = ended & live
    sink = S  # only there if some state is ambiguous

    def outcomes(s: int, a: int) -> list[tuple[float, int, float]]:
        if s == sink or s in ended - live:
            return [(1.0, s, 0.0)]
        return [
            (p, sink if over and to in ambiguous else int(to), float(r))
            for p, to, r, over in table[s][a]
        ]

    states = S + int(bool(ambiguous))
    return mdps.from_function(
        outcomes,
        states=states,
        actions=A,
        horizon=horizon,
        nu=np.concatenate([nu, np.zeros(states - S)]),
    )


def _reachable(table: dict, nu: np.ndarray) -> set[int]:
    """The states in which an episode can stand before it has ended."""
    live = frontier = set(np.flatnonzero(nu).tolist())
    while frontier:
        onward = {
            int(to)
            for s in frontier
            for outcomes in table[s].values()
            for p, to, _, over in outcomes
            if p > 0 and not over
        }
        frontier = onward - live
        live = live | frontier
    return live


def initial_distribution(env: gymnasium.Env, states: int, resets: int = 1000) -> np.ndarray:
    """ν: the environment's own where it tells, else the frequencies of `resets` resets."""
    told = getattr(env.unwrapped, "initial_state_distrib", None)
    if told is not None:
        return np.asarray(told, dtype=float)
    env.reset(seed=0)
    starts = [int(env.reset()[0]) for _ in range(resets)]
    return np.bincount(starts, minlength=states) / resets


def _name(env: gymnasium.Env) -> str:
    return env.spec.id if env.spec else type(env.unwrapped).__name__
