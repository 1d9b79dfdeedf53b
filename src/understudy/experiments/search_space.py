"""What `understudy tune` may change, and between which ends. No Optuna here: `--help` and errors
come before it."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from understudy.core.errors import UserError
from understudy.learners.baselines.methods import UNUSED, Method
from understudy.learners.deep.config import DeepConfig

Number = int | float


@dataclass(frozen=True)
class Span:
    """From one end to the other."""

    low: Number
    high: Number
    log: bool = False  # by factors, not by differences

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def near(self, value: Any) -> Number:
        """The value, or the end that is nearest to it."""
        return self.low if value is None else min(max(value, self.low), self.high)

    def drawn(self, trial: Any, name: str) -> Number:
        suggest = trial.suggest_int if self.whole else trial.suggest_float
        return suggest(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Several:
    """One of a few."""

    values: tuple[Number, ...]

    def near(self, value: Any) -> Number:
        return min(self.values, key=lambda x: abs(x - (value or 0)))

    def drawn(self, trial: Any, name: str) -> Number:
        return trial.suggest_categorical(name, self.values)


Spans = dict[str, Span | Several]

KNOWN: Spans = {
    "kl": Span(0.05, 5.0, log=True),
    "noise": Span(0.0, 0.8),
    "cloning": Span(0.0, 4.0),
    "gamma": Several((0.95, 0.97, 0.98, 0.99, 0.995)),
    "discriminator_rate": Span(1e-5, 1e-3, log=True),
    "penalty": Span(0.1, 10.0, log=True),
    "actor_rate": Span(1e-4, 3e-3, log=True),
    "critic_rate": Span(1e-4, 3e-3, log=True),
    "tau": Span(0.002, 0.05, log=True),
    "entropy": Span(0.001, 0.1, log=True),
    "demo_share": Span(0.0, 0.5),
    "average": Span(0.02, 0.5, log=True),
    "policy_steps": Span(1, 12),
    "reward_steps": Span(1, 8),
    "discriminator_hidden": Several((32, 64, 128, 256)),
    "warmup": Several((0, 2_000, 5_000)),
    "clone_rate": Span(1e-4, 3e-3, log=True),
    "clone_blur": Span(0.0, 0.1),
    "clone_steps": Span(1, 10),
}
USUAL = ("kl", "noise", "cloning", "gamma", "discriminator_rate", "penalty", "actor_rate")
OF_CLONING = ("clone_rate", "clone_blur", "clone_steps")


def chosen(over: Sequence[str], method: Method) -> Spans:
    """The options to be changed: 'kl', 'kl=0.1:1' with ends of one's own, 'kl=0.1,0.5,1' with a
    list; the usual ones of the method, if none is given."""
    unused = UNUSED.get(method, set())
    usual = [name for name in USUAL if name not in unused] or list(OF_CLONING)
    found: Spans = {}
    for asked in over or usual:
        name, given, ends = asked.partition("=")
        name = name.replace("-", "_")
        if name not in KNOWN:
            flags = ", ".join(known.replace("_", "-") for known in KNOWN)
            raise UserError(f"--over names '{asked}'; it may name {flags}.")
        if name in unused:
            raise UserError(
                f"--over names '{asked}', which changes nothing with --method {method}; leave it "
                f"out."
            )
        if name in found:
            raise UserError(f"--over names '{name.replace('_', '-')}' twice; name it once.")
        found[name] = _own(asked, ends, KNOWN[name]) if given else KNOWN[name]
    return found


def _own(asked: str, ends: str, known: Span | Several) -> Span | Several:
    """Ends, or a list, of one's own; on the scale of the known ones."""
    separator = ":" if ":" in ends else ","
    whole = known.whole if isinstance(known, Span) else isinstance(known.values[0], int)
    try:
        values = [int(word) if whole else float(word) for word in ends.split(separator)]
        if not all(map(math.isfinite, values)):
            raise ValueError
    except ValueError:
        kind = "whole numbers" if whole else "numbers"
        raise UserError(
            f"--over has '{asked}'; give {kind}, as NAME=LOW:HIGH or NAME=ONE,TWO,THREE."
        ) from None
    if separator == ",":
        if len(set(values)) < 2:
            raise UserError(f"--over has '{asked}', which is no choice; list two values at least.")
        return Several(tuple(values))
    log = isinstance(known, Span) and known.log
    if len(values) != 2 or not values[0] < values[1] or (log and values[0] <= 0):
        above = " above 0" if log else ""
        raise UserError(f"--over has '{asked}'; LOW must be{above} below HIGH.")
    return Span(values[0], values[1], log)


def usual(spans: Spans, base: DeepConfig) -> dict[str, Number]:
    """The values that the first run has: those of the config, or the nearest that there are."""
    return {name: span.near(getattr(base, name)) for name, span in spans.items()}


def changed(base: DeepConfig, values: dict[str, Any]) -> DeepConfig:
    return dataclasses.replace(base, **values)


def described(spans: Spans) -> dict[str, Any]:
    """As JSON: what a search is over is part of what it is."""
    return {name: dataclasses.asdict(span) for name, span in spans.items()}
