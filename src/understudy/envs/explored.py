"""What exploring an environment has found: a table of where every action leads."""

import dataclasses
import hashlib
from dataclasses import dataclass

import numpy as np

from understudy.core import mdp as mdps
from understudy.core.mdp import MDP
from understudy.envs.world_state import Clocks


@dataclass(frozen=True)
class Explored:
    """States 0 … S−1 in the order in which they were found, 0 the one that episodes begin in; after
    them, where episodes can end, the sink. Arrays are of all of these."""

    succ: np.ndarray  # (S, A)
    reward: np.ndarray  # (R, S, A), R = H where it depends on the stage, else 1
    horizon: int
    digests: tuple[bytes, ...]  # of the states but the sink: what the simulator holds there
    sink: int | None
    clocks: Clocks

    @property
    def states(self) -> int:
        """All of them, the sink among them."""
        return len(self.succ)

    def mdp(self) -> MDP:
        """The table as an MDP."""
        found = mdps.build(
            self.succ[None, :, :, None],
            np.ones((1, *self.succ.shape, 1)),
            horizon=self.horizon,
            nu=np.eye(self.states)[0],
            reward=self.reward,
        )
        return dataclasses.replace(found, sink=self.sink)

    def gain(self, stage: int, s: int, a: int) -> float:
        """The reward of an action at a stage."""
        return float(self.reward[stage if len(self.reward) > 1 else 0, s, a])

    def fingerprint(self) -> str:
        """The same for the same transitions and rewards, by the states' numbers: where it is, a
        policy of these numbers means the same."""
        told = hashlib.sha256(f"{self.horizon} {self.sink}".encode())
        for array in (self.succ.astype("<i8"), self.reward.astype("<f8")):
            told.update(np.ascontiguousarray(array).tobytes())
        return told.hexdigest()[:16]
