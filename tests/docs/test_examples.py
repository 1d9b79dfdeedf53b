"""The examples run as they stand, in a folder of their own, and print numbers that hold; and every
place that the page on the architecture names is there."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
NUMBER = r"(-?\d+(?:\.\d+)?)"


def printed(arguments: list[str], folder: Path, *, code: int = 0, **env: str) -> str:
    """What Python prints with these arguments, in this folder; on stderr, where it is to fail."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg", **env},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def ran(name: str, folder: Path) -> str:
    return printed([str(EXAMPLES / name)], folder)


def after(words: str, text: str) -> float:
    """The number that follows these words."""
    found = re.search(rf"{words}\s+{NUMBER}", text)
    assert found, f"no number after {words!r} in {text!r}"
    return float(found[1])


# --- scripts ---------------------------------------------------------------------------------


def test_every_example_has_a_test():
    here = Path(__file__).read_text()
    assert len(SCRIPTS) == 4
    assert len(NOTEBOOKS) == 2
    assert [path.name for path in (*SCRIPTS, *NOTEBOOKS) if f'"{path.name}"' not in here] == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_is_short_and_says_what_it_is(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 40
    assert ast.get_docstring(ast.parse(text))


def test_the_regret_of_a_finite_mdp(tmp_path):
    out = ran("finite_mdp.py", tmp_path)
    expert, best = after("the expert earns", out), after("best policy of all", out)
    assert expert < best
    assert abs(after("the one learned", out) - expert) < 0.2
    regret = {term: after(rf"\n  {term}", out) for term in re.findall(r"\n  (\w+)", out)}
    parts = sum(regret[term] for term in ("optimisation", "shift", "estimation"))
    assert parts == pytest.approx(regret["reward"], abs=0.02)  # three roundings
    assert 0 < regret["ail"] <= regret["policy"] + regret["reward"]  # Lemma 3.2
    assert regret["ail"] < 0.2 * int(re.search(r"after ([\d,]+)", out)[1].replace(",", ""))


def test_an_environment_of_ones_own(tmp_path):
    out = ran("own_environment.py", tmp_path)
    returns = [float(x) for x in re.search(r"it earns \[(.*)\]", out)[1].split()]
    assert returns[-1] > returns[0] + 5  # it has learned something
    assert after("policy", out) > 0.9 * after("expert", out)
    assert (tmp_path / "cart" / "done.json").exists()


def test_a_sweep_in_pandas(tmp_path):
    pytest.importorskip("pandas")
    out = ran("sweep_to_pandas.py", tmp_path)
    assert "12 runs, 132 lines" in out  # 11 marks each, the first at zero interactions
    rows = re.findall(rf"^(?:EmptyRoom\S+)?\s+(1|32)\s+{NUMBER}\s+{NUMBER}\s+{NUMBER}", out, re.M)
    (_, a, _, x), (_, b, _, y), (_, c, _, z), (_, d, _, w) = rows
    assert float(b) > 0.99  # N = 32 is at the expert, in the small room and in the large one
    assert float(d) > 0.99
    assert float(c) < float(a) < float(b)  # N = 1 is not, and the less so in the large one
    assert float(y) < float(x)  # nor on the way
    assert float(w) < float(z)
    assert list(tmp_path.iterdir()) == []  # its folder was temporary


def test_without_stable_baselines_the_example_says_so(tmp_path):
    (tmp_path / "stable_baselines3.py").write_text("raise ImportError\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    said = printed([str(EXAMPLES / "continue_in_sb3.py")], tmp_path, code=2, PYTHONPATH=path)
    assert said.count("\n") == 1
    assert "Stable-Baselines3" in said


@pytest.mark.torch
@pytest.mark.slow
def test_going_on_in_stable_baselines(tmp_path):
    pytest.importorskip("stable_baselines3")
    out = ran("continue_in_sb3.py", tmp_path)
    assert after("imitated:", out) > -400  # doing nothing earns some -1,200
    assert after("corrected:", out) > after("SAC alone:", out) + 200


# --- notebooks -------------------------------------------------------------------------------


def cells(path: Path) -> list[dict]:
    return json.loads(path.read_text())["cells"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_one_and_holds_no_outputs(path):
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in cells(path)}) == len(cells(path))
    for cell in cells(path):
        assert cell["cell_type"] in ("markdown", "code")
        assert all(line.endswith("\n") for line in cell["source"][:-1])
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            assert len(cell["source"]) <= 20
    kinds = [cell["cell_type"] for cell in cells(path)]
    assert kinds[0] == kinds[-1] == "markdown"


def executed(name: str, folder: Path) -> str:
    """What the code cells print, one after another in one namespace, without Jupyter."""
    code = [cell for cell in cells(EXAMPLES / name) if cell["cell_type"] == "code"]
    script = folder / "notebook.py"
    script.write_text("\n\n".join("".join(cell["source"]) for cell in code))
    return printed([str(script)], folder)


def test_the_notebook_on_regret(tmp_path):
    out = executed("regret.ipynb", tmp_path)
    last = dict(re.findall(rf"N = (\d+): {NUMBER} of the expert's", out))
    expert = after("of the expert's", out)
    assert float(last["32"]) > 0.99 * expert > float(last["1"])
    regret = dict(re.findall(rf"N = (\d+): [\d,]+ updates, AIL regret per update {NUMBER}", out))
    assert 0 < float(regret["32"]) < float(regret["1"])
    shifts = [float(x) for x in re.findall(rf"shift {NUMBER}", out)]
    assert shifts[0] == 0 < shifts[1]
    assert all(float(x) < 1e-9 for x in re.findall(r"miss their sum by (\S+)", out))


def test_the_notebook_on_control(tmp_path):
    out = executed("control.ipynb", tmp_path)
    curve = [float(x) for x in re.findall(rf"\d+: {NUMBER}[,}}]", out)]
    assert len(curve) == 6
    assert curve[-1] > max(curve[0], -250)  # better than the clone that it began with
    assert after("learned", out) > -400  # doing nothing earns some -1,200
    assert (tmp_path / "pendulum" / "policy.safetensors").exists()


# --- the page on the architecture --------------------------------------------------------------


PLACES = sorted(
    set(re.findall(r"`(src/[\w/.]+)(?:::(\w+))?`", (ROOT / "docs/architecture.md").read_text()))
)


def test_every_place_in_the_architecture_exists():
    assert len(PLACES) > 100
    missing = [f"{file}::{name}" for file, name in PLACES if not there(ROOT / file, name)]
    assert missing == []


def there(file: Path, name: str) -> bool:
    """Whether a file, or a folder, has this name at its top level."""
    if not name or not file.is_file():
        return file.exists() and not name
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return name in found
