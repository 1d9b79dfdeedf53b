"""Practice in the environment itself: some lanes of a Gymnasium environment, stepped side by side
(`copies`).

An environment cannot be asked for its state. But each episode begins with a seed of its own, so
the seed and the actions since then say where it stands: to go on after a stop, the unfinished
episode is played again (`restore`), and is checked to have led to the same place with the same
rewards. The episode before it is played again too, twice: an environment that counts its resets
gives itself away.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from understudy.core.errors import Diverged, UserError
from understudy.learners.deep import asking, copies
from understudy.learners.deep.asking import Taken
from understudy.learners.deep.copies import Make, Step
from understudy.learners.deep.scaling import Scaling

Act = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Observations (lanes, S), and how many episodes each lane has ended → actions (lanes, A)."""

TRIED = 100  # steps of a trial, where a checkpoint holds no episode to play again


@dataclass
class Lane:
    """The episode that a copy of the environment is in, and the one before."""

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

    def __init__(
        self,
        make: Make,
        scaling: Scaling,
        *,
        lanes: int,
        seed: int,
        name: str,
        processes: bool = False,
    ) -> None:
        self.name, self.scaling, self.seed = name, scaling, seed
        self.ended: list[float] = []  # returns of episodes that ended since they were last asked
        self.copies = copies.side_by_side(make, name, lanes, processes=processes)
        self.lanes = [Lane(np.zeros(0)) for _ in range(lanes)]
        self._begin(dict.fromkeys(range(lanes), 0))

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
            after, *told = zip(*self._step(taken), strict=True)
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

    def _step(self, taken: np.ndarray) -> list[tuple[np.ndarray, bool, float, bool]]:
        """A step in each lane; where an episode ended, the next one is begun."""
        told, over = self.copies.step(list(taken)), {}
        for i, (lane, action, step) in enumerate(zip(self.lanes, taken, told, strict=True)):
            _note(lane, action, step)
            if step.terminated or step.truncated:
                self.ended.append(lane.gained)
                lane.before = lane.record()
                over[i] = lane.episode + 1
        if over:
            self._begin(over)
        return [(x.obs, x.terminated, x.reward, i in over) for i, x in enumerate(told)]

    def _begin(self, episodes: Mapping[int, int]) -> None:
        """New episodes, by lane."""
        seeds = {i: self._seed(i, episode) for i, episode in episodes.items()}
        for i, obs in self.copies.begin(seeds).items():
            lane = self.lanes[i]
            lane.obs, lane.episode, lane.gained = obs, episodes[i], 0.0
            lane.actions, lane.rewards = [], []

    def _seed(self, i: int, episode: int) -> int:
        return int(np.random.SeedSequence([self.seed, i, episode]).generate_state(1)[0])

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
        lane, actions = self.lanes[i], list(told["actions"])
        obs, rewards = self.copies.play(i, self._seed(i, episode), actions)
        same = len(rewards) == len(actions) and np.array_equal(obs, told["obs"])
        if not same or not np.array_equal(rewards, told.get("rewards", rewards)):
            how = "to the same rewards" if same else "to the same place"
            raise UserError(
                f"Environment {self.name} did not come {how} when its last episode was played "
                f"again, so the run cannot go on exactly: it depends on more than reset(seed=…) "
                f"and its actions. Start anew with another --out."
            )
        lane.obs, lane.episode, lane.actions, lane.rewards = obs, episode, actions, rewards
        lane.gained = 0.0
        for reward in rewards:
            lane.gained += reward  # one after another: so it was rounded

    def _trial(self, i: int, episode: int) -> dict[str, np.ndarray]:
        """Some steps of the episode, with actions of no meaning."""
        space = self.copies.action_space
        space.seed(self.seed)
        actions = [np.asarray(space.sample()) for _ in range(TRIED)]
        obs, rewards = self.copies.play(i, self._seed(i, episode), actions)
        return {"obs": obs, "actions": np.array(actions[: len(rewards)]),
                "rewards": np.array(rewards)}  # fmt: skip

    def close(self) -> None:
        self.copies.close()


def _note(lane: Lane, action: Taken, step: Step) -> None:
    """A step within the episode."""
    lane.actions.append(action)
    lane.rewards.append(step.reward)
    lane.obs, lane.gained = step.obs, lane.gained + step.reward


def _of(saved: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """One episode's record; a checkpoint of an older version has no rewards."""
    names = ("obs", "actions", "rewards")
    return {name: saved[prefix + name] for name in names if prefix + name in saved}
