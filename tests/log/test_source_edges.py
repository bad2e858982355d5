"""Sources at their edges: settings of the engine, headers, rows of many files, messages."""

from __future__ import annotations

import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from unskew import DataError, UsageError
from unskew.log.sources import connect, open_table
from unskew.log.sources.table import SourceTable, _engine_message, check_names

COLUMNS = ("session", "query", "doc", "position", "click")


def test_where_the_engine_spills(tmp_path: Path) -> None:
    """Into a folder of the given place that only its owner can look into, and that is gone after."""
    with connect(temp_directory=str(tmp_path)) as connection:
        (folder,) = tmp_path.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (setting,) = connection.sql("SELECT current_setting('temp_directory')").fetchall()[0]
        assert Path(setting) == folder
    assert not list(tmp_path.iterdir())


def test_threads_and_memory_of_the_engine() -> None:
    """What is asked for is set; one thread is the fewest and 1,024 are the most."""
    with connect(threads=1, memory_limit="123MiB") as connection:
        assert connection.sql("SELECT current_setting('threads')").fetchall() == [(1,)]
        memory = connection.sql("SELECT current_setting('memory_limit')").fetchall()[0][0]
        assert memory == "123.0 MiB"
    for threads in (0, -1, 1025):
        with (
            pytest.raises(UsageError, match=rf"threads must be from 1 to 1,024, got {threads:,}"),
            connect(threads=threads),
        ):
            pass


def table_of(values: list[int], **known: object) -> SourceTable:
    """A source whose rows come in batches of one, an empty one before them."""
    batches = [pa.record_batch({"x": pa.array([], pa.int64())})]
    batches += [pa.record_batch({"x": [value]}) for value in values]
    return SourceTable("it", {"x": "BIGINT"}, lambda _: iter(batches), **known)  # type: ignore


def test_the_first_row_of_a_query() -> None:
    """Batches without a row are passed over; without any row there is nothing."""
    assert table_of([7, 8]).one("x") == {"x": 7}
    assert table_of([]).one("x") == {}


def test_rows_are_told_by_file() -> None:
    """Row 0 is the first of the first file; beyond the files that are known the source is named."""
    table = table_of([], files=(("a", 2), ("b", 0), ("c", 3)))
    places = ["a, row 1", "a, row 2", "c, row 1", "c, row 2", "c, row 3", "it, row 1", "it, row 2"]
    assert [table.where(row) for row in range(7)] == places


def test_names_of_columns() -> None:
    """The second of two that differ by case alone, and the place of an empty one, are told."""
    check_names(["a", "b"], "it")
    with pytest.raises(DataError, match="it: column 2 has no name"):
        check_names(["a", "", "b"], "it")
    with pytest.raises(DataError, match="two columns are called 'Ab' and 'aB'"):
        check_names(["Ab", "x", "aB"], "it")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "CSV Error on Line: 1234\nOriginal Line: " + "x" * 130 + "\nExpected 3, found 4.\n"
            "  file = /a/b.csv",
            "/a/b.csv, line 1,234 ('"
            + "x" * 120
            + "'): the line does not fit the header. Expected "
            "3, found 4. Remedy: give every line",
        ),
        ("CSV Error on Line: 7\n", "it, line 7: the line does not fit the header. Remedy: give"),
        ("CSV Error on Line: 12\nFile is Not UTF-8 encoded", "it, line 12: the text is not UTF-8"),
        ("not utf-8", "it: the text is not UTF-8"),
        ("nobody knows\nat all", "it: cannot be read (nobody knows)"),
    ],
)
def test_what_the_engine_says(text: str, expected: str) -> None:
    """The line, the file and the reason are taken from the message where it has them."""
    assert _engine_message("it", ValueError(text)).startswith(expected)


def written(folder: Path, text: str, name: str = "log.csv") -> Path:
    """A text file."""
    file = folder / name
    file.write_text(text)
    return file


def test_the_delimiter_is_that_of_the_header(tmp_path: Path) -> None:
    """Commas within the rows do not matter."""
    rows = "".join(f"1;1;{k};{k};1;a,b,c,d,e,f,g,h,i\n" for k in (1, 2))
    data = unskew.read_log(
        written(tmp_path, ";".join((*COLUMNS, "note")) + "\n" + rows), ignore=["note"]
    )
    assert data.n_documents == 2


def test_a_header_alone(tmp_path: Path) -> None:
    """A file that has a header and no row is an empty log, whether a blank line follows or not."""
    for end in ("", "\n"):
        with pytest.raises(DataError, match=r"log\.csv: there is not a single row"):
            unskew.read_log(written(tmp_path, ",".join(COLUMNS) + end))


def test_a_blank_second_line(tmp_path: Path) -> None:
    """A header above a blank line is a header."""
    file = written(tmp_path, ",".join(COLUMNS) + "\n\n1,1,1,1,1\n")
    with connect() as connection:
        assert list(open_table(file, connection, what="the log").columns) == [*COLUMNS]


def test_which_columns_of_a_text_file_are_numbers(tmp_path: Path) -> None:
    """Those whose every value is one, empty values left out; keys stay as they are written."""
    file = written(tmp_path, "a,b,c,d,k\n1,,x,,01\n2.5,3,4,,02\n")
    with connect() as connection:
        table = open_table(file, connection, what="the log", text_columns=["k"])
        assert table.columns == {
            "a": "DOUBLE", "b": "DOUBLE", "c": "VARCHAR", "d": "DOUBLE", "k": "VARCHAR"
        }  # fmt: skip
        assert table.from_text
        everything = open_table(file, connection, what="the log", text_columns=list("abcdk"))
        assert set(everything.columns.values()) == {"VARCHAR"}
        assert everything.from_text


def test_the_rows_of_every_file_are_counted(tmp_path: Path) -> None:
    """One file needs no count; of several each has its own, with or without numbers in it."""
    for ending in ("csv", "parquet"):
        for name, rows in (("a", 1), ("b", 3)):
            table = pa.table({"x": ["u"] * rows, "y": [1] * rows})
            file = tmp_path / f"{name}.{ending}"
            if ending == "csv":
                written(tmp_path, "x,y\n" + "u,1\n" * rows, file.name)
            else:
                pq.write_table(table, file)
    with connect() as connection:
        for ending in ("csv", "parquet"):
            both = open_table(str(tmp_path / f"*.{ending}"), connection, what="the log")
            assert [(Path(name).name, n) for name, n in both.files] == [
                (f"a.{ending}", 1), (f"b.{ending}", 3)
            ]  # fmt: skip
            assert both.name.endswith("(2 files)")
        assert both.n_rows == 4
        alone = open_table(tmp_path / "b.csv", connection, what="the log")
        assert alone.files == ()
        assert alone.name.endswith("b.csv")


@pytest.mark.parametrize("turned", [False, True])
def test_whole_numbers_beside_floats(turned: bool, tmp_path: Path) -> None:
    """Whole numbers up to 2 to the 53rd go with floats in another file; the next one is refused."""
    limit = 2**53
    for values, fits in (
        ([limit, -limit], True),
        ([1, limit + 1], False),
        ([-limit - 1, 1], False),
    ):
        tables = [pa.table({"x": pa.array(values)}), pa.table({"x": [0.5]})]
        for name, table in zip("ba" if turned else "ab", tables, strict=True):
            pq.write_table(table, tmp_path / f"{name}.parquet")
        with connect() as connection:
            if fits:
                found = open_table(tmp_path, connection, what="the log")
                assert found.columns == {"x": "DOUBLE"}
                continue
            with pytest.raises(
                DataError, match=r"column 'x' has whole numbers beyond 9,007,199,25"
            ):
                open_table(tmp_path, connection, what="the log")


def test_unsigned_numbers_beside_floats(tmp_path: Path) -> None:
    """Unsigned whole numbers are looked at as well; a column of nulls has none."""
    pq.write_table(pa.table({"x": pa.array([2**63], pa.uint64())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [0.5]}), tmp_path / "b.parquet")
    with (
        connect() as connection,
        pytest.raises(DataError, match=r"a\.parquet: column 'x' has .* but .*b\.parquet has float"),
    ):
        open_table(tmp_path, connection, what="the log")
    pq.write_table(pa.table({"x": pa.array([None], pa.int64())}), tmp_path / "a.parquet")
    with connect() as connection:
        assert open_table(tmp_path, connection, what="the log").columns == {"x": "DOUBLE"}
