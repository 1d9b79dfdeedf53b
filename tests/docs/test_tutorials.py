"""The tutorials run as they stand: a page's Python in one namespace, its commands in a shell.

- ```python and ```sh blocks run in order, in a temporary folder;
- a block with title="FILE" is written to that file;
- a ```text block is what the Python before it prints;
- `<!-- not run: REASON -->` before a block leaves it out.
"""

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest
import shell

PAGES = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<skip>.+?) -->\n)?"
    r'```(?P<kind>\w+)(?: title="(?P<file>[\w.]+)")?\n(?P<body>.*?)^```$',
    flags=re.S | re.M,
)


def test_there_are_tutorials_and_every_block_is_of_a_known_kind():
    assert len(PAGES) == 3
    for page in PAGES:
        fences = re.findall(r"^```(\w+)", page.read_text(), flags=re.M)
        assert len(fences) == len([*BLOCK.finditer(page.read_text())]), page.name
        assert set(fences) <= {"python", "sh", "text", "toml"}, page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_runs_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before, names, printed = set(sys.modules), {"__name__": page.stem}, ""
    try:
        for block in BLOCK.finditer(page.read_text()):
            kind, body = block["kind"], block["body"]
            if block["skip"]:
                continue
            if block["file"]:
                Path(block["file"]).write_text(body)
            elif kind == "python":
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(compile(body, page.name, "exec"), names)
                printed = out.getvalue()
            elif kind == "sh":
                shell.run(body)
            elif kind == "text":
                assert printed == body
    finally:
        for name in set(sys.modules) - before:
            if (tmp_path / f"{name}.py").exists():
                del sys.modules[name]
