"""The paper's figures as data."""

from dataclasses import dataclass

from understudy.config import Config


@dataclass(frozen=True)
class Figure1:
    """Off-policy AIL with mirror descent in three rooms: return against interactions.

    Equal estimation budget: every reward update sees m = 32 points; a window of N policies
    supplies them, so each iteration owes max(1, 32 // N) interactions.
    """

    rooms: tuple[int, ...] = (3, 5, 9)
    windows: tuple[int, ...] = (1, 4, 32, 128)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    interactions: int = 10_000
    shown: tuple[int, ...] = (200, 500, 1_000, 2_000, 5_000, 10_000)

    def config(self, N: int) -> Config:
        return Config(
            window=str(N),
            interactions=self.interactions,
            points=32,
            steps="paper",
            ledger=False,
        )
