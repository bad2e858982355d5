"""Tables of rankings become tables of mixed lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from unskew.errors import DataError, UsageError
from unskew.online import mix_rankings
from unskew.online.interleaving import METHODS

A = {
    "query": ["q", "q", "q", "r", "r"], "doc": ["x", "y", "z", "x", "y"], "rank": [1, 2, 3, 1, 2],
}  # fmt: skip
B = {
    "query": ["r", "q", "q", "r", "q"], "doc": ["y", "z", "y", "x", "x"],
    "score": [0.9, 3.0, 2.0, 0.1, 1.0],
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_the_table(method: str) -> None:
    """One row per place: query, position, doc, team and credit, queries in the order of A."""
    found = mix_rankings(A, B, method=method, seed=3)
    assert found.column_names == ["query", "position", "doc", "team", "credit"]
    assert found["query"].to_pylist() == ["q"] * 3 + ["r"] * 2
    assert found["position"].to_pylist() == [1, 2, 3, 1, 2]
    assert sorted(found["doc"].to_pylist()[:3]) == ["x", "y", "z"]
    assert set(found["team"].to_pylist()) <= {"A", "B", None}
    assert found.equals(mix_rankings(A, B, method=method, seed=3))


def test_length_cuts_every_list() -> None:
    """No list is longer than asked for."""
    assert mix_rankings(A, B, length=1).num_rows == 2


def test_a_query_has_its_own_stream() -> None:
    """The list of a query depends on the seed and its own rankings, on no other query."""
    n = 50
    a = {"query": np.repeat(np.arange(n), 4), "doc": np.tile(np.arange(4), n),
         "rank": np.tile(np.arange(1, 5), n)}  # fmt: skip
    b = {**a, "rank": np.tile([4, 3, 2, 1], n)}
    whole = mix_rankings(a, b, seed=5)
    half = [{k: v[: 2 * n] for k, v in side.items()} for side in (a, b)]
    assert mix_rankings(*half, seed=5).equals(whole.slice(0, 2 * n))
    assert not mix_rankings(a, b, seed=6).equals(whole)
    tops = whole.filter(pa.compute.equal(whole["position"], 1))["team"].to_pylist()
    assert 10 < tops.count("A") < 40, "coins of different queries differ"


def _csv(table: pa.Table, path: Path) -> Path:
    pyarrow.csv.write_csv(table, path.with_suffix(".csv"))
    return path.with_suffix(".csv")


def _parquet(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "CSV": _csv,
    "Parquet": _parquet,
    "pandas": lambda table, _: table.to_pandas(),
    "Polars": lambda table, _: pl.from_arrow(table),
}
IDS = {
    "texts": ["x", "y"],
    "zero-padded": ["007", "7"],
    "twenty digits": ["12345678901234567890", "12345678901234567891"],
    "numbers": [2**62, 2**62 + 1],
    "unsigned": np.array([2**63, 2**63 + 1], dtype=np.uint64),
}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("source", SOURCES)
def test_ids_come_back_exactly(kind: str, source: str, tmp_path: Path) -> None:
    """Documents and queries come back as they were, in every kind of id and table."""
    ids = IDS[kind]
    tables = [
        pa.table({"query": [ids[1], ids[1]], "doc": ids, "rank": ranks})
        for ranks in ([1, 2], [2, 1])
    ]
    found = mix_rankings(*(SOURCES[source](t, tmp_path / str(k)) for k, t in enumerate(tables)))
    wanted = [str(i) for i in ids] if source == "CSV" else list(ids)
    assert sorted(found["doc"].to_pylist()) == sorted(wanted)
    assert set(found["query"].to_pylist()) == {wanted[1]}


def test_numbers_meet_their_text(tmp_path: Path) -> None:
    """Document 7 of a Parquet file is document 7 of a CSV file."""
    (tmp_path / "b.csv").write_text("query,doc,rank\n1,7,1\n1,8,2\n")
    found = mix_rankings({"query": [1, 1], "doc": [8, 7], "rank": [1, 2]}, tmp_path / "b.csv")
    assert sorted(found["doc"].to_pylist()) == ["7", "8"]


def test_equal_scores_keep_their_order() -> None:
    """Rows of one score are ranked as they stand."""
    same = {"query": ["q"] * 4, "doc": list("dbca"), "score": [1.0] * 4}
    assert mix_rankings(same, same)["doc"].to_pylist() == list("dbca")


def test_columns_of_other_names() -> None:
    """Query, document and the ordering column may be called anything."""
    a = {"q": [1, 1], "d": [1, 2], "s": [5.0, 9.0]}
    found = mix_rankings(a, a, query="q", doc="d", score="s")
    assert found["doc"].to_pylist() == [2, 1]


WRONG: dict[str, tuple[dict[str, list[Any]], str]] = {
    "duplicate": (
        {"query": ["q", "q", "r"], "doc": ["x", "x", "y"], "rank": [1, 2, 1]},
        "query 'q' has document 'x' twice",
    ),
    "same rank": (
        {"query": ["q", "q", "r"], "doc": ["x", "y", "y"], "rank": [1, 1, 1]},
        "query 'q' has the value 1 twice in column 'rank'",
    ),
    "other query": (
        {"query": ["q", "s"], "doc": ["x", "y"], "rank": [1, 1]},
        r"query 's' is in ranking A .* and not in ranking B .*\(1 queries in all\)",
    ),
    "missing query": ({"query": ["q"], "doc": ["x"], "rank": [1]}, "query 'r' is in ranking B"),
    "null doc": (
        {"query": ["q", "r"], "doc": ["x", None], "rank": [1, 1]},
        r"ranking A .*row 2: column 'doc' is null",
    ),
    "null rank": (
        {"query": ["q", "r"], "doc": ["x", "y"], "rank": [1, None]},
        "row 2: column 'rank' is null; every row needs a rank or score",
    ),
    "text rank": (
        {"query": ["q", "r"], "doc": ["x", "y"], "rank": ["1", "first"]},
        r"row 2: column 'rank' is not a finite number.*'first'",
    ),
    "no order": ({"query": ["q"], "doc": ["x"]}, "there is no column 'rank' and none 'score'"),
    "no doc": ({"query": ["q"], "dok": ["x"], "rank": [1]}, "no column 'doc'; did you mean 'dok'"),
    "empty": ({"query": [], "doc": [], "rank": []}, "there is not a single row"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rankings(case: str) -> None:
    """Every wrong table is an error that names the table, the query or the row."""
    table, message = WRONG[case]
    with pytest.raises(DataError, match=message):
        mix_rankings(pa.table(table), B)


def test_wrong_calls() -> None:
    """Unknown methods, lengths below 1 and two orders are refused."""
    with pytest.raises(UsageError, match="method must be one of team-draft, competitive-pairs"):
        mix_rankings(A, B, method="balanced")
    with pytest.raises(UsageError, match="length must be 1 or more"):
        mix_rankings(A, B, length=0)
    with pytest.raises(UsageError, match="give rank or score, not both"):
        mix_rankings(A, B, rank="rank", score="score")
    with pytest.raises(UsageError, match="seed must be 0 or more"):
        mix_rankings(A, B, seed=-1)
