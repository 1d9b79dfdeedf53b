"""The whole of Figure 1, through the command line, against what it must show."""

import json

import pytest
from test_cli import understudy

from understudy.experiments.fig1 import by_cell, value_at


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure")
    done = understudy("reproduce", "fig1", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "@10,000" in done.stderr
    assert (folder / "runs/fig1/fig1.png").read_bytes().startswith(b"\x89PNG")
    document = json.loads(done.stdout)
    stored = json.loads((folder / "runs/fig1/curves.json").read_text())
    assert stored["curves"] == document["curves"]
    return document


def shares(document, room, N, at):
    return value_at(by_cell(document)[room, N], at) / document["expert"][str(room)]


def test_it_has_what_it_promises(document):
    assert document["expert"] == pytest.approx({"3": 4.6, "5": 6.2, "9": 9.4})
    assert document["seconds"] > 0
    assert len(document["curves"]) == 3 * 4 * 5
    for curve in document["curves"]:
        assert len(curve["interactions"]) == len(curve["return"])
        assert curve["interactions"][-1] == 10_000


@pytest.mark.parametrize("room", [3, 5, 9])
def test_large_windows_match_the_expert_at_1000(document, room):
    for N in (32, 128):
        assert shares(document, room, N, 1_000).min() >= 0.97


@pytest.mark.parametrize("room", [3, 5, 9])
def test_on_policy_is_far_behind_at_1000(document, room):
    assert shares(document, room, 1, 1_000).max() < 0.2


def test_on_policy_converges_in_the_smallest_room_only(document):
    assert shares(document, 3, 1, 10_000).min() >= 0.97
    assert shares(document, 9, 1, 10_000).max() < 0.97


@pytest.mark.parametrize("room", [3, 5, 9])
def test_four_policies_lie_between(document, room):
    for at in (1_000, 2_000, 5_000):
        low, mid, high = (shares(document, room, N, at).mean() for N in (1, 4, 32))
        assert low <= mid <= high + 1e-3


def test_four_policies_are_slower_in_larger_rooms(document):
    def reached(room):
        curves = by_cell(document)[room, 4]
        expert = document["expert"][str(room)]
        return min(
            at for at in curves[0]["interactions"] if value_at(curves, at).mean() >= 0.9 * expert
        )

    assert reached(3) < reached(5) < reached(9)


def test_the_reference_table(document):
    """Mean returns of an independent prototype (five other seeds), within seed noise."""
    reference = {
        (3, 1): {5_000: 4.49, 10_000: 4.60},
        (3, 4): {1_000: 4.15, 2_000: 4.60},
        (5, 1): {5_000: 4.09, 10_000: 6.17},
        (5, 4): {1_000: 0.30, 2_000: 6.07},
        (9, 1): {5_000: -2.68, 10_000: 8.40},
        (9, 4): {2_000: 5.86, 5_000: 9.38},
        (9, 32): {200: -1.94, 500: 9.30},
        (9, 128): {200: -1.88, 500: 9.30},
    }
    for cell, row in reference.items():
        for at, expected in row.items():
            assert value_at(by_cell(document)[cell], at).mean() == pytest.approx(expected, abs=0.15)
