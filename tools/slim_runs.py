"""Copy finished runs with networks to a folder that is committed: their settings, results and
metrics, and the networks of the first seed alone, or of none.

    python tools/slim_runs.py FROM TO [--networks]
"""

import argparse
import json
import shutil
from pathlib import Path

ALWAYS, NETWORKS = ("metrics.jsonl",), ("policy.json", "policy.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("found", type=Path)
    parser.add_argument("kept", type=Path)
    parser.add_argument("--networks", action="store_true", help="the policies of seed 0 as well")
    asked = parser.parse_args()
    for marker in sorted(asked.found.glob("*/done.json")):
        run, told = marker.parent, json.loads(marker.read_text(encoding="utf-8"))
        files = ALWAYS + (NETWORKS if asked.networks and told["seed"] == 0 else ())
        to = asked.kept / run.name
        to.mkdir(parents=True)
        for name in ("config.json", *files):
            shutil.copyfile(run / name, to / name)
        told["run"] = to.as_posix()
        for part in ("files", "sums"):
            told[part] = {name: told[part][name] for name in files}
        text = json.dumps(told, indent=2) + "\n"
        (to / "done.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
