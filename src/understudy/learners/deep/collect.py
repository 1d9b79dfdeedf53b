"""Practice in the environment itself: some lanes of a Gymnasium environment, stepped side by side.

An environment cannot be asked for its state. But each episode begins with a seed of its own, so
the seed and the actions since then say where it stands: to go on after a stop, the unfinished
episode is played again (`restore`), and is checked to have led to the same place with the same
rewards. The episode before it is played again too, twice: an environment that counts its resets
gives itself away.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import gymnasium
import numpy as np

from understudy.core.errors import Diverged, UserError
from understudy.envs.guard import guarded
from understudy.learners.deep import asking
from understudy.learners.deep.asking import Taken
from understudy.learners.deep.scaling import Scaling

Act = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Observations (lanes, S), and how many episodes each lane has ended → actions (lanes, A)."""
Make = Callable[[], gymnasium.Env]


TRIED = 100  # steps of a trial, where a checkpoint holds no episode to play again


@dataclass
class Lane:
    """One environment, the episode that it is in, and the one before."""

    env: gymnasium.Env
    obs: np.ndarray
    episode: int = 0
    gained: float = 0.0
    actions: list[Taken] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    before: dict[str, np.ndarray] = field(default_factory=dict)

    def record(self) -> dict[str, np.ndarray]:
        """The episode so far, as it can be played again and compared."""
        return {
            "obs": self.obs,
            "actions": np.array(self.actions),
            "rewards": np.array(self.rewards, np.float64),
        }


class Collector:
    """Steps the lanes, and keeps what is needed to go on after a stop."""

    def __init__(self, make: Make, scaling: Scaling, *, lanes: int, seed: int, name: str) -> None:
        self.name, self.scaling, self.seed = name, scaling, seed
        self.ended: list[float] = []  # returns of episodes that ended since they were last asked
        self.lanes = [Lane(guarded(make(), name), np.zeros(0)) for _ in range(lanes)]
        for i in range(lanes):
            self._begin(i, episode=0)

    def practise(self, act: Act, steps: int) -> dict[str, np.ndarray]:
        """`steps` steps in each lane: (steps · lanes, …) of obs, action, next_obs, terminated and
        reward, in the networks' units; and of `ended`, whether the episode did, cut off or not."""
        rows: list[tuple[np.ndarray, ...]] = []
        for _ in range(steps):
            obs = self._scaled([lane.obs for lane in self.lanes])
            action = act(obs, np.array([lane.episode for lane in self.lanes]))
            if not np.isfinite(action).all():
                raise Diverged(f"The policy's action in {self.name} became NaN; use smaller steps.")
            taken = self.scaling.decode(action)
            after, *told = zip(
                *(self._step(i, taken[i]) for i in range(len(self.lanes))), strict=True
            )
            rows.append((obs, action, self._scaled(after), *map(np.array, told)))
        obs, action, after, over, rewards, ended = map(np.concatenate, zip(*rows, strict=True))
        return {
            "obs": obs,
            "action": action.astype(np.float32),
            "next_obs": after,
            "terminated": over,
            "reward": rewards.astype(np.float32),
            "ended": ended,
        }

    def _scaled(self, seen: Sequence[np.ndarray]) -> np.ndarray:
        return asking.scaled(self.scaling, np.stack(seen), self.name)

    def _step(self, i: int, action: Taken) -> tuple[np.ndarray, bool, float, bool]:
        lane = self.lanes[i]
        obs, reward, terminated, truncated = self._move(lane, action)
        if ended := terminated or truncated:
            self.ended.append(lane.gained)
            lane.before = lane.record()
            self._begin(i, lane.episode + 1)
        return obs, terminated, reward, ended

    def _move(self, lane: Lane, action: Taken) -> tuple[np.ndarray, float, bool, bool]:
        """A step within the episode."""
        told = asking.step(lane.env, action)
        lane.actions.append(action)
        lane.rewards.append(told[1])
        lane.obs, lane.gained = told[0], lane.gained + told[1]
        return told

    def _begin(self, i: int, episode: int) -> None:
        lane = self.lanes[i]
        seed = np.random.SeedSequence([self.seed, i, episode]).generate_state(1)[0]
        lane.obs = asking.begin(lane.env, seed=int(seed))
        lane.episode, lane.gained, lane.actions, lane.rewards = episode, 0.0, [], []

    # --- stop and go on -----------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """Where each lane stands, as arrays."""
        saved: dict[str, np.ndarray] = {"ended": np.array(self.ended, np.float64)}
        for i, lane in enumerate(self.lanes):
            saved[f"{i}/episode"] = np.array(lane.episode)
            saved |= {f"{i}/{name}": x for name, x in lane.record().items()}
            saved |= {f"{i}/before/{name}": x for name, x in lane.before.items()}
        return saved

    def restore(self, saved: Mapping[str, np.ndarray]) -> None:
        """Play each unfinished episode again up to where it stood."""
        self.ended = saved["ended"].tolist()
        for i, lane in enumerate(self.lanes):
            episode, now, before = int(saved[f"{i}/episode"]), _of(saved, f"{i}/"), {}
            if f"{i}/before/obs" in saved:
                before = _of(saved, f"{i}/before/")
                self._again(i, episode - 1, before)
                self._again(i, episode - 1, before)
            elif len(now["actions"]):
                self._again(i, episode, now)
            else:
                self._again(i, episode, self._trial(i, episode))
            self._again(i, episode, now)
            lane.before = before

    def _again(self, i: int, episode: int, told: Mapping[str, np.ndarray]) -> None:
        """Play an episode as it was played, and refuse a world in which it is another one."""
        lane = self.lanes[i]
        self._begin(i, episode)
        for action in told["actions"]:
            self._move(lane, action)
        same = np.array_equal(lane.obs, told["obs"])
        if not same or not np.array_equal(lane.rewards, told.get("rewards", lane.rewards)):
            how = "to the same rewards" if same else "to the same place"
            raise UserError(
                f"Environment {self.name} did not come {how} when its last episode was played "
                f"again, so the run cannot go on exactly: it depends on more than reset(seed=…) "
                f"and its actions. Start anew with another --out."
            )

    def _trial(self, i: int, episode: int) -> dict[str, np.ndarray]:
        """Some steps of the episode, with actions of no meaning."""
        lane, space = self.lanes[i], self.lanes[i].env.action_space
        space.seed(self.seed)
        self._begin(i, episode)
        for _ in range(TRIED):
            if any(self._move(lane, np.asarray(space.sample()))[2:]):
                break
        return lane.record()

    def close(self) -> None:
        for lane in self.lanes:
            lane.env.close()


def _of(saved: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """One episode's record; a checkpoint of an older version has no rewards."""
    names = ("obs", "actions", "rewards")
    return {name: saved[prefix + name] for name in names if prefix + name in saved}
