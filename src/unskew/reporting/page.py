"""The HTML page: one file with tables and charts that opens anywhere, without a network."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from unskew.charts.chart import Table
from unskew.charts.figure import html_table, script, style


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading and ready HTML below it."""

    title: str
    html: str

    @property
    def anchor(self) -> str:
        """The name by which the list of contents finds it."""
        return re.sub(r"\W+", "-", self.title.lower()).strip("-") or "section"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    named = f' class="{kind}"' if kind else ""
    return f"<p{named}>{escape(text)}</p>"


def bullets(texts: Sequence[str]) -> str:
    """A list of plain texts."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>" if texts else ""


def p_text(p: float) -> str:
    """A p-value; one that is too small to be written says so."""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; a cell may hold a value and, after a line break, a remark in small print."""
    return html_table(Table(header, rows))


@cache
def _asset(name: str) -> str:
    return files("unskew.reporting").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def page(
    title: str, lead: str, sections: Sequence[Section], *, first: str = "", wide: bool = False,
    footer: str = "",
) -> str:  # fmt: skip
    """The whole page.

    ``lead`` is plain text below the title; ``first`` is ready HTML above the list of contents;
    ``wide`` gives tables with many columns the room they need. The browser is told to load nothing
    and to run no other script than the page's own, whatever the texts in it hold.
    """
    css, js = style() + _asset("page.css"), script() + _asset("page.js")
    policy = f"default-src 'none'; style-src {_digest(css)}; script-src {_digest(js)}"
    contents = "".join(f'<li><a href="#{s.anchor}">{escape(s.title)}</a></li>' for s in sections)
    body = "".join(
        f'<section id="{s.anchor}"><h2>{escape(s.title)}</h2>{s.html}</section>' for s in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="generator" content="unskew">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{css}</style></head>"
        f'<body class="uk page{" broad" if wide else ""}"><a class="skip" href="#content">To the content'
        f'</a><header><div class="top"><h1>{escape(title)}</h1>'
        '<button class="theme" type="button" hidden>Dark</button></div>'
        f"{paragraph(lead, 'lead')}{first}</header>"
        f'<nav class="contents" aria-label="Contents"><ol>{contents}</ol></nav>'
        f'<main id="content">{body}</main><footer>{paragraph(footer) if footer else ""}</footer>'
        f"<script>{js}</script></body></html>\n"
    )
