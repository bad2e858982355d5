"""What the documentation shows can be imported by anybody: its code uses public names alone."""

from __future__ import annotations

import ast
import doctest
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import reference_pages  # noqa: E402

PUBLIC = {module: set(names) for module, names in reference_pages.public_names().items()}
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "generated" not in page.parts
]
EXAMPLES = sorted(
    path for path in (ROOT / "examples").iterdir() if path.suffix in {".py", ".ipynb"}
)
BLOCK = re.compile(
    r"^```python\n(.*?)^```$|^<!-+ invisible-code-block: python\n(.*?)^-+>$",
    re.DOTALL | re.MULTILINE,
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_uses_public_names_alone(page: Path) -> None:
    """Every name of Unskew in the blocks of a page is in the reference, hidden blocks included."""
    assert not list(_private(_blocks(page.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_uses_public_names_alone(example: Path) -> None:
    """Every name of Unskew in a script or notebook under examples is in the reference."""
    text = example.read_text(encoding="utf-8")
    if example.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
    assert not list(_private(text))


@pytest.mark.parametrize(
    ("code", "private"),
    [
        ("from unskew.log.counts import count_statistics", "unskew.log.counts"),
        ("from unskew.log import inspection", "unskew.log.inspection"),
        ("import unskew.registry", "unskew.registry"),
        ("import unskew\nunskew.evaluation.metrics", "unskew.evaluation"),
        ("from unskew import bias as b\nb.cells.shown", "unskew.bias.cells"),
        ("import unskew as u\nu.bias.cells.shown", "unskew.bias.cells"),
    ],
)
def test_a_private_name_is_noticed(code: str, private: str) -> None:
    """The check finds private modules and names, however they are reached."""
    assert list(_private(code)) == [private]


def test_every_block_is_looked_at() -> None:
    """Visible blocks, hidden ones and sessions at the prompt are all read."""
    page = "```python\nimport a\n```\n<!-- invisible-code-block: python\nimport b\n-->\n"
    page += "```python\n>>> import c\n>>> 1 + 1\n2\n```\n"
    assert [line for line in _blocks(page).splitlines() if "import" in line] == [
        "import a", "import b", "import c",
    ]  # fmt: skip


def _blocks(page: str) -> str:
    """The code of all Python blocks of a page, one after the other."""
    blocks = [seen or hidden for seen, hidden in BLOCK.findall(page)]
    return "\n".join(doctest.script_from_examples(b) if ">>> " in b else b for b in blocks)


def _private(code: str) -> Iterator[str]:
    """The names of Unskew in some code that are no public names."""
    tree = ast.parse(code)
    modules: dict[
        str, str
    ] = {}  # what a name of the code stands for, if that is one of our modules
    for node in ast.walk(tree):
        for bound, target in _imported(node):
            if not _is_public(target):
                yield target if _is_public(target.rpartition(".")[0]) else target.rpartition(".")[0]
            elif target in PUBLIC:
                modules[bound] = target
    inside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inside:
            yield from _private_attribute(_dotted(node), modules)


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """What an import statement binds, and the name of ours that stands behind it."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            if alias.name.partition(".")[0] == "unskew":
                yield bound, alias.name if alias.asname or "." in alias.name else "unskew"
    elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "unskew":
        for alias in node.names:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.expr) -> list[str]:
    """The parts of ``a.b.c``; what hangs on a call or an item begins with an empty part."""
    if isinstance(node, ast.Attribute):
        return [*_dotted(node.value), node.attr]
    return [node.id if isinstance(node, ast.Name) else ""]


def _private_attribute(parts: list[str], modules: dict[str, str]) -> Iterator[str]:
    """The first private step on the way from a module of ours, such as ``unskew.bias.cells.shown``."""
    path = modules.get(parts[0], "")
    for part in parts[1:]:
        if path not in PUBLIC or part.startswith("__"):
            return
        path = f"{path}.{part}"
        if not _is_public(path):
            yield path


def _is_public(path: str) -> bool:
    module, _, name = path.rpartition(".")
    return path in PUBLIC or name in PUBLIC.get(module, ()) or path == "unskew.__version__"
