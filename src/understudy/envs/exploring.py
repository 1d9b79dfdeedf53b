"""A finite MDP out of an environment that does the same every time: try every action in every state
that can be reached, each in a copy of the simulator.

A state is all that the simulator holds (`world_state`), but for the clocks: whole numbers that grow
by one with every step, MiniGrid's `step_count` among them. An action is tried twice, at the first
stage and at the last, with other random numbers. Where it leads must be the same; what it earns may
depend on the stage, as MiniGrid's 1 − 0.9 t/T does, and the table then has a reward for each. What
was found is then played against the environment itself (`trial`).

Whatever depends on a clock in another way has the clock among its states: there are more of them.
"""

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from understudy.core import memory
from understudy.core.errors import UserError
from understudy.envs import trial, world_state
from understudy.envs.copying import Copies
from understudy.envs.explored import Explored
from understudy.envs.guard import Wrong, calling, flag, plain, real, shown
from understudy.envs.world_state import Clocks, Reading, Still

MOST = 10_000  # states
LONGEST = 10**6  # stages
REPEATS = 20  # of the first action that draws random numbers and yet seems to lead to one place

Told = Callable[[int], object]


class Clocked(Exception):
    """Something else than a reward depends on a clock, or a clock is none after all."""


def explore(
    world: gymnasium.Env,
    name: str,
    *,
    layout: int,
    horizon: int,
    most: int = MOST,
    told: Told = lambda states: None,
) -> Explored:
    """The table of an environment whose every episode is reset with the seed `layout`.

    Args:
        world: The environment; it is reset, and copied.
        name: What sentences call it.
        layout: The seed of every reset.
        horizon: Steps of an episode; nothing is explored that takes longer to reach.
        most: So many states are too many.
        told: Called now and then with the states so far.

    Returns:
        What was found, after it was played against the environment.
    """
    if not isinstance(world.action_space, Discrete):
        raise UserError(
            f"Environment {plain(name)} has actions {plain(world.action_space)}; exploring its "
            f"states needs Discrete actions."
        )
    core = world_state.core(world)
    with _randomness_of_others():
        for timed in (True, False):
            search = Search(core, name, layout, horizon, most, told, timed=timed)
            try:
                found = search.run()
                trial.play(world, found, name, layout)
                return found
            except Clocked:
                continue
            except trial.Differs as error:
                if not search.times:
                    raise UserError(f"{error}; a table cannot stand for it.") from None
    raise UserError(f"Environment {plain(name)} does not do the same every time.")


@contextlib.contextmanager
def _randomness_of_others() -> Iterator[None]:
    """The program's own generators are as they were before."""
    ours, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numpys)  # noqa: NPY002


class Search:
    """One search through the states, breadth first."""

    def __init__(
        self,
        world: gymnasium.Env,
        name: str,
        layout: int,
        horizon: int,
        most: int,
        told: Told,
        *,
        timed: bool,
    ) -> None:
        self.name, self.horizon, self.most, self.told = plain(name), horizon, most, told
        space: Any = world.action_space
        self.actions = range(int(space.start), int(space.start) + int(space.n))
        self.tallies = begin(world, self.name, layout, self.actions[0])
        drawn_from = Reading(world, self.tallies, {}).random
        self.copies = Copies(world, drawn_from, name)
        self.start = self.copies.copy(world)
        self.times = self._clocks() if timed else {}
        self.clocks = self.tallies | frozenset(self.times)
        self.doubts = 0
        self.curves: dict[tuple[float, float], np.ndarray] = {}

    def _clocks(self) -> dict[str, int]:
        """The whole numbers that grow by one whatever is done first, and where they begin."""
        before = dict(world_state.counters(self.start))
        found = set(before) - self.tallies
        for action in self.actions:
            world = self.copies.copy(self.start)
            _step(world, action, self.name)
            after = dict(world_state.counters(world))
            found = {place for place in found if after.get(place) == before[place] + 1}
        return {place: before[place] for place in sorted(found)}

    def run(self) -> Explored:
        """Level by level, no deeper than an episode is long."""
        numbers: dict[bytes, int] = {self._read(self.start): 0}
        succ: list[list[int]] = []
        gains: list[list[tuple[float, float]]] = []
        level = [self.start]
        for _ in range(self.horizon):
            onward: list[gymnasium.Env] = []
            for world in level:
                row: list[int] = []
                gained: list[tuple[float, float]] = []
                for action in self.actions:
                    after, digest, gain, ends = self._try(world, action, len(succ))
                    if not ends and digest not in numbers:
                        numbers[digest] = len(numbers)
                        onward.append(after)
                        self._count(len(numbers))
                    row.append(-1 if ends else numbers[digest])
                    gained.append(gain)
                succ.append(row)
                gains.append(gained)
            level = onward
        return self._table(numbers, succ, gains)

    def _count(self, states: int) -> None:
        if states > self.most:
            raise UserError(
                f"Environment {self.name} has more than {self.most:,} states that can be reached "
                f"in {self.horizon:,} steps; choose a smaller one, a shorter --horizon, or allow "
                f"more in Python: understudy.explore(env, most=…)."
            )
        if states % 256 == 0:
            self.told(states)
            memory.refuse(8 * self.horizon * states * len(self.actions), "--horizon")

    def _read(self, world: gymnasium.Env) -> bytes:
        return Reading(world, self.clocks, self.copies.known).digest

    def _try(
        self, world: gymnasium.Env, action: int, s: int
    ) -> tuple[gymnasium.Env, bytes, tuple[float, float], bool]:
        """Where an action leads from a state, what it earns first and last, whether it ends."""
        last = self.horizon - 1
        drawn = self.copies.drawn()
        first, digest, gain, ends, cut = self._at(world, action, 0, 0)
        _, again, late, ends_late, _ = self._at(world, action, last, 1)
        same = digest == again and (ends == ends_late or (last > 0 and not ends))
        if not same or (gain != late and not self.times):
            self._refuse_random(world, action, s)
            raise Clocked
        if self.copies.drawn() != drawn:
            self._refuse_random(world, action, s)
        if gain != late and (gain, late) not in self.curves:
            stages = range(self.horizon)
            curve = [self._at(world, action, stage, 0)[2] for stage in stages]
            self.curves[gain, late] = np.array(curve)
        return first, digest, (gain, late), ends or cut

    def _at(
        self, world: gymnasium.Env, action: int, stage: int, stream: int
    ) -> tuple[gymnasium.Env, bytes, float, bool, bool]:
        """An action at a stage, in a copy."""
        world = self.copies.copy(world, stream)
        world_state.set_times(world, {clock: at + stage for clock, at in self.times.items()})
        gain, ends, cut = _step(world, action, self.name)
        now = world_state.times(world, self.times)
        if now != {clock: at + stage + 1 for clock, at in self.times.items()}:
            raise Clocked
        return world, self._read(world), gain, ends, cut and stage == 0

    def _refuse_random(self, world: gymnasium.Env, action: int, s: int) -> None:
        """The same action, many times at the same stage: it must lead to one place."""
        tries = max(REPEATS - self.doubts, 3)  # of those that follow, together, are many
        self.doubts += 1
        found = {self._at(world, action, 0, i % 2)[1:4] for i in range(tries)}
        if len(found) > 1:
            raise UserError(
                f"Environment {self.name} is random: action {action} in its state {s} led to "
                f"{len(found)} different outcomes in {tries} tries; exploring needs an "
                f"environment that does the same every time."
            )

    def _table(
        self,
        numbers: dict[bytes, int],
        succ: list[list[int]],
        gains: list[list[tuple[float, float]]],
    ) -> Explored:
        S, A = len(numbers), len(self.actions)
        sink = S if any(to < 0 for row in succ for to in row) else None
        size = S + (sink is not None)
        # What is reached with the last step is not acted in: it stays where it is, as the sink.
        to = np.tile(np.arange(size)[:, None], (1, A))
        table = np.array(succ)
        to[: len(table)] = np.where(table < 0, S, table)
        earned = np.zeros((size, A, 2))
        earned[: len(gains)] = gains
        reward = earned[None, :, :, 0]
        if self.curves:
            reward = np.repeat(reward, self.horizon, axis=0)
            for (first, last), curve in self.curves.items():
                reward[:, (earned == (first, last)).all(-1)] = curve[:, None]
        return Explored(to, reward, self.horizon, tuple(numbers), sink, self.clocks)


def begin(world: gymnasium.Env, name: str, layout: int, action: int) -> Clocks:
    """Reset the environment, which must be as it was after the last reset; what only counts resets
    is named and left out."""
    known: Still = {}
    reset(world, name, layout)
    _step(world, action, name)  # the first of these may make what later ones find
    reset(world, name, layout)
    before, counted = Reading(world, frozenset(), known).digest, dict(world_state.counters(world))
    reset(world, name, layout)
    if Reading(world, frozenset(), known).digest == before:
        return frozenset()
    now = dict(world_state.counters(world))
    tallies = frozenset(p for p, n in now.items() if n == counted.get(p, n) + 1)
    before = Reading(world, tallies, known).digest
    reset(world, name, layout)
    if not tallies or Reading(world, tallies, known).digest != before:
        raise UserError(
            f"Environment {name} begins elsewhere when it is reset with the same seed ({layout}) "
            f"again; draw its start from self.np_random, as Gymnasium's environments do."
        )
    return tallies


def reset(world: gymnasium.Env, name: str, layout: int) -> None:
    with calling(f"Environment {name} failed at a reset"):
        world.reset(seed=layout)


def _step(world: gymnasium.Env, action: int, name: str) -> tuple[float, bool, bool]:
    """What an action earns, whether it ends the episode, whether it cuts it off."""
    with calling(f"Environment {name} failed as its states were explored"):
        try:
            told: Any = world.step(action)
            if not isinstance(told, tuple | list) or len(told) != 5:
                raise Wrong(f"{shown(told)} where five values belong")
            return real(told[1]), flag(told[2]), flag(told[3])
        except Wrong as wrong:
            raise UserError(f"Environment {name} gave {wrong} as it was explored.") from None
