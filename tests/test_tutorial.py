"""The tutorial works as it stands: its Python and its commands, from top to bottom, in one folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from unskew.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "tutorial" / "from-clicks-to-a-decision.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_a_newcomer_gets_from_clicks_to_a_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command succeeds, and what the clicks found ranks better by what buyers want."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    said = {}
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "python":
            exec(text, names)  # noqa: S102 (our own page, which asserts its own result)
            continue
        for line in text.splitlines():
            words = shlex.split(line.removeprefix("$ unskew "))
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, f"{line}: {result.output}"
            said[words[0]] = result.output
    assert set(said) == {"inspect", "advise", "train", "report", "ab"}
    assert "features: match, price, fresh" in said["inspect"]
    assert (tmp_path / "report.html").stat().st_size < 2_000_000
