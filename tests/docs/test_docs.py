"""The README's and the docs' Python runs as it stands, and every name on the paper's map exists."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PYTHON = re.compile(r"(<!-- not run: [^\n]+ -->\n)?```python\n(.*?)```", flags=re.S)
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{i}")
    for page in PAGES
    for i, (skip, block) in enumerate(PYTHON.findall(page.read_text()))
    if not skip and (page.name != "README.md" or i)  # its first one has a test of its own
]


@pytest.mark.parametrize("block", BLOCKS)
def test_python_in_the_docs_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs", "exec"), {})


def test_readme_quick_start_says_what_it_learned(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(re.findall(r"```python\n(.*?)```", PAGES[0].read_text(), flags=re.S)[0], {})
    said = capsys.readouterr().out
    assert "expert 6.20, learned 6.20\nregret 16 after 1,000 interactions\n" in said
    assert re.search(r"regret [1-9]\d* after 1,000 interactions", said)
    assert (tmp_path / "runs/mine/done.json").exists()


ROWS = re.findall(
    r"^\|[^|]*\| `([\w.]+)` \| `([\w/.]+)::(\w+)` \|$",
    (ROOT / "docs/paper_map.md").read_text(),
    flags=re.M,
)


def test_the_map_has_a_row_for_every_line():
    table = [line for line in (ROOT / "docs/paper_map.md").read_text().splitlines() if "::" in line]
    assert len(ROWS) == len(table) > 25


@pytest.mark.parametrize(("name", "file", "test"), ROWS, ids=[row[0] for row in ROWS])
def test_every_name_on_the_map_exists(name, file, test):
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(module), attribute)
    tree = ast.parse((ROOT / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} → {target}"


def test_every_promise_names_a_test_that_exists():
    page = (ROOT / "docs/reliability.md").read_text()
    rows = [row for row in page.splitlines() if "`tests/" in row]
    assert len(rows) == page.count("\n| ") - page.count("\n| promise |")
    for row in rows:
        files = re.findall(r"`(tests/[\w/]+\.py)::", row)
        there = {node.name for file in files for node in ast.parse((ROOT / file).read_text()).body
                 if isinstance(node, ast.FunctionDef)}  # fmt: skip
        assert set(re.findall(r"::(\w+)`", row)) <= there, row
