"""The documentation builds into a site: every page has its place, every link its target."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytest.importorskip("sphinx", reason="the docs extra is not installed")


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """A page outside the navigation, a dead link or a wrong anchor is an error."""
    build = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    done = subprocess.run(
        [*build, "-d", str(tmp_path / "trees"), str(ROOT / "docs"), str(tmp_path / "site")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "explanation" / "architecture.html").exists()


def test_the_order_is_tutorial_how_to_explanation_reference() -> None:
    """The home page leads through the kinds of documentation in the order a newcomer needs them."""
    home = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    kinds = ["tutorial/index", "how-to/index", "explanation/index", "reference/index"]
    places = [home.index(f"\n{kind}\n") for kind in kinds]
    assert places == sorted(places)
