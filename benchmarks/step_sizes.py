"""How much of Figure 1 is the step size: every N with the steps of its own number of updates.

    python benchmarks/step_sizes.py

EmptyRoom 9×9, 5 seeds, as in the figure: 32 points an update, of which a window of N owes 32 // N
anew. The figure gives all N the steps for K = 10,000 interactions, though N = 1 makes 312 updates
with them.
"""

import numpy as np

from understudy.core.updates import paper_steps
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.learners.config import Config
from understudy.learners.finite import imitate

SHOWN = (200, 500, 1_000, 2_000, 5_000, 10_000)


def main() -> None:
    room, shown = empty_room(9), demonstrations(9)
    print("| N | steps for K = | " + " | ".join(f"@{at:,}" for at in SHOWN) + " |")
    print("|---:|---:|" + "---:|" * len(SHOWN))
    for N in (1, 4, 32):
        for K in dict.fromkeys((10_000, 10_000 * N // 32, 100)):  # shared, its own updates, large
            sigma, eta = paper_steps(room.horizon, K)
            config = Config(
                window=str(N), points=32, steps="paper", sigma=sigma, eta=eta, visits="sampled",
                handed="last", ledger=False,
            )  # fmt: skip
            result = imitate(room, shown, config, seeds=range(5))
            places = np.searchsorted(result.interactions, SHOWN, side="right") - 1
            cells = " | ".join(f"{v:.2f}" for v in result.returns.mean(0)[places])
            print(f"| {N} | {K:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
