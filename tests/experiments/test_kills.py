"""`kill -9` at fifty random moments of tabular, linear and deep runs: gone on with, each ends with
the same bytes."""

import random
import shutil
import subprocess
import sys
import time

import probe
import pytest
from test_cli import understudy
from test_deep_runs import results

from understudy.demos import npz

pytestmark = pytest.mark.slow

DEEP = ("--hidden", "16", "--discriminator-hidden", "8", "--batch", "16", "--points", "32",
        "--warmup", "80", "--marks", "8", "--episodes", "2", "--checkpoint", "0.2")  # fmt: skip
RUNS = {
    "tabular": ("train", "EmptyRoom-5x5", "--interactions", "30000", "--window", "32"),
    "linear": ("train", "RandomLinear-d4", "--interactions", "20000", "--window", "16"),
    "deep": ("train", "probe:Point", "--demos", "demos.npz", "--interactions", "3200", *DEEP),
}


@pytest.mark.parametrize(("kind", "kills"), [("tabular", 12), ("linear", 12), ("deep", 26)])
def test_killed_at_random_moments_it_ends_with_the_same_bytes(kind, kills, tmp_path):
    npz.write(tmp_path / "demos.npz", probe.straight())
    shutil.copy(probe.__file__, tmp_path / "probe.py")  # found where the command is given
    asked = RUNS[kind]
    assert understudy(*asked, "--out", "warm", cwd=tmp_path).returncode == 0  # programs compiled
    begun = time.monotonic()
    assert understudy(*asked, "--out", "whole", cwd=tmp_path).returncode == 0
    lasts = time.monotonic() - begun
    whole, moments, done, ended = results(tmp_path / "whole"), random.Random(kind), 0, 0
    command = [sys.executable, "-c", "from understudy.cli.program import main; main()", *asked]
    while done < kills:
        going = subprocess.Popen(
            [*command, "--out", "killed"], cwd=tmp_path, stderr=subprocess.DEVNULL
        )
        try:
            assert going.wait(moments.uniform(0.2, 1) * lasts) == 0  # it was faster
            assert results(tmp_path / "killed") == whole
            shutil.rmtree(tmp_path / "killed")
            ended += 1
        except subprocess.TimeoutExpired:
            going.kill()
            going.wait()
            done += 1
    assert understudy(*asked, "--out", "killed", cwd=tmp_path).returncode == 0
    assert results(tmp_path / "killed") == whole
    print(f"{kind}: {done} kills within {lasts:.1f} s, {ended} ends between them")
