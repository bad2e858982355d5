"""Bad logs get an error that names the file, the column, the row and the remedy."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from unskew import DataError, UsageError
from unskew.log.read import LogOptions, read_with_problems
from unskew.log.schema import Kind

GOOD: dict[str, list[Any]] = {
    "session": [1, 1, 1, 2, 2, 3],
    "query": ["a", "a", "a", "a", "a", "b"],
    "doc": [10, 11, 12, 10, 12, 30],
    "position": [1, 2, 3, 1, 2, 1],
    "click": [0, 1, 0, 1, 0, 0],
}


def changed(column: str, row: int, value: Any, **more: list[Any]) -> dict[str, list[Any]]:
    """The good log with one value changed, and perhaps more columns."""
    log = {name: list(values) for name, values in GOOD.items()} | more
    log[column][row] = value
    return log


def written(log: dict[str, list[Any]], folder: Path) -> Path:
    """The log as a Parquet file."""
    file = folder / "clicks.parquet"
    pq.write_table(pa.table(log), file)
    return file


TWICE = "occurs twice in a session"
NO_GRADE = "is neither 0 or 1 nor a grade"
WRONG_VALUES = [
    ("session", None, "is null", "null_session"),
    ("query", None, "is null", "null_query"),
    ("doc", None, "is null", "null_doc"),
    ("position", None, "is null", "null_position"),
    ("click", None, "is null", "null_click"),
    ("position", 0, "is below 1", "position_below_one"),
    ("position", -4, "is below 1", "position_below_one"),
    ("position", 2**40, "is above", "position_too_large"),
    ("position", 2, TWICE, "duplicate_position"),
    ("doc", 10, TWICE, "duplicate_doc"),
    ("query", "b", "changes within a session", "two_queries"),
    ("click", -1, NO_GRADE, "click_not_grade"),
    ("click", 99, NO_GRADE, "click_not_grade"),
]


@pytest.mark.parametrize(("column", "value", "message", "kind"), WRONG_VALUES)
def test_a_wrong_value(column: str, value: Any, message: str, kind: str, tmp_path: Path) -> None:
    """One wrong value is named with its file, row, session, column, value and remedy."""
    file = written(changed(column, 2, value), tmp_path)
    session = "" if column == "session" else "session 1, "
    place = rf"clicks\.parquet, row 3 \({session}{column} {value!r}\): column '{column}'"
    with pytest.raises(DataError, match=rf"{place} {message}(?s:.*)Remedy: "):
        unskew.read_log(file)
    found = read_with_problems(file, LogOptions())
    assert [problem.kind.name.lower() for problem in found.problems] == [kind]


def test_a_position_that_is_not_whole(tmp_path: Path) -> None:
    """A fractional position is not rounded."""
    log = GOOD | {"position": [1.0, 2.5, 3.0, 1.0, 2.0, 1.0]}
    with pytest.raises(
        DataError, match=r"row 2 \(session 1, position 2.5\).*is not a whole number"
    ):
        unskew.read_log(written(log, tmp_path))


@pytest.mark.parametrize(("value", "shown"), [(0.5, "0.5"), (float("nan"), "nan")])
def test_a_click_that_is_not_whole(value: float, shown: str, tmp_path: Path) -> None:
    """A fractional click is neither 0/1 nor a grade."""
    log = GOOD | {"click": [0.0, 1.0, value, 1.0, 0.0, 0.0]}
    with pytest.raises(DataError, match=rf"row 3 .*click {shown}\).*neither 0 or 1 nor a grade"):
        unskew.read_log(written(log, tmp_path))


def test_clicks_as_words(tmp_path: Path) -> None:
    """Text in the click column is named, not turned into a traceback."""
    log = GOOD | {"click": ["0", "1", "yes", "1", "0", "0"]}
    with pytest.raises(DataError, match=r"row 3 \(session 1, click 'yes'\)"):
        unskew.read_log(written(log, tmp_path))


def test_zero_based_positions_are_named(tmp_path: Path) -> None:
    """Positions from 0 are recognised as such, never shifted silently, and can be declared."""
    log = GOOD | {"position": [0, 1, 2, 0, 1, 0]}
    file = written(log, tmp_path)
    with pytest.raises(DataError, match=r"column 'position' is zero-based.*first_position=0"):
        unskew.read_log(file)
    data = unskew.read_log(file, first_position=0)
    assert data.equals(unskew.read_log(pa.table(GOOD)))
    with pytest.raises(UsageError, match="first_position must be 0 or 1, got 2"):
        unskew.read_log(file, first_position=2)


def test_a_misnamed_column(tmp_path: Path) -> None:
    """A missing column is named with its nearest neighbour and the option that names it."""
    log = {"Sessions" if name == "session" else name: values for name, values in GOOD.items()}
    with pytest.raises(
        DataError, match=r"no column 'session'; did you mean 'Sessions'\?.*session=.*--session "
    ):
        unskew.read_log(written(log, tmp_path))


def test_a_column_like_no_other(tmp_path: Path) -> None:
    """Without a similar name the sentence still ends before the columns are listed."""
    with pytest.raises(DataError, match=r"no column 'zzz'\. The columns are 'session', "):
        unskew.read_log(written(GOOD, tmp_path), session="zzz")


def test_a_column_with_two_roles(tmp_path: Path) -> None:
    """One column cannot be document and query at once, but a session may be its own query."""
    file = written(GOOD, tmp_path)
    with pytest.raises(DataError, match="'doc' is given as 'query' and as 'doc'"):
        unskew.read_log(file, query="doc")
    assert unskew.read_log(file, query="session", ignore=["query"]).n_queries == 3


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([1.0, 1.0, 2.0, 1.0, 1.0, 1.0], "two_weights", r"row 3 .*'weight' changes within"),
        ([1.0, 1.0, 1.0, -1.0, -1.0, 1.0], "weight_invalid", r"row 4 .*'weight' is not a weight"),
        ([1.0, 1.0, 1.0, 1.0, 1.0, None], "weight_invalid", r"row 6 .*'weight' is not a weight"),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1e400], "weight_invalid", r"row 6 .*'weight' is not a weight"),
    ],
)
def test_wrong_weights(values: list[float], kind: str, message: str, tmp_path: Path) -> None:
    """A weight is a finite number of 0 or more, the same in the whole session."""
    file = written(GOOD | {"weight": values}, tmp_path)
    with pytest.raises(DataError, match=message):
        unskew.read_log(file)
    assert read_with_problems(file, LogOptions()).problems[0].kind.name.lower() == kind


def test_two_contexts_in_a_session(tmp_path: Path) -> None:
    """A session has one context."""
    file = written(GOOD | {"context": ["phone", "phone", "desk", "desk", "desk", None]}, tmp_path)
    with pytest.raises(DataError, match=r"row 3 \(session 1, context 'desk'\).*changes within"):
        unskew.read_log(file)


def test_a_feature_that_is_text(tmp_path: Path) -> None:
    """Text is no feature; the error shows a value and both ways out."""
    file = written(GOOD | {"title": ["x", "y", "z", "x", "y", "z"]}, tmp_path)
    with pytest.raises(
        DataError,
        match=r"row 1: column 'title' holds text \('x'\).*ignore=\['title'\].*categorical=\['title'\]",
    ):
        unskew.read_log(file)
    assert unskew.read_log(file, ignore=["title"]).features.n_features == 0
    assert unskew.read_log(file, categorical=["title"]).features.categories == {
        "title": ("x", "y", "z")
    }


def test_a_feature_that_is_infinite(tmp_path: Path) -> None:
    """An infinite feature is named by column and row."""
    values = [1.0, 2.0, 3.0, 1.0, float("-inf"), 5.0]
    file = written(GOOD | {"fine": [1.0] * 6, "price": values}, tmp_path)
    with pytest.raises(
        DataError, match=r"row 5 \(session 2, price -inf\): column 'price' is infinite"
    ):
        unskew.read_log(file)


def test_features_missing_for_documents(tmp_path: Path) -> None:
    """Documents without a row in the features table are counted, with an example."""
    features = pa.table({"query": ["a", "a"], "doc": [10, 11], "f": [0.1, 0.2]})
    file = written(GOOD, tmp_path)
    with pytest.raises(
        DataError, match=r"\(query 'a', doc 12\): a document of the log has no row.*2 documents"
    ):
        unskew.read_log(file, features=features)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query": "a", "doc": 10, "f": 9.0}, r"row 5 \(query 'a', doc 10\).*two rows of features"),
        ({"query": None, "doc": 10, "f": 9.0}, r"row 5 .*no query or no doc"),
        ({"query": "a", "doc": 13, "f": float("inf")}, None),
        ({"query": "b", "doc": 30, "f": float("inf")}, r"'f' is infinite"),
    ],
)
def test_a_wrong_features_table(row: dict[str, Any], message: str | None) -> None:
    """Contradicting, keyless and infinite rows are errors; those of unknown documents are not."""
    rows = [{"query": "a", "doc": doc, "f": doc / 10} for doc in (10, 11, 12)]
    last = [] if row["doc"] == 30 else [{"query": "b", "doc": 30, "f": 3.0}]
    features = pa.Table.from_pylist([*rows, *last, row])
    if message is None:
        assert unskew.read_log(pa.table(GOOD), features=features).features.n_features == 1
        return
    with pytest.raises(DataError, match=message):
        unskew.read_log(pa.table(GOOD), features=features)


def test_an_identical_repeated_features_row_is_fine() -> None:
    """The same row twice says nothing new."""
    rows = [("a", 10, 1.0), ("a", 11, 2.0), ("a", 12, None), ("b", 30, 4.0), ("a", 12, None)]
    features = pa.Table.from_pylist([{"query": q, "doc": d, "f": f} for q, d, f in rows])
    assert len(unskew.read_log(pa.table(GOOD), features=features).documents) == 4


def test_an_empty_log() -> None:
    """No rows at all."""
    with pytest.raises(DataError, match="there is not a single row"):
        unskew.read_log(pa.table(GOOD).slice(0, 0))


def test_a_log_without_a_click() -> None:
    """Nothing can be learned from a log in which nothing was clicked."""
    with pytest.raises(DataError, match="column 'click' holds not a single click"):
        unskew.read_log(pa.table(GOOD | {"click": [0] * 6}))


def test_a_truncated_parquet_file(tmp_path: Path) -> None:
    """A file cut short is named among many."""
    whole = written(GOOD, tmp_path)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"broken\.parquet: this is not a whole Parquet file"):
        unskew.read_log([whole, broken])


def test_damaged_pages_of_a_parquet_file(tmp_path: Path) -> None:
    """A file whose end is fine and whose middle is not."""
    rows = {name: values * 20_000 for name, values in GOOD.items()}
    rows["session"] = [s + 10 * (k // 6) for k, s in enumerate(rows["session"])]
    file = written(rows, tmp_path)
    content = bytearray(file.read_bytes())
    content[1_000:9_000] = b"\xff" * 8_000
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"clicks\.parquet"):
        unskew.read_log(file)


@pytest.mark.parametrize("line", ["3,b,31,2", "3,b,31,2,0,7", "3,b,31,2,0,", '3,"b,b",31,2,0,'])
def test_a_ragged_csv(line: str, tmp_path: Path) -> None:
    """A line with too few or too many fields is named by its number."""
    file = tmp_path / "clicks.csv"
    rows = zip(*GOOD.values(), strict=True)
    lines = [",".join(GOOD), *(",".join(map(str, row)) for row in rows), line]
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"clicks\.csv, line 8 .*does not fit the header"):
        unskew.read_log(file)


def test_delimiters_in_quotes_and_empty_ends(tmp_path: Path) -> None:
    """Lines that end with an empty field, and fields that hold delimiters and lines, are no mistakes."""
    file = tmp_path / "clicks.csv"
    head = "session,query,doc,position,click,x\n"
    file.write_text(
        head + '1,"a,,,,,,",b,1,1,\n2,"a\n,,,,,,,",c,1,1,\n3,d,"",1,0,\n'.replace('""', "e")
    )
    data = unskew.read_log(file)
    assert data.queries.tolist() == ["a\n,,,,,,,", "a,,,,,,", "d"]


def test_a_truncated_gzip_csv(tmp_path: Path) -> None:
    """A compressed file cut short is an error that names it."""
    file = tmp_path / "clicks.csv.gz"
    lines = [",".join(GOOD), *(f"{s},q,{s},1,1" for s in range(20_000))]
    file.write_bytes(gzip.compress("\n".join(lines).encode())[:-2_000])
    with pytest.raises(DataError, match=r"clicks\.csv\.gz"):
        unskew.read_log(file)


def test_a_csv_header_with_a_name_twice(tmp_path: Path) -> None:
    """Two columns of one name cannot be told apart."""
    file = tmp_path / "clicks.csv"
    file.write_text("session,query,doc,position,click,click\n1,a,b,1,0,1\n")
    with pytest.raises(DataError, match=r"clicks\.csv, header: two columns .*'click' and 'click'"):
        unskew.read_log(file)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.parquet", "there is no such file"),
        ("no/folder/clicks.csv", "there is no folder 'no/folder' either"),
        ("*.parquet", "no file matches"),
        (".", r"the folder holds no file that ends in \.parquet"),
    ],
)
def test_a_path_that_is_not_there(
    path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong path says so."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        unskew.read_log(path)


def test_an_unknown_kind_of_file(tmp_path: Path) -> None:
    """The kind of file is told by its ending; an unknown one lists those known."""
    file = tmp_path / "clicks.xlsx"
    file.write_text("")
    with pytest.raises(UsageError, match=r"known endings are .*\.parquet"):
        unskew.read_log(file)


def test_an_object_that_is_no_table() -> None:
    """A list of numbers is no table."""
    with pytest.raises(UsageError, match="the log must be a path, an Arrow table"):
        unskew.read_log([1, 2, 3])


def test_every_problem_is_listed() -> None:
    """Examining lists all kinds with their counts and keeps the sessions that are fine."""
    log = {name: list(values) for name, values in GOOD.items()}
    bad = [(4, "a", 1, 1, 7.5), (5, "a", 1, -1, 0), (5, "a", 2, -2, 0), (6, None, 3, 1, 0)]
    for row in bad:
        for name, value in zip(log, row, strict=True):
            log[name].append(value)
    found = read_with_problems(pa.table(log), LogOptions())
    counts = {problem.kind.name: problem.count for problem in found.problems}
    assert counts == {"CLICK_NOT_GRADE": 1, "POSITION_BELOW_ONE": 2, "NULL_QUERY": 1}
    assert (found.n_sessions, found.n_left_out) == (6, 3)
    assert found.impressions is not None
    assert found.impressions.n_sessions == 3


def test_every_kind_has_a_rule() -> None:
    """No kind of problem is without its sentence and remedy."""
    assert [int(kind) for kind in Kind] == list(range(len(Kind)))
    assert all(kind.unit and kind.wrong and kind.remedy for kind in Kind)


def test_odd_but_legal() -> None:
    """Gaps, sessions of one document and all-clicked sessions are read without complaint."""
    log = {
        "session": [1, 1, 2, 3, 3], "query": ["a"] * 5, "doc": [1, 2, 1, 1, 2],
        "position": [3, 7, 1, 1, 2], "click": [0, 1, 1, 1, 1],
    }  # fmt: skip
    data = unskew.read_log(pa.table(log))
    assert (data.n_sessions, data.max_position) == (3, 7)


def test_wrong_settings() -> None:
    """Options that DuckDB refuses, or texts where lists are needed, are errors of the call."""
    with pytest.raises(UsageError, match="DuckDB refuses these settings"):
        unskew.read_log(pa.table(GOOD), memory_limit="lots")
    with pytest.raises(UsageError, match="ignore must be a list of columns"):
        unskew.read_log(pa.table(GOOD), ignore="title")
    with pytest.raises(DataError, match=r"no column 'titel'.*with ignore=.*--ignore "):
        unskew.read_log(pa.table(GOOD), ignore=["titel"])
    features = pa.table({"query": ["a", "a", "a", "b"], "doc": [10, 11, 12, 30], "f": [1, 2, 3, 4]})
    log = pa.table(GOOD | {"title": ["x"] * 6})
    assert unskew.read_log(log, features=features, ignore=["title"]).features.names == ("f",)
    with pytest.raises(DataError, match=r"no column 'titel'.*with ignore=.*--ignore "):
        unskew.read_log(log, features=features, ignore=["titel"])
    with pytest.raises(UsageError, match="'click' has a role"):
        unskew.read_log(pa.table(GOOD), features=["click"])
