"""A shell in which `understudy` is the program beside this Python."""

import os
import subprocess
import sys
from pathlib import Path


def run(commands: str) -> str:
    """Run them, every one of which must succeed, and return what they print."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout
