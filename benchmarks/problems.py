"""The fourteen problems that windows are compared on: three rooms, a lake, ten random MDPs."""

from collections.abc import Iterator

import numpy as np

from understudy.core import mdp as mdps
from understudy.core.mdp import MDP
from understudy.envs import catalog
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.learners.finite import expert_occupancy
from understudy.learners.tabular import Problem


def random_mdp(
    seed: int, *, S: int | None = None, A: int | None = None, H: int | None = None, C: int = 3
) -> MDP:
    """C successors per state-action, Dirichlet(1) probabilities, a few good state-actions."""
    rng = np.random.default_rng([seed, 7])
    S = int(rng.integers(5, 20)) if S is None else S
    A = int(rng.integers(2, 6)) if A is None else A
    H = int(rng.integers(5, 15)) if H is None else H
    succ = np.stack([rng.permutation(S)[:C] for _ in range(S * A)]).reshape(1, S, A, C)
    return mdps.build(
        succ,
        rng.dirichlet(np.ones(C), size=(1, S, A)),
        horizon=H,
        nu=np.eye(S)[0],
        reward=rng.random((S, A)) ** 3,
    )


def problems(randoms: int = 10) -> Iterator[tuple[str, Problem]]:
    for n in (3, 5, 9):
        room = empty_room(n)
        yield f"EmptyRoom {n}×{n}", Problem(room, expert_occupancy(room, demonstrations(n)))
    lake = catalog.find("FrozenLake-v1", horizon=60).mdp
    yield "FrozenLake 4×4", Problem(lake, expert_occupancy(lake, None))
    for seed in range(randoms):
        mdp = random_mdp(seed)
        H, S, A = mdp.shape
        yield f"random {seed}: S={S} A={A} H={H}", Problem(mdp, expert_occupancy(mdp, None))
