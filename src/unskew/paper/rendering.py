"""Results become files: Markdown, figures, an HTML page. Nothing is trained here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unskew.charts.figure import figure
from unskew.charts.files import grid_svg
from unskew.charts.png import save_png
from unskew.errors import DataError
from unskew.paper.runs import FILE, Result, read_results
from unskew.paper.sections import SECTIONS, StudySection, Table
from unskew.reporting.page import Section, page, paragraph, table
from unskew.store import replace_file

MARKDOWN, REPORT = "results.md", "report.html"


def render(folder: Path) -> dict[str, StudySection]:
    """Write ``results.md``, ``NAME.png``, ``NAME.svg`` and ``report.html`` beside the results."""
    results = read_results(folder)
    if not results:
        raise DataError(f"{folder / FILE} holds no results: run 'unskew paper table' first")
    studies = sorted({result.study for result in results})
    if len(studies) > 1:
        raise DataError(
            f"{folder / FILE} mixes results of several studies ({'; '.join(studies)}): keep each in "
            "a folder of its own"
        )
    written = {
        name: section for name, write in SECTIONS.items() if (section := write(results)) is not None
    }
    for name, section in written.items():
        if section.plot is not None:
            save_png(section.plot, folder / f"{name}.png")
            _write(folder / f"{name}.svg", grid_svg(section.plot))
    lead = _lead(results)
    title = f"The paper's experiments on {results[0].data}"
    _write(folder / MARKDOWN, _markdown(title, lead, written))
    _write(folder / REPORT, _html(title, lead, written))
    return written


def _write(file: Path, text: str) -> None:
    """Write a text whole or not at all."""
    replace_file(file, lambda path: path.write_text(text, encoding="utf-8"))


def _lead(results: Sequence[Result]) -> str:
    seeds = {r.seed for r in results}
    sessions = max(r.sessions for r in results)
    queries = sorted({r.n_train_queries for r in results})
    span = f"{queries[0]:,}" if len(queries) == 1 else f"{queries[0]:,} to {queries[-1]:,}"
    hours = sum(r.seconds + r.bias_seconds for r in results) / 3600
    versions = ", ".join(sorted({r.version for r in results}))
    return (
        f"{len(results):,} runs: up to {len(seeds)} seeds, each with a fold of its own, {span} training "
        f"queries, up to {sessions:,} sessions a log. Training took {hours:.1f} hours of one core. "
        f"Unskew {versions}. Every number here is computed from the rows of {FILE}; intervals are "
        "95%, by Student's t over seeds, paired where two things are compared."
    )


def markdown_table(one: Table) -> str:
    """A table as Markdown."""
    lines = [one.header, ["---"] * len(one.header), *one.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _markdown(title: str, lead: str, sections: dict[str, StudySection]) -> str:
    parts = [f"# {title}", lead]
    for name, section in sections.items():
        parts.append(f"## {section.title}")
        if section.plot is not None:
            parts.append(f"![{section.caption}]({name}.png)")
            parts.append(f"*{section.caption}* ([SVG]({name}.svg))")
        parts.extend(section.paragraphs)
        for one in section.tables:
            parts.extend(part for part in (one.caption, markdown_table(one)) if part)
    return "\n\n".join(parts) + "\n"


def _html(title: str, lead: str, sections: dict[str, StudySection]) -> str:
    found = []
    for section in sections.values():
        html = ""
        if section.plot is not None:
            charts = "".join(map(figure, section.plot))
            html += paragraph(section.caption)
            html += f'<div class="pair">{charts}</div>' if len(section.plot) > 1 else charts
        html += "".join(paragraph(text) for text in section.paragraphs)
        for one in section.tables:
            html += paragraph(one.caption) + table(one.header, one.rows)
        found.append(Section(section.title, html))
    return page(title, lead, found, wide=True)
