"""Labelled data from LETOR text and from tables."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from unskew import DataError, Features, LabelledData, UsageError
from unskew.log import letor as letor_module
from unskew.log.letor import is_letor

LETOR = """\
2 qid:10 1:0.5 3:1.25 #docid = GX1 inc = 1
0 qid:10 1:0.1 2:7 #docid = GX2
1 qid:11 2:-3e-2 #docid = GX1
"""


@pytest.fixture(params=["plain", "gzip"])
def letor(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A small LETOR file, plain and compressed."""
    if request.param == "plain":
        file = tmp_path / "train.txt"
        file.write_text(LETOR)
    else:
        file = tmp_path / "train.txt.gz"
        file.write_bytes(gzip.compress(LETOR.encode()))
    return file


def test_letor_by_hand(letor: Path) -> None:
    """Grades, queries, documents and features are where the format puts them."""
    data = unskew.read_labels(letor)
    assert data.relevance.tolist() == [2.0, 0.0, 1.0]
    assert data.query.tolist() == [10, 10, 11]
    assert data.doc.tolist() == ["GX1", "GX2", "GX1"]
    assert data.features.values.tolist() == [[0.5, 0, 1.25], [0.1, 7, 0], [0, -0.03, 0]]
    assert data.features.names == ("1", "2", "3")
    assert (data.n_queries, data.offsets.tolist()) == (2, [0, 2, 3])
    assert unskew.read_labels(letor, n_features=5).features.n_features == 5


def test_letor_without_docids(tmp_path: Path) -> None:
    """Without docids a document is named by its row."""
    file = tmp_path / "x.txt"
    file.write_text("1 qid:1 1:2\n0 qid:1 1:3\n")
    assert unskew.read_labels(file).doc.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 qid:1 1:2\n2 1:3\n", r"line 2: '2 1:3' is not LETOR text"),
        ("1 qid:1 1:2\nrelevant qid:1 1:3\n", r"line 2: 'relevant"),
        ("1 qid:1 1:2\n1 qid:1 one:3\n", r"line 2: '1 qid:1 one:3'"),
        ("1 qid:1 1:inf\n", r"line 1: feature 1 is infinite"),
        ("1 qid:1 0:3\n", r"line 1: '1 qid:1 0:3' is not LETOR text"),
        ("1 qid:1 1:3\n0 qid:a 1:3\n", r"line 2: '0 qid:a 1:3' is not LETOR text"),
        ("1 qid:1 1:2\n0 qid:1 2000000000:1\n", r"line 2: feature 2,000,000,000 makes .* GiB"),
        ("1 qid:1 1:2\n0 qid:1 3000000000:1\n", r"line 2: there is a feature 3,000,000,000, and"),
        ("", "not a single line"),
        ("-1 qid:1 1:2\n", r"relevance must be a grade, 0 or higher: row 1 has -1.0"),
    ],
)
def test_bad_letor(text: str, message: str, tmp_path: Path) -> None:
    """A line that is not LETOR text is shown with its number."""
    file = tmp_path / "x.txt"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        unskew.read_labels(file)


def test_letor_queries_stay_as_they_are_written(tmp_path: Path) -> None:
    """Query numbers of any length are exact, and 0012 is not 12."""
    file = tmp_path / "x.txt"
    long = "1" * 30
    file.write_text(f"1 qid:{long}1 1:2\n0 qid:{long}1 1:3\n1 qid:{long}2 1:3\n")
    assert unskew.read_labels(file).query.tolist() == [f"{long}1", f"{long}1", f"{long}2"]
    file.write_text("1 qid:0012 1:2\n0 qid:12 1:3\n")
    assert unskew.read_labels(file).query.tolist() == ["0012", "12"]
    file.write_text("1 qid:9223372036854775807 1:2\n0 qid:12#docid = a\n")
    assert unskew.read_labels(file).query.tolist() == [2**63 - 1, 12]


def test_letor_features_that_do_not_fit_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A matrix larger than the memory is refused before it is made, with the line that asks for it."""
    file = tmp_path / "x.txt"
    file.write_text("1 qid:1 1:2\n0 qid:1 1:1 00900000:1 # 900000:\n")
    monkeypatch.setattr("unskew.log.letor._memory", lambda: 2**20)
    with pytest.raises(DataError, match=r"line 2: feature 900,000 makes a matrix of 2 by 900,000"):
        unskew.read_labels(file)


def test_truncated_gzip(tmp_path: Path) -> None:
    """A compressed file cut short is an error that names it."""
    file = tmp_path / "x.txt.gz"
    file.write_bytes(gzip.compress(LETOR.encode() * 5_000)[:-50])
    with pytest.raises(DataError, match=r"x\.txt\.gz.*truncated or damaged"):
        unskew.read_labels(file)
    with pytest.raises(DataError, match="there is no such file"):
        unskew.read_labels(tmp_path / "y.txt")


def test_a_table_of_labels(tmp_path: Path) -> None:
    """A table with query, doc and relevance; rows of a query are brought together."""
    table = pa.table(
        {
            "query": ["b", "a", "b"], "doc": [1, 2, 3], "relevance": [0, 4, 1],
            "x": [1.0, None, 3.0], "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
        }
    )  # fmt: skip
    pq.write_table(table, tmp_path / "labels.parquet")
    for source in (table, tmp_path / "labels.parquet", table.to_pandas()):
        data = unskew.read_labels(source)
        assert data.query.tolist() == ["b", "b", "a"]
        assert data.doc.tolist() == [1, 3, 2]
        assert data.relevance.tolist() == [0.0, 1.0, 4.0]
        assert data.features.names == ("x", "kind")
        assert data.features.categories == {"kind": ("u", "v")}
        assert np.isnan(data.features.values[2, 0])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"query": [1], "grade": [1]}, r"no column 'relevance'.*with relevance=…\.$"),
        ({"query": [1, None], "relevance": [1, 1]}, r"row 2: column 'query' is null"),
        ({"query": [1, 1], "relevance": [1, None]}, r"row 2: column 'relevance' is null"),
        ({"query": [1, 1], "relevance": ["1", "good"]}, r"row 2 has nan"),
        ({"query": [], "relevance": []}, "not a single row"),
    ],
)
def test_bad_label_tables(table: dict[str, list[object]], message: str) -> None:
    """A wrong table of labels names the column and the row."""
    with pytest.raises(DataError, match=message):
        unskew.read_labels(pa.table(table))


def test_the_container_is_strict() -> None:
    """Columns have one length, and a query's rows stand side by side."""
    features = Features(np.zeros((3, 1)), ("x",))
    with pytest.raises(DataError, match="columns of one length"):
        LabelledData(features, np.zeros(2), np.zeros(3), np.zeros(3))
    with pytest.raises(DataError, match="must stand side by side"):
        LabelledData(features, np.zeros(3), np.array([1, 2, 1]), np.arange(3))
    with pytest.raises(UsageError, match="one name per column"):
        Features(np.zeros((3, 1)), ("x", "y"))
    with pytest.raises(UsageError, match="which are no features"):
        Features(np.zeros((3, 1)), ("x",), {"y": ("a",)})


def test_queries_are_taken() -> None:
    """Some queries, in another order, with all their rows."""
    data = LabelledData.from_rows(
        Features(np.arange(5.0)[:, None], ("x",)), np.arange(5), ["a", "b", "b", "c", "c"]
    )
    taken = data.take_queries(np.array([2, 0]))
    assert taken.query.tolist() == ["c", "c", "a"]
    assert taken.relevance.tolist() == [3.0, 4.0, 0.0]
    assert repr(taken) == "LabelledData(2 queries, 3 documents, 1 features)"


def test_mq2008(real_data: Path) -> None:
    """The five parts of the real data have the queries and documents they are known to have."""
    parts = [unskew.read_labels(real_data / "mq2008" / f"S{k}.txt.gz") for k in range(1, 6)]
    assert sum(part.n_queries for part in parts) == 784
    assert sum(len(part) for part in parts) == 15_211
    assert {part.features.n_features for part in parts} == {46}
    assert str(parts[0].doc[0]).startswith("GX")


@pytest.mark.parametrize("name", ["a.txt", "b.LIBSVM", "c.svm.gz", "d.dat.bz2", "e.letor"])
def test_letor_text_by_name(name: str) -> None:
    """LETOR text is told by the ending of its name, compressed or not."""
    assert is_letor(Path(name))
    assert not is_letor(name + ".parquet")


def test_a_long_line_is_shown_in_part(tmp_path):
    """Of a line that is not LETOR text the error shows 60 characters."""
    file = tmp_path / "labels.txt"
    file.write_text("1 qid:1 1:1\n" + "x" * 100 + "\n")
    with pytest.raises(DataError, match=r"line 2: 'x{60}' is not LETOR text"):
        unskew.read_labels(file)


def letor_file(folder: Path, text: str) -> Path:
    """A LETOR file of this text."""
    file = folder / "labels.txt"
    file.write_text(text)
    return file


def test_the_limits_of_a_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix that just fits is read; one byte, or one feature, too many is refused."""
    file = letor_file(tmp_path, "1 qid:1 1:2\n0 qid:1 1:1 3:1\n1 qid:1 3:5\n")
    for memory, most in ((3 * 3 * 8, 3), (2**40, 3)):
        monkeypatch.setattr(letor_module, "_memory", lambda memory=memory: memory)
        monkeypatch.setattr(letor_module, "MOST_FEATURES", most)
        assert unskew.read_labels(file).features.n_features == 3
    for memory, most in ((3 * 3 * 8 - 1, 3), (2**40, 2)):
        monkeypatch.setattr(letor_module, "_memory", lambda memory=memory: memory)
        monkeypatch.setattr(letor_module, "MOST_FEATURES", most)
        with pytest.raises(DataError, match=r"line 2: feature 3 makes a matrix of 3 by 3 numbers"):
            unskew.read_labels(file)


def test_more_features_than_fit_are_asked_for(tmp_path: Path) -> None:
    """A number of features that the call gives, and no line, is told as such."""
    file = letor_file(tmp_path, "1 qid:1 1:2\n")
    with pytest.raises(
        DataError, match=r"labels\.txt \(n_features=2000000\): feature 2,000,000 mak"
    ):
        unskew.read_labels(file, n_features=2_000_000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 qid:1 1:1\n1 qid:1 1:1 3:inf 4:inf\n", "line 2: feature 3 is infinite"),
        ("1 qid:1 1:1\n1\n", "line 2: '1' is not LETOR text"),
        ("1\n", "line 1: '1' is not LETOR text"),
        ("# a comment\n\n1 qid:1 1:1\n1 qid: 1:1\n", "line 4: '1 qid: 1:1' is not LETOR text"),
    ],
)
def test_lines_are_counted_from_one(text: str, message: str, tmp_path: Path) -> None:
    """Comments and blank lines are lines too."""
    with pytest.raises(DataError, match=message):
        unskew.read_labels(letor_file(tmp_path, text))


def test_comments_between_lines(tmp_path: Path) -> None:
    """Comments and blank lines are no data; a document has a name if every line names one."""
    text = "# made by hand\n\n1 qid:7 1:1 # docid = a\n0 qid:7 1:2 #docid=b more\n"
    data = unskew.read_labels(letor_file(tmp_path, text))
    assert (data.query.tolist(), data.doc.tolist()) == ([7, 7], ["a", "b"])
    for line in ("0 qid:7 1:3\n", "0 qid:7 1:3 # nothing\n"):
        data = unskew.read_labels(letor_file(tmp_path, text + line + "1 qid:8 1:4 # docid = z\n"))
        assert data.doc.tolist() == [0, 1, 2, 3]


def test_a_compressed_file_of_which_nothing_can_be_read(tmp_path: Path) -> None:
    """The error says that not even the first line was there."""
    file = tmp_path / "x.txt.gz"
    file.write_bytes(gzip.compress(LETOR.encode())[:12])
    with pytest.raises(DataError, match=r"x\.txt\.gz, after line 0: .* truncated or damaged"):
        unskew.read_labels(file)


def test_rows_of_one_query_are_brought_together() -> None:
    """Queries in order of first appearance, their rows in the order given, features along with them."""
    features = Features(np.arange(5.0)[:, None], ("x",))
    data = LabelledData.from_rows(features, [0, 1, 2, 3, 4], ["b", "a", "b", "c", "a"])
    assert data.query.tolist() == ["b", "b", "a", "a", "c"]
    assert (
        data.relevance.tolist() == data.features.values[:, 0].tolist() == [0.0, 2.0, 1.0, 4.0, 3.0]
    )
    assert data.doc.tolist() == [0, 2, 1, 4, 3]
    assert (data.n_queries, len(data)) == (3, 5)


@pytest.mark.parametrize("wrong", [-0.5, float("nan"), float("inf")])
def test_grades_that_are_none(wrong: float) -> None:
    """The first grade that is negative or not finite is told with its row; 0 is a grade."""
    features = Features(np.zeros((3, 1)), ("x",))
    with pytest.raises(DataError, match=rf"row 2 has {wrong}"):
        LabelledData.from_rows(features, [0, wrong, wrong], [1, 1, 1])
    with pytest.raises(DataError, match="there is no labelled row"):
        LabelledData.from_rows(Features(np.zeros((0, 1)), ("x",)), [], [])


def test_a_table_of_labels_with_nulls() -> None:
    """The first null of a column is told with its row."""
    good: dict[str, list[object]] = {"query": [1, 1, 2], "doc": [1, 2, 3], "relevance": [0, 1, 2]}
    for name in good:
        table = pa.table(good | {name: [good[name][0], None, None]})
        with pytest.raises(DataError, match=rf"row 2: column '{name}' is null"):
            unskew.read_labels(table)


def test_a_machine_that_does_not_tell_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the size of the memory is not known, no matrix is too large for it."""

    def unknown(name: str) -> int:
        raise ValueError(name)

    with monkeypatch.context() as patch:
        patch.setattr("os.sysconf", unknown)
        found = letor_module._memory()
    assert found >= 2**60


def test_the_first_feature_beyond_the_highest(tmp_path: Path) -> None:
    """The line that is told is the first with a number above the highest, not the largest."""
    file = letor_file(tmp_path, "1 qid:1 1000000:1\n0 qid:1 1000001:1\n0 qid:1 3000000000:1\n")
    with pytest.raises(DataError, match="line 2: there is a feature 1,000,001, and 1,000,000 is"):
        unskew.read_labels(file)


def test_fewer_features_than_the_file_has(tmp_path: Path) -> None:
    """A number of features that is too low is told with what the call gave."""
    file = letor_file(tmp_path, "1 qid:1 1:1 3:1\n")
    with pytest.raises(DataError, match=r"cannot be read as LETOR text \(n_features=2\): "):
        unskew.read_labels(file, n_features=2)


def test_a_line_without_features(tmp_path: Path) -> None:
    """A document may have no feature but 0, and still has its query."""
    data = unskew.read_labels(letor_file(tmp_path, "1 qid:1 1:2\n0 qid:2\n2 qid:2 # nothing\n"))
    assert data.query.tolist() == [1, 2, 2]
    assert data.features.values.tolist() == [[2.0], [0.0], [0.0]]
