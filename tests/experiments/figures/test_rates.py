"""Regret against K and d: the fits and claims on runs with known regret, and a small real sweep."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from understudy.core.errors import UserError
from understudy.envs import catalog
from understudy.experiments import stored_runs
from understudy.experiments.figures import linear
from understudy.experiments.report import sections
from understudy.experiments.stored_runs import StoredRun
from understudy.experiments.sweeps import sweep_run
from understudy.learners.config import Config

TERMS = ("optimisation", "shift", "estimation", "demonstrations")


def made(d: int, N: int, K: int, exponent: float, *, gap: float = 0.0, holds: bool = True):
    """A run whose AIL regret is 3 d^0.4 K^exponent."""
    parts = {term: np.array([0.0, 10.0 * (i + 1)]) for i, term in enumerate(TERMS)}
    ail = 3 * d**0.4 * K**exponent
    regret = {
        **parts,
        "reward": np.array([0.0, 100.0 + gap]),
        "policy": np.zeros(2),
        "ail": np.array([0.0, ail]),
    }
    return StoredRun(
        folder=Path(f"d{d}-N{N}-K{K}"),
        request={"env": f"RandomLinear-d{d}", "seed": 0, "config": {"window": str(N)}},
        summary={"ledger": {"ail": {"measured": ail, "bound": 1e9, "holds": holds}}},
        interactions=np.array([0, 6 * K]),
        updates=np.array([0, K]),
        returns=np.zeros(2),
        regret=regret,
    )


def grid(exponent: float, **change):
    return [made(d, N, K, exponent, **change) for d in (4, 16) for N in (1, 32) for K in (100, 400)]


def test_fits_find_the_power_laws():
    found = linear.Regrets(grid(0.5))
    assert found.exponent(4, 32) == pytest.approx(0.5)
    assert found.exponent_in_d(1) == pytest.approx(0.4)
    assert (found.ds, found.windows, found.ks) == ([4, 16], [1, 32], [100, 400])


def test_claims_hold_or_fail_by_their_rules(tmp_path):
    def judged(stored):
        return [row["holds"] for row in linear.claims(stored)]

    assert judged(grid(0.5)) == [True, True, True, True, True]
    assert judged(grid(0.7)) == [False, False, True, True, True]
    assert judged(grid(0.5, holds=False)) == [True, True, True, False, True]
    assert judged(grid(0.5, gap=1e-5)) == [True, True, True, True, False]
    linear.draw(grid(0.5), tmp_path / "linear")
    assert (tmp_path / "linear.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "linear.pdf").read_bytes().startswith(b"%PDF")
    shown = sections.dimensions(grid(0.5))
    assert (shown["K"], shown["d"]) == (400, [4, 16])
    assert [line["slope"] for line in shown["series"]] == pytest.approx([0.4, 0.4])
    assert sections.dimensions(grid(0.5)[:4]) is None  # one d only


def test_a_sweep_of_linear_mdps_is_stored_and_resumed(tmp_path):
    asked = dataclasses.replace(
        linear.SWEEP,
        envs=("RandomLinear-d3",),
        seeds=(0,),
        config=Config(batch=1, steps="theory", visits="sampled", handed="last", marks=3),
        grid={"window": ("2",), "interactions": (6 * 20, 6 * 40)},
    )
    done = sweep_run.run(asked, tmp_path)
    assert (done["runs"], done["resumed"]) == (2, 0)
    stored = [stored_runs.read(Path(folder)) for folder in done["folders"]]
    assert all(
        row["holds"] is not False for run in stored for row in run.summary["ledger"].values()
    )
    assert max(map(linear.split_gap, stored)) <= 1e-9
    assert linear.Regrets(stored).ks == [20, 40]
    assert sweep_run.run(asked, tmp_path)["resumed"] == 2


def test_random_linear_mdps_by_name():
    task = catalog.find("RandomLinear-d5-seed2")
    assert task.linear is not None
    assert (task.linear.d, task.mdp.shape) == (5, (6, 12, 3))
    other = catalog.find("RandomLinear-d5")
    assert not np.array_equal(other.mdp.reward, task.mdp.reward)
    with pytest.raises(UserError, match="has 0 features"):
        catalog.find("RandomLinear-d0")
