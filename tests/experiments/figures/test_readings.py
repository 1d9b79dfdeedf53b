"""The readings of Figure 1: what counts of a run, and what they are set to do."""

from pathlib import Path

import numpy as np
import pytest

from understudy.core.errors import UserError
from understudy.experiments import reproduce
from understudy.experiments.figures import readings
from understudy.experiments.figures.readings import CODE, HANDED, READINGS
from understudy.experiments.report.judged import readings as shown
from understudy.experiments.stored_runs import StoredRun

# H = 6 in the 2×2 room; the last policy is measured beside the one handed out.
EPISODES = np.array([0, 60, 100, 160, 200])
RUN = StoredRun(
    Path("x"),
    {"env": "SlipperyRoom-2x2", "seed": 0, "horizon": 6, "config": {"window": "4"}},
    {"expert_return": 9.0},
    6 * EPISODES,
    EPISODES,
    np.array([0.0, 1.0, 2.0, 3.0, 5.0]),
    None,
    beside={"last_return": np.array([0.0, 2.0, 4.0, 6.0, 10.0])},
)


def test_a_point_of_the_codes_curves_is_the_mean_of_a_hundred_episodes():
    last, handed = CODE.view(RUN), HANDED.view(RUN)
    assert last.interactions.tolist() == EPISODES.tolist()
    assert last.returns.tolist() == [0.0, 1.0, 3.0, 5.0, 8.0]  # 0 to 60, 60 and 100, 100 and 160
    assert handed.returns.tolist() == [0.0, 0.5, 1.5, 2.5, 4.0]
    assert READINGS[0].view(RUN) is RUN


def test_the_expert_is_the_true_one():
    """Two moves to the goal of a 2×2 room, each with nine chances in ten, in six steps; one for
    every step that ends there."""
    there = sum(1 - 0.1**h - h * 0.9 * 0.1 ** (h - 1) for h in range(1, 7))
    assert CODE.view(RUN).expert_return == pytest.approx(there)


def test_the_code_updates_after_128_episodes_of_n_policies():
    asked = {c.window: c for c in CODE.sweep.settings()}
    assert {N: int(N) * c.batch for N, c in asked.items()} == dict.fromkeys(asked, 128)
    assert {(c.rollouts, c.points, c.rounds) for c in asked.values()} == {(10_000, 32, 4)}
    assert {c.batch for c in READINGS[-1].sweep.settings()} == {1}


def test_all_readings_are_judged_by_one_rule_and_shown_beside_each_other():
    runs = [
        StoredRun(
            Path("x"),
            {"env": f"EmptyRoom-{n}x{n}", "seed": 0, "config": {"window": N}},
            {"expert_return": 1.0},
            np.array([0, 1_000, 10_000]),
            np.array([0, 1, 2]),
            np.array([0.0, 0.96 if N != "1" else 0.0, 0.96]),
            None,
        )
        for n in (3, 5, 9)
        for N in ("1", "4", "32", "128")
    ]
    judged, beside = readings.judge([(one, runs) for one in READINGS])
    assert beside["columns"] == [one.title for one in READINGS]
    assert [row["claim"] for row in beside["rows"]] == [row["claim"] for row in judged]
    for row, one in zip(beside["rows"], judged, strict=True):
        assert {cell["holds"] for cell in row["cells"]} == {one["holds"]}
    assert judged[0]["holds"]  # 0.96 of the expert matches
    assert shown({"readings": beside}) == beside
    assert shown({}) is None
    beside["rows"][0]["cells"].pop()
    with pytest.raises(ValueError, match="lacks a reading"):
        shown({"readings": beside})


@pytest.mark.parametrize("asked", [("fig3", {}), ("fig1", {"windows": ("1", "32")})])
def test_the_authors_protocol_is_of_the_whole_figure_1(asked, tmp_path):
    name, options = asked
    with pytest.raises(UserError, match="--protocol authors is for fig1"):
        reproduce.reproduce(name, tmp_path / "out", protocol="authors", **options)
    assert not (tmp_path / "out").exists()
