"""Several files are one table: columns by name, types without loss, and never a file too many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from unskew import DataError, UsageError
from unskew.log.sources.matching import NOTHING, wider

LOG: dict[str, Any] = {
    "session": [1, 1, 2, 2],
    "query": ["a", "a", "a", "a"],
    "doc": [10, 11, 10, 11],
    "position": [1, 2, 1, 2],
    "click": [1, 0, 0, 1],
    "x0": [0.5, 0.25, 0.5, 0.25],
    "x1": [5.0, 6.0, 5.0, 6.0],
}
LATER: dict[str, Any] = {**LOG, "session": [3, 3, 4, 4]}


def as_csv(columns: dict[str, Any], delimiter: str = ",") -> str:
    """The columns as CSV text."""
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


def parts(folder: Path, *tables: dict[str, Any]) -> list[Path]:
    """A Parquet file of each table."""
    files = [folder / f"part-{k}.parquet" for k in range(len(tables))]
    for file, table in zip(files, tables, strict=True):
        pq.write_table(pa.table(table), file)
    return files


def texts(folder: Path, *contents: str) -> list[Path]:
    """A CSV file of each text."""
    files = [folder / f"part-{k}.csv" for k in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_text(content)
    return files


def whole() -> unskew.Impressions:
    """Both halves of the log, read as one table."""
    return unskew.read_log(pa.table({name: LOG[name] + LATER[name] for name in LOG}))


def backwards(columns: dict[str, Any]) -> dict[str, Any]:
    """The same columns in the opposite order."""
    return dict(reversed(columns.items()))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_columns_are_matched_by_name(delimiter: str, tmp_path: Path) -> None:
    """A second CSV file with its columns in another order, or another delimiter, is read by name."""
    files = texts(tmp_path, as_csv(LOG), as_csv(backwards(LATER), delimiter))
    assert unskew.read_log(files).equals(whole())


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({**LATER, "x1": None, "y1": LATER["x1"]}, "it lacks 'x1' and has 'y1'"),
        ({**LATER, "x1": None}, r"it lacks 'x1'\."),
        ({**LATER, "x1": None, "X1": LATER["x1"]}, "it lacks 'x1' and has 'X1'"),
        ({**LATER, "zz": LATER["x1"]}, r"it has 'zz'\."),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_other_columns_are_refused(
    second: dict[str, Any], message: str, kind: str, tmp_path: Path
) -> None:
    """A file that names its columns otherwise is refused by its name, with what it lacks."""
    second = {name: values for name, values in second.items() if values is not None}
    files = (
        parts(tmp_path, LOG, second)
        if kind == "parquet"
        else texts(tmp_path, as_csv(LOG), as_csv(second))
    )
    place = rf"part-1\.{kind}: its columns are not those of .*part-0\.{kind}: "
    with pytest.raises(DataError, match=place + message):
        unskew.read_log(files)


def test_a_csv_file_without_a_header_is_refused(tmp_path: Path) -> None:
    """The first row of a file without a header is not taken for one."""
    files = texts(tmp_path, as_csv(LOG), as_csv(LATER).partition("\n")[2])
    with pytest.raises(DataError, match=r"part-1\.csv: .*lacks 'session', .*a header line in each"):
        unskew.read_log(files)


def test_a_header_name_over_two_lines(tmp_path: Path) -> None:
    """A quoted name with a line break in it is one name."""
    text = as_csv(LOG).replace("x0", '"x\n0"', 1)
    assert unskew.read_log(texts(tmp_path, text)).features.names == ("x\n0", "x1")


@pytest.mark.parametrize(
    ("column", "values", "value"),
    [("click", [0.6, 0.0, 0.0, 1.0], "click 0.6"), ("position", [1.4, 2, 1, 2], "position 1.4")],
)
def test_later_values_are_not_rounded(
    column: str, values: list[float], value: str, tmp_path: Path
) -> None:
    """A number that is not whole is found in the file that has it, whatever type came first."""
    with pytest.raises(DataError, match=rf"part-1\.parquet, row 1 \(session 3, {value}\)"):
        unskew.read_log(parts(tmp_path, LOG, {**LATER, column: values}))


@pytest.mark.parametrize("turned", [False, True])
def test_numbers_are_widened_exactly(turned: bool, tmp_path: Path) -> None:
    """Whole numbers in one file and fractions in another: every feature keeps its value."""
    tables = [
        {**LOG, "x0": pa.array([1, 2, 1, 2])},
        {**LATER, "x1": pa.array([5.0, 6, 5, 6], "f4")},
    ]
    data = unskew.read_log(parts(tmp_path, *(reversed(tables) if turned else tables)))
    rows = {tuple(row) for row in data.features.values.tolist()}
    assert rows == {(1.0, 5.0), (2.0, 6.0), (0.5, 5.0), (0.25, 6.0)}


def test_columns_in_another_order_with_other_types(tmp_path: Path) -> None:
    """Order and widths may differ at once; the rows are those of one table."""
    narrow = {"doc": pa.array(LATER["doc"], "i2"), "click": pa.array(LATER["click"]).cast("bool")}
    last = {**LOG, "session": [5, 5, 6, 6]}
    expected = pa.table({name: LOG[name] + LATER[name] + last[name] for name in LOG})
    files = parts(tmp_path, LOG, backwards(LATER) | narrow, last)
    assert unskew.read_log(files).equals(unskew.read_log(expected))


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("doc", ["007", "11", "10", "11"], "'doc' holds VARCHAR, but .*part-0.parquet has BIGINT"),
        ("doc", pa.array([2**64 - 1, 1, 2, 3], "u8"), "'doc' holds UBIGINT, but .*has BIGINT"),
        ("x0", ["a", "b", "a", "b"], "'x0' holds VARCHAR, but .*part-0.parquet has DOUBLE"),
        ("x0", [2**53 + 1, 2, 3, 4], "'x0' has whole numbers beyond .*part-0.parquet has floating"),
    ],
)
def test_types_without_a_common_one(column: str, values: Any, message: str, tmp_path: Path) -> None:
    """Where no type holds the values of both files, both are named and nothing is cast."""
    with pytest.raises(DataError, match=rf"part-1\.parquet: column {message}"):
        unskew.read_log(parts(tmp_path, LOG, {**LATER, column: pa.array(values)}))


def test_a_column_of_nulls_takes_the_other_type(tmp_path: Path) -> None:
    """A file in which a feature is always missing says nothing about its type."""
    files = parts(tmp_path, {**LOG, "x0": pa.nulls(4)}, LATER)
    data = unskew.read_log(files)
    assert data.features.names == ("x0", "x1")
    assert sorted(v for v in data.features.values[:, 0].tolist() if v == v) == [0.25, 0.5]


@pytest.mark.parametrize("declared", [0, 1])
def test_categories_declared_in_one_file(declared: int, tmp_path: Path) -> None:
    """A text feature is categorical if any file declares it so."""
    tables = [LOG, LATER]
    words = pa.array(["red", "blue", "red", "blue"])
    tables = [
        {**t, "x0": words.dictionary_encode() if k == declared else words}
        for k, t in enumerate(tables)
    ]
    data = unskew.read_log(parts(tmp_path, *tables))
    assert data.features.categories == {"x0": ("blue", "red")}
    assert data.n_documents == 2


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ("INTEGER", "BIGINT", "BIGINT"),
        ("UINTEGER", "INTEGER", "BIGINT"),
        ("UTINYINT", "TINYINT", "SMALLINT"),
        ("BOOLEAN", "TINYINT", "TINYINT"),
        ("UBIGINT", "BIGINT", None),
        ("UBIGINT", "UINTEGER", "UBIGINT"),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("FLOAT", "SMALLINT", "FLOAT"),
        ("FLOAT", "INTEGER", "DOUBLE"),
        ("DOUBLE", "BIGINT", "DOUBLE"),
        ("DECIMAL(10,2)", "DECIMAL(12,0)", "DECIMAL(14,2)"),
        ("DECIMAL(4,1)", "BIGINT", "DECIMAL(20,1)"),
        ("DECIMAL(38,30)", "BIGINT", None),
        ("DECIMAL(4,1)", "DOUBLE", None),
        ("TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_NS"),
        ("TIMESTAMP", "DATE", None),
        ("VARCHAR", "INTEGER", None),
        ("VARCHAR", NOTHING, "VARCHAR"),
    ],
)
def test_the_common_type(a: str, b: str, common: str | None) -> None:
    """The narrowest type that holds both exactly, whichever comes first."""
    assert wider(a, b) == wider(b, a) == common


def test_a_file_given_twice_is_refused(tmp_path: Path) -> None:
    """One file twice would count its sessions twice, also under another name."""
    files = parts(tmp_path, LOG, LATER)
    link = tmp_path / "link.parquet"
    link.symlink_to(files[0])
    with pytest.raises(UsageError, match=r"link\.parquet is the same file as .*part-0\.parquet"):
        unskew.read_log([*files, link])
