"""Packages depend downwards only, and no two modules on each other, lazily or not."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src/understudy"
# From the top; those in one group may not import each other but in the order given.
LAYERS = ["cli", "experiments", "learners", "demos", "envs", "theory", "core"]
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in SOURCE.rglob("*.py")
}


def imports(path: Path) -> set[str]:
    """The modules of ours that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")[1:] if name.split(".")[0] == "understudy" else []
            while parts and ".".join(parts) not in MODULES:
                parts = parts[:-1]  # a name in a module, or a package
            if parts:
                found.add(".".join(parts))
    return found


GRAPH = {name: imports(path) for name, path in MODULES.items()}


@pytest.mark.parametrize("package", LAYERS)
def test_a_package_imports_nothing_above_it(package):
    above = LAYERS[: LAYERS.index(package)]
    found = [
        f"{name} imports {other}"
        for name, others in GRAPH.items()
        if name.split(".")[0] == package
        for other in others
        if other.split(".")[0] in above
    ]
    assert found == []


def test_every_module_has_a_layer():
    top = {name for name in MODULES if name.split(".")[0] not in LAYERS}
    assert top == {"__init__", "__main__"}


def test_no_circle():
    """Also not one that a lazy import hides."""
    graph = {name: others for name, others in GRAPH.items() if name != "__init__"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_the_test_would_notice(tmp_path):
    (tmp_path / "module.py").write_text(
        "from understudy.core import mdp, window as w\nimport understudy.theory.bounds\n"
        "def f():\n    from understudy.experiments.runs import name\n"
    )
    assert imports(tmp_path / "module.py") == {
        "core.mdp", "core.window", "theory.bounds", "experiments.runs"
    }  # fmt: skip
