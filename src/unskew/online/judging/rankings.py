"""Rankings: what two rankers show first for each query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from unskew.errors import DataError, UsageError
from unskew.online.judging.columns import read_columns, refuse_null


@dataclass(frozen=True)
class Ranking:
    """One ranker's lists.

    Attributes
    ----------
    name
        How results call it.
    lists
        For each query its documents, best first.

    Examples
    --------
    >>> from unskew.online.judging import Ranking
    >>> Ranking("new", {"tea": ("green", "black")}).lists["tea"]
    ('green', 'black')

    """

    name: str
    lists: Mapping[str, tuple[str, ...]]


def read_ranking(
    source: Any, *, name: str, top: int = 5, queries: Iterable[str] | None = None
) -> Ranking:
    """The best ``top`` documents of each query, from a table with query, doc and rank or score.

    With both, rank decides. Equal scores keep the order of the table. With ``queries``, the lists of
    the others are left out.

    Examples
    --------
    >>> from unskew.online.judging import read_ranking
    >>> table = {"query": ["tea", "tea"], "doc": ["green", "black"], "score": [0.2, 0.7]}
    >>> read_ranking(table, name="new").lists
    {'tea': ('black', 'green')}

    """
    if top < 1:
        raise UsageError(f"top must be 1 or higher, got {top}")
    columns = read_columns(
        source,
        what=f"the ranking {name}",
        required=("query", "doc"),
        optional=("rank", "score"),
        numbers=("rank", "score"),
    )
    by = next((column for column in ("rank", "score") if column in columns.column_names), None)
    if by is None:
        raise DataError(
            f"the ranking {name} has neither a column rank nor a column score: one of them must say "
            "in which order the documents of a query come. Remedy: write it with unskew rank"
        )
    refuse_null(columns, ("query", "doc"), f"the ranking {name}")
    columns = columns.append_column("row", pa.array(range(len(columns)), pa.int64()))
    if queries is not None:
        columns = columns.filter(pc.is_in(columns["query"], pa.array(list(queries), pa.string())))
    _refuse_repeated(columns, ("query", "doc"), name)
    if by == "rank":
        _refuse_repeated(columns, ("query", "rank"), name)
    order = "ascending" if by == "rank" else "descending"
    ordered = columns.sort_by([("query", "ascending"), (by, order), ("row", "ascending")])
    lists: dict[str, list[str]] = {}
    for query, doc in zip(ordered["query"].to_pylist(), ordered["doc"].to_pylist(), strict=True):
        shown = lists.setdefault(query, [])
        if len(shown) < top:
            shown.append(doc)
    return Ranking(name, {query: tuple(shown) for query, shown in lists.items()})


def read_rankings(
    a: str, b: str, *, top: int = 5, queries: Iterable[str] | None = None
) -> tuple[Ranking, Ranking]:
    """Two rankings from files, each named by its file, or by its whole path if the names are equal."""
    names = (Path(a).stem, Path(b).stem)
    if names[0] == names[1]:
        names = (str(a), str(b))
    if names[0] == names[1]:
        raise UsageError(f"both rankings are {a}: give two files to compare")
    wanted = None if queries is None else list(queries)
    first, second = (
        read_ranking(path, name=name, top=top, queries=wanted)
        for path, name in zip((a, b), names, strict=True)
    )
    return first, second


def _refuse_repeated(columns: pa.Table, key: tuple[str, str], name: str) -> None:
    counts = columns.group_by(list(key)).aggregate([("row", "count"), ("row", "max")])
    twice = counts.filter(pc.greater(counts["row_count"], 1)).sort_by("row_max")
    if not twice.num_rows:
        return
    first = twice.slice(0, 1).to_pylist()[0]
    value = first[key[1]]
    shown = repr(value) if isinstance(value, str) else f"{value:g}"
    raise DataError(
        f"the ranking {name}, row {first['row_max'] + 1:,}: query {first['query']!r} has the {key[1]} "
        f"{shown} {first['row_count']} times ({twice.num_rows:,} such in all); once is required. "
        "Remedy: keep one row each"
    )
