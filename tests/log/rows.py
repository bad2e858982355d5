"""Random logs as rows, and the sessions they mean: what compression must give back."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from unskew import Impressions


class Row(NamedTuple):
    """One result shown in one session."""

    session: Any
    query: Any
    doc: Any
    position: int
    click: int
    weight: float = 1.0
    context: Any = None


def as_columns(rows: list[Row]) -> dict[str, list[Any]]:
    """Rows as named columns; weight and context only where some row has one."""
    columns = {name: [getattr(row, name) for row in rows] for name in Row._fields}
    if all(value == 1.0 for value in columns["weight"]):
        del columns["weight"]
    if all(value is None for value in columns["context"]):
        del columns["context"]
    return columns


def as_table(rows: list[Row]) -> pa.Table:
    """Rows as an Arrow table."""
    return pa.table(as_columns(rows))


def sessions_of(rows: list[Row]) -> Counter[Any]:
    """The multiset of sessions that rows mean, without their names."""
    by_session: dict[Any, list[Row]] = {}
    for row in rows:
        by_session.setdefault(row.session, []).append(row)
    counted: Counter[Any] = Counter()
    for shown in by_session.values():
        shown.sort(key=lambda row: row.position)
        clicks = [(row.position, row.click) for row in shown if row.click]
        counted[
            shown[0].query,
            tuple(row.doc for row in shown),
            tuple(row.position for row in shown),
            tuple(clicks),
            shown[0].context,
            shown[0].weight,
        ] += 1
    return counted


def sessions_in(data: Impressions) -> Counter[Any]:
    """The multiset of sessions that Impressions give back."""
    return Counter(
        (
            s.query,
            s.doc,
            s.position,
            tuple(zip(s.clicked, s.grade, strict=True)),
            s.context,
            s.weight,
        )
        for s in data.sessions()
    )


@st.composite
def logs(draw: Any, *, clicked: bool = True) -> list[Row]:
    """A valid log: few queries and documents, so that pages repeat and nearly repeat."""
    text_keys = draw(st.booleans())
    weighted, in_context = draw(st.booleans()), draw(st.booleans())
    rows: list[Row] = []
    for session in range(draw(st.integers(1, 25))):
        query = draw(st.integers(0, 2))
        docs = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True))
        gaps = draw(st.lists(st.integers(1, 2), min_size=len(docs), max_size=len(docs)))
        grades = draw(st.lists(st.integers(0, 3), min_size=len(docs), max_size=len(docs)))
        weight = draw(st.sampled_from([0.5, 1.0, 2.0])) if weighted else 1.0
        context = draw(st.sampled_from(["phone", "desk", None])) if in_context else None
        for doc, position, grade in zip(docs, np.cumsum(gaps), grades, strict=True):
            keys = (f"s{session}", f"q{query}", f"d{doc}") if text_keys else (session, query, doc)
            rows.append(Row(*keys, int(position), grade, weight, context))
    if clicked and not any(row.click for row in rows):
        rows[0] = rows[0]._replace(click=1)
    return rows
