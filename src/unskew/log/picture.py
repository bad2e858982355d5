"""Impressions as pictures: the CTR by position, of the whole log or of each context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unskew.charts import Line, LineChart
from unskew.charts.figure import facts, figure, wrapped
from unskew.log.inspection import clicks_by_position

if TYPE_CHECKING:
    from unskew.log.impressions import Impressions

# The most positions and contexts that a chart shows.
MOST_POSITIONS, MOST_CONTEXTS = 50, 6


def ctr_line(data: Impressions, name: str) -> Line:
    """The CTR at every position of a log, with 95% intervals."""
    found = clicks_by_position(data)[:MOST_POSITIONS]
    return Line(
        name,
        [one.ctr for one in found],
        x=[float(one.position) for one in found],
        low=[one.low for one in found],
        high=[one.high for one in found],
    )


def ctr_chart(data: Impressions) -> LineChart:
    """The CTR by position of the whole log."""
    more = f" The first {MOST_POSITIONS} positions." if data.max_position > MOST_POSITIONS else ""
    return LineChart(
        title="CTR by position",
        caption="The share of results shown at a position that were clicked, with 95% intervals "
        f"(Wilson).{more} It mixes how much a position is looked at with what stood there.",
        lines=[ctr_line(data, "all sessions")],
        x_label="position",
        y_label="CTR",
        share=True,
    )


def context_chart(data: Impressions) -> LineChart | None:
    """The CTR by position of each context, the most frequent first; None if there are not two."""
    context = data.patterns.context
    known = context >= 0
    sessions = np.bincount(
        context[known], weights=data.patterns.count[known], minlength=len(data.contexts)
    )
    order = [int(k) for k in np.argsort(-sessions, kind="stable") if sessions[k] > 0]
    if len(order) < 2:
        return None
    shown = order[:MOST_CONTEXTS]
    left = len(order) - len(shown)
    lines = [
        ctr_line(
            data.take_patterns(np.flatnonzero(context == k)),
            f"{data.contexts[k]} ({sessions[k]:,.0f} sessions)",
        )
        for k in shown
    ]
    more = f" {left} less frequent contexts are not shown." if left else ""
    return LineChart(
        title="CTR by position and context",
        caption=f"With 95% intervals (Wilson).{more}",
        lines=lines,
        x_label="position",
        y_label="CTR",
        share=True,
    )


def impressions_html(data: Impressions) -> str:
    """What a notebook shows of Impressions."""
    rows = [
        ("sessions", f"{data.n_sessions:,}"),
        ("queries", f"{data.n_queries:,}"),
        ("documents", f"{data.n_documents:,}"),
        ("clicks", f"{data.n_clicks:,}"),
        ("pages", f"{data.n_pages:,}"),
        ("patterns", f"{data.n_patterns:,}"),
        ("features", f"{data.features.n_features:,}"),
        ("contexts", ", ".join(map(str, data.contexts[:8].tolist())) or "none"),
    ]
    return wrapped(facts(rows) + figure(ctr_chart(data)))
