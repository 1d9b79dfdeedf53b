"""Random MDPs and policies, for the properties."""

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from understudy.core import mdp as mdps
from understudy.core.mdp import MDP

# Few shapes, many MDPs: each shape compiles once.
SHAPES = [(1, 1, 1, 1), (3, 4, 2, 4), (5, 6, 3, 2), (4, 3, 5, 3)]  # H, S, A, C


def random_mdp(H: int, S: int, A: int, C: int, *, staged: bool, seed: int) -> MDP:
    rng = np.random.default_rng(seed)
    T = H if staged else 1
    succ = np.stack([rng.permutation(S)[:C] for _ in range(T * S * A)]).reshape(T, S, A, C)
    prob = rng.dirichlet(np.full(C, 0.5), size=(T, S, A))
    return mdps.build(
        succ, prob, horizon=H, nu=rng.dirichlet(np.ones(S)), reward=rng.normal(size=(H, S, A))
    )


def random_policy(mdp: MDP, seed: int, concentration: float = 0.5) -> jnp.ndarray:
    rng = np.random.default_rng(seed)
    H, S, A = mdp.shape
    return jnp.asarray(rng.dirichlet(np.full(A, concentration), size=(H, S)))


seeds = st.integers(0, 2**32 - 1)


@st.composite
def mdps_and_policies(draw: st.DrawFn, policies: int = 1) -> tuple:
    shape = draw(st.sampled_from(SHAPES))
    mdp = random_mdp(*shape, staged=draw(st.booleans()), seed=draw(seeds))
    return mdp, *(random_policy(mdp, draw(seeds)) for _ in range(policies))


def dense(mdp: MDP) -> np.ndarray:
    """P as H×S×A×S, for tests on small MDPs only."""
    H, S, A = mdp.shape
    P = np.zeros((H, S, A, S))
    for h, s, a in np.ndindex(H, S, A):
        t = h % mdp.succ.shape[0]
        np.add.at(P[h, s, a], np.asarray(mdp.succ[t, s, a]), np.asarray(mdp.prob[t, s, a]))
    return P
