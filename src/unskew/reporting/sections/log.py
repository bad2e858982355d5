"""What the log holds, what is wrong with it, and where its clicks are."""

from __future__ import annotations

from html import escape

from unskew.charts import Line, LineChart
from unskew.charts.figure import facts, figure
from unskew.log.picture import context_chart, ctr_chart
from unskew.reporting.findings import Findings
from unskew.reporting.page import Section, paragraph


def log_section(found: Findings) -> Section:
    """Sizes, problems, and what the log can tell."""
    seen = found.inspection
    rows = [
        ("source", seen.source),
        ("rows", f"{seen.rows:,}"),
        ("sessions", f"{seen.sessions:,}"),
        ("sessions without a click", f"{seen.sessions_without_clicks:,}"),
        ("queries", f"{seen.queries:,}"),
        ("documents", f"{seen.documents:,}"),
        ("seen at more than one position", f"{seen.documents_at_several_positions:,}"),
        ("without features", f"{seen.documents_without_features:,}"),
        ("features", f"{seen.features:,}"),
        ("clicks", f"{seen.clicks:,}"),
        ("CTR of all results shown", "–" if seen.ctr is None else f"{seen.ctr:.2%}"),
        ("distinct lists", f"{seen.pages:,}"),
        ("contexts", ", ".join(map(str, seen.contexts[:8])) or "none"),
    ]
    return Section("What the log holds", facts(rows) + _wrong(found))


def _wrong(found: Findings) -> str:
    """Problems, oddities, and what the log can and cannot tell."""
    seen = found.inspection
    notes = [
        _note(f"{one.kind.replace('_', ' ')} ({one.count:,}): {one.message}", "bad")
        for one in seen.problems
    ]
    if seen.left_out:
        notes.append(
            _note(f"{seen.left_out:,} sessions with problems are left out everywhere.", "bad")
        )
    notes += [
        _note(f"Odd but legal: {count:,} {name.replace('_', ' ')}.")
        for name, count in seen.oddities.items()
        if count
    ]
    notes += [_note(one[0].upper() + one[1:] + ".") for one in seen.notes]
    notes += [_note(f"Feature {one.column!r}: {one.message}", "bad") for one in seen.leaks]
    if found.facts is not None:
        mood = "plain" if found.facts.separable else "bad"
        notes += [_note(one[0].upper() + one[1:] + ".", mood) for one in found.facts.sentences]
    if found.sample.note:
        notes.append(_note(found.sample.note))
    fine = "" if seen.problems else paragraph("No session had to be left out.")
    return f"<h3>What is wrong with it, and what it can tell</h3>{fine}{''.join(notes)}"


def _note(text: str, mood: str = "") -> str:
    return f'<p class="note {mood}">{escape(text)}</p>'


def ctr_section(found: Findings) -> Section:
    """The CTR by position, of all sessions and of each context."""
    html = figure(ctr_chart(found.data))
    by_context = context_chart(found.data)
    if by_context is not None:
        html += figure(by_context)
    over_time = _over_time(found)
    if over_time is not None:
        html += figure(over_time)
    return Section("Clicks by position", html)


def _over_time(found: Findings) -> LineChart | None:
    """The CTR of every hour, day, week or month, if the log has times."""
    periods = found.inspection.over_time
    if len(periods) < 2:
        return None
    unit = periods[0].unit
    return LineChart(
        title=f"CTR by {unit}",
        caption="The share of all results shown that were clicked.",
        lines=[Line("all sessions", [one.ctr for one in periods])],
        x_label=unit,
        y_label="CTR",
        share=True,
        x_ticks={float(k): str(one.start) for k, one in enumerate(periods, start=1)},
    )
