"""`understudy report`: stored runs on one HTML page that opens offline. Nothing here trains.

Runs become cells (all that was asked but the seed), cells become means and deviations, and those
one JSON document inside the page. No curve of a single run is embedded, so a thousand runs stay
light. Runs of the same environment and N that differ in anything else are never averaged: what
differs becomes the name of their setting.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core.errors import UserError
from understudy.experiments import figures, store, stored_runs
from understudy.experiments import rates as linear_rates
from understudy.experiments.stored_runs import StoredRun
from understudy.learners.config import Config

Json = dict[str, Any]

SPLIT = ("optimisation", "shift", "estimation", "demonstrations")  # of the reward regret
BOOKED = (*SPLIT, "reward", "policy", "ail")
SILENT = {"window", "ledger", "replay"}  # config that says how to keep or name a run, not to learn
DASHES = {"-": "solid", "--": "dash", "-.": "dashdot", ":": "dot"}
CURVE_MARKS, LEDGER_MARKS, REPLAY_MARKS = 200, 101, 60
REPLAY_NUMBERS = 300_000  # of visits, for one replay: longer ones lose frames


def write(root: Path, out: Path, verdicts: list[Json] | None = None) -> Json:
    """The page of every finished run at or below `root`, to `out`."""
    if out.is_dir():
        raise UserError(f"--out is {out}, which is a folder; give the name of a .html file.")
    stored, skipped = stored_runs.load(root)
    judged, unread = found_verdicts(root)
    judged = [*(verdicts or []), *(d for d in judged if d not in (verdicts or []))]
    skipped = [*skipped, *unread]
    if not stored and not judged:
        reason = f" ({len(skipped)} were skipped; the first: {skipped[0]})" if skipped else ""
        raise UserError(f"There is no finished run in {root}{reason}.")
    document = collect(stored, judged)
    document["comparisons"], unread = comparisons(root)
    skipped += unread
    skipped += document["repeated"]
    document["skipped"] = [sentence.replace(f"{root}/", "") for sentence in skipped]
    with store.output_folder(out.parent), store.whole(out) as draft:
        draft.write_text(page(document), encoding="utf-8")
    return {"report": str(out), "runs": len(stored), "skipped": skipped}


def collect(stored: Sequence[StoredRun], verdicts: Iterable[Json] = ()) -> Json:
    """All that the page shows, as one JSON document."""
    cells, repeated = gather(stored)
    windows = sorted({cell.window for cell in cells}, key=by_size)
    return {
        "runs": len(stored),
        "repeated": repeated,
        "verdicts": [
            {
                "figure": str(document.get("figure", "")),
                "rule": str(document.get("rule", "")),
                "rows": judgements(document),
            }
            for document in verdicts
        ],
        "windows": [
            {"N": N, "colour": figures.colour(N), "dash": DASHES[figures.line_style(N)]}
            for N in windows
        ],
        "curves": learning_curves(cells),
        "ledgers": [ledger for cell in cells if (ledger := account(cell)) is not None],
        "cells": len(cells),
        "rates": rates(cells),
        "dimensions": dimensions(stored),
        "replays": replays(cells),
    }


# --- verdicts -------------------------------------------------------------------------------


def found_verdicts(root: Path) -> tuple[list[Json], list[str]]:
    """Every verdicts.json at or below `root`; and a sentence on each that cannot be read."""
    documents, skipped = [], []
    for path in sorted(root.rglob("verdicts.json")):
        try:
            document = stored_runs.document(path, "The verdicts")
            judgements(document)
            documents.append(document)
        except UserError as error:
            skipped.append(str(error))
        except (KeyError, TypeError, ValueError, AttributeError):
            skipped.append(f"The verdicts {path} are not ours or are damaged.")
    return documents, skipped


def comparisons(root: Path) -> tuple[list[Json], list[str]]:
    """What `understudy compare` found, at or below `root`; and a sentence on each that cannot be
    read."""
    found, skipped = [], []
    for path in sorted(root.rglob("compare.json")):
        try:
            document = stored_runs.document(path, "The comparison")
            rows = [
                {
                    "shown": str(row["shown"]),
                    "title": str(row["title"]),
                    "rank": int(row["rank"]),
                    "shares": digits(map(float, row["shares"])),
                    "interval": digits(map(float, row["interval"])),
                    "reached": str(row["reached"]),
                    "seconds": row["seconds"] and stored_runs.number(row["seconds"], "seconds"),
                }
                for row in document["rows"]
            ]
            curves = [
                {name: str(curve[name]) for name in ("shown", "title")}
                | {"colour": colour_of(curve["colour"])}
                | {name: digits(map(float, curve[name])) for name in ("x", "middle", "low", "high")}
                for curve in document["curves"]
            ]
            found.append({"env": str(document["env"]), "rows": rows, "curves": curves})
        except UserError as error:
            skipped.append(str(error))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            skipped.append(f"The comparison {path} is not ours or is damaged.")
    return found, skipped


def colour_of(value: Any) -> str:
    """A colour, checked: it goes into the page's style."""
    if not re.fullmatch(r"#[0-9A-Fa-f]{6}", str(value)):
        raise ValueError(f"the colour is {value!r}")
    return value


def judgements(document: Json) -> list[Json]:
    """One row a claim. A document is {figure, rule, verdicts: [{claim, measured, holds, rule}]}:
    a rule for all of them, one for each, or both."""
    return [
        {
            "rule": str(row.get("rule", "")),
            "claim": str(row["claim"]),
            "measured": spoken(row["measured"]),
            "holds": bool(row["holds"]),
        }
        for row in document["verdicts"]
    ]


def spoken(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {spoken(of)}" for key, of in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(spoken(of) for of in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# --- cells ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cell:
    """Runs that differ in their seed alone."""

    env: str
    window: str
    asked: dict[str, str]  # all but environment, window and seed
    names: tuple[str, ...]  # what differs between the cells of this environment
    runs: list[StoredRun]

    def setting(self, *, but: str | None = None) -> str:
        """In words; a run of another kind lacks some of what differs."""
        said = (key for key in self.names if key != but and key in self.asked)
        return ", ".join(f"{key} {self.asked[key]}" for key in said)

    def stack(self, values: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        each = np.stack([np.asarray(v, dtype=float) for v in values])
        return each.mean(0), each.std(0)


def gather(stored: Sequence[StoredRun]) -> tuple[list[Cell], list[str]]:
    """Cells in order of environment and window; and a sentence on each run that is there twice."""
    groups: dict[tuple[Any, ...], dict[int, StoredRun]] = {}
    repeated = []
    for run in sorted(stored, key=lambda run: run.regret is None):  # with a ledger first
        marks = hashlib.sha256(run.interactions.tobytes() + run.updates.tobytes()).hexdigest()
        key = (str(run.env), str(run.window), tuple(sorted(asked(run).items())), marks)
        seeds = groups.setdefault(key, {})
        if run.seed in seeds:
            other = seeds[run.seed].folder
            repeated.append(f"The run {run.folder} repeats {other}, and is counted once.")
        else:
            seeds[run.seed] = run
    values: dict[str, dict[str, set[str]]] = {}
    for env, _, pairs, _ in groups:
        for name, value in pairs:
            values.setdefault(env, {}).setdefault(name, set()).add(value)
    cells = [
        Cell(
            env=env,
            window=window,
            asked=dict(pairs),
            names=tuple(name for name, seen in values[env].items() if len(seen) > 1),
            runs=[seeds[seed] for seed in sorted(seeds)],
        )
        for (env, window, pairs, _), seeds in groups.items()
    ]
    cells.sort(key=lambda c: (natural(c.env), by_size(c.window), natural(c.setting())))
    return cells, repeated


def asked(run: StoredRun) -> dict[str, str]:
    """What a run was asked, in words; options that it is too old to know have their defaults."""
    known = {field.name: field.default for field in dataclasses.fields(Config)}
    config = {**known, **run.request["config"]}
    return {
        name: "none" if value is None else spoken(value)
        for name, value in {**run.asked, **config}.items()
        if name not in SILENT
    }


def natural(text: str) -> list[tuple[bool, float, str]]:
    """EmptyRoom-9x9 before EmptyRoom-10x10."""
    parts = re.split(r"(\d+)", text)
    return [(i % 2 == 0, float(p) if i % 2 else 0.0, p) for i, p in enumerate(parts)]


def by_size(window: str) -> tuple[int, float, str]:
    """Numbers by size, then growing windows, then the adaptive one, then all."""
    try:
        return (0, float(window), window)
    except ValueError:
        return ({"adaptive": 2, "all": 3}.get(window, 1), 0.0, window)


# --- what each part shows --------------------------------------------------------------------


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
            curves.append(
                named(cell) | {"x": x[kept].tolist(), "mean": digits(mean), "std": digits(std)}
            )
        # Sampled demonstrations give every cell an expert of its own: then their mean.
        lines = sorted(experts) if len(experts) <= 3 else [float(np.mean(list(experts)))]
        charts.append({"env": env, "expert": digits(lines), "cells": curves})
    return charts


def account(cell: Cell) -> Json | None:
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
    found = linear_rates.Regrets(stored)
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


# --- small tools -----------------------------------------------------------------------------


def by_env(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.env, []).append(cell)
    return groups


def named(cell: Cell) -> Json:
    return {"N": cell.window, "setting": cell.setting(), "seeds": len(cell.runs)}


def has_ledger(run: StoredRun) -> bool:
    booked = run.regret or {}
    return all(term in booked and booked[term].ndim == 1 for term in BOOKED)


def thin(marks: int, most: int, *, early: bool = True) -> np.ndarray:
    """At most so many of the marks, first and last among them; more early ones, for log axes."""
    if marks <= most:
        return np.arange(marks)
    if not early:
        return np.unique(np.linspace(0, marks - 1, most).round().astype(int))
    even = np.linspace(0, marks - 1, most - most // 4)
    return np.unique(np.append(even, np.geomspace(1, marks - 1, most // 4)).round().astype(int))


def last_of_each(k: np.ndarray) -> np.ndarray:
    """The marks at which an update was new: an iteration may take longer than from mark to mark."""
    return np.flatnonzero(np.append(np.diff(k) > 0, True))


def digits(values: Iterable[float]) -> list[float | None]:
    """Six significant digits; what is not a number is nothing, since JSON has no NaN."""
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in values]


def average(values: Iterable[Any]) -> float | None:
    """None if any is: a bound that covers some of the runs is no bound of their mean."""
    listed = list(values)
    if not listed or not all(isinstance(v, int | float) and np.isfinite(v) for v in listed):
        return None
    return float(f"{np.mean(listed):.6g}")


def thousandths(frames: np.ndarray) -> list[list[int]]:
    """Three digits, as whole numbers, a flat list a frame: s · A + a."""
    return (frames.reshape(len(frames), -1) * 1000).round().astype(int).tolist()


def page(document: Json) -> str:
    """The page, whole: style, program, charts library and data inside."""
    from plotly.offline import get_plotlyjs  # heavy, and needed here only

    folder = resources.files("understudy.experiments") / "page"
    data = json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    parts = {
        "style": (folder / "report.css").read_text(encoding="utf-8"),
        "plotly": get_plotlyjs(),
        "data": data,
        "program": (folder / "report.js").read_text(encoding="utf-8"),
    }
    template = (folder / "report.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)
