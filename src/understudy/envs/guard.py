"""One guard around every call of somebody else's environment.

Whatever an environment raises, calls (`sys.exit`) or returns wrongly becomes one sentence of ours
that names it; what it prints goes to stderr, for stdout belongs to `--json`. What comes back is a
copy that fits the declared spaces: no later step of the environment can change it.
"""

import contextlib
import copy
import numbers
import sys
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from understudy.core import errors
from understudy.core.errors import UserError
from understudy.envs.action_fit import fitting, refuse_actions

LONGEST = 100_000  # steps of an episode; longer ones have no limit at all
HELD = float(np.finfo(np.float32).max)  # beyond it a number is infinite to the networks
SAFE = 1e36  # a sum of squares below this says that no number is NaN, infinite or out of range
WORDS = 200  # characters of somebody else's words that are quoted


def plain(text: object) -> str:
    """Somebody else's words, to be quoted: one short line that commands no terminal."""
    try:
        words = str(text)
    except Exception:  # a hostile __str__
        words = type(text).__name__
    words = " ".join(errors.plain(words[: 10 * WORDS]).split())
    return words if len(words) <= WORDS else words[: WORDS - 1] + "…"


def first_line(error: BaseException) -> str:
    """What an exception says in its first line, without the full stop; or else its kind."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:
        lines = []
    return plain(lines[0] if lines else type(error).__name__).rstrip(".")


@contextlib.contextmanager
def calling(what: str) -> Iterator[None]:
    """Somebody else's code at work: its prints go to stderr, its failure is `what: reason`."""
    before, sys.stdout = sys.stdout, sys.stderr
    try:
        yield
    except (UserError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise UserError(failed(what, error)) from error
    finally:
        sys.stdout = before


def failed(what: str, error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"{what}: it called sys.exit, which would have ended understudy."
    return f"{what}: {plain(type(error).__name__)}: {plain(error) or 'without a word'}"


class Wrong(Exception):
    """What came is not what was declared; the message is the middle of a sentence."""


class Guard(gymnasium.Wrapper):
    """An environment that keeps to its spaces, or is refused in one sentence."""

    def __init__(self, env: gymnasium.Env, name: str) -> None:
        self.name, self.t, self.closed = plain(name), 0, False
        with calling(f"Environment {self.name} has no usable spaces"):
            super().__init__(env)
            seen: Any = env.observation_space
            acted: Any = env.action_space
            for noun, space in (("observation", seen), ("action", acted)):
                if not isinstance(space, gymnasium.Space):
                    raise UserError(
                        f"Environment {self.name} has {plain(space)} as its {noun}_space, which is "
                        f"no space of Gymnasium's."
                    )
            refuse_actions(acted, self.name)
            _refuse_nothing(seen, self.name)
        self._read, self._fit = reader(seen), fitting(acted)

    @property
    def spec(self) -> Any:
        """The environment's own: a guard is no part of what it is."""
        return self.env.spec

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.t = 0
        with calling(f"Environment {self.name} failed at a reset"):
            more = {} if options is None else {"options": options}
            told: Any = self.env.reset(seed=seed, **more)
            try:
                if not isinstance(told, tuple) or len(told) != 2:
                    raise Wrong(f"{shown(told)} where an observation and a dictionary belong")
                return self._read(told[0]), told[1]
            except Wrong as wrong:
                raise UserError(f"Environment {self.name} gave {wrong} at a reset.") from None

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        # As `calling`, written out: it is passed at every step.
        if self.t >= LONGEST:
            raise UserError(endless(self.name, LONGEST))
        before, sys.stdout = sys.stdout, sys.stderr
        try:
            told: Any = self.env.step(action if self._fit is None else self._fit(action))
            if not isinstance(told, tuple | list) or len(told) != 5:
                raise Wrong(
                    f"{shown(told)} where an observation, a reward, terminated, truncated and a "
                    f"dictionary belong"
                )
            obs, reward, terminated, truncated, info = told
            kept = self._read(obs), real(reward), flag(terminated), flag(truncated), info
        except (UserError, KeyboardInterrupt):
            raise
        except Wrong as wrong:
            raise UserError(
                f"Environment {self.name} gave {wrong} in step {self.t} of an episode."
            ) from None
        except BaseException as error:
            what = f"Environment {self.name} failed in step {self.t} of an episode"
            raise UserError(failed(what, error)) from error
        finally:
            sys.stdout = before
        self.t += 1
        return kept

    def render(self) -> Any:
        with calling(f"Environment {self.name} failed to draw itself"):
            return self.env.render()

    def close(self) -> None:
        if self.closed:
            return
        self.closed, under_way = True, sys.exc_info()[0] is not None
        try:
            with calling(f"Environment {self.name} failed as it was closed"):
                self.env.close()
        except UserError:
            if not under_way:  # or the first of two failures would go untold
                raise


def guarded(env: gymnasium.Env, name: str | None = None) -> gymnasium.Env:
    """The environment with a guard, where it has none yet."""
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, Guard):
            return env
        inner = inner.env
    return Guard(env, name or type(inner).__name__)


def endless(name: str, steps: int) -> str:
    return f"An episode of {name} went on for {steps:,} steps; limit it with --horizon."


def shown(value: Any) -> str:
    """What came, in a few words."""
    kind = type(value).__name__
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} of {plain(value.dtype)}"
    if isinstance(value, tuple | list):
        return f"a {kind} of {len(value)}"
    return plain(
        repr(value)[:60] if isinstance(value, str | numbers.Number | None) else f"a {kind}"
    )


# --- what an environment tells --------------------------------------------------------------------


def real(reward: Any) -> float:
    """A reward: one finite number."""
    if type(reward) is not float:
        single = isinstance(reward, numbers.Real | np.bool_) or (
            isinstance(reward, np.ndarray | np.generic)
            and reward.shape == ()
            and reward.dtype.kind in "fiub"
        )
        if not single:
            raise Wrong(f"{shown(reward)} as a reward, which must be one number,")
        try:
            reward = float(reward)
        except OverflowError:
            reward = np.inf
    if not -HELD < reward < HELD:
        raise Wrong(f"a reward that is not finite (NaN) or too large, {reward:g},")
    return reward


def flag(value: Any) -> bool:
    """Terminated or truncated; a plain 0 or 1 says the same."""
    if value is True or value is False:
        return value
    whole = isinstance(value, bool | np.bool_ | int | np.integer) or (
        isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "biu"
    )
    if not whole or int(value) not in (0, 1):
        raise Wrong(f"{shown(value)} as terminated or truncated, which must be True or False,")
    return bool(value)


def reader(space: spaces.Space[Any]) -> Callable[[Any], Any]:
    """A copy of an observation, checked against its space."""
    if isinstance(space, spaces.Box):
        return lambda value: numbers_of(value, space.shape)
    if isinstance(space, spaces.Discrete):
        low, high = int(space.start), int(space.start) + int(space.n)
        return lambda value: whole(value, low, high)
    if isinstance(space, spaces.Dict):
        parts = {name: reader(part) for name, part in space.spaces.items()}
        return lambda value: _parts(value, parts)
    if isinstance(space, spaces.Tuple):
        row = [reader(part) for part in space.spaces]
        return lambda value: _row(value, row)
    return lambda value: _other(value, space)


def numbers_of(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """An array of just this shape, of finite numbers that the networks can hold."""
    try:
        seen = np.array(value)  # a copy: an environment may write its next observation over it
    except ValueError:
        raise Wrong(f"{shown(value)} as an observation, which is no array of one shape,") from None
    if seen.dtype.kind not in "fiub":
        raise Wrong(f"{shown(value)} as an observation, which must be an array of numbers,")
    if seen.shape != shape:
        raise Wrong(
            f"an observation of shape {seen.shape}; its observation_space has shape {shape},"
        )
    if seen.dtype.kind == "f":
        flat = seen.ravel()
        if not flat.dot(flat) < SAFE:  # NaN is not below anything
            _refuse_far(flat)
    return seen


def _refuse_far(flat: np.ndarray) -> None:
    beyond = ~(np.abs(flat.astype(np.float64)) < HELD)
    if beyond.any():
        worst = float(flat[beyond][0])
        raise Wrong(f"an observation that is not finite (NaN) or too large, {worst:g},")


def whole(value: Any, low: int, high: int) -> Any:
    """A state: a whole number from `low` to below `high`."""
    if type(value) is not int and not isinstance(value, np.integer):
        single = isinstance(value, int | float | np.floating | np.bool_) or (
            isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "fiub"
        )
        if not single or not np.isfinite(value) or int(value) != value:
            raise Wrong(
                f"{shown(value)} as a state, which must be a whole number from {low} to {high - 1},"
            )
        value = int(value)
    if not low <= value < high:
        raise Wrong(f"the state {shown(int(value))}, which must be from {low} to {high - 1},")
    return value


def _parts(value: Any, readers: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(readers):
        raise Wrong(f"{shown(value)} as an observation, not a dictionary with its space's keys,")
    return {name: read(value[name]) for name, read in readers.items()}


def _row(value: Any, readers: list[Callable[[Any], Any]]) -> tuple[Any, ...]:
    if not isinstance(value, tuple) or len(value) != len(readers):
        raise Wrong(f"{shown(value)} as an observation, not a tuple of {len(readers)},")
    return tuple(read(part) for read, part in zip(readers, value, strict=True))


def _other(value: Any, space: spaces.Space[Any]) -> Any:
    if not space.contains(value):
        raise Wrong(f"{shown(value)} as an observation, which is not in {plain(space)},")
    return copy.deepcopy(value)


def _refuse_nothing(space: spaces.Space[Any], name: str) -> None:
    try:
        size = spaces.flatdim(space)
    except (NotImplementedError, ValueError):  # words and graphs have none
        return
    if size == 0:
        raise UserError(f"Environment {name} has observations {plain(space)}: nothing to see.")
