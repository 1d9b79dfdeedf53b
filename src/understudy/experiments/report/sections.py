"""What each part of the page shows, from cells."""

import re
from collections.abc import Sequence

import numpy as np

from understudy.core.errors import UserError
from understudy.experiments.figures.regret_fits import Regrets
from understudy.experiments.report.cells import (
    BOOKED,
    Cell,
    Json,
    average,
    by_env,
    digits,
    has_ledger,
    last_of_each,
    named,
    thin,
    thousandths,
)
from understudy.experiments.stored_runs import BESIDE, StoredRun

CURVE_MARKS, LEDGER_MARKS, REPLAY_MARKS = 200, 101, 60
REPLAY_NUMBERS = 300_000  # of visits, for one replay: longer ones lose frames


def learning_curves(cells: Sequence[Cell]) -> list[Json]:
    """An entry an environment: the expert's return, and a mean curve a cell."""
    charts = []
    for env, of_env in by_env(cells).items():
        curves, experts = [], set()
        for cell in of_env:
            x = cell.runs[0].interactions
            kept = thin(len(x), CURVE_MARKS)
            mean, std = cell.stack(run.returns[kept] for run in cell.runs)
            expert = float(np.mean([run.expert_return for run in cell.runs]))
            experts.add(round(expert, 3))
            curve = named(cell) | {"x": x[kept].tolist(), "mean": digits(mean), "std": digits(std)}
            for name in BESIDE:  # of the policy handed out, and of the last iterate
                if all(name in run.beside for run in cell.runs):
                    curve[name] = digits(cell.stack(run.beside[name][kept] for run in cell.runs)[0])
            curves.append(curve)
        # Sampled demonstrations give every cell an expert of its own: then their mean.
        lines = sorted(experts) if len(experts) <= 3 else [float(np.mean(list(experts)))]
        charts.append({"env": env, "expert": digits(lines), "cells": curves})
    return charts


def ledger_of(cell: Cell) -> Json | None:
    """The ledger of a cell over k, and its end beside the bounds; None if none was kept."""
    booked = [run for run in cell.runs if has_ledger(run)]
    if not booked:
        return None
    k = booked[0].updates
    apart = last_of_each(k)
    kept = apart[thin(len(apart), LEDGER_MARKS, early=False)]
    terms = {
        term: digits(cell.stack((run.regret or {})[term][kept] for run in booked)[0])
        for term in BOOKED
    }
    ends = [run.summary.get("ledger") for run in booked]
    ends = [end for end in ends if isinstance(end, dict)]
    bounds = []
    for term in (*BOOKED, "tv_step") if ends else ():
        rows = [end[term] for end in ends if isinstance(end.get(term), dict)]
        if rows:
            columns = {
                key: average(row.get(key) for row in rows)
                for key in ("measured", "bound", "sharp_bound")
            }
            holds = all(row.get("holds") is not False for row in rows)
            bounds.append({"term": term, **columns, "holds": holds})
    return named(cell) | {
        "env": cell.env,
        "seeds": len(booked),
        "k": k[kept].tolist(),
        "terms": terms,
        "bounds": bounds,
    }


def rates(cells: Sequence[Cell]) -> list[Json]:
    """AIL regret against K, an entry an environment with ledgers, and the slope on log axes.

    Each K is a run of its own where any window has runs of several K; else the regret over the
    updates k of each run stands in, and the slope is fitted where k ≥ K/10.
    """
    charts = []
    for env, of_env in by_env(cells).items():
        series: dict[tuple[str, str], list[tuple[int, Cell, list[StoredRun]]]] = {}
        for cell in of_env:
            if booked := [run for run in cell.runs if has_ledger(run)]:
                key = (cell.window, cell.setting(but="interactions"))
                series.setdefault(key, []).append((int(booked[0].updates[-1]), cell, booked))
        if not series:
            continue
        final = any(len({K for K, *_ in points}) > 1 for points in series.values())
        lines = []
        for (window, setting), points in series.items():
            if final:
                K = sorted({K for K, *_ in points})
                ends = [[end(r) for at, _, rs in points if at == each for r in rs] for each in K]
                mean, std = np.array([[np.mean(e), np.std(e)] for e in ends]).T
                fit = np.ones(len(K), dtype=bool)
            else:
                _, cell, booked = points[0]
                apart = last_of_each(booked[0].updates)
                kept = apart[thin(len(apart), CURVE_MARKS)]
                K = booked[0].updates[kept].tolist()
                mean, std = cell.stack((run.regret or {})["ail"][kept] for run in booked)
                fit = np.array(K) >= K[-1] / 10
            lines.append(
                {"N": window, "setting": setting, "K": K, "mean": digits(mean), "std": digits(std)}
                | {"slope": slope(np.array(K)[fit], mean[fit]), "points": int(fit.sum())}
            )
        charts.append({"env": env, "kind": "final" if final else "curve", "series": lines})
    return charts


def dimensions(stored: Sequence[StoredRun]) -> Json | None:
    """AIL regret against the features d of random linear MDPs, at the largest K that all d have."""
    found = Regrets(stored)
    if len(found.ds) < 2:
        return None
    whole = [
        (N, K)
        for N in found.windows
        for K in found.ks
        if all((d, N, K) in found.mean for d in found.ds)
    ]
    if not whole:
        return None
    K = max(K for _, K in whole)
    series = []
    for N in (N for N, at in whole if at == K):
        mean = found.against_d(N, K)
        series.append({"N": str(N), "mean": digits(mean), "slope": slope(np.array(found.ds), mean)})
    return {"K": K, "d": found.ds, "series": series}


def end(run: StoredRun) -> float:
    return float((run.regret or {})["ail"][-1])


def slope(K: np.ndarray, regret: np.ndarray) -> float | None:
    """The exponent of a power law through the points, by least squares on log axes."""
    usable = (K > 0) & np.isfinite(regret) & (regret > 0)
    if len(set(K[usable].tolist())) < 2:
        return None
    return round(float(np.polyfit(np.log(K[usable]), np.log(regret[usable]), 1)[0]), 4)


def replays(cells: Sequence[Cell]) -> list[Json]:
    """One run a room and window: what the policy visits and the reward at each mark.

    Visits are shares of the frame's busiest cell, rewards of the run's largest.
    """
    kept: dict[tuple[str, str], Json] = {}
    for cell in cells:
        room = re.search(r"EmptyRoom-(\d+)x(\d+)", cell.env)
        if room is None or room[1] != room[2] or (cell.env, cell.window) in kept:
            continue
        n = int(room[1])
        for run in cell.runs:
            if not (run.folder / "replay.safetensors").is_file():
                continue
            try:
                replay = run.replay or {}
            except UserError:
                continue
            if (frames := film(replay, run, n)) is not None:
                about = {"env": cell.env, "n": n, "seed": run.seed}
                kept[cell.env, cell.window] = named(cell) | about | frames
                break
    return list(kept.values())


def film(replay: dict[str, np.ndarray], run: StoredRun, n: int) -> Json | None:
    visits, reward = replay.get("visits"), replay.get("reward")
    marks = len(run.interactions)
    shape = (marks, n * n, 5)
    if visits is None or reward is None or not (visits.shape == reward.shape == shape):
        return None
    frames = thin(marks, max(2, min(REPLAY_MARKS, REPLAY_NUMBERS // (5 * n * n))))
    visits = np.nan_to_num(visits[frames].astype(float)).clip(0)
    reward = np.nan_to_num(reward[frames].astype(float))
    total = visits.sum((1, 2))
    busiest = visits.sum(2).max(1)
    scale = np.abs(reward).max() or 1.0
    heat = visits / np.where(busiest > 0, busiest, 1)[:, None, None]
    return {
        "interactions": run.interactions[frames].tolist(),
        "returns": digits(run.returns[frames]),
        "peak": digits(busiest / np.where(total > 0, total, 1)),
        "visits": thousandths(heat),
        "reward_scale": float(f"{scale:.3g}"),
        "reward": thousandths(reward / scale),
    }
