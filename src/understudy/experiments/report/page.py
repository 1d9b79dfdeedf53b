"""`understudy report`: stored runs on one HTML page that opens offline. Nothing here trains."""

import json
import re
from importlib import resources
from pathlib import Path

from plotly.offline import get_plotlyjs

from understudy.core.errors import UserError
from understudy.experiments import store, stored_runs
from understudy.experiments.report.cells import Json
from understudy.experiments.report.collect import collect
from understudy.experiments.report.judged import comparisons, found_verdicts

# The page's program, a file a part of the page; they share one scope.
PROGRAM = (
    "tools", "curves", "networks", "regret", "comparisons", "replay", "theory", "summary",
)  # fmt: skip
BEFORE = '"use strict";\n(() => {'
AFTER = """  dark.addEventListener("change", () => redraws.forEach((redraw) => redraw()));
  document.documentElement.dataset.ready = "yes";
})();"""


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


def page(document: Json) -> str:
    """The page, whole: style, program, charts library and data inside."""
    folder = resources.files("understudy.experiments.report") / "page"
    data = json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")

    def part(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    parts = {
        "style": part("report.css"),
        "plotly": get_plotlyjs(),
        "data": data,
        "program": "\n".join([BEFORE, *(part(f"{name}.js") for name in PROGRAM), AFTER]),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], part("report.html"))
