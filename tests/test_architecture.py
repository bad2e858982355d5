"""What may import what: the rooms of the house and the doors between them."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "unskew"

# Leaves know nothing of the rest of the house, except where one leaf stands on another.
LEAVES = {
    "array_types": set(),
    "compiling": set(),
    "errors": set(),
    "lazy": set(),
    "mixing": set(),
    "progress": set(),
    "terminal": set(),
    "claims": {"errors"},
    "azure": {"errors"},
    "places": {"azure", "errors"},
    "remote_writing": {"claims", "errors", "places"},
    "store": {"claims", "errors", "places", "remote_writing"},
    "charts": {"errors"},
    "position_bias": {"array_types", "charts", "errors", "terminal"},
    "registry": {"errors"},
    "threads": {"array_types"},
}

# Each room and the rooms it may import, beside itself and the leaves, in the order in which data
# passes through them. A room is a module or package of ``unskew``.
ROOMS = {
    "log": set(),
    "clicks": {"log"},
    "pairs": {"log"},
    "trees": {"log"},
    "bias": {"log", "clicks", "pairs", "trees"},
    "evaluation": {"log"},
    "rankers": {"log", "clicks", "pairs", "trees", "bias", "evaluation"},
    "choose": {"log", "clicks", "pairs", "trees", "bias", "evaluation", "rankers"},
    "engines": {"log", "clicks", "pairs", "trees", "bias", "rankers"},
    "datasets": {"log"},
    "simulate": {"log", "clicks", "datasets"},
    "online": {"log", "evaluation"},
    "reporting": {"log", "bias", "evaluation", "rankers", "choose", "online", "loading"},
    "export": {"log", "trees", "rankers", "loading"},
    "paper": {
        "log", "clicks", "pairs", "trees", "bias", "evaluation", "rankers", "datasets", "simulate",
        "reporting",
    },
    "demo": {
        "log", "clicks", "bias", "evaluation", "rankers", "choose", "datasets", "simulate",
        "reporting",
    },
}  # fmt: skip

# The doors of the house: the command line may import everything, nobody imports the command line.
# `unskew` itself names what is public, `loading` what can be loaded; both import on first use.
FRONT = {"cli", "loading", "__init__", "__main__"}

# Inside the package its root offers the version and nothing else.
OFFERED_BY_ROOT = {"__version__"}

EXTRAS = {
    "dask", "distributed", "ibis", "itsdangerous", "jinja2", "matplotlib", "onnx", "onnxmltools",
    "onnxruntime", "pandas", "plotly", "polars", "pyspark", "skl2onnx", "starlette", "tl2cgen",
    "torch", "treelite", "uvicorn", "xgboost",
}  # fmt: skip

# Modules that exist for one optional dependency and are themselves imported on first use.
HOMES_OF_EXTRAS = {
    "trees.xgboost_trees": "xgboost",
    "engines.grower": "xgboost",
    "online.judging.app": "starlette",
    "online.judging.guard": "starlette",
    "online.judging.sessions": "itsdangerous",
    "online.judging.templates": "jinja2",
}

SLOW_TO_IMPORT = {"duckdb", "lightgbm", "numba", "pyarrow", "sklearn"}

TEXT = {".cfg", ".html", ".in", ".ini", ".json", ".md", ".py", ".toml", ".txt", ".yaml", ".yml", ""}
MACHINE_PATH = re.compile(r"(?<![\w.:/-])/(?:work|root|home/\w+|Users/\w+)/")
TICKET = re.compile(r"\bissue\s*#?\s*\d", re.IGNORECASE)


@dataclass(frozen=True)
class Import:
    """One import statement's target: where it stands and what it names."""

    importer: str
    target: str
    line: int
    at_module_level: bool
    for_types: bool = False

    def __str__(self) -> str:
        return f"{self.importer}, line {self.line}: imports {self.target}"


def test_every_room_has_a_rule() -> None:
    """A module or package that is new in the house has a row in the table of rooms."""
    present = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or _is_package(path)}
    assert present <= {*LEAVES, *ROOMS, *FRONT}, "give the new room a row in ROOMS"


def test_rules_have_no_cycle() -> None:
    """The table itself lets data flow one way only: no two rooms can import each other."""
    order = list(TopologicalSorter({**LEAVES, **ROOMS}).static_order())
    assert order.index("log") < order.index("bias") < order.index("rankers")


def test_the_architecture_page_says_the_same() -> None:
    """The table of who may import whom in the documentation is the one that the tests check."""
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("| room | may import |\n|---|---|\n")[2].partition("\n\n")[0]
    found = {}
    for line in table.splitlines():
        _, room, others, _ = line.split("|")
        found[room.strip(" `")] = set(re.findall(r"`(\w+)`", others))
    assert found == ROOMS


def test_rooms_import_what_they_may() -> None:
    """A module imports its own room, leaves, and the rooms to its left; lazy imports count too."""
    wrong = [str(found) for found in _imports() if not _allowed(found)]
    assert not wrong, "\n".join(wrong)


def test_rooms_do_not_import_each_other() -> None:
    """The imports that are really there have no cycle between rooms."""
    graph: dict[str, set[str]] = {}
    for found in _imports():
        if found.for_types:
            continue
        room, target = _room(found.importer), _room(_inside(found.target))
        if room not in FRONT and target != room and _inside(found.target):
            graph.setdefault(room, set()).add(target)
    assert list(TopologicalSorter(graph).static_order())  # a cycle is an error


def test_extras_load_when_used() -> None:
    """Optional dependencies are imported inside functions, or by a module that exists for one."""
    wrong = [
        str(found)
        for found in _imports()
        if found.at_module_level
        and (extra := found.target.partition(".")[0]) in EXTRAS
        and HOMES_OF_EXTRAS.get(found.importer) != extra
    ]
    assert not wrong, "\n".join(wrong)


def test_import_is_light() -> None:
    """``import unskew`` loads no optional dependency and nothing that is slow to import."""
    listing = "import sys, unskew; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", listing], check=True, capture_output=True, text=True
    ).stdout.split()
    assert "unskew" in loaded
    assert not (EXTRAS | SLOW_TO_IMPORT) & set(loaded)


def test_a_ranker_loads_no_extra() -> None:
    """The default ranker is imported without any optional dependency."""
    listing = "import sys, unskew.rankers.lambdamart.ranker; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", listing], check=True, capture_output=True, text=True
    ).stdout.split()
    # LightGBM and scikit-learn look for data frame libraries by importing them.
    assert not (EXTRAS - {"pandas", "polars", "matplotlib", "dask", "distributed"}) & set(loaded)


@pytest.mark.parametrize(
    ("code", "target"),
    [
        ("from unskew.cli.app import main", "unskew.cli.app"),
        ("def f():\n    import unskew.cli", "unskew.cli"),
        ("from unskew import cli", "unskew.cli"),
        ("from unskew import read_log", "unskew.read_log"),
        ("from . import lambdamart\nfrom .. import cli", "unskew.cli"),
        ("from ..cli import app", "unskew.cli.app"),
        ("from unskew.cli import main", "unskew.cli"),
    ],
)
def test_every_way_to_import_is_seen(code: str, target: str) -> None:
    """However an import is written, the rules see what it names and refuse it to a lower room."""
    found = [entry for entry in _imports_of(code, "rankers.training") if entry.target == target]
    assert found
    assert not any(_allowed(entry) for entry in found)


def test_text_names_no_machine() -> None:
    """No tracked file names a path of somebody's machine or the number of a ticket."""
    wrong = [
        f"{path.relative_to(ROOT)}, line {number}: {line.strip()[:80]}"
        for path in _tracked()
        if path.suffix in TEXT and path.is_file()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if MACHINE_PATH.search(line) or TICKET.search(line)
    ]
    assert not wrong, "\n".join(wrong)


def _is_package(path: Path) -> bool:
    return (path / "__init__.py").is_file()


def _imports() -> list[Import]:
    """Every import of the source tree."""
    return [
        found
        for path in sorted(SOURCE.rglob("*.py"))
        for found in _imports_of(path.read_text(encoding="utf-8"), _module(path))
    ]


def _module(path: Path) -> str:
    """The dotted name of a source file below ``unskew``; a package's own file ends in __init__."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def _imports_of(code: str, importer: str) -> Iterator[Import]:
    tree = ast.parse(code)
    lazy = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _is_type_checking(node)
        for inner in ast.walk(node)
    }
    for_types = {
        id(inner) for node in ast.walk(tree) if _is_type_checking(node) for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        for target in _targets(node, importer):
            yield Import(importer, target, node.lineno, id(node) not in lazy, id(node) in for_types)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _targets(node: ast.AST, importer: str) -> list[str]:
    """What an import statement names, absolute."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    package = ["unskew", *importer.split(".")][: -node.level] if node.level else []
    origin = ".".join([*package, *([node.module] if node.module else [])])
    return [_named(origin, alias.name) for alias in node.names]


def _named(origin: str, name: str) -> str:
    """What ``from origin import name`` names: a module where there is one, else its home."""
    below = SOURCE.joinpath(*_inside(f"{origin}.{name}").split("."))
    is_module = below.with_suffix(".py").is_file() or _is_package(below)
    return f"{origin}.{name}" if origin == "unskew" or is_module else origin


def _inside(target: str) -> str:
    """The part of a dotted name below ``unskew``, empty for what is not ours."""
    return target.removeprefix("unskew.") if target.startswith("unskew.") else ""


def _room(module: str) -> str:
    """The room a module is in: the longest name of the table that it begins with."""
    parts = module.split(".")
    names = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((name for name in names if name in LEAVES or name in ROOMS), parts[0])


def _allowed(found: Import) -> bool:
    room = _room(found.importer)
    if found.for_types or room in FRONT or found.target.partition(".")[0] != "unskew":
        return True
    target = _inside(found.target)
    if not target or target in OFFERED_BY_ROOT:
        return bool(target)
    if room in LEAVES:
        return _room(target) in {room, *LEAVES[room]}
    return _room(target) in {room, *LEAVES, *ROOMS[room]}


def _tracked() -> list[Path]:
    """The files of the repository, or of an unpacked source archive where there is no git."""
    git = shutil.which("git")
    if git is not None and (ROOT / ".git").exists():
        listing = subprocess.run(
            [git, "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        return [ROOT / name for name in listing.split("\0") if name]
    folders = ("src", "tests", "docs", "benchmarks")
    return [path for folder in folders for path in (ROOT / folder).rglob("*")]
