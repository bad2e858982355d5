"""Sources that are damaged, foreign or ambiguous: an error of ours, never a wrong table."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from unskew import DataError

LOG: dict[str, Any] = {
    "session": [1, 1, 2, 2],
    "query": ["a"] * 4,
    "doc": [10, 11, 10, 11],
    "position": [1, 2, 1, 2],
    "click": [1, 0, 0, 1],
}
TEXT = "session,query,doc,position,click\n1,a,10,1,1\n1,a,11,2,0\n2,a,10,1,0\n2,a,11,2,1\n"


@pytest.mark.parametrize("place", [-1, -4, -5, -8])
def test_a_gzip_checksum_is_looked_at(place: int, tmp_path: Path) -> None:
    """A changed byte of the checksum or of the length at the end of a gzip file is an error."""
    content = bytearray(gzip.compress(TEXT.encode()))
    content[place] ^= 0x10
    file = tmp_path / "clicks.csv.gz"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"clicks\.csv\.gz: the compressed file is .*damaged"):
        unskew.read_log(file)


def test_a_gzip_file_of_several_members(tmp_path: Path) -> None:
    """Files that were compressed apart and put together are read to their end."""
    first, rest = TEXT[: TEXT.index("2,a")], TEXT[TEXT.index("2,a") :]
    file = tmp_path / "clicks.csv.gz"
    file.write_bytes(gzip.compress(first.encode()) + gzip.compress(rest.encode()))
    assert unskew.read_log(file).n_sessions == 2


@pytest.mark.parametrize(
    ("text", "encoding", "line"),
    [
        (TEXT.replace("2,a", "2,café", 1), "latin-1", 4),
        (TEXT.replace("click", "clické", 1), "latin-1", 1),
        (TEXT, "utf-16", 1),
        (
            TEXT + "".join(f"{k},a,1,1,1\n" for k in range(3, 60_000)) + "1,é,1,1,1\n",
            "cp1252",
            60_003,
        ),
    ],
)
@pytest.mark.parametrize("number", [0, 1])
def test_text_that_is_not_utf8(
    text: str, encoding: str, line: int, number: int, tmp_path: Path
) -> None:
    """Latin-1 and UTF-16 are called that, with the file and the line, and not a wrong header."""
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file in files:
        file.write_text(TEXT.replace("\n1,", "\n8,").replace("\n2,", "\n9,"), encoding="utf-8")
    files[number].write_text(text, encoding=encoding)
    place = rf"{files[number].name}, line {line:,}: the text is not UTF-8"
    with pytest.raises(DataError, match=place + ".*iconv"):
        unskew.read_log(files)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    """UTF-8 as spreadsheets write it is read."""
    (tmp_path / "clicks.csv").write_text(TEXT, encoding="utf-8-sig")
    assert unskew.read_log(tmp_path / "clicks.csv").n_sessions == 2


def test_a_parquet_column_whose_name_is_not_utf8(tmp_path: Path) -> None:
    """Such a name is an error of ours that shows it."""
    file = tmp_path / "clicks.parquet"
    pq.write_table(pa.table({**LOG, "zzzz": [1.0] * 4}), file, store_schema=False)
    file.write_bytes(file.read_bytes().replace(b"zzzz", b"zz\xff\xfe"))
    with pytest.raises(DataError, match=r"clicks\.parquet: the name of a column is not UTF-8 .*zz"):
        unskew.read_log(file)


TWINS = [("A", "a"), ("x", "x"), ("Click", None)]


def with_twins(names: tuple[str, str | None]) -> pa.Table:
    """The log with two more columns of nearly the same name, or one beside a role of the log."""
    table = pa.table(LOG)
    for name in names:
        if name is not None:
            table = table.append_column(name, pa.array([1.0, 2.0, 1.0, 2.0]))
    return table


@pytest.mark.parametrize("names", TWINS)
@pytest.mark.parametrize("kind", ["Parquet", "CSV", "Arrow", "stream", "pandas", "relation"])
def test_columns_that_cannot_be_told_apart(
    names: tuple[str, str | None], kind: str, tmp_path: Path
) -> None:
    """`A` beside `a`, and `x` beside `x`, are refused from every kind of source."""
    table = with_twins(names)
    source: Any = table
    if kind == "Parquet":
        source = tmp_path / "clicks.parquet"
        pq.write_table(table, source)
    elif kind == "CSV":
        source = tmp_path / "clicks.csv"
        rows = [table.column_names, *zip(*(c.to_pylist() for c in table.columns), strict=True)]
        source.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    elif kind == "stream":
        source = table.to_reader()
    elif kind == "pandas":
        source = pd.DataFrame(dict(enumerate(table.to_pydict().values())))
        source = pd.concat([pd.Series(c.to_pylist()) for c in table.columns], axis=1)
        source.columns = table.column_names
    elif kind == "relation":
        numbers = ", ".join(f"1 AS {name}" for name in table.column_names if name)
        source = duckdb.connect().sql(f"SELECT {numbers}")
    with pytest.raises(DataError, match=r"two columns are called|Duplicate column names"):
        unskew.read_log(source)


def test_features_that_cannot_be_told_apart() -> None:
    """A features table, labels and X are refused for the same reason."""
    table = pa.table({"query": ["a", "a"], "doc": [10, 11], "A": [1, 2], "a": [3, 4]})
    with pytest.raises(DataError, match=r"the features table .*two columns are called 'A' and 'a'"):
        unskew.read_log(pa.table(LOG), features=table)
    with pytest.raises(DataError, match=r"the labels .*two columns are called 'A' and 'a'"):
        unskew.read_labels(table.append_column("relevance", pa.array([1, 0])))
    ranker = unskew.UnbiasedLambdaMART(n_estimators=2, min_data_in_leaf=1, verbose=0)
    columns = {name: LOG[name] for name in ("session", "query", "position")}
    with pytest.raises(DataError, match=r"X .*two columns are called 'A' and 'a'"):
        ranker.fit(table.select(["A", "a"]), LOG["click"], **columns)


@pytest.mark.parametrize(
    "body",
    [
        "SELECT * FROM read_csv('{0}/secret.csv')",
        "FROM '{0}/secret.csv'",
        "SELECT *, (SELECT content FROM read_text('{0}/secret.csv')) AS x FROM clicks",
        "SELECT *, (SELECT count(*) FROM glob('{0}/*')) AS x FROM clicks",
    ],
)
def test_a_view_cannot_read_other_files(body: str, tmp_path: Path) -> None:
    """A view of somebody's database that reads files of this machine is refused."""
    (tmp_path / "secret.csv").write_text(TEXT)
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(f"CREATE TABLE clicks AS FROM '{tmp_path}/secret.csv'")
        connection.execute(f"CREATE VIEW evil AS {body.format(tmp_path)}")
        connection.execute("CREATE VIEW fine AS SELECT * FROM clicks")
    with pytest.raises(DataError, match=r"'evil': this is a view that reads something outside"):
        unskew.read_log(file, table="evil")
    assert unskew.read_log(file, table="fine").n_sessions == 2


def test_a_database_spills_when_memory_is_short(tmp_path: Path) -> None:
    """Without access to other files, the temporary folder is still there to sort a large table."""
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "CREATE TABLE clicks AS SELECT hash(k // 2) AS session, k // 2 % 50 AS query, "
            "repeat('d', 50) || k % 7 AS doc, k % 2 + 1 AS position, k % 3 % 2 AS click "
            "FROM range(600000) t(k) ORDER BY hash(k)"
        )
    data = unskew.read_log(file, table="clicks", memory_limit="60MB", threads=1)
    assert data.n_rows == 600_000


@pytest.mark.parametrize("column", ["unskew_row", "UNSKEW_ROW"])
def test_a_reserved_column(tmp_path, column):
    """The one name that reading itself needs is refused, and said so."""
    file = tmp_path / "log.csv"
    file.write_text(f"session,query,doc,position,click,{column}\n1,1,1,1,1,x\n")
    with pytest.raises(
        unskew.errors.DataError, match=r"'unskew_row' is taken .* rename the column"
    ):
        unskew.read_log(file)
