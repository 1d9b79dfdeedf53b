"""Verdicts: a claim holds or not by its stated rule, on curves made for the purpose."""

from pathlib import Path

import numpy as np
import pytest

from understudy.experiments.figures import claims, fig1, fig2, fig3
from understudy.experiments.figures.claims import Curves
from understudy.experiments.stored_runs import StoredRun

MARKS = np.arange(0, 10_001, 100)
ROOMS = ("EmptyRoom-3x3", "EmptyRoom-5x5", "EmptyRoom-9x9")


def run(room, N, seed, reaches, top=1.0, expert=2.0):
    """A curve that jumps from 0 to `top` of the expert at `reaches` interactions."""
    returns = np.where(MARKS >= reaches, top * expert, 0.0)
    request = {"env": room, "seed": seed, "config": {"window": str(N)}}
    summary = {"expert_return": expert}
    return StoredRun(Path("x"), request, summary, MARKS, MARKS, returns, None)


def curves(reaches, top=lambda room, N: 1.0):
    return Curves(
        [
            run(room, N, seed, reaches(room, N), top(room, N))
            for room in ROOMS
            for N in (1, 4, 32, 128)
            for seed in range(2)
        ]
    )


def holds(found):
    return [row["holds"] for row in found]


def as_the_paper_says(room, N):
    late = {"EmptyRoom-3x3": 9_000, "EmptyRoom-5x5": 10**9, "EmptyRoom-9x9": 10**9}[room]
    return {1: late, 4: 1_000 * (1 + ROOMS.index(room)), 32: 800, 128: 800}[N]


def test_figure_1_as_the_paper_says():
    assert all(holds(fig1.claims(curves(as_the_paper_says))))


def test_each_claim_of_figure_1_can_fail():
    changes = [
        lambda room, N: 1_200 if N == 32 and room == ROOMS[2] else None,  # too late
        lambda room, N: 4_000 if N == 1 and room == ROOMS[0] else None,  # too early
        lambda room, N: 9_900 if N == 1 and room == ROOMS[1] else None,
        lambda room, N: 9_900 if N == 1 and room == ROOMS[2] else None,
        lambda room, N: 1_000 if N == 4 else None,  # no growth
        lambda room, N: 400 if N == 128 and room == ROOMS[2] else None,  # much better at 500
    ]
    for place, change in enumerate(changes):
        found = fig1.claims(
            curves(lambda room, N, change=change: change(room, N) or as_the_paper_says(room, N))
        )
        assert holds(found)[place] is False
        if place:  # (the first change also tells 32 from 128)
            assert sum(holds(found)) == len(found) - 1


def test_figure_3_as_the_paper_says_and_not():
    def reaches(room, N):
        return {1: 9_000, 4: 3_000, 32: 900, 128: 1_100 if room == ROOMS[1] else 900}[N]

    found = fig3.claims(curves(reaches))
    assert len(found) == 8
    assert all(holds(found))
    equal = fig3.claims(curves(lambda room, N: 900))
    claims = {row["claim"]: row["holds"] for row in equal}
    assert not claims["In 5×5 N = 32 beats N = 128"]
    assert not claims["Every N > 1 converges faster than N = 1 in 3×3"]
    assert claims["In 9×9 N = 128 is about as good as N = 32"]
    lower = fig3.claims(curves(reaches, top=lambda room, N: 0.95 if N == 4 else 1.0))
    assert not {row["claim"]: row["holds"] for row in lower}[
        "Every N > 1 ends at least as high as N = 1 in 9×9"
    ]


def test_a_seed_that_fails_is_in_the_mean():
    some = curves(as_the_paper_says).runs
    failing = run(ROOMS[0], 32, 9, 10**9)
    found = fig1.claims(Curves([*some, failing]))
    assert not found[0]["holds"]
    assert "3×3: 0.667" in found[0]["measured"]


TASKS = ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5")


def deep_curves(share, windows=("1", "4", "32", "256", "all")):
    """Two seeds whose share of the expert is the given one ± 0.01 all along."""
    return Curves(
        [
            run(task, N, seed, 0, share(task, N) + (0.01 if seed else -0.01))
            for task in TASKS
            for N in windows
            for seed in range(2)
        ]
    )


def as_figure_2_says(task, N):
    return {"1": 0.1, "4": 0.5, "32": 0.8, "256": 0.8, "all": 0.79}[N]


def test_figure_2_as_the_paper_says():
    assert holds(fig2.claims(deep_curves(as_figure_2_says))) == [True] * 9
    fewer = deep_curves(as_figure_2_says, windows=("1", "32", "all"))
    assert holds(fig2.claims(fewer)) == [True] * 9


def test_each_claim_of_figure_2_can_fail():
    changes = [
        lambda task, N: 0.05 if (task, N) == (TASKS[0], "256") else None,  # worse than N = 1
        lambda task, N: 0.11 if (task, N) == (TASKS[0], "4") else None,  # better, within the noise
        lambda task, N: 0.9 if (task, N) == (TASKS[0], "all") else None,  # much better than 32
    ]
    for place, change in enumerate(changes):
        found = fig2.claims(
            deep_curves(lambda task, N, change=change: change(task, N) or as_figure_2_says(task, N))
        )
        assert holds(found) == [place != i for i in range(9)]


def test_the_standard_error_of_a_difference():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, (20_000, 3)), rng.normal(0.5, 2, (20_000, 5))
    gaps, errors = zip(*(claims.difference(x, y) for x, y in zip(a, b, strict=True)), strict=True)
    assert np.mean(gaps) == pytest.approx(-0.5, abs=0.03)
    assert np.mean(np.square(errors)) == pytest.approx(np.var(gaps), rel=0.05)
