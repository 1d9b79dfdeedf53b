"""Mutation testing: small changes to the sources, one at a time; does a fast test notice?

The sample is drawn from the syntax tree alone. A coverage run of each test file tells which files
execute a line; those run against the mutant, until one fails. All of it happens in a copy.
"""

import argparse
import ast
import hashlib
import json
import math
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from pathlib import Path
from queue import Queue
from threading import Event
from types import CodeType
from typing import Any

HOME = Path(__file__).resolve().parent.parent
SOURCES = r"""src/understudy/(
    (core | theory | demos | envs | learners | learners/deep | learners/baselines)/\w+
  | experiments/(run_files | standing | store | runs | stored_runs | deep_run | verdicts)
)\.py"""  # what is mutated; spaces do not count
UNCOPIED = {".git", ".venv", ".mutants", "runs", "site", "build", "dist", "__pycache__"}
LONGEST = 1800  # seconds for one test file without mutation

# For pytest: leaves out what fails anyway (--deselect takes all of a prefix), notes what failed.
PLUGIN = """
import json, os
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if item.nodeid not in json.loads(os.environ["MUTANTS_SKIP"])]
def pytest_runtest_logreport(report):
    if report.failed:
        with open(os.environ["MUTANTS_FAILED"], "a") as file:
            print(report.nodeid, file=file)
pytest_collectreport = pytest_runtest_logreport
"""

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
PAIRS = [("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("amin", "amax")]
EXTREMES = dict(PAIRS) | {b: a for a, b in PAIRS}
FIXED = {*EXTREMES, "isinstance"}  # another order of arguments is the same, or nonsense
ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
NOT_CODE = {"annotation", "returns", "pattern"}  # fields that are not visited

Edit = tuple[int, int, bytes]  # from, to, what stands there instead
Proposals = Iterator[tuple[str, list[Edit]]]  # the operator, and what it does


@dataclass(frozen=True)
class Mutant:
    id: str
    file: str
    line: int
    operator: str
    before: str
    after: str
    lines: range  # of the statement, for the coverage
    edits: list[Edit]


class Sites:
    """Every mutation of one file, in the order of the source."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source = file, source
        self.starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
        self.mutants: list[Mutant] = []
        self.names: Counter[str] = Counter()
        self.visit(ast.parse(source), range(0))

    def visit(self, node: ast.AST, lines: range) -> None:
        if excluded(node):
            return
        lines = header(node) if isinstance(node, ast.stmt) else lines
        for operator, edits in () if is_text(node) else self.proposals(node):
            self.add(operator, sorted(edits), lines)
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if name not in NOT_CODE and isinstance(child, ast.AST):
                    self.visit(child, lines)

    def add(self, operator: str, edits: list[Edit], lines: range) -> None:
        if not edits:
            return
        first = self.source.rfind(b"\n", 0, edits[0][0]) + 1  # whole lines, to be read
        rest = len(self.source) - (self.source + b"\n").index(b"\n", edits[-1][1])
        changed = apply(self.source, edits)
        before, after = (
            " ".join(code[first : len(code) - rest].decode().split())
            for code in (self.source, changed)
        )
        name = f"{self.file}|{operator}|{before}|{after}"
        self.names[name] += 1
        digest = hashlib.sha256(f"{name}|{self.names[name]}".encode()).hexdigest()[:8]
        line = self.source.count(b"\n", 0, edits[0][0]) + 1
        found = Mutant(digest, self.file, line, operator, before, after, lines, edits)
        self.mutants.append(found)

    def span(self, node: Any) -> tuple[int, int]:
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.AST, *, bound: bool = False) -> str:
        """As it is written; in brackets where it must bind."""
        start, end = self.span(node)
        text = self.source[start:end].decode()
        return f"({text})" if bound and not isinstance(node, ATOMS) else text

    def put(self, node: ast.AST, text: str) -> Edit:
        return (*self.span(node), text.encode())

    def between(self, left: ast.AST, op: ast.AST, right: ast.AST) -> list[Edit]:
        """Exchanges the operator between two operands; nothing if it is not in plain sight."""
        old, new = OPERATORS.get(type(op), ("#", ""))
        start, end = self.span(left)[1], self.span(right)[0]
        at = self.source.find(old.encode(), start, end)
        hidden = at < 0 or b"#" in self.source[start:end]
        return [] if hidden else [(at, at + len(old), new.encode())]

    def exchange(self, a: ast.AST, b: ast.AST, *, bound: bool = False) -> list[Edit]:
        return [self.put(a, self.text(b, bound=bound)), self.put(b, self.text(a, bound=bound))]

    def proposals(self, node: Any) -> Proposals:
        match node:
            case ast.BinOp(left, ast.Pow()):
                yield "power", [self.put(node, f"({self.text(left)})")]
            case ast.BinOp(left, op, right):
                yield "arithmetic", self.between(left, op, right)
                if isinstance(op, ast.Sub):
                    yield "a - b", self.exchange(left, right, bound=True)
            case ast.AugAssign(target, op, value) if not is_text(value):
                yield "arithmetic", self.between(target, op, value)
            case ast.Compare(left, ops, comparators):
                for a, op, b in zip([left, *comparators], ops, comparators, strict=False):
                    yield "comparison", self.between(a, op, b)
            case ast.BoolOp(op, values):
                gaps = [self.between(a, op, b) for a, b in pairwise(values)]
                yield "and/or", [edit for gap in gaps for edit in gap] if all(gaps) else []
            case ast.UnaryOp(ast.Not(), operand):
                yield "not", [self.put(node, f"({self.text(operand)})")]
            case ast.If() | ast.While() | ast.IfExp():
                yield from self.negation(node.test)
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield from self.negation(test)
            case ast.Expr(ast.Call()):
                yield "statement", [self.put(node, "pass")]
            case ast.Call():
                yield from self.of_call(node)
            case ast.Slice(lower, upper):
                for bound in filter(None, (lower, upper)):
                    if not isinstance(getattr(bound, "operand", bound), ast.Constant):
                        yield "slice", [self.put(bound, f"{self.text(bound, bound=True)} + 1")]
            case ast.Constant(bool(value)):
                yield "constant", [self.put(node, repr(not value))]
            case ast.Constant(int(value)):  # of a slice as well
                yield "constant", [self.put(node, repr(value + 1))]
            case ast.Constant(float(value)):
                yield "constant", [self.put(node, repr(2 * value or 1.0))]

    def negation(self, test: ast.AST) -> Proposals:
        """Of a condition, where the opposite operator does not say the same."""
        equal = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
        match test:
            case ast.UnaryOp(ast.Not()):
                return
            case ast.Compare(ops=[op]) if isinstance(op, equal):
                return
        yield "condition", [self.put(test, f"not ({self.text(test)})")]

    def of_call(self, node: ast.Call) -> Proposals:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        end = self.span(node.func)[1]
        if name in EXTREMES:
            yield "min/max", [(end - len(name), end, EXTREMES[name].encode())]
        named = [keyword.value for keyword in node.keywords if keyword.arg]
        for kind, values in ("arguments", [] if name in FIXED else node.args), ("keywords", named):
            for a, b in pairwise(values):
                if not any(is_text(x) or isinstance(x, ast.Starred) for x in (a, b)):
                    yield kind, self.exchange(a, b)
        for keyword in node.keywords:
            if keyword.arg == "axis" and ast.unparse(keyword.value) == "-1":
                yield "axis", [self.put(keyword.value, "0")]


def is_text(node: ast.AST) -> bool:
    """A string, or an expression that puts one together."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def excluded(node: ast.AST) -> bool:
    """Text for people, what is raised, and what only a type checker or the shell runs."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith(("TYPE_CHECKING", "__name__ == '__main__'"))
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).endswith(("Error", "Warning", "warnings.warn"))
    return isinstance(node, ast.Raise | ast.JoinedStr)


def header(node: ast.stmt) -> range:
    """The lines of a statement, of a compound one those before its body."""
    above = [child.lineno for child in getattr(node, "decorator_list", [])]
    body = getattr(node, "body", None)
    end = body[0].lineno if body else (node.end_lineno or node.lineno) + 1
    return range(min([node.lineno, *above]), max(end, node.lineno + 1))


def apply(source: bytes, edits: list[Edit]) -> bytes:
    for start, end, text in reversed(edits):
        source = source[:start] + text + source[end:]
    return source


def bytecode(source: bytes) -> Any:
    """To compare, without lines and columns; None of what is no program."""

    def bare(code: CodeType) -> Any:
        consts = [bare(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
        return code.co_code, code.co_names, code.co_varnames, consts

    try:
        return bare(compile(source, "mutant", "exec", dont_inherit=True))
    except (SyntaxError, ValueError):
        return None


def sample(sites: dict[str, list[Mutant]], root: Path, count: int, seed: int) -> list[Mutant]:
    """As many as were asked for, spread over the files by their sites up to a cap."""
    cap = 2 * statistics.median(map(len, sites.values()))
    weights = [min(len(found), cap) for found in sites.values()]
    step = sum(weights) / count
    at = random.Random(seed).random() * step
    chosen: list[Mutant] = []
    for end, (file, found) in zip(accumulate(weights), sites.items(), strict=True):
        share = max(0, math.ceil((end - at) / step))
        at += share * step
        source = (root / file).read_bytes()
        dull = (None, bytecode(source))
        shuffled = random.Random(f"{seed} {file}").sample(found, len(found))
        new = (m for m in shuffled if bytecode(apply(source, m.edits)) not in dull)
        chosen += sorted(islice(new, share), key=lambda m: m.line)
    return chosen


class Stage:
    """A copy of the repository, and the processes that run in it."""

    def __init__(self, root: Path) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="mutants-")).resolve()
        self.copy, self.data = self.scratch / "copy", self.scratch / "coverage"
        self.failed = self.scratch / "failed"
        for file in listed(root):
            (self.copy / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / file, self.copy / file)
        (self.scratch / "plugin").mkdir()
        (self.scratch / "plugin" / "mutants_plugin.py").write_text(PLUGIN)
        (self.scratch / "coverage.ini").write_text(
            f"[run]\nparallel = true\nsource = {self.copy}/src\ndata_file = {self.data}/data\n"
            "patch = _exit\nsigterm = true\ndisable_warnings = no-data-collected\n"
        )
        self.env = os.environ | {
            "PYTHONPATH": f"{self.copy}/src{os.pathsep}{self.scratch}/plugin",
            "JAX_COMPILATION_CACHE_DIR": str(Path(tempfile.gettempdir(), "mutants-compiled")),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
            "MUTANTS_FAILED": str(self.failed),
        }
        probe = [sys.executable, "-c", "import understudy; print(understudy.__file__)"]
        said = subprocess.run(probe, env=self.env, cwd=self.scratch, capture_output=True, text=True)
        assert said.stdout.startswith(f"{self.copy}/src"), f"not the copy: {said}"

    def test(
        self, file: str, *options: str, skip: list[str], limit: float, coverage: bool = False
    ) -> tuple[int | None, list[str], float]:
        """pytest's status (None: out of time), what failed, and the seconds."""
        self.failed.write_text("")
        env = self.env | {"MUTANTS_SKIP": json.dumps(skip)}
        if coverage:  # its .pth starts it in every Python that has this
            env["COVERAGE_PROCESS_START"] = f"{self.scratch}/coverage.ini"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
        command += ["-p", "mutants_plugin", f"--basetemp={self.scratch}/tmp", *options, file]
        begun = time.monotonic()
        with (self.scratch / "output.txt").open("wb") as output:
            running = subprocess.Popen(
                command, cwd=self.copy, env=env, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip
            try:
                status = running.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            self.sweep()
            running.wait()
        return status, self.failed.read_text().splitlines(), time.monotonic() - begun

    def sweep(self) -> None:
        """End what was started here and still runs, in whatever session it is."""
        mark = f"MUTANTS_FAILED={self.failed}".encode()
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in environ.read_bytes().split(b"\0"):
                    os.kill(int(environ.parent.name), signal.SIGKILL)
            except OSError:
                continue

    def measure(self, file: str) -> dict[str, Any]:
        """The lines that a test file executes, its seconds, and what fails without mutation."""
        from coverage import CoverageData  # the list can do without

        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir()
        status, failing, seconds = self.test(file, skip=[], limit=LONGEST, coverage=True)
        lines: dict[str, set[int]] = defaultdict(set)
        for path in self.data.glob("data.*"):
            data = CoverageData(str(path))
            data.read()
            for name in data.measured_files():
                lines[str(Path(name).relative_to(self.copy))].update(data.lines(name) or [])
        if status not in (0, 5):  # the coverage may be what it stumbles over
            status, failing, seconds = self.test(file, skip=[], limit=LONGEST)
        usable = status in (0, 1) and file not in failing
        found = {name: sorted(at) for name, at in sorted(lines.items()) if at}
        return {"seconds": seconds, "usable": usable, "failing": failing, "lines": found}

    def write(self, file: str, source: bytes) -> None:
        path = self.copy / file
        path.write_bytes(source)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()  # Python compares the second and the size alone


def listed(root: Path) -> list[str]:
    """The files of the repository, or of a plain copy of it."""
    if (root / ".git").exists():
        command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
        found = subprocess.check_output(command, cwd=root, text=True).split("\0")
    else:
        paths = (path.relative_to(root) for path in root.rglob("*"))
        found = [str(path) for path in paths if not UNCOPIED & set(path.parts)]
    return sorted(name for name in found if (root / name).is_file())


def measure(stage: Stage, work: Path, wanted: list[str]) -> dict[str, Any]:
    """What each test file covers; measured again where it, its helpers or the sources changed."""
    files = [file for file in listed(stage.copy) if re.match("src/|tests/|pyproject", file)]
    tests = [file for file in files if re.fullmatch(r"tests/(.*/)?test_\w+\.py", file)]
    chosen = [file for file in tests if not wanted or any(word in file for word in wanted)]
    kept = work / "map.json"
    measured = json.loads(kept.read_text()) if kept.exists() else {}
    content = {file: file.encode() + (stage.copy / file).read_bytes() for file in files}
    for n, file in enumerate(chosen, 1):
        parts = [content[name] for name in files if name == file or name not in tests]
        key = hashlib.sha256(b"\0".join(parts)).hexdigest()
        if measured.get(file, {}).get("key") != key:
            of = measured[file] = {"key": key} | stage.measure(file)
            kept.write_text(json.dumps(measured))
            told = f"{len(of['failing'])} fail anyway" if of["usable"] else "cannot be used"
            print(f"map {n}/{len(chosen)} {file}: {of['seconds']:.0f} s, {told}", flush=True)
    return {file: measured[file] for file in chosen}


class Judge:
    """Knows which test files to ask about a mutant, and in which order."""

    def __init__(self, measured: dict[str, Any], most: int | None = None) -> None:
        self.measured, self.most = measured, most
        self.lines: dict[str, dict[str, set[int]]] = defaultdict(dict)  # by source, by test
        for test, of in measured.items():
            for file, lines in of["lines"].items() if of["usable"] else ():
                self.lines[file][test] = set(lines)
        self.used: dict[str, set[str]] = defaultdict(set)  # files that a test does not only import
        for file, by in self.lines.items():
            imported = set.intersection(*by.values())
            for test in by:
                self.used[test] |= {file} if by[test] > imported else set()

    def covering(self, mutant: Mutant) -> list[str]:
        """First those that use the file; of them the cheap, and those of few other files."""
        lines = self.lines.get(mutant.file, {})
        cost = {
            t: of["seconds"] * math.sqrt(1 + len(self.used[t])) for t, of in self.measured.items()
        }
        found = [test for test in lines if lines[test] & set(mutant.lines)]
        found.sort(key=lambda test: (mutant.file not in self.used[test], cost[test]))
        return found[: self.most]

    def basis(self, by: str) -> str:
        """What a verdict rests on: the test file that killed, or all; if it changes, so may it."""
        tests = [by.split("::")[0]] if by else sorted(self.measured)
        keys = [self.measured.get(test, {}).get("key", "") for test in tests]
        return hashlib.sha256("".join(keys).encode()).hexdigest()[:16]

    def judge(self, mutant: Mutant, stage: Stage) -> dict[str, Any]:
        source = (stage.copy / mutant.file).read_bytes()
        outcome, by, begun = "survived", "", time.monotonic()
        stage.write(mutant.file, apply(source, mutant.edits))
        tests = self.covering(mutant)
        for test in tests:
            of = self.measured[test]
            limit = max(60.0, 5 * of["seconds"])
            status, failed, _ = stage.test(test, "-x", skip=of["failing"], limit=limit)
            if status not in (0, 5):
                outcome = "timeout" if status is None else "killed"
                by = failed[0] if failed and failed[0].startswith(test) else test
                break
        stage.write(mutant.file, source)
        told = {k: v for k, v in vars(mutant).items() if k not in ("lines", "edits")}
        seconds = round(time.monotonic() - begun, 1)
        told |= {"outcome": outcome, "by": by, "seconds": seconds, "covering": len(tests)}
        return told | {"basis": self.basis(by)}


def show(of: dict[str, Any]) -> str:
    where = f"{of['id']} {of['file']}:{of['line']} {of['operator']}"
    return f"{where}\n  - {of['before'][:300]}\n  + {of['after'][:300]}"


def report(records: list[dict[str, Any]]) -> None:
    packages: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        for package in (".".join(Path(record["file"]).parts[1:-1]), "~ all"):
            packages[package][record["outcome"]] += 1
    print(f"\n{'package':32}{'killed':>8}{'timeout':>9}{'all':>6}{'score':>8}")
    for package, of in sorted(packages.items()):
        score = 1 - of["survived"] / of.total()
        print(f"{package:32}{of['killed']:8}{of['timeout']:9}{of.total():6}{score:8.1%}")
    for record in records:
        if record["outcome"] == "survived":
            print(f"\n{show(record)}\n  asked: {record['covering']} test files")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", help="judge these again, sampled or not")
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="sources whose path contains this")
    parser.add_argument("--tests", action="append", help="test files whose path contains this")
    parser.add_argument("--most", type=int, help="ask at most so many test files about a mutant")
    parser.add_argument("--root", type=Path, default=HOME, help="the repository, or a copy")
    parser.add_argument("--work", type=Path, default=HOME / ".mutants", help="map and results")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="print the sample and stop")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    stages = [Stage(asked.root.resolve()) for _ in range(1 if asked.list else asked.jobs)]
    pool, stopped = ThreadPoolExecutor(asked.jobs), Event()
    try:
        run(asked, stages, pool, stopped)
    finally:
        stopped.set()
        for stage in stages:
            stage.sweep()
        pool.shutdown(cancel_futures=True)
        for stage in stages:
            shutil.rmtree(stage.scratch, ignore_errors=True)


def run(asked: Any, stages: list[Stage], pool: ThreadPoolExecutor, stopped: Event) -> None:
    root = stages[0].copy
    files = [file for file in listed(root) if re.fullmatch(SOURCES, file, re.VERBOSE)]
    sites = {f: Sites(f, (root / f).read_bytes()).mutants for f in files if asked.only in f}
    sites = {file: found for file, found in sites.items() if found}
    every = [mutant for found in sites.values() for mutant in found]
    mutants = [mutant for mutant in every if mutant.id in asked.ids]
    if unknown := {*asked.ids} - {mutant.id for mutant in mutants}:
        sys.exit(f"no such mutant: {', '.join(sorted(unknown))}")
    mutants = mutants if asked.ids else sample(sites, root, asked.count, asked.seed)
    print(f"{len(mutants)} mutants of {len(every)} in {len(sites)} files", flush=True)
    if asked.list:
        return print("\n".join(show(vars(mutant)) for mutant in mutants))

    asked.work.mkdir(parents=True, exist_ok=True)
    judge = Judge(measure(stages[0], asked.work, asked.tests or []), asked.most)
    results = asked.work / "mutants.jsonl"
    results.touch()
    past = [json.loads(line) for line in results.read_text().splitlines()]
    known = {of["id"]: of for of in past if of["basis"] == judge.basis(of["by"])}
    known = {} if asked.ids else known
    free: Queue[Stage] = Queue()
    for stage in stages:
        free.put(stage)

    def one(mutant: Mutant) -> None:
        stage = free.get()
        record = judge.judge(mutant, stage)
        free.put(stage)
        if stopped.is_set():  # it was ended, and not by a test
            return
        known[mutant.id] = record
        with results.open("a") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
        told = "{file}:{line} {operator}: {outcome} {by} {seconds} s\n".format(**record)
        print(told, end="", flush=True)

    list(pool.map(one, [mutant for mutant in mutants if mutant.id not in known]))
    report([known[mutant.id] for mutant in mutants])


if __name__ == "__main__":
    main()
