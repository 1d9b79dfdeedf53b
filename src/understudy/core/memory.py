"""What a run would need of memory, counted before anything is spent.

A system that promises more memory than it has ends the process at some later moment, without a
word; and beyond 2³¹ the compiler itself aborts. The counts are of what must be there at once, so
they are too small rather than too large: what passes may still not fit, but nothing that fits is
refused.
"""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from understudy.core.errors import UserError

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
FLOAT = 4


def machine() -> int:
    """Bytes of memory of this machine, or of the container that we are in."""
    try:
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (ValueError, OSError, AttributeError):  # a system that does not say
        found = [2**40]
    for path in LIMITS:
        try:
            found.append(int(Path(path).read_text()))
        except (OSError, ValueError):  # none, or "max"
            continue
    return min(found)


def refuse(needed: int, of: str) -> None:
    """A sentence, if it is more than there is. `of` says what to make smaller."""
    if needed > (there := machine()):
        raise UserError(
            f"This needs at least {needed / 2**30:,.0f} GiB of memory, and the machine has "
            f"{there / 2**30:,.1f}; make {of} smaller."
        )


def weights(sizes: Sequence[int]) -> int:
    """Of a multi-layer perceptron."""
    return sum((i + 1) * o for i, o in itertools.pairwise(sizes))


def networks(inputs: int, outputs: int, hidden: Sequence[int], batch: int) -> int:
    """Bytes of one network that is trained: weights, gradient and Adam's two moments, and what a
    batch makes of its layers."""
    return FLOAT * (4 * weights((inputs, *hidden, outputs)) + batch * sum(hidden))


def transitions(count: int, observations: int, actions: int) -> int:
    """Bytes of so many kept: before, after, the action, whether it was the last."""
    return count * (FLOAT * (2 * observations + actions) + 1)
