"""Keep the measurements of finished runs: python benchmarks/keep.py FROM TO [--policies]

A kept run still counts as finished, even without its policy: a sweep into TO goes on with what is
missing.
"""

import argparse
import shutil
from pathlib import Path

from understudy.experiments import runs, store

MEASURED = ("config.json", "metrics.jsonl")
POLICY = ("policy.json", "policy.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("to", type=Path)
    parser.add_argument("--policies", action="store_true")
    asked = parser.parse_args()
    kept = MEASURED + (POLICY if asked.policies else ())
    for folder in runs.folders(asked.runs):
        if not runs.done(folder):
            continue
        to = asked.to / folder.relative_to(asked.runs)
        to.mkdir(parents=True, exist_ok=True)
        for name in kept:
            shutil.copyfile(folder / name, to / name)
        marker = runs.summary(folder)
        files = {name: size for name, size in marker["files"].items() if name in kept}
        store.write_json(to / runs.MARKER, {**marker, "files": files, "run": to.name})
        print(to)


if __name__ == "__main__":
    main()
