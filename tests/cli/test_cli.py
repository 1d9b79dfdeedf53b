"""The command line as users meet it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from understudy.cli import program as cli
from understudy.demos import npz
from understudy.envs.empty_room import demonstrations


def understudy(*args: str, cwd: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", "from understudy.cli.program import main; main()", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from understudy.cli import program as cli\n"
        "sys.argv = ['understudy', '--help']\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'jax', 'numpy', 'gymnasium', 'matplotlib', 'minigrid'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "reproduce" in done.stdout


def test_train_then_evaluate(tmp_path):
    args = ("train", "EmptyRoom-3x3", "--window", "16", "--interactions", "2000", "--json")
    done = understudy(*args, "--out", "a", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["return"] >= 0.97 * summary["expert_return"] == pytest.approx(0.97 * 4.6)
    assert (summary["interactions"], summary["seed"], summary["run"]) == (2000, 0, "a")
    assert files(tmp_path / "a") == {
        "config.json",
        "metrics.jsonl",
        "policy.safetensors",
        "done.json",
    }
    rows = [json.loads(line) for line in (tmp_path / "a/metrics.jsonl").read_text().splitlines()]
    assert rows[0]["interactions"] == 0
    assert (rows[-1]["interactions"], rows[-1]["return"]) == (2000, summary["return"])
    assert rows[-1]["regret"]["ail"] == summary["ledger"]["ail"]["measured"]

    assert understudy(*args, "--out", "a", cwd=tmp_path).returncode == 0  # safe to repeat
    other = understudy(*args, "--out", "a", "--seed", "1", cwd=tmp_path)
    assert other.returncode == 2
    assert "holds another run" in other.stderr

    again = understudy(*args, "--out", "b", cwd=tmp_path)
    for name in ("metrics.jsonl", "policy.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert json.loads(again.stdout)["return"] == summary["return"]

    done = understudy("evaluate", "a", "--episodes", "20", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert measured["return"] == pytest.approx(summary["return"], abs=1e-12)
    assert measured["sampled_return"] == pytest.approx(4.6, abs=0.5)


def test_train_from_a_file_of_demonstrations(tmp_path):
    npz.write(tmp_path / "demos.npz", demonstrations(3))
    done = understudy(
        *("train", "EmptyRoom-3x3", "--demos", "demos.npz", "--interactions", "1000", "--json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["return"] > 4
    assert (tmp_path / "runs/understudy-EmptyRoom-3x3-v0-seed0/policy.safetensors").exists()


BAD = [
    (("train", "NoSuchEnv-v0"), "NoSuchEnv-v0"),
    (("train", "EmptyRoom-3x3", "--window", "0"), "at least 1 policy"),
    (("train", "EmptyRoom-3x3", "--horizon", "0"), "horizon is 0"),
    (("train", "EmptyRoom-3x3", "--sigma", "nan"), "--sigma is nan"),
    (("train", "EmptyRoom-3x3", "--seed", "-1"), "seed is -1"),
    (("train", "EmptyRoom-3x3", "--out", "file/run"), "output folder"),
    (("train", "EmptyRoom-3x3", "--out", "/proc/none/run"), "output folder"),
    (("train", "EmptyRoom-3x3", "--demos", "none.npz"), "none.npz does not exist"),
    (("train", "EmptyRoom-3x3", "--demos", "large.npz"), "state 9, outside 0 … 8"),
    (("train", "CliffWalking-v1"), "--horizon"),
    (("train", "EmptyRoom-3x3", "--interactions", "ten"), "--interactions"),
    (("train", "EmptyRoom-3x3", "--interactions", "9" * 20), "--interactions is 9"),
    (("train", "EmptyRoom-3x3", "--nope"), "--nope"),
    (("train",), "Missing"),
    ((), "train"),
    (("train", "EmptyRoom-0x0", "--horizon", "5"), "size is 0"),
    (("train", "EmptyRoom-3x3", "--seed", "4294967296"), "seed is 4294967296"),
    (("train", "EmptyRoom-3x3", "--sigma", "1e308", "--out", "[/x]"), "policy became NaN"),
    (("train", "EmptyRoom-3x3", "--window", "2", "--beta", "0", "0", "1"), "3 weights"),
    (("evaluate", "nowhere"), "nowhere"),
    (("evaluate", "."), "does not exist"),
    (("reproduce", "fig1", "--out", "file/fig"), "output folder"),
    (("reproduce", "fig9"), "fig9"),
]


@pytest.fixture
def said(monkeypatch, capsys):
    """The same in this process, which is there already: code, output and errors."""

    def leave(code):
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)

    def call(*args, cwd):
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["understudy", *args])
        with pytest.raises(SystemExit) as left:
            cli.main()
        return left.value.code, *capsys.readouterr()

    return call


@pytest.mark.parametrize(("args", "names"), BAD, ids=[" ".join(args) for args, _ in BAD])
def test_bad_input_is_one_sentence_and_code_two(args, names, tmp_path, said):
    (tmp_path / "file").write_text("")
    npz.write(tmp_path / "large.npz", demonstrations(5))  # of a larger room
    before = files(tmp_path)
    code, output, error = said(*args, cwd=tmp_path)
    assert (code, output) == (2, ""), error
    assert names in " ".join(error.replace("│", " ").split())
    assert error.startswith("understudy: ")
    assert len(error.splitlines()) == 1
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("env", "names"), [("NoSuchEnv-v0", "NoSuchEnv"), ("MountainCarContinuous-v0", "--demos")]
)
def test_bad_input_leaves_a_shell_with_code_two(tmp_path, env, names):
    done = understudy("train", env, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert names in done.stderr
    assert "Traceback" not in done.stderr


def test_a_corrupt_policy_is_refused(tmp_path):
    config = {"env": "EmptyRoom-3x3", "horizon": 9, "seed": 0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "metrics.jsonl").write_text("")
    marker = {"expert_return": 4.6, "files": {"metrics.jsonl": 0}}
    (tmp_path / "done.json").write_text(json.dumps(marker))
    (tmp_path / "policy.safetensors").write_bytes(np.random.default_rng(0).bytes(100))
    done = understudy("evaluate", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "policy.safetensors cannot be read" in done.stderr


@pytest.mark.slow
def test_evaluate_plays_the_horizon_that_was_trained(tmp_path):
    args = ("train", "EmptyRoom-3x3", "--horizon", "12", "--interactions", "1500", "--out", "[r]")
    assert understudy(*args, cwd=tmp_path).returncode == 0
    done = understudy("evaluate", "[r]", "--episodes", "5", "--json", cwd=tmp_path)
    measured = json.loads(done.stdout)
    assert measured["return"] == pytest.approx(7.6, abs=0.05)  # 8 stages at the goal
    assert measured["sampled_return"] == pytest.approx(measured["return"], abs=0.5)


@pytest.mark.parametrize("policy", [np.full((9, 9, 5), np.nan), np.ones((9, 9, 5))])
def test_a_policy_that_is_none_is_refused(tmp_path, policy):
    config = {"env": "EmptyRoom-3x3", "horizon": 9, "seed": 0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "metrics.jsonl").write_text("")
    marker = {"expert_return": 4.6, "files": {"metrics.jsonl": 0}}
    (tmp_path / "done.json").write_text(json.dumps(marker))
    save_file({"policy": policy}, tmp_path / "policy.safetensors")
    done = understudy("evaluate", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "is not a policy" in done.stderr


def test_an_interrupt_ends_at_once(tmp_path):
    args = ("train", "EmptyRoom-20x20", "--interactions", "2000000", "--out", "run")
    # Started in the background, a shell has its programs ignore interrupts, and so would ours.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = [
        sys.executable,
        "-c",
        heed + "from understudy.cli.program import main; main()",
        *args,
    ]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
        try:
            time.sleep(12)  # compiling or running by then
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130
    assert said.splitlines()[-1] == "understudy: stopped."
    assert not (tmp_path / "run").exists()
