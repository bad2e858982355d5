"""What inspection says about a log."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from rows import Row, as_table

import unskew
from unskew.log.inspection import inspect_impressions, inspect_log, wilson_interval
from unskew.log.read import LogOptions
from unskew.log.read_ahead import read_ahead

ROWS = [
    Row(1, "a", 10, 1, 0), Row(1, "a", 11, 2, 1),
    Row(2, "a", 11, 1, 2), Row(2, "a", 10, 4, 0),
    Row(3, "b", 12, 1, 1),
    Row(4, "b", 12, 1, 0),
]  # fmt: skip


def test_numbers_by_hand() -> None:
    """A log small enough to count on paper."""
    found = inspect_log(as_table(ROWS), LogOptions())
    assert (found.rows, found.sessions, found.queries, found.documents) == (6, 4, 2, 3)
    assert (found.pages, found.patterns, found.clicks, found.highest_grade) == (3, 4, 3, 2)
    assert (found.sessions_without_clicks, found.documents_at_several_positions) == (1, 2)
    assert found.ctr == pytest.approx(3 / 6)
    assert found.times_smaller == pytest.approx(6 / (3 + 5 + 4))
    assert found.oddities == {
        "sessions_with_gaps_in_positions": 1,
        "sessions_of_one_document": 2,
        "sessions_all_clicked": 1,
        "sessions_of_weight_zero": 0,
    }
    shown = [(at.position, at.impressions, at.clicks) for at in found.positions]
    assert shown == [(1, 4, 2), (2, 1, 1), (4, 1, 0)]
    assert found.problems == []


def test_versions_are_counted() -> None:
    """A document with changing features is one document with several versions."""
    table = as_table(ROWS).append_column("x", pa.array([1.0, 2.0, 3.0, 1.0, 5.0, 5.0]))
    found = inspect_log(table, LogOptions())
    assert (found.documents, found.versions, found.features) == (3, 4, 1)
    assert found.documents_at_several_positions == 2


def test_documents_without_features() -> None:
    """Documents that the features table lacks are counted, and named as a problem."""
    features = pa.table({"query": ["a", "a"], "doc": [10, 11], "x": [1.0, 2.0]})
    found = inspect_log(as_table(ROWS), LogOptions(features=features))
    assert found.documents_without_features == 1
    assert [problem.kind for problem in found.problems] == ["missing_features"]


def test_a_log_of_nothing_but_problems() -> None:
    """Where no session is valid, the numbers are zero and the problems are listed."""
    table = as_table([row._replace(position=row.position - 1) for row in ROWS])
    found = inspect_log(table, LogOptions())
    assert (found.sessions, found.left_out, found.ctr) == (0, 4, None)
    assert [(problem.kind, problem.count) for problem in found.problems] == [("zero_based", 4)]


def test_a_mistaken_zero_is_not_zero_based() -> None:
    """One position 0 among many logs from 1 is a mistake in that row."""
    rows = [*ROWS, Row(5, "b", 12, 0, 0)]
    found = inspect_log(as_table(rows), LogOptions())
    assert [problem.kind for problem in found.problems] == ["position_below_one"]


def test_saved_impressions_are_inspected_alike() -> None:
    """Impressions say about themselves what their log says."""
    expected = inspect_log(as_table(ROWS), LogOptions())
    found = inspect_impressions(unskew.read_log(as_table(ROWS)), expected.source)
    assert found == expected


def test_weights_do_not_change_counts() -> None:
    """CTR counts sessions, whatever their weight."""
    weighted = [row._replace(weight=2.5) for row in ROWS]
    assert (
        inspect_log(as_table(weighted), LogOptions()).positions
        == inspect_log(as_table(ROWS), LogOptions()).positions
    )


def test_wilson_interval() -> None:
    """Known values: 0 of 10 gives an upper end of 0.2775, and 5 of 10 is symmetric."""
    low, high = wilson_interval(np.array([0.0, 5.0]), np.array([10.0, 10.0]))
    assert low[0] == 0
    assert high[0] == pytest.approx(0.27753, abs=1e-5)
    assert low[1] + high[1] == pytest.approx(1.0)


def test_reading_ahead_keeps_order_and_errors() -> None:
    """Items come in order, an error comes in its place, and leaving early ends the thread."""

    def source():  # type: ignore[no-untyped-def]
        yield from range(10)
        raise ValueError("the end")

    seen = []
    with pytest.raises(ValueError, match="the end"):  # noqa: PT012
        for item in read_ahead(source(), depth=2):
            seen.append(item)  # noqa: PERF402
    assert seen == list(range(10))
    items = read_ahead(iter(range(1000)), depth=2)
    assert next(items) == 0
    items.close()  # type: ignore[attr-defined]


def test_inspecting_loads_no_model_library() -> None:
    """What reads a log does not import the libraries that only training or labels need."""
    listing = "import sys, unskew.log.inspection; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", listing], check=True, capture_output=True, text=True
    ).stdout.split()
    assert "numba" in loaded
    assert not {"lightgbm", "sklearn", "scipy.sparse", "scipy.stats"} & set(loaded)
