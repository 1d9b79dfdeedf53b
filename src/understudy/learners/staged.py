"""Policies that act by the stage h of an episode, in the form of Stable-Baselines3's.

`predict(obs, state, episode_start)` hands back a state, the stage that comes next; hand it over
again at the next step. Without one, an episode begins.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.core.errors import UserError
from understudy.core.vector_features import FeatureMap


def stages(state: Any, lanes: int, episode_start: Any, horizon: int) -> np.ndarray:
    """The stage of each lane."""
    h = np.zeros(lanes, int) if state is None else np.array(state[0], int).reshape(lanes)
    if episode_start is not None:
        h[np.broadcast_to(np.asarray(episode_start, bool), lanes)] = 0
    if (h >= horizon).any():
        raise UserError(
            f"The policy has {horizon} stages, and an episode is in its {h.max() + 1}th step; say "
            f"where episodes begin (episode_start), or end them after {horizon} steps."
        )
    return h


def choose(p: np.ndarray, deterministic: bool, seed: int | None) -> np.ndarray:
    """An action of each row of probabilities: the likeliest, or one that is drawn."""
    if deterministic:
        return p.argmax(-1)
    drawn = np.random.default_rng(seed).random(len(p))[:, None]
    return (p.cumsum(-1) < drawn * p.sum(-1, keepdims=True)).sum(-1)


@dataclass(frozen=True)
class TablePolicy:
    """π[h, s, a], for states and actions numbered as the environment numbers them."""

    pi: np.ndarray
    env: str
    first_state: int = 0
    first_action: int = 0

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        *,
        seed: int | None = None,
    ) -> tuple[Any, tuple[np.ndarray]]:
        """The action in a state, or in each of a batch.

        Args:
            observation: A state, or an array of them.
            state: What the last call handed back; None where an episode begins.
            episode_start: Whether an episode begins here, of each of the batch.
            deterministic: The likeliest action, or one drawn from the policy.
            seed: Of what is drawn.

        Returns:
            The action, or an array of them; and the state for the next call.
        """
        s = np.asarray(observation)
        H, S, _ = self.pi.shape
        at = s.reshape(-1) - self.first_state
        if s.dtype.kind not in "iu" or s.ndim > 1 or (at < 0).any() or (at >= S).any():
            raise UserError(
                f"The observation {s!r:.60} is no state of {self.env}: it has whole numbers from "
                f"{self.first_state} to {self.first_state + S - 1}."
            )
        h = stages(state, len(at), episode_start, H)
        action = choose(self.pi[h, at], deterministic, seed) + self.first_action
        return (action[0] if s.ndim == 0 else action), (h + 1,)


@dataclass(frozen=True)
class FeaturePolicy:
    """π ∝ exp φ(x, ·)ᵀw_h; one set of weights, or one a stage."""

    weights: np.ndarray  # (T, d + 1), the last coordinate that of ended episodes
    phi: FeatureMap
    env: str
    horizon: int  # as far as it can be played
    observation_shape: tuple[int, ...]

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        *,
        seed: int | None = None,
    ) -> tuple[Any, Any]:
        """The action at an observation, or at each of a batch; see `TablePolicy.predict`."""
        x = np.asarray(observation, float)
        shape = self.observation_shape
        if x.shape != shape and x.shape[1:] != shape:
            raise UserError(
                f"The observation has shape {x.shape}; a policy of {self.env} takes {shape}, or a "
                f"batch of it."
            )
        batch = x.reshape(-1, *shape)
        T = len(self.weights)
        h = np.zeros(len(batch), int)
        if T > 1:
            h = stages(state, len(batch), episode_start, T)
            state = (h + 1,)
        logits = np.einsum("nad,nd->na", self.phi(batch), self.weights[h, :-1])
        p = np.exp(logits - logits.max(-1, keepdims=True))
        action = choose(p / p.sum(-1, keepdims=True), deterministic, seed)
        return (action[0] if x.shape == shape else action), state
