"""Do the tests notice? Small faults drawn from a seed, one at a time, and the tests of their room.

``PYTHONPATH=src:tests python -m mutants 200 1`` draws 200 mutants by the seed 1 in the modules that
read, join, match, estimate and measure: a comparison, an operator, a constant or a condition of one
function is changed, and the tests that belong to the module run. A mutant that no test fails on
survives. Survivors in `EQUIVALENT` change nothing that anybody could see; the reason stands beside
each. Compiled kernels are left out: tests hold each of them to its readable twin. ``python -m mutants
log/keys.py`` takes every mutant of one module.

Each mutant runs in a child of a process that has everything loaded, and only the code of its function
is exchanged there. The tests run once without a mutant, which says how long each takes and what it
reaches; on a mutant those that reach its statement run, the quickest first, until one fails.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import hashlib
import importlib
import json
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import pytest

from equivalent_mutants import EQUIVALENT

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"
# Seconds of tests on one mutant; those that would take longer are left out.
ENOUGH = 15.0
# Seconds that a child may wait for a processor, beside ten times what it may use.
PATIENCE = 300.0
MEMORY = 8 << 30
# The exit code of a child that could not put its mutant in place.
UNCHANGED = 77

_LOG = (
    "log/test_keys.py", "log/test_problems.py", "log/test_coding.py", "log/test_session_order.py",
    "log/test_attach.py", "log/test_columns.py", "log/test_spilling.py",
    "log/test_reading_edges.py", "log/test_bad_input.py", "log/test_reading_options.py",
    "log/test_sources.py", "log/test_inspection.py", "log/test_lossless.py",
)  # fmt: skip
_SOURCES = (
    "log/test_source_edges.py",
    "log/test_reading_edges.py", "log/test_sources.py", "log/test_many_files.py",
    "log/test_damaged_sources.py",
    "log/test_file_names.py", "log/test_bad_input.py",
)  # fmt: skip
_LABELS = ("log/test_labels.py", "log/test_damaged_sources.py")
_EVALUATION = (
    "evaluation/test_metrics.py", "evaluation/test_significance.py", "evaluation/test_counterfactual.py",
    "evaluation/test_log_evaluation.py", "evaluation/test_click_values.py",
    "evaluation/test_uncertain_bias.py", "evaluation/test_click_errors.py",
)  # fmt: skip
# Each module and the tests of its room that are about it.
MODULES: dict[str, tuple[str, ...]] = {
    "log/attach.py": _LOG, "log/keys.py": _LOG, "log/columns.py": (*_LOG, *_LABELS),
    "log/coding.py": _LOG, "log/sessions.py": _LOG, "log/problems.py": _LOG,
    "log/read.py": (*_LOG, *_LABELS), "log/labelled.py": _LABELS, "log/letor.py": _LABELS,
    "log/arrays.py": ("log/test_arrays.py",),
    "log/matrix.py": ("log/test_matrix.py", "log/test_arrays.py"),
    "log/counts.py": ("log/test_statistics.py", "log/test_inspection.py"),
    "log/sources/table.py": _SOURCES, "log/sources/files.py": _SOURCES,
    "log/sources/csv_text.py": _SOURCES, "log/sources/parquet.py": _SOURCES,
    "rankers/inputs.py": ("rankers/test_inputs.py", "rankers/test_rankers.py"),
    "rankers/ranking.py": ("rankers/test_ranking.py",),
    "bias/relative_ctr.py": ("bias/test_relative_ctr.py",),
    "bias/randomization.py": ("bias/test_randomization.py",),
    "bias/harvesting.py": ("bias/test_harvesting.py",),
    "bias/cells.py": ("bias/test_cells.py",),
    "bias/shuffling.py": ("bias/test_shuffling.py", "bias/test_randomization.py"),
    "bias/estimator.py": ("bias/test_estimator.py", "bias/test_relative_ctr.py"),
    "evaluation/metrics.py": _EVALUATION, "evaluation/evaluation.py": _EVALUATION,
    "evaluation/counterfactual.py": _EVALUATION, "evaluation/significance.py": _EVALUATION,
}  # fmt: skip

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip


class Mutant(NamedTuple):
    """One change: the module, the number of the node, the line, and what becomes of it."""

    module: str
    node: int
    line: int
    before: str
    after: str


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every mutant of a module."""
    text = (SOURCE / "unskew" / module).read_text("utf-8")
    tree = ast.parse(text)
    for number, node in enumerate(_nodes(tree)):
        changed = copy.deepcopy(node)
        if _mutate(changed):
            yield Mutant(module, number, node.lineno, ast.unparse(node), ast.unparse(changed))


def _nodes(tree: ast.AST) -> list[ast.expr]:
    """The expressions of all functions that run as they are, without annotations and messages."""
    found: dict[int, ast.expr] = {}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        if any("njit" in ast.unparse(decorator) for decorator in function.decorator_list):
            continue
        for statement in function.body:
            for node in _without_texts(statement):
                if isinstance(
                    node, ast.Compare | ast.BinOp | ast.BoolOp | ast.UnaryOp | ast.Constant
                ):
                    found[id(node)] = node
    return list(found.values())


def _without_texts(node: ast.AST) -> Iterator[ast.AST]:
    """A statement's nodes, without functions within, type annotations and messages."""
    if isinstance(node, ast.FunctionDef | ast.Raise | ast.JoinedStr | ast.ImportFrom):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _without_texts(child)


def _mutate(node: ast.expr) -> bool:
    """Change the node; False if there is nothing to change."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        texts = [
            n for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
        ]
        if texts or any(isinstance(n, ast.JoinedStr) for n in ast.walk(node)):
            return False
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node.op = ast.Not()
        node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        node.value = not node.value
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        node.value = node.value + 1
    else:
        return False
    return True


def draw(count: int, seed: int) -> list[Mutant]:
    """So many different mutants, every one of every module as likely as any other."""
    everything = [mutant for module in MODULES for mutant in mutants_of(module)]
    return random.Random(seed).sample(everything, min(count, len(everything)))  # noqa: S311


def reason(mutant: Mutant) -> str | None:
    """Why a mutant changes nothing that can be seen, if that is so."""
    line = (SOURCE / "unskew" / mutant.module).read_text("utf-8").splitlines()[mutant.line - 1]
    if (mutant.before, mutant.after) == ("True", "False") and "strict=True" in line:
        return "strict=True states what holds anyway"
    if (mutant.before, mutant.after) == ("False", "True") and "copy=False" in line:
        return "a copy of the same numbers"
    return EQUIVALENT.get((mutant.module, line.strip(), mutant.before, mutant.after))


# Running ----------------------------------------------------------------------------------------


def exchange(mutant: Mutant) -> bool:
    """Give every function of the loaded module the code of the mutant; whether one has changed."""
    name = "unskew." + mutant.module.removesuffix(".py").replace("/", ".")
    module = importlib.import_module(name)
    text = (SOURCE / "unskew" / mutant.module).read_text("utf-8")
    tree = ast.parse(text)
    _mutate(_nodes(tree)[mutant.node])
    file = str(SOURCE / "unskew" / mutant.module)
    changed = compile(ast.fix_missing_locations(tree), file, "exec")
    return _exchange_code(dict(_codes(changed)), vars(module), name, set())


def _codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """The code of every function that stands in a module or a class, by its qualified name."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant.co_qualname, constant
            yield from _codes(constant)


def _exchange_code(
    codes: dict[str, CodeType], names: Mapping[str, Any], module: str, seen: set[int]
) -> bool:
    done = False
    for value in list(names.values()):
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type) and value.__module__ == module:
            done |= _exchange_code(codes, vars(value), module, seen)
        for function in _functions(value):
            if function.__module__ == module and function.__qualname__ in codes:
                new = codes[function.__qualname__]
                if new.co_freevars == function.__code__.co_freevars:
                    done |= new.co_code != function.__code__.co_code
                    done |= new.co_consts != function.__code__.co_consts
                    function.__code__ = new
    return done


def _functions(value: Any) -> Iterator[FunctionType]:
    """The functions behind a name: itself, or what a decorator or a property wraps."""
    for inner in (
        value, getattr(value, "__wrapped__", None), getattr(value, "__func__", None),
        getattr(value, "fget", None), getattr(value, "func", None),
    ):  # fmt: skip
        if isinstance(inner, FunctionType):
            yield inner
            if isinstance(getattr(inner, "__wrapped__", None), FunctionType):
                yield inner.__wrapped__


class Tried(NamedTuple):
    """A test as it ran without a mutant: how long, and the lines of the modules that it reached."""

    seconds: float
    passed: bool
    lines: dict[str, list[int]]

    def reaches(self, module: str, lines: tuple[int, int]) -> bool:
        """Whether it ran one of these lines, from the first to the last."""
        return any(lines[0] <= line <= lines[1] for line in self.lines.get(module, ()))


class Running:
    """A pytest plugin that runs the tests that reach a mutant, the quickest first, until one fails.

    Everything runs in forked children of this process, which has collected the tests and runs none.
    """

    def __init__(self, chosen: list[Mutant]) -> None:
        self.chosen = chosen
        self.survivors: list[Mutant] = []
        self.equivalent = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of the loop over all tests."""
        tried = self._tried(session)
        for number, mutant in enumerate(self.chosen, start=1):
            lines = statement_of(mutant)
            items = [
                (tried[item.nodeid].seconds, k, item)
                for k, item in enumerate(session.items)
                if tried[item.nodeid].passed and tried[item.nodeid].reaches(mutant.module, lines)
            ]
            self._note(mutant, items)
            if number % 10 == 0:
                _say(f"{number} mutants, {len(self.survivors)} survived\n")
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what pytest says of a test."""
        REPORTS.append(report)

    def _note(self, mutant: Mutant, items: list[tuple[float, int, pytest.Item]]) -> None:
        items = sorted(items)
        together = accumulate(item[0] for item in items)
        items = [item for item, so_far in zip(items, together, strict=True) if so_far < ENOUGH]
        seconds = 15 + 3 * sum(item[0] for item in items)
        if items and ended([item for _, _, item in items], mutant, seconds) is not None:
            return
        known = reason(mutant)
        self.equivalent += known is not None
        self.survivors += [] if known else [mutant]
        why = f" ({known})" if known else f" {len(items)} tests"
        place = f"{mutant.module}:{mutant.line}"
        _say(f"survived{why}: {place} {mutant.before} -> {mutant.after}\n")

    def _tried(self, session: pytest.Session) -> dict[str, Tried]:
        """Every test by itself without a mutant; what is known of a file from before is kept."""
        by_file: dict[Path, list[pytest.Item]] = {}
        for item in session.items:
            by_file.setdefault(item.path, []).append(item)
        tried: dict[str, Tried] = {}
        for file, items in by_file.items():
            kept = _kept(file)
            if not kept.exists():
                kept.parent.mkdir(parents=True, exist_ok=True)
                _in_child(lambda items=items, kept=kept: _try(items, kept), 3600.0)
            for name, (seconds, passed, lines) in json.loads(kept.read_text()).items():
                tried[name] = Tried(seconds, passed, lines)
        failed = [name for name, one in tried.items() if not one.passed]
        if failed:
            _say(f"left out, they fail or are skipped without a mutant: {failed}\n")
        return tried


def _say(text: str) -> None:
    os.write(SHOWN, text.encode())


# Where the report goes, however the tests change standard output.
SHOWN = os.dup(1)


def _kept(file: Path) -> Path:
    """Where the trial of a test file is kept; another text of it or of a module has another name."""
    texts = [file, *(SOURCE / "unskew" / module for module in MODULES)]
    digest = hashlib.sha256(b"".join(one.read_bytes() for one in texts)).hexdigest()[:16]
    return TESTS.parent / ".pytest_cache" / "mutants" / f"{file.stem}-{digest}.json"


def _try(items: list[pytest.Item], kept: Path) -> int:
    """Run tests without a mutant and keep what each took and reached."""
    files = {str(SOURCE / "unskew" / module): module for module in MODULES}
    reached: dict[str, set[int]] = {}

    def in_line(frame: FrameType, event: str, _: Any) -> Any:
        reached[files[frame.f_code.co_filename]].add(frame.f_lineno)
        return in_line

    def in_call(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        reached.setdefault(files[frame.f_code.co_filename], set()).add(frame.f_lineno)
        return in_line

    found = {}
    for item, following in zip(items, [*items[1:], None], strict=True):
        reached.clear()
        started = time.process_time()
        threading.settrace(in_call)
        sys.settrace(in_call)
        passed = _passes(item, following)
        sys.settrace(None)
        threading.settrace(None)
        lines = {module: sorted(of) for module, of in reached.items()}
        found[item.nodeid] = (time.process_time() - started, passed, lines)
    kept.write_text(json.dumps(found))
    return 0


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Whether a test passes, with everything that pytest does around it."""
    REPORTS.clear()
    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
    return bool(REPORTS) and all(report.passed for report in REPORTS)


# What pytest says of the test that runs in this process.
REPORTS: list[pytest.TestReport] = []


def statement_of(mutant: Mutant) -> tuple[int, int]:
    """The first and last line of the statement, or of the head of a block, that a mutant changes."""
    tree = ast.parse((SOURCE / "unskew" / mutant.module).read_text("utf-8"))
    changed = _nodes(tree)[mutant.node]
    found = (changed.lineno, changed.end_lineno or changed.lineno)
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt) or isinstance(statement, ast.FunctionDef):
            continue
        if not statement.lineno <= changed.lineno <= (statement.end_lineno or 0):
            continue
        body = getattr(statement, "body", None)
        inside = any(node is changed for node in ast.walk(statement))
        if inside and not body:
            return statement.lineno, statement.end_lineno or statement.lineno
        if inside and isinstance(body, list) and changed.lineno < body[0].lineno:
            found = (statement.lineno, body[0].lineno - 1)
    return found


def ended(items: list[pytest.Item], mutant: Mutant, seconds: float) -> str | None:
    """How the first test that fails on a mutant failed; None if all passed."""

    def work() -> int:
        if not exchange(mutant):
            return UNCHANGED
        for item, following in zip(items, [*items[1:], None], strict=True):
            if not _passes(item, following):
                return 1
        return 0

    code = _in_child(work, seconds)
    if code == UNCHANGED:  # counts as not noticed, so that it is seen
        _say(f"could not be put in place: {mutant}\n")
        return None
    return None if code == 0 else "failed" if code == 1 else f"ended with {code}"


def _in_child(work: Callable[[], int], seconds: float) -> int:
    """The exit code of work in a forked child that may use so many seconds of processor time."""
    child = os.fork()
    if child == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
        code = 2
        try:
            code = work()
        except BaseException:
            code = 1
        finally:
            os._exit(code)
    deadline = time.monotonic() + PATIENCE + 10 * seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def main() -> None:
    """Draw, run, report; the exit code is 1 if fewer than 95 in 100 were noticed."""
    if sys.argv[1:] and not sys.argv[1].isdigit():
        modules, which = sys.argv[1:], "in all"
        running = Running([mutant for module in modules for mutant in mutants_of(module)])
    else:
        count, seed, part, parts = (
            int(a) for a in [*sys.argv[1:], *("200", "1", "0", "1")[len(sys.argv) - 1 :]]
        )
        modules, which = list(MODULES), f"by seed {seed}"
        running = Running(draw(count, seed)[part::parts])
    files = dict.fromkeys(file for module in modules for file in MODULES[module])
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist"]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123
        code = pytest.main([*options, *(str(TESTS / file) for file in files)], [running])
    if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        raise SystemExit(f"the tests cannot be collected ({code})")
    rest = len(running.chosen) - running.equivalent
    found = rest - len(running.survivors)
    _say(
        f"{len(running.chosen)} mutants {which}: {found} noticed, "
        f"{running.equivalent} equivalent, {len(running.survivors)} survived "
        f"({found / rest:.1%} of {rest} noticed)\n"
    )
    sys.exit(int(found / rest < 0.95))


if __name__ == "__main__":
    main()
