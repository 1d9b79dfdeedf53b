"""Practice in the environment itself: some lanes of a Gymnasium environment, stepped side by side.

An environment cannot be asked for its state. But each episode begins with a seed of its own, so
the seed and the actions since then say where it stands: to go on after a stop, the unfinished
episode is played again (`restore`), and is checked to have led to the same place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import gymnasium
import numpy as np

from understudy.deep import world as worlds
from understudy.deep.scaling import Scaling
from understudy.deep.world import Taken
from understudy.errors import Diverged, UserError

Act = Callable[[np.ndarray], np.ndarray]  # observations (lanes, S) → actions (lanes, A)
Make = Callable[[], gymnasium.Env]


@dataclass
class Lane:
    """One environment, and the episode that it is in."""

    env: gymnasium.Env
    obs: np.ndarray
    episode: int = 0
    gained: float = 0.0
    actions: list[Taken] = field(default_factory=list)


class Collector:
    """Steps the lanes, and keeps what is needed to go on after a stop."""

    def __init__(self, make: Make, scaling: Scaling, *, lanes: int, seed: int, name: str) -> None:
        self.name, self.scaling, self.seed = name, scaling, seed
        self.ended: list[float] = []  # returns of episodes that ended since they were last asked
        self.lanes = [Lane(make(), np.zeros(0)) for _ in range(lanes)]
        for i in range(lanes):
            self._begin(i, episode=0)

    def practise(self, act: Act, steps: int) -> dict[str, np.ndarray]:
        """`steps` steps in each lane: (steps · lanes, …) of obs, action, next_obs, terminated and
        reward, in the networks' units."""
        rows: list[tuple[np.ndarray, ...]] = []
        for _ in range(steps):
            obs = self.scaling.obs(np.stack([lane.obs for lane in self.lanes]))
            action = act(obs)
            if not np.isfinite(action).all():
                raise Diverged(f"The policy's action in {self.name} became NaN; use smaller steps.")
            taken = self.scaling.decode(action)
            after, rewards, ends = zip(
                *(self._step(i, taken[i]) for i in range(len(self.lanes))), strict=True
            )
            rows.append(
                (obs, action, self.scaling.obs(np.stack(after)), np.array(ends), np.array(rewards))
            )
        obs, action, after, ends, rewards = (np.concatenate(x) for x in zip(*rows, strict=True))
        return {
            "obs": obs,
            "action": action.astype(np.float32),
            "next_obs": after,
            "terminated": ends,
            "reward": rewards.astype(np.float32),
        }

    def _step(self, i: int, action: Taken) -> tuple[np.ndarray, float, bool]:
        lane = self.lanes[i]
        obs, reward, terminated, truncated = self._move(lane, action)
        if terminated or truncated:
            self.cut(i)
        return obs, reward, terminated

    def cut(self, i: int) -> None:
        """End the lane's episode here, and begin its next."""
        lane = self.lanes[i]
        self.ended.append(lane.gained)
        self._begin(i, lane.episode + 1)

    def _move(self, lane: Lane, action: Taken) -> tuple[np.ndarray, float, bool, bool]:
        """A step within the episode."""
        told = worlds.step(lane.env, self.name, action, len(lane.actions))
        lane.actions.append(action)
        lane.obs, lane.gained = told[0], lane.gained + told[1]
        return told

    def _begin(self, i: int, episode: int) -> None:
        lane = self.lanes[i]
        seed = np.random.SeedSequence([self.seed, i, episode]).generate_state(1)[0]
        lane.obs = worlds.begin(lane.env, self.name, seed=int(seed))
        lane.episode, lane.gained, lane.actions = episode, 0.0, []

    # --- stop and go on -----------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """Where each lane stands, as arrays."""
        saved: dict[str, np.ndarray] = {"ended": np.array(self.ended, np.float64)}
        for i, lane in enumerate(self.lanes):
            saved[f"{i}/episode"] = np.array(lane.episode)
            saved[f"{i}/obs"] = lane.obs
            saved[f"{i}/actions"] = np.array(lane.actions)
        return saved

    def restore(self, saved: Mapping[str, np.ndarray]) -> None:
        """Play each unfinished episode again up to where it stood."""
        self.ended = saved["ended"].tolist()
        for i, lane in enumerate(self.lanes):
            self._begin(i, int(saved[f"{i}/episode"]))
            for action in saved[f"{i}/actions"]:
                self._move(lane, action)
            if not np.array_equal(lane.obs, saved[f"{i}/obs"]):
                raise UserError(
                    f"Environment {self.name} did not come to the same place when its last "
                    f"episode was played again, so the run cannot go on exactly: it depends on "
                    f"more than reset(seed=…) and its actions. Start anew with another --out."
                )

    def close(self) -> None:
        for lane in self.lanes:
            lane.env.close()
