"""Do the tests notice? Small faults drawn from a seed, one at a time, and the tests of their room.

``PYTHONPATH=src:tests python -m mutants 200 1`` draws 200 mutants by the seed 1 in the modules that
read, join, match, estimate and measure: a comparison, an operator, a constant or a condition is
changed in a copy of the source, and the tests that belong to the module run on the copy. A mutant
that no test fails on survives. Survivors in `EQUIVALENT` change nothing that anybody could see; the
reason stands beside each.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"
SECONDS = 150

_LOG = (
    "log/test_bad_input.py", "log/test_lossless.py", "log/test_sources.py", "log/test_inspection.py",
)  # fmt: skip
_SOURCES = (
    "log/test_sources.py", "log/test_many_files.py", "log/test_damaged_sources.py",
    "log/test_folders.py", "log/test_bad_input.py",
)  # fmt: skip
# Each module and the tests of its room that are about it, the nearest first.
MODULES: dict[str, tuple[str, ...]] = {
    "log/attach.py": ("log/test_attach.py", "log/test_lossless.py", "log/test_bad_input.py"),
    "log/keys.py": ("log/test_keys.py", "log/test_lossless.py", "log/test_sources.py"),
    "log/columns.py": ("log/test_columns.py", *_LOG, "log/test_labels.py"),
    "log/coding.py": _LOG,
    "log/sessions.py": ("log/test_sessions.py", *_LOG),
    "log/problems.py": _LOG,
    "log/read.py": (*_LOG, "log/test_labels.py"),
    "log/labelled.py": ("log/test_labels.py",),
    "log/letor.py": ("log/test_labels.py", "log/test_damaged_sources.py"),
    "log/arrays.py": ("log/test_arrays.py",),
    "log/matrix.py": ("log/test_matrix.py", "log/test_arrays.py"),
    "log/counts.py": ("log/test_statistics.py", "log/test_inspection.py"),
    "log/sources/table.py": _SOURCES,
    "log/sources/files.py": _SOURCES,
    "log/sources/csv_text.py": _SOURCES,
    "log/sources/parquet.py": _SOURCES,
    "rankers/inputs.py": ("rankers/test_inputs.py", "rankers/test_rankers.py"),
    "rankers/ranking.py": ("rankers/test_rankers.py", "rankers/test_ranking.py"),
    "bias/relative_ctr.py": ("bias/test_relative_ctr.py",),
    "bias/randomization.py": ("bias/test_randomization.py",),
    "bias/harvesting.py": ("bias/test_harvesting.py",),
    "bias/cells.py": ("bias/test_cells.py", "bias/test_regression_em.py"),
    "bias/shuffling.py": ("bias/test_shuffling.py", "bias/test_randomization.py"),
    "bias/estimator.py": ("bias/test_estimator.py", "bias/test_relative_ctr.py"),
    "evaluation/metrics.py": ("evaluation/test_metrics.py",),
    "evaluation/evaluation.py": ("evaluation/test_metrics.py", "evaluation/test_significance.py"),
    "evaluation/counterfactual.py": ("evaluation/test_counterfactual.py",),
    "evaluation/significance.py": ("evaluation/test_significance.py",),
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
            line = node.lineno
            before = ast.unparse(node)
            after = ast.unparse(_nodes(changed)[number])
            yield Mutant(module, number, line, before, after)


def _nodes(tree: ast.AST) -> list[ast.expr]:
    """The expressions of all functions, without annotations, defaults' types and messages."""
    found: list[ast.expr] = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                found += [
                    n
                    for n in _unannotated(statement)
                    if isinstance(
                        n, ast.Compare | ast.BinOp | ast.BoolOp | ast.UnaryOp | ast.Constant
                    )
                ]
    unique: dict[int, ast.expr] = {id(node): node for node in found}
    return list(unique.values())


def _unannotated(node: ast.AST) -> Iterator[ast.AST]:
    """A statement's nodes, without type annotations, error messages and subscripted types."""
    if isinstance(node, ast.FunctionDef | ast.Raise | ast.JoinedStr | ast.ImportFrom):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _unannotated(child)


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


def source_of(mutant: Mutant) -> str:
    """The module with the change in it."""
    tree = ast.parse((SOURCE / "unskew" / mutant.module).read_text("utf-8"))
    _mutate(_nodes(tree)[mutant.node])
    return ast.unparse(ast.fix_missing_locations(tree))


def draw(count: int, seed: int) -> list[Mutant]:
    """So many different mutants, every one of every module as likely as any other."""
    everything = [mutant for module in MODULES for mutant in mutants_of(module)]
    return random.Random(seed).sample(everything, min(count, len(everything)))  # noqa: S311


# Running ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def copied_source() -> Iterator[Path]:
    """A copy of the source with its compiled kernels, in which files can be changed."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        yield Path(shutil.copytree(SOURCE, Path(place) / "src", copy_function=shutil.copy2))


def noticed(mutant: Mutant, place: Path) -> str | None:
    """How the tests of the mutant's room noticed it; None if they did not."""
    file = place / "unskew" / mutant.module
    whole, status = file.read_bytes(), file.stat()
    # Compiled kernels of the room may hold the old code: they are compiled again.
    aside = [p for p in file.parent.glob("__pycache__/*.nb[ci]") if "njit" in whole.decode()]
    try:
        file.write_text(source_of(mutant), "utf-8")
        for compiled in aside:
            compiled.rename(compiled.with_suffix(compiled.suffix + ".aside"))
        return _ended(_forked(mutant.module, place))
    finally:
        file.write_bytes(whole)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        for fresh in file.parent.glob("__pycache__/*.nb[ci]") if aside else ():
            fresh.unlink()
        for compiled in aside:
            compiled.with_suffix(compiled.suffix + ".aside").rename(compiled)


def _forked(module: str, place: Path) -> int:
    """The child that runs the tests of a module on the copy."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(place))
    os.environ["PYTHONPATH"] = os.pathsep.join((str(place), str(TESTS)))
    import pytest

    files = [str(TESTS / name) for name in MODULES[module] if (TESTS / name).exists()]
    code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *files])
    os._exit(int(code))


def _ended(child: int) -> str | None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return None if code == 0 else "failed" if code == 1 else f"ended with {code}"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"no end after {SECONDS} s"


def _load() -> None:
    """Load what tests need, but nothing of Unskew: children are forked from here."""
    for name in (
        "pytest", "numpy", "scipy.stats", "duckdb", "pyarrow.parquet", "pandas", "polars",
        "numba", "lightgbm", "sklearn.linear_model", "rich.console", "typer",
    ):  # fmt: skip
        importlib.import_module(name)


def main() -> None:
    """Draw, run, report; the exit code is 1 if fewer than 95 in 100 were noticed."""
    count, seed = (int(a) for a in [*sys.argv[1:], "200", "1"][:2])
    chosen = draw(count, seed)
    _load()
    survivors, equivalent = [], 0
    with copied_source() as place:
        for module in dict.fromkeys(mutant.module for mutant in chosen):
            if _ended(_forked(module, place)) is not None:
                raise SystemExit(f"the tests of {module} fail without a mutant")
        for number, mutant in enumerate(chosen, start=1):
            how = noticed(mutant, place)
            if how is None:
                known = EQUIVALENT.get(mutant.place)
                equivalent += known is not None
                survivors += [] if known else [mutant]
                sys.stdout.write(f"survived{f' ({known})' if known else ''}: ")
                sys.stdout.write(
                    f"{mutant.module}:{mutant.line} {mutant.before} -> {mutant.after}\n"
                )
            if number % 20 == 0:
                sys.stdout.write(
                    f"{number} mutants, {len(survivors)} survived, {equivalent} equivalent\n"
                )
            sys.stdout.flush()
    rest = len(chosen) - equivalent
    found = rest - len(survivors)
    share = found / rest
    sys.stdout.write(
        f"{len(chosen)} mutants by seed {seed}: {found} noticed, {equivalent} equivalent, "
        f"{len(survivors)} survived ({share:.1%} of {rest} noticed)\n"
    )
    sys.exit(int(share < 0.95))


if __name__ == "__main__":
    main()
