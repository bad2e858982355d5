"""The HTML report: one file with tables and pictures that opens anywhere, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff;
  max-width: 46rem; margin: 2.5rem auto; padding: 0 1rem; }
body.wide { max-width: 76rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { font-size: 1.2rem; margin-top: 2.2rem; }
p { margin: .6rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .35rem .6rem; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
td small { color: #555; white-space: nowrap; }
svg { width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: #1b1b1b; }
svg .grid { stroke: #e3e3e3; }
svg .curve { fill: none; stroke-width: 2; }
svg .interval { stroke: #444; stroke-width: 2; }
figure { margin: 1rem 0; }
figcaption { color: #444; font-size: .92rem; }
"""


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading and ready HTML below it."""

    title: str
    html: str


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; a cell may hold a value and, after a line break, a remark in small print."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(content: str) -> str:
    value, _, remark = content.partition("\n")
    small = f"<br><small>{escape(remark)}</small>" if remark else ""
    return f"<td>{escape(value)}{small}</td>"


def figure(svg: str, caption: str) -> str:
    """A picture with its caption."""
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def page(title: str, lead: str, sections: Sequence[Section], *, wide: bool = False) -> str:
    """The whole page; ``wide`` gives tables with many columns the room they need."""
    body = "".join(f"<section><h2>{escape(s.title)}</h2>{s.html}</section>" for s in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="generator" content="unskew">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body{' class=wide' if wide else ''}>"
        f"<h1>{escape(title)}</h1>{paragraph(lead)}{body}</body></html>\n"
    )
