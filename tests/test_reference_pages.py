"""The generated reference: every public name with an example, every command with its options."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from unskew.cli.app import COMMANDS, app

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import reference_pages  # noqa: E402

NAMES = {
    f"{module}.{name}": value
    for module, names in reference_pages.public_names().items()
    for name, value in names.items()
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages as the documentation has them."""
    folder = tmp_path_factory.mktemp("reference")
    reference_pages.write_pages(folder)
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_in_the_reference(pages: dict[str, str], name: str) -> None:
    """A public name has a section of its own."""
    assert f"\n### {name}\n" in pages["names.md"]


def test_a_name_that_is_left_out_is_noticed(pages: dict[str, str]) -> None:
    """The check of the reference fails for a name without a section."""
    shortened = pages["names.md"].replace("\n### unskew.read_log\n", "\n### unskew.read\n")
    with pytest.raises(AssertionError):
        test_every_public_name_is_in_the_reference({"names.md": shortened}, "unskew.read_log")


def test_the_reference_has_the_names_of_every_public_module() -> None:
    """The names that are looked for are those of the modules, by their files and not by the page."""
    exported = {
        f"unskew.{file.parent.name}"
        for file in (ROOT / "src" / "unskew").glob("*/__init__.py")
        if "__all__" in file.read_text(encoding="utf-8")
    }
    # Charts are what plot() returns, and the command line is a program.
    modules = exported - {"unskew.charts", "unskew.cli"}
    for module in modules:
        package = importlib.import_module(module)
        names = {name for name in package.__all__ if not inspect.ismodule(getattr(package, name))}
        assert not [name for name in names if f"{module}.{name}" not in NAMES]


@pytest.mark.parametrize("name", [name for name, value in NAMES.items() if callable(value)])
def test_every_public_name_has_an_example(name: str) -> None:
    """The docstring of a public class or function has an example, which the tests run."""
    doc = inspect.getdoc(NAMES[name]) or ""
    assert len(doc.splitlines()[0]) > 5
    assert ">>> " in doc, f"{name} has no example in its docstring"


def test_every_command_and_option_is_in_the_reference(pages: dict[str, str]) -> None:
    """A command has a section, and each of its options a row."""
    group: Any = typer.main.get_command(app)
    for name in COMMANDS:
        command = group.commands[name]
        inner = getattr(command, "commands", {"": command})
        for part, leaf in inner.items():
            path = f"unskew {name} {part}".strip()
            found = re.search(rf"\n## {path}\n(.*?)(\n## |\Z)", pages["commands.md"], re.DOTALL)
            assert found is not None, path
            options = [p for p in leaf.params if p.param_type_name == "option"]
            assert not [o.name for o in options if f"`{o.opts[0]}`" not in found.group(1)]


def test_the_markdown_of_a_docstring() -> None:
    """Sections, definitions and examples of a docstring become Markdown."""
    doc = "What it does.\n\nParameters\n----------\nx\n    A number.\n\nExamples\n--------\n>>> 1 + 1\n2"
    assert reference_pages.markdown(doc) == (
        "What it does.\n\n**Parameters**\n\n- `x`:\n  A number.\n\n**Examples**\n\n"
        "```pycon\n>>> 1 + 1\n2\n```"
    )
