"""Behavioural cloning, which never practises: π(a|s) as the expert did where it was seen.

In a finite MDP that is counts, `occupancy.policy_of`. With networks its mode is fitted as in
`deep/clone.py`, ended as usual: some trajectories are held out, and the weights that miss them
least are kept.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float32, Key

from understudy.learners.deep import clone
from understudy.learners.deep.actor import Actor

PIECE = 500  # steps between two looks at what is held out
PATIENCE = 10  # looks without a better one
MOST = 60  # looks


def cloned(
    actor: Actor,
    obs: Float32[Array, "points S"],
    action: Float32[Array, "points A"],
    held_out: np.ndarray,
    *,
    key: Key[Array, ""],
) -> Actor:
    """The actor fitted to the points that are not held out, at its best on those that are."""
    seen, unseen = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    optimiser = optax.adam(clone.RATE)
    moments = optimiser.init(actor)  # pyright: ignore[reportArgumentType]
    best, least, since = actor, np.inf, 0
    for piece in range(MOST):
        keys = jax.random.split(jax.random.fold_in(key, piece), PIECE)
        actor, moments = clone.descend(
            actor, moments, obs[seen], action[seen], keys, optimiser=optimiser
        )
        missed = float(jnp.mean(actor.at(obs[unseen]).miss(action[unseen])))
        best, least, since = (actor, missed, 0) if missed < least else (best, least, since + 1)
        if since == PATIENCE:
            break
    return best


def hold_out(ends: np.ndarray, share: float = clone.HELD_OUT) -> np.ndarray:
    """Which points to hold out: those of the last trajectories, at least one; of a single one, its
    last part."""
    lengths = np.diff(ends, prepend=0)
    if len(ends) == 1:
        first = ends[-1] - max(1, round(share * ends[-1]))
    else:
        first = ends[-1] - lengths[-max(1, round(share * len(ends))) :].sum()
    return np.arange(ends[-1]) >= first
