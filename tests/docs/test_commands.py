"""Every command in the README and the docs is understood as it stands, and works.

To be understood takes a moment, so all are. To work may take hours, so each is run with its sizes
made small (`SMALL`), a page's commands in order in one folder, where what they name exists
(`stage`). The tutorials' run as they stand, in test_tutorials.py.
"""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import shell

from understudy.demos import shipped, writing

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "docs/algorithms").glob("*.md"))]  # fmt: skip
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))

# Of these something else is tested.
ELSEWHERE = {
    r"make ": "what CI and a newcomer begin with",
    r"pip install": "tests/distribution.sh",
    r"tensorboard --logdir": "test_trackers.py reads what it would show",
    r"understudy demos record .*(EmptyRoom|--window)": "test_recording.py, with keys pressed",
    r"understudy demos record .*\.zip": "test_sb3.py, with PyTorch",
    r"understudy watch .*--live": "test_live.py, in a window that nobody sees",
    r"understudy reproduce fig2": "test_sweep_networks.py, made small",
}
NETWORKS = (
    " --interactions 48 --warmup 16 --hidden 8 --discriminator-hidden 8 --batch 8 --points 8"
    " --policy-steps 1 --reward-steps 1 --marks 1 --episodes 1 --horizon 20"
)
SMALL = {
    r"train \S+ .*--features (fourier|knots)": " --interactions 400",
    r"train (HalfCheetah|Hopper|Walker2d|Swimmer|Pendulum|Inverted|my_)": NETWORKS,
    r"train ": " --interactions 300",
    r"expert ": " --interactions 60 --explore 20 --hidden 8 --batch 8 --marks 1 --episodes 1",
    r"compare (HalfCheetah|Hopper|Walker2d)": " --methods bc --seeds 1 --trajectories 1",
    r"compare ": " --budget 300 --seeds 1",
    r"reproduce ": " --quick --seeds 1",
    r"watch .*(HalfCheetah|Hopper|Walker2d)": " --seconds 1 --episodes 1",
    r"evaluate ": " --episodes 1",
}


def commands(page: Path) -> list[str]:
    """The lines of a page's shell blocks, without their comments."""
    blocks = re.findall(r"^```(?:sh|bash)\n(.*?)^```$", page.read_text(), flags=re.S | re.M)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in (re.sub(r"\s+#.*", "", line).strip() for line in lines) if line]


def said(page: Path) -> list[str]:
    """Whole commands in the midst of a text: those with an argument, and nothing left open."""
    found = re.findall(r"`(understudy \w+ [^`\n]+)`", page.read_text())
    return [line for line in found if not re.search(r"…|\b[A-Z]{2,}\b|\||--help", line)]


def smaller(line: str) -> str:
    extra = next((extra for pattern, extra in SMALL.items() if re.search(pattern, line)), "")
    command, redirect, target = line.partition(" >")
    # What is reproduced in a hurry has a folder of its own.
    return re.sub(r"runs/(fig\d)\b", r"runs/\1-quick", command) + extra + redirect + target


def stage(folder: Path) -> None:
    """What the docs take for granted: files of the reader's own."""
    writing.write(folder / "mine.npz", shipped.find("Hopper-v5").first(1))
    (folder / "my_env.py").write_text(
        "from gymnasium.envs.mujoco.hopper_v5 import HopperEnv\nclass MyEnv(HopperEnv): pass\n"
    )
    (folder / "my_module.py").write_text(
        "from my_env import MyEnv\n"
        "from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv as MyClass\n"
    )
    (folder / "mine.py").write_text("def act(observation): return int(observation[2] > 0)\n")
    sweep = (ROOT / "sweeps/windows.toml").read_text()
    (folder / "sweeps").mkdir()
    (folder / "sweeps/windows.toml").write_text(
        sweep.replace("interactions = 2000", "interactions = 300")
    )


# A program of its own: tests check types at run time, which the parser's placeholders are not.
PARSE = """
import json, sys
from understudy.cli import program as cli
for line, words in json.load(sys.stdin):
    sys.argv = words
    try:
        cli.parse()
    except Exception as error:
        print(f"{line}: {error}")
"""


def test_commands_are_understood_as_they_stand(tmp_path):
    stage(tmp_path)
    asked = {}
    for page in PAGES + TUTORIALS:
        for name, body in re.findall(
            r'title="(\w+\.py)"\n(.*?)^```$', page.read_text(), flags=re.S | re.M
        ):
            (tmp_path / name).write_text(body)
        for line in commands(page) + said(page):
            words = shlex.split(re.sub(r" > \S+", "", line))
            if words[0] == "understudy" and "--help" not in words:
                asked[f"{page.name}: {line}"] = words
    assert len(asked) > 70
    done = subprocess.run(
        [sys.executable, "-c", PARSE],
        input=json.dumps([*asked.items()]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem
)
def test_commands_work(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stage(tmp_path)
    if page.stem == "demonstrations":  # which makes a file of its own out of this one
        Path("mine.npz").unlink()
        shell.run("understudy demos record CartPole-v1 --player mine:act --out mine.csv")
        shell.run("understudy train Hopper-v5 --method bc --trajectories 1 --episodes 1")
    if page.stem == "experiments":
        shell.run("understudy train EmptyRoom-9x9 --interactions 100")
    for line in commands(page):
        if not any(re.match(pattern, line) for pattern in ELSEWHERE):
            shell.run(smaller(line))


def test_the_sweep_in_the_docs_is_the_one_in_the_folder():
    shown = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/experiments.md").read_text(), re.S)[0]
    assert shown in (ROOT / "sweeps/windows.toml").read_text()
