"""A chart on a page: at two widths, with its title, its caption and the table of its numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files

from unskew.charts.chart import NARROW, WIDE, Chart, Table

_NUMBER = re.compile(r"[+\-−–]?$|(< )?[+\-−]?\d[\d.,e+\-−±%×()\[\] \n]*( to [\d.,+\-−%)\]]+| s)?$")
_KEYS = "Arrow keys read the values, plus and minus zoom, 0 shows everything."


@cache
def asset(name: str) -> str:
    """A file of this package as text."""
    return files("unskew.charts").joinpath(name).read_text(encoding="utf-8")


def html_table(table: Table, *, numbers: bool = True) -> str:
    """A table; a cell may hold a value and, after a line break, a remark in small print.

    Columns of numbers are set to the right, unless ``numbers`` is false.
    """
    columns = list(zip(*table.rows, strict=True))
    head = "".join(
        f'<th scope="col"{_kind(numbers and bool(columns) and all(map(_is_number, columns[k])))}>'
        f"{escape(cell)}</th>"
        for k, cell in enumerate(table.header)
    )
    body = "".join(
        "<tr>" + "".join(_cell(cell, numbers) for cell in row) + "</tr>" for row in table.rows
    )
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead>'
        f"<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(content: str, numbers: bool) -> str:
    value, _, remark = content.partition("\n")
    small = f"<br><small>{escape(remark)}</small>" if remark else ""
    return f"<td{_kind(numbers and _is_number(content))}>{escape(value)}{small}</td>"


def _is_number(content: str) -> bool:
    """Whether a cell is a number, with its interval or unit perhaps: it is not broken in two."""
    return _NUMBER.match(content) is not None


def _kind(number: bool) -> str:
    return ' class="n"' if number else ""


def figure(chart: Chart) -> str:
    """A chart with everything around it, for a page that has the style and the script."""
    caption = f"<figcaption>{escape(chart.caption)}</figcaption>" if chart.caption else ""
    label = escape(f"Chart: {chart.title}. {_KEYS}", quote=True)
    return (
        f'<figure class="uk-chart"><div class="head"><strong>{escape(chart.title)}</strong>'
        '<span class="tools"></span></div>'
        f'<div class="canvas" tabindex="0" role="group" aria-label="{label}">'
        f"{chart.svg(WIDE, kind='wide')}{chart.svg(NARROW, kind='narrow')}</div>"
        f"{caption}<details><summary>The numbers</summary>{html_table(chart.table())}</details>"
        f'<script type="application/json">{chart.data()}</script></figure>'
    )


def style() -> str:
    """The style of charts and of what stands around them."""
    return asset("chart.css") + asset("figure.css")


def script() -> str:
    """What makes the charts of a page answer to a pointer and to keys."""
    return asset("figure.js")


def wrapped(html: str) -> str:
    """Ready HTML with the style and the script of charts, for a notebook."""
    return f'<div class="uk"><style>{style()}</style>{html}<script>{script()}</script></div>'


def fragment(*charts: Chart) -> str:
    """Some charts for a notebook."""
    return wrapped("".join(map(figure, charts)))


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values, one pair below the other."""
    return html_table(Table(["", ""], rows), numbers=False).replace(
        '<thead><tr><th scope="col"></th><th scope="col"></th></tr></thead>', ""
    )
