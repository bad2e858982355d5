"""The documentation keeps up with the program."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from unskew.cli.app import COMMANDS, app
from unskew.log.schema import RULES, Kind

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_every_problem_is_explained() -> None:
    """The page on preparing a log has a row with the remedy for every kind of problem."""
    page = (DOCS / "how-to" / "prepare-your-log.md").read_text(encoding="utf-8").replace("`", "")
    rows = {line.split("|")[1].strip(): line for line in page.splitlines() if line.count("|") == 4}
    for kind in Kind:
        assert RULES[kind].remedy in rows[kind.name.lower()]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section(command: str) -> None:
    """The reference of the command line has a section for every command."""
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    assert f"\n## unskew {command}\n" in page


@pytest.mark.parametrize("command", ["inspect", "compact"])
def test_every_option_of_reading_is_listed(command: str) -> None:
    """The reference of the command line names every option by which a log is read."""
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    parameters = typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]
    missing = [
        option for parameter in parameters for option in parameter.opts
        if option.startswith("--") and f"`{option}" not in page
    ]  # fmt: skip
    assert not missing
