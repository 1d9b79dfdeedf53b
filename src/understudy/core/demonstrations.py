"""What the expert showed: a list of episodes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.core.errors import UserError

LARGEST = 1e100  # of a number: beyond it squares and sums would be infinite


@dataclass(frozen=True)
class Demonstrations:
    """Episodes; `observations[i]` has one entry more than `actions[i]`, the final one."""

    observations: list[np.ndarray]
    """Of each episode, T + 1."""
    actions: list[np.ndarray]
    """Of each episode, T."""
    rewards: list[np.ndarray]
    """Of each episode, T; measured by, and learned from only where a task reward is asked for."""
    terminated: list[bool]
    """Whether the task ended each episode, as opposed to a cut."""

    def __post_init__(self) -> None:
        if not self.actions:
            raise UserError("There are no demonstrations; give at least one episode.")
        counts = {len(x) for x in (self.observations, self.actions, self.rewards, self.terminated)}
        if len(counts) > 1:
            raise UserError(
                f"There are {len(self.observations)} episodes of observations, {len(self.actions)} "
                f"of actions, {len(self.rewards)} of rewards and {len(self.terminated)} of ends."
            )
        for i, (o, a, r) in enumerate(
            zip(self.observations, self.actions, self.rewards, strict=True)
        ):
            if len(o) != len(a) + 1 or len(r) != len(a):
                raise UserError(
                    f"Demonstration {i} has {len(o)} observations, {len(a)} actions and "
                    f"{len(r)} rewards; an episode of T actions has T + 1, T and T."
                )
            for name, values in (("observation", o), ("action", a), ("reward", r)):
                if not np.isfinite(values).all():
                    raise UserError(f"Demonstration {i} has an {name} that is not finite (NaN).")
                if (most := float(np.abs(values, dtype=float).max(initial=0))) > LARGEST:
                    raise UserError(
                        f"Demonstration {i} has an {name} of size {most:g}; numbers up to "
                        f"{LARGEST:g} can be reckoned with."
                    )

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def returns(self) -> np.ndarray:
        """Of each episode, the sum of its rewards."""
        return np.array([r.sum() for r in self.rewards])

    def first(self, episodes: int) -> "Demonstrations":
        """The first so many episodes."""
        n = episodes
        return Demonstrations(
            self.observations[:n], self.actions[:n], self.rewards[:n], self.terminated[:n]
        )


def finished(
    observations: Sequence[np.ndarray], final: Sequence[np.ndarray | np.generic] | None = None
) -> list[np.ndarray]:
    """Episodes of T observations with the final one, T + 1 in all. In formats that have none, the
    last one stands in for it."""
    last = [o[-1] for o in observations] if final is None else final
    try:
        return [np.concatenate([o, [end]]) for o, end in zip(observations, last, strict=True)]
    except ValueError as error:
        raise UserError(f"The final observations do not fit the others: {error}.") from None


def ended(terminations: np.ndarray, truncations: np.ndarray | None, where: str) -> bool:
    """Whether the task ended an episode, by what is said of each of its steps. One that goes on
    after its end is two, or none: that is refused, not guessed."""
    for name, marks in (("terminated", terminations), ("truncated", truncations)):
        if marks is not None and np.any(marks[:-1]):
            step = int(np.flatnonzero(marks[:-1])[0]) + 1
            raise UserError(
                f"{where} is {name} in step {step} of {len(marks)}, and goes on after that; split "
                f"it there, or mend the mark."
            )
    return bool(terminations[-1])


def unrewarded(actions: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Zeros, where a format has no rewards: learning needs none."""
    return [np.zeros(len(a)) for a in actions]
