"""Queries won and lost against the logged order, with examples and why results moved."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from unskew.array_types import IntArray
from unskew.charts import Bar, BarChart
from unskew.charts.chart import Table
from unskew.charts.figure import figure, html_table
from unskew.reporting.explaining import contributions
from unskew.reporting.findings import Findings
from unskew.reporting.page import Section, paragraph, table
from unskew.reporting.reranking import QueryChanges, Reranked

# Examples of each kind, and how much of a list they show.
EXAMPLES, DEPTH = 3, 8
# The features that explain a move.
FEATURES = 6


def queries_section(found: Findings, best: str) -> Section:
    """How many queries each model wins and loses, how far, and examples of the best model."""
    text = paragraph(
        "Every list of the log in the order of a model, judged by the clicks that it would be expected "
        "to get: examination by position times how attractive its clicks show each result to be. A "
        "query is won or lost if the change is more than twice its standard error; queries with few "
        "clicks mostly cannot be told."
    )
    changes = {name: order.changes() for name, order in found.reranked.items()}
    rows = [[name, *_counted(one)] for name, one in changes.items()]
    header = [
        "model",
        "won",
        "lost",
        "cannot be told",
        "same order",
        "sessions won",
        "sessions lost",
    ]
    html = text + figure(_outcomes(changes)) + table(header, rows)
    html += figure(_spread(changes[best], best))
    won, lost = _examples(found, found.reranked[best], changes[best], best)
    html += f"<h3>Won by {escape(best)}</h3>" + (won or paragraph("No query is clearly won."))
    html += f"<h3>Lost by {escape(best)}</h3>" + (lost or paragraph("No query is clearly lost."))
    return Section("Queries won and lost", html)


def _counted(one: QueryChanges) -> list[str]:
    outcome, seen = one.outcome, one.sessions > 0
    sessions = max(float(one.sessions.sum()), 1.0)
    return [
        f"{int((outcome == 1).sum()):,}",
        f"{int((outcome == -1).sum()):,}",
        f"{int(((outcome == 0) & one.moved & seen).sum()):,}",
        f"{int((~one.moved & seen).sum()):,}",
        f"{one.sessions[outcome == 1].sum() / sessions:.0%}",
        f"{one.sessions[outcome == -1].sum() / sessions:.0%}",
    ]


def _outcomes(changes: dict[str, QueryChanges]) -> BarChart:
    bars = []
    for name, one in changes.items():
        n = max(int((one.sessions > 0).sum()), 1)
        bars.append(Bar(name, [float((one.outcome == k).sum()) / n for k in (1, -1)]))
    return BarChart(
        title="Queries won and lost against the logged order",
        caption="The share of the queries that are clearly won or lost.",
        bars=bars, groups=["won", "lost"], looks=[2, 1], x_label="share of the queries", share=True,
    )  # fmt: skip


def _spread(one: QueryChanges, name: str) -> BarChart:
    """How the change in expected clicks is spread over the sessions."""
    edges = np.array([-np.inf, -0.2, -0.1, -0.05, -0.01, 0.01, 0.05, 0.1, 0.2, np.inf])
    relative = one.change / np.maximum(one.before, 1e-12)
    counts, _ = np.histogram(relative, bins=edges, weights=one.sessions)
    names = [
        "more than 20% worse", "10 to 20% worse", "5 to 10% worse", "1 to 5% worse", "within 1%",
        "1 to 5% better", "5 to 10% better", "10 to 20% better", "more than 20% better",
    ]  # fmt: skip
    total = max(float(counts.sum()), 1.0)
    return BarChart(
        title=f"How far {name} changes the sessions",
        caption="Sessions by the change in expected clicks of their query, estimated: noise widens it.",
        bars=[Bar(label, [float(c) / total]) for label, c in zip(names, counts, strict=True)],
        groups=["share"], x_label="share of the sessions", share=True,
    )  # fmt: skip


def _examples(found: Findings, order: Reranked, one: QueryChanges, best: str) -> tuple[str, str]:
    """The queries with the most clicks won and lost, with their lists."""
    weight = one.change * one.sessions
    clear = one.outcome
    won = [int(q) for q in np.argsort(-weight, kind="stable") if clear[q] == 1][:EXAMPLES]
    lost = [int(q) for q in np.argsort(weight, kind="stable") if clear[q] == -1][:EXAMPLES]
    shown = ["".join(_example(found, order, one, q, best) for q in part) for part in (won, lost)]
    return shown[0], shown[1]


@dataclass(frozen=True)
class _Move:
    """A result of a page that moved, and the one that stood, or now stands, in the place it has left."""

    row: int
    other: int
    before: int
    after: int

    @property
    def word(self) -> str:
        """What the result did."""
        return "rose" if self.after < self.before else "fell"


def _example(found: Findings, order: Reranked, one: QueryChanges, query: int, best: str) -> str:
    lists = found.lists
    data, pages = lists.data, lists.data.pages
    mine = np.flatnonzero(pages.query == query)
    shown = lists.shown[pages.offsets[mine]]
    page = int(mine[np.argmax(shown)])
    entry = np.arange(pages.offsets[page], pages.offsets[page + 1])
    before = entry[np.argsort(lists.place[entry])]
    after = entry[np.argsort(order.place[entry])]
    rows = [
        [str(k + 1), _cell(found, order, before[k], False), _cell(found, order, after[k], True)]
        for k in range(min(DEPTH, len(entry)))
    ]
    header = ["", "as logged", f"by {best}"]
    relative = one.change[query] / max(one.before[query], 1e-12)
    head = f"{data.queries[query]}: {relative:+.0%} expected clicks"
    small = (
        f"{one.sessions[query]:,.0f} sessions; its list most often shown, {shown.max():,.0f} times. In "
        "brackets how attractive the clicks show a result to be, from 0 to 1."
    )
    return (
        f'<div class="example"><h4>{escape(head)}</h4>{paragraph(small)}'
        f'<div class="pair">{html_table(Table(header, rows), numbers=False)}'
        f"{_why(found, order, entry, best, won=bool(one.change[query] > 0))}</div></div>"
    )


def _cell(found: Findings, order: Reranked, entry: int, moved: bool) -> str:
    lists = found.lists
    doc = lists.data.documents.doc[lists.data.pages.document[entry]]
    was, now = int(lists.place[entry]), int(order.place[entry])
    arrow = ""
    if moved and was != now:
        arrow = f" ▲ from {was}" if was > now else f" ▼ from {was}"
    return f"{doc}{arrow}\n({lists.attraction[entry]:.2f})"


def _move(order: Reranked, entry: IntArray, *, won: bool) -> _Move | None:
    """The move that does most for the expected clicks of a page, or most against them.

    A result that rose is told apart from the one whose place it took, one that fell from the one that
    took its place.
    """
    lists = order.lists
    gained = (order.theta[entry] - lists.theta[entry]) * lists.attraction[entry]
    best = entry[np.argmax(gained if won else -gained)]
    before, after = int(lists.place[best]), int(order.place[best])
    if before == after:
        return None
    rose = after < before
    places, place = (lists.place, after) if rose else (order.place, before)
    other = entry[np.flatnonzero(places[entry] == place)[0]]
    document = lists.data.pages.document
    return _Move(int(document[best]), int(document[other]), before, after)


def _why(found: Findings, order: Reranked, entry: IntArray, best: str, *, won: bool) -> str:
    """Which features put a result above, or below, the one that it changed places with."""
    move = _move(order, entry, won=won)
    if move is None:
        return ""
    model, data = found.models[best], found.lists.data
    parts = contributions(model, data.features, np.array([move.row, move.other]))
    top = np.argsort(-np.abs(parts), kind="stable")[:FEATURES]
    top = top[np.abs(parts[top]) > 0]
    if not len(top):
        return ""
    names, docs = model.feature_names_, data.documents.doc
    rival = "whose place it takes" if move.word == "rose" else "which takes its place"
    chart = BarChart(
        title=f"Why {docs[move.row]} {move.word} from {move.before} to {move.after}",
        caption=f"What each feature adds to its score more than to that of {docs[move.other]}, {rival}. "
        "The numbers have the values of both.",
        bars=[Bar(names[k], [float(parts[k])], _values(found, move, names[k])) for k in top],
        groups=["difference"], x_label="difference in score",
    )  # fmt: skip
    return figure(chart)


def _values(found: Findings, move: _Move, name: str) -> str:
    """The values of a feature for the two results, if the log has it under its name."""
    features = found.lists.data.features
    if name not in features.names or name in features.categories:
        return ""
    column = features.values[:, features.names.index(name)]
    return f"{column[move.row]:.3g} against {column[move.other]:.3g}"
