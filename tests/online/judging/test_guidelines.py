"""Guidelines: Markdown in which nothing runs."""

from __future__ import annotations

import pytest

from unskew.errors import DataError
from unskew.online.judging.guidelines import read_guidelines, rendered


def test_markdown():
    """Headings, lists, tables and links become HTML that fits the page."""
    html = rendered("# Rules\n\n- one\n\n| a |\n|---|\n| b |\n\n[guide](https://a.example)")
    assert "<h3>Rules</h3>" in html
    assert "<li>one</li>" in html
    assert "<td>b</td>" in html
    link = '<a href="https://a.example" target="_blank" rel="noopener noreferrer">guide</a>'
    assert link in html


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))",
        "![x](https://a.example/pixel.png)", "[x](data:text/html,<script>1</script>)",
        "<javascript:alert(1)>", "[x]: javascript:alert(1)\n\n[x]", "```\n</pre><script>\n```",
        "[x](JaVaScRiPt:alert(1))", "[x](/leave)",
    ],
)  # fmt: skip
def test_nothing_runs(hostile):
    """Tags are text, scripts are no links, and pictures are not loaded."""
    html = rendered(hostile)
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="j' not in html.lower()
    assert 'href="/' not in html
    assert 'href="data' not in html


def test_bad_files(tmp_path):
    """A file that is absent, not text or huge is told."""
    path = tmp_path / "g.md"
    with pytest.raises(DataError, match="no such file of guidelines"):
        read_guidelines(path)
    path.write_bytes(b"\xff\xff")
    with pytest.raises(DataError, match="must be UTF-8"):
        read_guidelines(path)
    path.write_bytes(b"x" * 1_000_001)
    with pytest.raises(DataError, match="may have 1,000,000 bytes, got 1,000,001"):
        read_guidelines(path)
