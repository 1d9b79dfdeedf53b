"""Random MDPs, which the benchmarks share."""

import numpy as np

from understudy.core import mdp as mdps
from understudy.core.mdp import MDP


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
