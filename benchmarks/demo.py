"""`make demo` from nothing, by two commits in one run: seconds, and megabytes of what it installs.

    python benchmarks/demo.py OLD [NEW]     # NEW: HEAD if not given

Each has a clone of its own and an empty cache of compiled programs; pip's cache is shared, and the
first commit fills it for the second.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def demo(commit: str, place: Path) -> tuple[float, float, float]:
    """Seconds to set up and to run, and megabytes."""
    clone = place / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), clone], check=True)
    subprocess.run(["git", "checkout", "-q", commit], cwd=clone, check=True)
    about = {**os.environ, "XDG_CACHE_HOME": str(place / "cache")}
    about = {k: v for k, v in about.items() if not k.startswith("JAX_")}
    pip = subprocess.run(["pip", "cache", "dir"], capture_output=True, text=True).stdout.strip()
    about |= {"PIP_CACHE_DIR": pip} if pip else {}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    begun = time.perf_counter()
    subprocess.run(["make", ".venv/.ready"], cwd=clone, env=about, check=True, **quiet)
    ready = time.perf_counter()
    subprocess.run(["make", "demo"], cwd=clone, env=about, check=True, **quiet)
    done = time.perf_counter()
    files = (p for p in (clone / ".venv").rglob("*") if p.is_file() and not p.is_symlink())
    return ready - begun, done - ready, sum(p.stat().st_size for p in files) / 1e6


def main() -> None:
    asked = argparse.ArgumentParser(description="`make demo` from nothing, by two commits.")
    asked.add_argument("old")
    asked.add_argument("new", nargs="?", default="HEAD")
    asked = asked.parse_args()
    print("| commit | installing, s | running, s | in all, s | MB |\n|---|---:|---:|---:|---:|")
    for commit in (asked.old, asked.new):
        with tempfile.TemporaryDirectory() as place:
            setup, run, size = demo(commit, Path(place))
        print(f"| {commit} | {setup:.0f} | {run:.0f} | {setup + run:.0f} | {size:,.0f} |")


if __name__ == "__main__":
    main()
