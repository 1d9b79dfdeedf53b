"""What was judged and compared before: verdicts and comparisons, found beside the runs."""

import re
from pathlib import Path
from typing import Any

from understudy.core.errors import UserError
from understudy.experiments import stored_runs
from understudy.experiments.report.cells import Json, digits, spoken

# What a method with networks executed, in words.
EXECUTED = ("policy_steps", "reward_steps", "batch", "actor", "critics", "begins")


def found_verdicts(root: Path) -> tuple[list[Json], list[str]]:
    """Every verdicts.json at or below `root`; and a sentence on each that cannot be read."""
    documents, skipped = [], []
    for path in sorted(root.rglob("verdicts.json")):
        try:
            document = stored_runs.document(path, "The verdicts")
            judgements(document)
            readings(document)
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
                    "below": row.get("below") and digits(map(float, row["below"])),
                }
                for row in document["rows"]
            ]
            executed = [
                {"title": str(one["title"])} | {name: str(one["spelt"][name]) for name in EXECUTED}
                for one in document.get("executed", [])
            ]
            curves = [
                {name: str(curve[name]) for name in ("shown", "title")}
                | {"colour": colour_of(curve["colour"])}
                | {name: digits(map(float, curve[name])) for name in ("x", "middle", "low", "high")}
                for curve in document["curves"]
            ]
            about = {"env": str(document["env"]), "executed": executed}
            found.append({**about, "rows": rows, "curves": curves})
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


def readings(document: Json) -> Json | None:
    """The same claims as a figure can be read in several ways, where it was: a column a reading."""
    if (found := document.get("readings")) is None:
        return None
    columns = [str(title) for title in found["columns"]]
    rows = [
        {
            "claim": str(row["claim"]),
            "cells": [
                {"measured": spoken(one["measured"]), "holds": bool(one["holds"])}
                for one in row["cells"]
            ],
        }
        for row in found["rows"]
    ]
    if any(len(row["cells"]) != len(columns) for row in rows):
        raise ValueError("a claim lacks a reading")
    return {"columns": columns, "rows": rows}
