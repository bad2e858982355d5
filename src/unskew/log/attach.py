"""Features from a table of their own, keyed by query and doc, joined to the documents of a log."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from unskew.log.columns import FeatureColumns, choose_features, require_columns, select_sql
from unskew.log.impressions import Impressions
from unskew.log.keys import decode_categories, match_keys
from unskew.log.problems import Problems
from unskew.log.schema import Columns, Kind, Problem
from unskew.log.sources import SourceTable, connect, open_table
from unskew.progress import progress_bar

if TYPE_CHECKING:
    from unskew.log.read import LogOptions


class Attached(NamedTuple):
    """A log with the features of a table, what does not fit, and columns that number its rows.

    ``bad`` marks documents that have no features, or an infinite one.
    """

    impressions: Impressions
    problems: list[Problem]
    numbering: tuple[str, ...]
    bad: npt.NDArray[np.bool_]


def attach_features(
    data: Impressions,
    source: Any,
    columns: Columns,
    options: LogOptions,
    log_columns: Collection[str] = (),
) -> Attached:
    """Give every document its row of the features table; report what does not fit.

    A column to ignore must be one of the table or of the log.
    """
    with connect(memory_limit=options.memory_limit, threads=options.threads) as connection:
        table = open_table(
            source,
            connection,
            what="the features table",
            text_columns=[columns.query, columns.doc, *options.categorical],
        )
        require_columns(table, {"query": columns.query, "doc": columns.doc})
        chosen = choose_features(
            table,
            taken=[columns.query, columns.doc],
            names=options.feature_names,
            categorical=options.categorical,
            ignore=[n for n in options.ignore if n in table.columns or n not in log_columns],
        )
        join = _Join(data, table, chosen)
        join.run(columns, progress=options.progress)
        bad = ~join.filled | np.isinf(join.values).any(axis=1)
        return Attached(join.result(), join.problems(columns), chosen.index, bad)


class _Join:
    """One pass over the features table that fills the rows of a log's documents."""

    def __init__(self, data: Impressions, table: SourceTable, chosen: FeatureColumns) -> None:
        self.data, self.table, self.chosen = data, table, chosen
        documents = data.documents
        self.docs, self.doc_rank = np.unique(documents.doc, return_inverse=True)
        # Sorted, because documents are sorted by query and doc.
        self.combined = documents.query.astype(np.int64) * len(self.docs) + self.doc_rank
        self.values = np.full((len(documents), len(chosen.names)), np.nan, dtype=chosen.dtype)
        self.filled = np.zeros(len(documents), dtype=np.bool_)
        self.coders = chosen.coders()
        self.n_rows = 0
        self.found = Problems.none()

    def run(self, columns: Columns, *, progress: bool) -> None:
        keys = {"query": columns.query, "doc": columns.doc}
        select = select_sql(self.table, keys, {}, self.chosen)
        with progress_bar("Reading features", self.table.n_rows, show=progress) as advance:
            for batch in self.table.scan(", ".join(select)):
                self._take(batch)
                self.n_rows += batch.num_rows
                advance(batch.num_rows)

    def _take(self, batch: pa.RecordBatch) -> None:
        null = np.asarray(pc.or_(batch.column("query").is_null(), batch.column("doc").is_null()))
        self.found.add(Kind.FEATURES_NULL_KEY, self.n_rows + np.flatnonzero(null))
        query = match_keys(batch.column("query"), self.data.queries)
        doc = match_keys(batch.column("doc"), self.docs)
        key = np.where((query < 0) | (doc < 0) | null, -1, query * len(self.docs) + doc)
        at = np.minimum(np.searchsorted(self.combined, key), len(self.combined) - 1)
        rows = np.flatnonzero(self.combined[at] == key)
        at = at[rows]
        matrix = self.chosen.matrix(batch.take(pa.array(rows)), self.coders)
        infinite = np.isinf(matrix).any(axis=1)
        self.found.add(Kind.INFINITE_FEATURE, self.n_rows + rows[infinite])
        # Within a batch the first row of a document counts, as it does between batches.
        _, first = np.unique(at, return_index=True)
        new = first[~self.filled[at[first]]]
        self.values[at[new]] = matrix[new]
        self.filled[at[new]] = True
        differs = ~_same(self.values[at], matrix)
        self.found.add(Kind.FEATURES_CONFLICT, self.n_rows + rows[differs])

    def result(self) -> Impressions:
        features = decode_categories(self.values, self.chosen.names, self.coders)
        return replace(self.data, documents=replace(self.data.documents, features=features))

    def problems(self, columns: Columns) -> list[Problem]:
        problems = [self._problem(*found, columns) for found in self.found.found(n_sessions=0)]
        missing = np.flatnonzero(~self.filled)
        if len(missing):
            documents = self.data.documents
            query = self.data.queries.tolist()[documents.query[missing[0]]]
            doc = documents.doc[missing[:1]].tolist()[0]
            where = f"{self.table.name} ({columns.query} {query!r}, {columns.doc} {doc!r})"
            problems.append(Problem(Kind.MISSING_FEATURES, len(missing), None, where))
        return problems

    def _problem(self, kind: Kind, count: int, row: int, columns: Columns) -> Problem:
        shown = [columns.query, columns.doc, *self.chosen.names]
        example = self.table.first_row(f"unskew_row = {row}", shown)
        values = example.values if example else {}
        column = None
        if kind == Kind.INFINITE_FEATURE:
            column = next(
                (n for n in self.chosen.names if values.get(n) in (np.inf, -np.inf)), None
            )
        where = (
            f"{self.table.where(row)} ({columns.query} {values.get(columns.query)!r}, "
            f"{columns.doc} {values.get(columns.doc)!r})"
        )
        return Problem(kind, count, column, where)


def _same(a: npt.NDArray[np.floating], b: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
    """Which rows are equal, missing values included."""
    return np.asarray(((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1))
