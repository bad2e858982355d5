"""LabelledData: documents with relevance grades, grouped by query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import DataError
from unskew.log.features import Features
from unskew.log.impressions import ragged_entries, run_offsets


@dataclass(frozen=True, eq=False)
class LabelledData:
    """Documents of many queries with their relevance grades, the rows of a query side by side.

    Attributes
    ----------
    features
        One feature row per document.
    relevance
        The grade of each row: 0 is irrelevant, higher is better.
    query
        The query of each row, as integers or strings; rows of one query are contiguous.
    doc
        The document of each row, as integers or strings.

    Examples
    --------
    >>> import unskew
    >>> table = {"query": ["tea", "tea"], "relevance": [2, 0], "price": [3.0, 4.0]}
    >>> labels = unskew.read_labels(table)
    >>> labels.n_queries, labels.relevance.tolist(), labels.features.names
    (1, [2.0, 0.0], ('price',))

    """

    features: Features
    relevance: npt.NDArray[np.float64]
    query: npt.NDArray[Any]
    doc: npt.NDArray[Any]

    def __post_init__(self) -> None:
        lengths = {
            "features": len(self.features),
            "relevance": len(self.relevance),
            "query": len(self.query),
            "doc": len(self.doc),
        }
        if len(set(lengths.values())) != 1:
            raise DataError(f"labelled data needs columns of one length, got {lengths}")
        if self.n_queries != len(set(self.query[self.offsets[:-1]].tolist())):
            raise DataError(
                "rows of one query must stand side by side: use LabelledData.from_rows, which "
                "groups them"
            )

    def __len__(self) -> int:
        return len(self.relevance)

    def __repr__(self) -> str:
        return (
            f"LabelledData({self.n_queries:,} queries, {len(self):,} documents, "
            f"{self.features.n_features} features)"
        )

    @classmethod
    def from_rows(
        cls,
        features: Features,
        relevance: npt.ArrayLike,
        query: npt.ArrayLike,
        doc: npt.ArrayLike | None = None,
    ) -> LabelledData:
        """Group rows by query, queries in order of first appearance, rows in the order given.

        Without ``doc`` a document is named by its row number.
        """
        query = np.asarray(query)
        relevance = np.asarray(relevance, dtype=np.float64)
        doc = np.arange(len(query)) if doc is None else np.asarray(doc)
        if not len(query):
            raise DataError("there is no labelled row: the table or file is empty")
        bad = np.flatnonzero(~np.isfinite(relevance) | (relevance < 0))
        if len(bad):
            raise DataError(
                f"relevance must be a grade, 0 or higher: row {bad[0] + 1} has {relevance[bad[0]]}"
            )
        _, first, code = np.unique(query, return_index=True, return_inverse=True)
        order = np.argsort(first[code], kind="stable")
        if np.array_equal(order, np.arange(len(order))):
            return cls(features, relevance, query, doc)
        return cls(features.take(order), relevance[order], query[order], doc[order])

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each query's rows begin, and the number of rows at the end."""
        return run_offsets(self.query)

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self.offsets) - 1

    def take_queries(self, queries: npt.NDArray[np.intp]) -> LabelledData:
        """The given queries (by their index), in the given order."""
        _, rows = ragged_entries(self.offsets, queries)
        return LabelledData(
            self.features.take(rows), self.relevance[rows], self.query[rows], self.doc[rows]
        )
