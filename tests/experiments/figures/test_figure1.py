"""The whole of Figure 1, through the command line, against what it must show."""

import json

import numpy as np
import pytest
from test_cli import understudy

from understudy.experiments import stored_runs

pytestmark = pytest.mark.slow  # the whole figure, as `make demo` makes it


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("figure")


@pytest.fixture(scope="module")
def document(folder):
    done = understudy("reproduce", "fig1", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "@10,000" in done.stderr
    assert "The paper's claims" in done.stderr
    assert (folder / "runs/fig1/fig1.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "runs/fig1/fig1.pdf").read_bytes().startswith(b"%PDF")
    assert (folder / "runs/fig1/report.html").stat().st_size > 10_000
    return json.loads(done.stdout)


def returns(document, room, N, at):
    """Each seed's return at the last mark up to `at` interactions."""
    curves = [c for c in document["curves"] if (c["env"], c["N"]) == (named(room), N)]
    place = np.searchsorted(curves[0]["interactions"], at, side="right") - 1
    return np.array([curve["return"][place] for curve in curves])


def named(room):
    return f"EmptyRoom-{room}x{room}"


def shares(document, room, N, at):
    return returns(document, room, N, at) / document["expert"][named(room)]


def test_it_has_what_it_promises(document, folder):
    assert document["expert"] == pytest.approx({named(3): 4.6, named(5): 6.2, named(9): 9.4})
    assert document["seconds"] > 0
    assert len(document["curves"]) == 3 * 4 * 5
    for curve in document["curves"]:
        assert len(curve["interactions"]) == len(curve["return"])
        assert curve["interactions"][-1] == 10_000
    stored, skipped = stored_runs.load(folder / "runs/fig1")
    assert (len(stored), skipped) == (60, [])
    assert all(run.replay["visits"].shape[0] == len(run.interactions) for run in stored)


def test_the_verdicts_are_what_was_measured(document):
    verdicts = {row["claim"]: row for row in document["verdicts"]}
    assert len(verdicts) == 6
    holds = {claim: row["holds"] for claim, row in verdicts.items()}
    assert holds["N = 32 matches the expert at about 1,000 interactions in each room"]
    assert holds["N = 1 needs more than 10,000 in 9×9"]
    assert holds["Small N suffers as the room grows"]
    assert holds["There is little benefit beyond N = 32"]
    five = shares(document, 5, 1, 10_000).mean()  # the one that is close
    assert holds["N = 1 needs more than 10,000 in 5×5"] == (five < 0.999)
    assert f"{five:.3f}" in verdicts["N = 1 needs more than 10,000 in 5×5"]["measured"]


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
        marks = document["curves"][0]["interactions"]
        return min(at for at in marks if shares(document, room, 4, at).mean() >= 0.9)

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
    for (room, N), row in reference.items():
        for at, expected in row.items():
            assert returns(document, room, N, at).mean() == pytest.approx(expected, abs=0.15)
