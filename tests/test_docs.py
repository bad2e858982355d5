"""The documentation keeps up with the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from unskew.cli.app import COMMANDS, app
from unskew.log.schema import Kind

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def test_every_problem_is_explained() -> None:
    """The page on preparing a log has a row with the remedy for every kind of problem."""
    page = (DOCS / "how-to" / "prepare-your-log.md").read_text(encoding="utf-8").replace("`", "")
    rows = {line.split("|")[1].strip(): line for line in page.splitlines() if line.count("|") == 4}
    for kind in Kind:
        assert kind.remedy in rows[kind.name.lower()]


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


def test_the_gallery_has_every_picture_of_a_guide() -> None:
    """A picture in a how-to guide is in the gallery, and leads to a page that is there."""
    gallery = (DOCS / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r"\[!\[[^]]*\]\(([^)]+)\)\]\(([^)]+)\)", gallery)
    assert not [one for pair in shown for one in pair if not (DOCS / one).is_file()]
    guides = [file.read_text(encoding="utf-8") for file in (DOCS / "how-to").glob("*.md")]
    pictures = {name for text in guides for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)}
    assert pictures
    assert {f"how-to/{name}" for name in pictures} <= {picture for picture, _ in shown}


@pytest.mark.parametrize(
    "name", ["README.md", "docs/index.md", "docs/tutorial/from-clicks-to-a-decision.md"]
)
def test_a_newcomer_finds_the_words(name: str) -> None:
    """The pages that a newcomer opens first lead to the list of words."""
    assert "reference/glossary.md" in (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_to_files_lead_somewhere(name: str) -> None:
    """Every relative link in the documents at the root leads to a file that is there."""
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?://)([^)#]+)", text)
    assert not [link for link in links if not (ROOT / link).is_file()]


def test_every_target_is_in_the_help() -> None:
    """The Makefile explains every target that it promises."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    promised = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert promised is not None
    explained = re.findall(r"^(\w+):.*## ", text, re.MULTILINE)
    assert promised.group(1).split() == explained
