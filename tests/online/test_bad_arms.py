"""Wrong arms: every kind of wrong row, column, arm and call is an error that says what to do."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from unskew.errors import DataError, UsageError
from unskew.online import read_ab

GOOD: dict[str, list[Any]] = {
    "session": [1, 1, 2, 2], "position": [1, 2, 1, 2], "click": [1, 0, 0, 1],
    "user": ["a", "a", "b", "b"], "time": [1, 1, 2, 2], "segment": ["x", "x", "y", "y"],
    "query": ["q", "q", "q", "q"], "weight": [1.0, 1.0, 2.0, 2.0], "money": [0.0, 1.0, 0.0, 1.0],
}  # fmt: skip
EVERYTHING: dict[str, Any] = {
    "user": "user", "time": "time", "segment": "segment", "by": "query", "measures": ["money"],
}  # fmt: skip


def _other_users(log: dict[str, Any]) -> dict[str, Any]:
    return log | {"user": [None if u is None else f"t{u}" for u in log["user"]]}


BAD: dict[str, tuple[dict[str, list[Any]], str]] = {
    "null session": ({"session": [1, 1, None, 2]}, "row 3: column 'session' is null"),
    "null position": ({"position": [1, 2, 1, None]}, "row 4: column 'position' is null"),
    "null click": ({"click": [None, 0, 0, 1]}, "row 1: column 'click' is null"),
    "null user": ({"user": ["a", None, "b", "b"]}, "row 2: column 'user' is null"),
    "null time": ({"time": [1, 1, None, 2]}, "row 3: column 'time' is null"),
    "null segment": ({"segment": ["x", "x", None, "y"]}, "row 3: column 'segment' is null"),
    "null query": ({"query": ["q", None, "q", "q"]}, "row 2: column 'query' is null"),
    "fraction": ({"position": [1, 1.5, 1, 2]}, r"row 2: .*not a place on the page.*\(here 1.5\)"),
    "negative": ({"position": [1, -2, 1, 2]}, r"row 2: .*not a place .*\(here -2\)"),
    "text position": ({"position": ["1", "two", "1", "2"]}, r"row 2: .*not a place.*'two'"),
    "click of text": ({"click": ["yes", "0", "0", "1"]}, r"row 1: .*neither 0 or 1 nor a grade"),
    "negative click": ({"click": [1, 0, -1, 1]}, r"row 3: .*neither 0 or 1 nor a grade.*-1"),
    "no click": ({"click": [0, 0, 0, 0]}, "column 'click' holds not a single click"),
    "weight": ({"weight": [1.0, 1.0, -2.0, -2.0]}, r"row 3: column 'weight' is not a weight"),
    "infinite": ({"money": [0.0, 1.0, float("inf"), 0.0]}, r"row 3: .*not a finite number"),
    "time of text": ({"time": ["2024-01-01", "2024-01-01", "x", "x"]}, r"row 3: .*is no time"),
    "two users": ({"user": ["a", "c", "b", "b"]}, "session '1': column 'user' has two values"),
    "two segments": ({"segment": ["x", "x", "x", "y"]}, "session '2': column 'segment' has two"),
    "two queries": ({"query": ["q", "r", "q", "q"]}, "session '1': column 'query' has two"),
    "two weights": ({"weight": [1.0, 2.0, 2.0, 2.0]}, "session '1': column 'weight' has two"),
    "twice": ({"position": [1, 1, 1, 2]}, "session '1': column 'position' has the same place twice"),
    "twice far down": ({"position": [99, 99, 1, 2]}, "session '1': column 'position' has the same"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("which", [0, 1])
def test_wrong_rows(case: str, which: int) -> None:
    """Every kind of wrong row is an error that names the arm, the row, the column and the remedy."""
    change, message = BAD[case]
    logs = [GOOD, _other_users(GOOD)]
    logs[which] = logs[which] | change
    if which and "user" in change:
        logs[which] = _other_users(logs[which])
    with pytest.raises(DataError, match=message) as found:
        read_ab(*logs, **EVERYTHING)
    assert ("control", "treatment")[which] in str(found.value)
    assert "Remedy" in str(found.value)


def test_arms_with_different_columns() -> None:
    """A column that one arm lacks is named with the arm; weights and dates must be in both."""
    for column in ("session", "position", "click", "user", "time", "segment", "query", "money"):
        lacking = {k: v for k, v in _other_users(GOOD).items() if k != column}
        with pytest.raises(DataError, match=rf"treatment .*there is no column '{column}'"):
            read_ab(GOOD, lacking, **EVERYTHING)
    light = {k: v for k, v in GOOD.items() if k != "weight"}
    with pytest.raises(
        DataError, match=r"the arms differ: control .* has a weight column, treatment"
    ):
        read_ab(GOOD, light)
    dated = GOOD | {"time": ["2024-01-01"] * 4}
    with pytest.raises(DataError, match=r"the arms differ: control .* has calendar dates"):
        read_ab(dated, GOOD, time="time")


def test_an_empty_arm() -> None:
    """An arm without a row is an error that names it."""
    empty = pa.table(GOOD).slice(0, 0)
    with pytest.raises(DataError, match=r"treatment .*: there is not a single row"):
        read_ab(GOOD, empty)
    with pytest.raises(DataError, match=r"control .*: there is not a single row"):
        read_ab(empty, GOOD)


def test_a_user_in_both_arms() -> None:
    """A user who saw both rankers is an error with an example and a count."""
    with pytest.raises(DataError, match=r"user 'a' is in both arms \(2 users in all\)"):
        read_ab(GOOD, GOOD, user="user")


def test_wrong_calls() -> None:
    """Parameters that make no sense are refused by name."""
    calls: list[tuple[dict[str, Any], str]] = [
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"share": 0.0}, "share must lie between 0 and 1"),
        ({"sequential": True, "expected": 0.0}, "expected must be a relative change above 0"),
        ({"by": "week"}, "by must be 'day', 'segment' or 'query', got 'week'"),
        ({"depths": [0]}, "the depth of a first-click ratio must be 1 or more"),
        ({"pre_control": GOOD}, "pre_control and pre_treatment go together"),
        ({"pre_control": GOOD, "pre_treatment": GOOD}, "name the user column with user="),
        ({"measures": ["clicks"]}, "'clicks' is computed from the clicks"),
    ]
    for options, message in calls:
        with pytest.raises(UsageError, match=message):
            read_ab(GOOD, GOOD, **options)


def test_one_session_each() -> None:
    """Two sessions in all give values and no p-value, and no warning."""
    log = {"session": [1], "position": [1], "click": [1]}
    found = read_ab(log, log).measures["click@1"]
    assert (found.control, found.p, found.interval) == (1.0, None, None)


def test_names_are_text() -> None:
    """Columns with quotes and SQL in their names are columns."""
    odd = {'s"': [1, 2], "p'; --": [1, 1], "select": [1, 0], 'u"u': ["a", "b"]}
    other = odd | {'u"u': ["c", "d"]}
    found = read_ab(
        odd, other, session='s"', position="p'; --", click="select", user='u"u', measures=["select"]
    )
    assert found.measures["select"].control == 0.5
