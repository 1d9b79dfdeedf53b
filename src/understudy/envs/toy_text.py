"""Any Gymnasium environment with a `P` table as an MDP: FrozenLake, CliffWalking, Taxi, yours."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.core.mdp import MDP
from understudy.envs.guard import calling, guarded, plain, shown

Table = Mapping[
    int, Mapping[int, Sequence[tuple[Any, ...]]]
]  # P[s][a] = [(p, s', r, terminated), …]


def from_env(env: gymnasium.Env, *, horizon: int) -> MDP:
    """The MDP of an environment that carries its own `P` table."""
    table, env = table_of(env), guarded(env)
    if table is None:
        raise UserError(
            f"Environment {env.spec.id if env.spec else type(env.unwrapped).__name__} has no P "
            f"table; use understudy.envs.sampled to build an MDP by sampling it."
        )
    return from_table(table, nu=initial_distribution(env, len(table)), horizon=horizon)


def table_of(env: gymnasium.Env) -> Table | None:
    """The environment's `P`, if it has one that is a table."""
    with calling(f"Environment {type(env.unwrapped).__name__} failed to show its P table"):
        table = getattr(env.unwrapped, "P", None)
        return table if isinstance(table, Mapping) and 0 in table else None


def from_table(table: Table, *, nu: np.ndarray, horizon: int) -> MDP:
    """P[s][a] = [(p, s', r, terminated), …] → MDP, terminal states absorbing without reward.

    A state that ends every episode that enters it absorbs by itself. Where a state is entered both
    with and without an end, ended episodes go to one extra absorbing state, the MDP's `sink`.
    """
    with calling("The environment's P table cannot be read"):
        table = checked(table)
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


def checked(table: Table) -> Table:
    """The table as plain numbers: states and actions 0, 1, …, each with its list of outcomes."""
    S, A = len(table), len(table[0])
    found: dict[int, dict[int, list[tuple[Any, ...]]]] = {}
    for s in range(S):
        for a in range(A):
            here = f"The environment's P table, at state {s} and action {a},"
            try:
                outcomes = table[s][a]
            except (KeyError, IndexError):
                raise UserError(f"{here} has no entry; it needs one for each of {S}×{A}.") from None
            found.setdefault(s, {})[a] = [_outcome(told, S, here) for told in outcomes]
        if len(table[s]) != A:
            raise UserError(f"The environment's P table has {A} actions, but {len(table[s])} in "
                            f"state {s}.")  # fmt: skip
    return found


def _outcome(told: Any, S: int, here: str) -> tuple[float, int, float, bool]:
    if not isinstance(told, tuple | list) or len(told) != 4:
        raise UserError(f"{here} lists {shown(told)}; it must be (p, state, reward, terminated).")
    p, to, r, over = told
    try:
        sound = 0 <= float(p) <= 1 + 1e-6 and int(to) == to and 0 <= to < S and math.isfinite(r)
    except (TypeError, ValueError, OverflowError):
        sound = False
    if not sound:
        raise UserError(
            f"{here} lists {plain((p, to, r, over))}; it must be a probability, a state from 0 to "
            f"{S - 1}, a finite reward, and whether the episode is over."
        )
    return float(p), int(to), float(r), bool(over)


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
    first = int(getattr(env.observation_space, "start", 0))
    with calling("The environment's initial_state_distrib cannot be used"):
        told = getattr(env.unwrapped, "initial_state_distrib", None)
        nu = None if told is None else np.asarray(told, dtype=float)
    if nu is not None:
        if nu.shape != (states,):
            raise UserError(
                f"The environment's initial_state_distrib has shape {nu.shape}; its P table has "
                f"{states} states."
            )
        return nu
    env.reset(seed=0)
    starts = np.array([int(env.reset()[0]) - first for _ in range(resets)])
    if starts.max() >= states:
        raise UserError(
            f"The environment begins in state {starts.max()}, its P table has {states} states."
        )
    return np.bincount(starts, minlength=states) / resets
