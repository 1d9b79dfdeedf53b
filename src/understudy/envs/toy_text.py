"""Any Gymnasium environment with a `P` table as an MDP: FrozenLake, CliffWalking, Taxi, yours."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from understudy import mdp as mdps
from understudy.errors import UserError
from understudy.mdp import MDP

Table = Mapping[
    int, Mapping[int, Sequence[tuple[Any, ...]]]
]  # P[s][a] = [(p, s', r, terminated), …]


def from_env(env: gymnasium.Env, *, horizon: int) -> MDP:
    """The MDP of an environment that carries its own `P` table."""
    table = table_of(env)
    if table is None:
        raise UserError(
            f"Environment {env.spec.id if env.spec else type(env.unwrapped).__name__} has no P "
            f"table; use understudy.envs.sampled to build an MDP by sampling it."
        )
    return from_table(table, nu=initial_distribution(env, len(table)), horizon=horizon)


def table_of(env: gymnasium.Env) -> Table | None:
    """The environment's `P`, if it has one that is a table."""
    table = getattr(env.unwrapped, "P", None)
    return table if isinstance(table, Mapping) and 0 in table else None


def from_table(table: Table, *, nu: np.ndarray, horizon: int) -> MDP:
    """P[s][a] = [(p, s', r, terminated), …] → MDP, terminal states absorbing without reward.

    A state that ends every episode that enters it absorbs by itself. Where a state is entered both
    with and without an end, ended episodes go to one extra absorbing state, the MDP's `sink`.
    """
    S, A = len(table), len(table[0])
    live = _reachable(table, nu)
    ended = {
        int(to) for s in live for a in range(A) for p, to, _, over in table[s][a] if over and p
    }
    sink = S if ended & live else None

    def outcomes(s: int, a: int) -> list[tuple[float, int, float]]:
        if s == sink or s in ended - live:
            return [(1.0, s, 0.0)]
        return [
            (p, int(to) if sink is None or not over else sink, float(r))
            for p, to, r, over in table[s][a]
        ]

    states = S if sink is None else S + 1
    mdp = mdps.from_function(
        outcomes,
        states=states,
        actions=A,
        horizon=horizon,
        nu=np.concatenate([nu, np.zeros(states - S)]),
    )
    return dataclasses.replace(mdp, sink=sink)


def _reachable(table: Table, nu: np.ndarray) -> set[int]:
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
