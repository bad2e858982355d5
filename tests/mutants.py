"""Do the tests notice? Small faults drawn from a seed, one at a time, and the tests of their room.

``PYTHONPATH=src:tests python -m mutants 200 1`` draws 200 mutants by the seed 1 in the modules that
read, join, match, estimate and measure: a comparison, an operator, a constant or a condition of one
function is changed, and the tests that belong to the module run. A mutant that no test fails on
survives. Survivors in `EQUIVALENT` change nothing that anybody could see; the reason stands beside
each. Compiled kernels are left out: tests hold each of them to its readable twin.

Each mutant runs in a child of a process that has everything loaded, and only the code of its function
is exchanged there.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple, NoReturn

import pytest

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"
SECONDS = 240
MEMORY = 8 << 30
# The exit code of a child that could not put its mutant in place.
UNCHANGED = 77

_LOG = (
    "log/test_bad_input.py",
    "log/test_sources.py",
    "log/test_inspection.py",
    "log/test_lossless.py",
)
_SOURCES = (
    "log/test_sources.py", "log/test_many_files.py", "log/test_damaged_sources.py",
    "log/test_folders.py", "log/test_bad_input.py",
)  # fmt: skip
_LABELS = ("log/test_labels.py", "log/test_damaged_sources.py")
_EVALUATION = (
    "evaluation/test_metrics.py", "evaluation/test_significance.py", "evaluation/test_counterfactual.py",
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
    "rankers/ranking.py": ("rankers/test_rankers.py",),
    "bias/relative_ctr.py": ("bias/test_relative_ctr.py",),
    "bias/randomization.py": ("bias/test_randomization.py",),
    "bias/harvesting.py": ("bias/test_harvesting.py",),
    "bias/cells.py": ("bias/test_cells.py",),
    "bias/shuffling.py": ("bias/test_shuffling.py", "bias/test_randomization.py"),
    "bias/estimator.py": ("bias/test_estimator.py", "bias/test_relative_ctr.py"),
    "evaluation/metrics.py": _EVALUATION, "evaluation/evaluation.py": _EVALUATION,
    "evaluation/counterfactual.py": _EVALUATION, "evaluation/significance.py": _EVALUATION,
}  # fmt: skip

# Mutants that change nothing that can be seen: the module, the line as it is, and the reason.
EQUIVALENT: dict[tuple[str, str, str], str] = {}

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

    @property
    def place(self) -> tuple[str, str, str]:
        """How an equivalent mutant is listed."""
        return self.module, self.before, self.after


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every mutant of a module."""
    text = (SOURCE / "unskew" / module).read_text("utf-8")
    tree = ast.parse(text)
    for number, node in enumerate(_nodes(tree)):
        changed = copy.deepcopy(tree)
        if _mutate(_nodes(changed)[number]):
            after = ast.unparse(_nodes(changed)[number])
            yield Mutant(module, number, node.lineno, ast.unparse(node), after)


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


def ended(module: str, mutant: Mutant | None, seconds: float) -> str | None:
    """How the tests of a module failed on a mutant; None if they passed."""
    child = os.fork()
    if child == 0:
        _child(module, mutant)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code == UNCHANGED:
                raise AssertionError(f"{mutant} could not be put in place")
            return None if code == 0 else "failed" if code == 1 else f"ended with {code}"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "no end"


def _child(module: str, mutant: Mutant | None) -> NoReturn:
    """Run the tests, with the mutant in place."""
    os.setsid()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if mutant is not None and not exchange(mutant):
        os._exit(UNCHANGED)
    files = [str(TESTS / name) for name in MODULES[module]]
    os._exit(int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *files])))


def main() -> None:
    """Draw, run, report; the exit code is 1 if fewer than 95 in 100 were noticed."""
    count, seed, part, parts = (
        int(a) for a in [*sys.argv[1:], *("200", "1", "0", "1")[len(sys.argv) - 1 :]]
    )
    chosen = draw(count, seed)[part::parts]
    files = dict.fromkeys(file for names in MODULES.values() for file in names)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123
        if pytest.main(["-q", "--collect-only", *(str(TESTS / file) for file in files)]):
            raise SystemExit("the tests cannot be collected")
    # Tests that a mutant survived pass, so that only the others are run without a mutant.
    unproven = {MODULES[mutant.module]: mutant.module for mutant in chosen}
    survivors, equivalent = [], 0
    for number, mutant in enumerate(chosen, start=1):
        if ended(mutant.module, mutant, SECONDS) is None:
            unproven.pop(MODULES[mutant.module], None)
            known = EQUIVALENT.get(mutant.place)
            equivalent += known is not None
            survivors += [] if known else [mutant]
            why = f" ({known})" if known else ""
            place = f"{mutant.module}:{mutant.line}"
            sys.stdout.write(f"survived{why}: {place} {mutant.before} -> {mutant.after}\n")
        if number % 10 == 0:
            sys.stdout.write(f"{number} mutants, {len(survivors)} survived\n")
        sys.stdout.flush()
    for module in unproven.values():
        if ended(module, None, 10 * SECONDS) is not None:
            raise SystemExit(f"the tests of {module} fail without a mutant")
    rest = len(chosen) - equivalent
    found = rest - len(survivors)
    sys.stdout.write(
        f"{len(chosen)} mutants by seed {seed}: {found} noticed, {equivalent} equivalent, "
        f"{len(survivors)} survived ({found / rest:.1%} of {rest} noticed)\n"
    )
    sys.exit(int(found / rest < 0.95))


if __name__ == "__main__":
    main()
