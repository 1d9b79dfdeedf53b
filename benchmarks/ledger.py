"""What the regret ledger costs: the same run with and without it, alternating, best of four.

    python benchmarks/ledger.py

Both sample, and hand out the mixture, whose occupancies the ledger then need not compute again. The
last row is the default, which samples nothing. Times are of the processor, not of the clock: what
else runs on the machine does not count, though it does push tables out of the shared cache.
"""

import time

import numpy as np

from understudy.envs.empty_room import demonstrations, empty_room
from understudy.learners.config import Config
from understudy.learners.finite import imitate

CASES = [
    *((n, w, b, "sampled") for n in (3, 9) for w in ("1", "32", "256") for b in (None, 1)),
    (9, "1", None, None),
]


def main() -> None:
    print("| room | window | collects | CPU µs per update without | with | ratio |")
    print("|---|---|---|---:|---:|---:|")
    for n, window, batch, gradients in CASES:
        room, shown, updates = empty_room(n), demonstrations(n), 2_000
        times: dict[bool, list[float]] = {False: [], True: []}
        for attempt in range(5):
            for ledger in times:
                config = Config(
                    window=window,
                    batch=batch,
                    interactions=updates * (room.horizon if batch else 1),
                    gradients=gradients,
                    handed="mixture",
                    marks=1,
                    ledger=ledger,
                )
                begun = time.process_time()
                imitate(room, shown, config, seeds=range(5))
                if attempt:  # the first compiles
                    times[ledger].append((time.process_time() - begun) / updates / 5 * 1e6)
        without, with_ledger = (float(np.min(times[kept])) for kept in (False, True))
        collects = "a trajectory" if batch else "one step" if gradients else "nothing"
        print(
            f"| {n}×{n} | {window} | {collects} | {without:.1f} | {with_ledger:.1f} | "
            f"{with_ledger / without:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
