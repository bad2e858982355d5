"""The assessors' guidelines: Markdown that becomes HTML in which nothing of the author's runs."""

from __future__ import annotations

from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from unskew.errors import DataError
from unskew.online.judging.items import safe_link

MAX_BYTES = 1_000_000


def read_guidelines(path: str | Path) -> str:
    """The guidelines of a Markdown file, as HTML."""
    file = Path(path)
    if not file.is_file():
        raise DataError(f"{path}: there is no such file of guidelines; check the path")
    if file.stat().st_size > MAX_BYTES:
        raise DataError(
            f"{path}: guidelines may have {MAX_BYTES:,} bytes, got {file.stat().st_size:,}"
        )
    try:
        return rendered(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: guidelines must be UTF-8 text ({error.reason} at byte {error.start:,})"
        ) from error


def rendered(markdown: str) -> str:
    """Markdown as HTML. Tags in it are text, pictures are links, and links are http or https only."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    parser.validateLink = lambda url: safe_link(url) is not None  # type: ignore[method-assign]
    tokens = parser.parse(markdown)
    for token in tokens:
        _fit(token)
    return str(parser.renderer.render(tokens, parser.options, {}))


def _fit(token: Token) -> None:
    """Make a token fit the page: headings below those of the page, links in a tab of their own."""
    if token.type in {"heading_open", "heading_close"}:
        token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
    if token.type == "link_open":
        token.attrSet("target", "_blank")
        token.attrSet("rel", "noopener noreferrer")
    for child in token.children or ():
        _fit(child)
