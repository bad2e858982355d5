"""`mix_rankings`: two tables of rankings become one table of interleaved lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from unskew.errors import DataError, UsageError
from unskew.log.sources import SourceTable, TableLike, connect, open_table
from unskew.online.expressions import key, number, require
from unskew.online.interleaving import METHODS, TEAMS
from unskew.online.rules import check_rows, is_finite, is_given

_SIGNED = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}


@dataclass(frozen=True)
class _Rankings:
    """The documents of each query from the top, as text, and the types their columns had."""

    name: str
    lists: Mapping[str, list[str]]
    query_type: pa.DataType
    doc_type: pa.DataType


def mix_rankings(
    a: TableLike,
    b: TableLike,
    *,
    method: str = "team-draft",
    length: int | None = None,
    seed: int = 0,
    query: str = "query",
    doc: str = "doc",
    rank: str | None = None,
    score: str | None = None,
) -> pa.Table:
    """Interleave two rankings of the same queries.

    Parameters
    ----------
    a, b
        Tables with a row for each query and document: files, frames, anything that holds a table.
    method
        ``"team-draft"``, ``"competitive-pairs"`` or ``"probabilistic"``.
    length
        How many documents a list has at most.
    seed
        The same seed gives the same list of a query, whatever other queries there are.
    query, doc
        What these columns are called.
    rank, score
        The column that orders: the smallest rank or the highest score is at the top. By default the
        column ``rank``, or else ``score``. Equal scores keep the order of the rows.

    Returns
    -------
    pyarrow.SourceTable
        ``query``, ``position``, ``doc``, ``team`` (A, B, or null for a document of both) and
        ``credit``, what a click on it says: 1 for A, -1 for B, between them with probabilities.

    Examples
    --------
    >>> import unskew
    >>> a = {"query": ["tea"] * 2, "doc": ["green", "black"], "rank": [1, 2]}
    >>> b = {"query": ["tea"] * 2, "doc": ["black", "green"], "rank": [1, 2]}
    >>> mixed = unskew.online.mix_rankings(a, b, seed=1)
    >>> mixed.num_rows, sorted(mixed["doc"].to_pylist())
    (2, ['black', 'green'])

    """
    if method not in METHODS:
        raise UsageError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if length is not None and length < 1:
        raise UsageError(f"length must be 1 or more, got {length}")
    if seed < 0:
        raise UsageError(f"seed must be 0 or more, got {seed}")
    if rank is not None and score is not None:
        raise UsageError("give rank or score, not both")
    both = [
        _read(source, f"ranking {team}", query, doc, rank, score)
        for team, source in zip(TEAMS, (a, b), strict=True)
    ]
    _refuse_other_queries(both[0], both[1])
    names: list[str] = []
    columns: dict[str, list[object]] = {"position": [], "doc": [], "team": [], "credit": []}
    for name, first in both[0].lists.items():
        mixed = METHODS[method](first, both[1].lists[name], _generator(seed, name), length=length)
        names.extend([name] * len(mixed.doc))
        columns["position"].extend(range(1, len(mixed.doc) + 1))
        columns["doc"].extend(mixed.doc)
        columns["team"].extend(mixed.team)
        columns["credit"].extend(mixed.credit)
    return pa.table(
        {
            "query": _typed(names, both[0].query_type, both[1].query_type),
            "position": pa.array(columns["position"], pa.int32()),
            "doc": _typed(columns["doc"], both[0].doc_type, both[1].doc_type),
            "team": pa.array(columns["team"], pa.string()),
            "credit": pa.array(columns["credit"], pa.float64()),
        }
    )


def _generator(seed: int, query: str) -> np.random.Generator:
    """A stream of its own for every query."""
    digest = blake2b(query.encode(), digest_size=8).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "big")])


def _read(
    source: TableLike, what: str, query: str, doc: str, rank: str | None, score: str | None
) -> _Rankings:
    with connect() as connection:
        table = open_table(source, connection, what=what, text_columns=[query, doc])
        for role, name in (("query", query), ("doc", doc), ("rank", rank), ("score", score)):
            if name is not None:
                require(table, name, role)
        column, sign = _order(table, rank, score)
        check_rows(
            table,
            [
                *(is_given(table, n, r) for n, r in ((query, "query"), (doc, "doc"))),
                is_given(table, column, "rank or score"),
                is_finite(table, column, "rank or score"),
            ],
        )
        rows = pa.Table.from_batches(
            table.scan(
                f"CAST({key(table, query)} AS VARCHAR) AS q, CAST({key(table, doc)} AS VARCHAR) AS d, "
                f"{number(table, column)} AS v"
            )
        )
        kinds = [_arrow_type(table.columns[name]) for name in (query, doc)]
        name = table.name
    lists = _lists(rows, sign, name, column)
    return _Rankings(name, lists, kinds[0], kinds[1])


def _order(table: SourceTable, rank: str | None, score: str | None) -> tuple[str, float]:
    """The column that orders, and 1 if the smallest value is at the top."""
    if rank is None and score is None:
        found = [name for name in ("rank", "score") if name in table.columns]
        if not found:
            raise DataError(
                f"{table.name}: there is no column 'rank' and none 'score'. The columns are "
                f"{', '.join(map(repr, table.columns))}. Name the right one with rank or score."
            )
        return found[0], 1.0 if found[0] == "rank" else -1.0
    return (rank, 1.0) if rank is not None else (str(score), -1.0)


def _lists(rows: pa.Table, sign: float, name: str, column: str) -> dict[str, list[str]]:
    """The documents of each query from the top, in the order in which queries first appear."""
    encoded = rows["q"].combine_chunks().dictionary_encode()
    group = encoded.indices.to_numpy(zero_copy_only=False)
    value = rows["v"].to_numpy() * sign
    order = np.lexsort((np.arange(len(value)), value, group))
    docs = np.asarray(rows["d"].to_pylist(), dtype=object)[order]
    group, value = group[order], value[order]
    queries = encoded.dictionary.to_pylist()
    same = np.flatnonzero((group[1:] == group[:-1]) & (value[1:] == value[:-1]))
    if sign > 0 and len(same):
        raise DataError(
            f"{name}: query {queries[group[same[0]]]!r} has the value {value[same[0]]:g} twice in "
            f"column {column!r}; ranks must differ. Remedy: number the documents 1, 2, 3, …, or give "
            "scores."
        )
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    lists = {}
    for begin, end in zip(starts, [*starts[1:], len(docs)], strict=True):
        found = docs[begin:end].tolist()
        lists[queries[group[begin]]] = found
        if len(set(found)) < len(found):
            twice = next(d for k, d in enumerate(found) if d in found[:k])
            raise DataError(
                f"{name}: query {queries[group[begin]]!r} has document {twice!r} twice; each document "
                "may stand in a ranking once. Remedy: keep its best row."
            )
    return lists


def _refuse_other_queries(a: _Rankings, b: _Rankings) -> None:
    for one, other in ((a, b), (b, a)):
        missing = [query for query in one.lists if query not in other.lists]
        if missing:
            raise DataError(
                f"query {missing[0]!r} is in {one.name} and not in {other.name} ({len(missing):,} "
                "queries in all). Remedy: rank the same queries with both rankers."
            )


def _arrow_type(kind: str) -> pa.DataType:
    if kind in _SIGNED:
        return pa.int64()
    return pa.uint64() if kind == "UBIGINT" else pa.string()


def _typed(values: list[object] | list[str], a: pa.DataType, b: pa.DataType) -> pa.Array:
    """Keys in the type that both tables have, else as text."""
    column = pa.array(values, pa.string())
    return column.cast(a) if a == b else column
