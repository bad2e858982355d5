"""Coding: rows of whole sessions, as Arrow columns, become codes and numbers for the compactor."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.array_types import IntArray
from unskew.log.columns import FeatureColumns
from unskew.log.compact import Compactor, SessionBatch
from unskew.log.grouping import NO_CONTEXT
from unskew.log.impressions import Impressions
from unskew.log.keys import KeyCoder
from unskew.log.schema import Kind
from unskew.log.tabulating import Coders, PartOf

_NULL_KINDS = {str(kind.role): kind for kind in Kind if kind.name.startswith("NULL_")}


class SessionCoder:
    """Codes the columns of a log batch by batch, and compacts them.

    Columns are called by their role. ``docs`` is False for a log whose documents have no names;
    ``position_shift`` is added to every position.
    """

    def __init__(
        self,
        features: FeatureColumns,
        *,
        docs: bool = True,
        from_text: bool = False,
        position_shift: int = 0,
    ) -> None:
        self.compactor = Compactor(
            feature_names=features.names, feature_dtype=features.dtype, check_docs=docs
        )
        self.n_rows = 0
        self._features, self._named, self._from_text = features, docs, from_text
        self._shift = position_shift
        self._begin()

    def _begin(self) -> None:
        """Begin with no key."""
        self.categories = self._features.coders()
        self._queries = KeyCoder(from_text=self._from_text)
        self._docs = KeyCoder(from_text=self._from_text) if self._named else None
        self._contexts: KeyCoder | None = None

    def add(
        self,
        batch: pa.RecordBatch,
        starts: IntArray,
        features: npt.NDArray[np.floating] | None,
        row: IntArray | None = None,
    ) -> None:
        """Take in whole sessions; ``row`` are their rows in the log, else those that come next."""
        n = batch.num_rows
        row = np.arange(self.n_rows, self.n_rows + n) if row is None else row
        self.n_rows += n
        bad = self._null_rows(batch, row)
        position = self._whole(batch, "position", Kind.POSITION_NOT_WHOLE, row, bad)
        grade = self._whole(batch, "click", Kind.CLICK_NOT_GRADE, row, bad)
        doc = np.zeros(n, dtype=np.int64)
        self.compactor.add(
            SessionBatch(
                starts=starts,
                query=self._queries.encode(batch.column("query")),
                doc=doc if self._docs is None else self._docs.encode(batch.column("doc")),
                position=position + self._shift if self._shift else position,
                grade=grade,
                row=row,
                context=self._context(batch),
                weight=_weight(batch),
                bad=bad if bad.any() else None,
                features=features,
            )
        )

    def take_out(self, *, part_of: PartOf | None = None) -> Impressions | None:
        """The valid sessions since they were last taken out, as Impressions; None without any.

        The coder begins anew and keeps its counts. With ``part_of`` they are a piece of a log: queries
        come part by part, and keys that were read from text stay as they are, because whether all are
        numbers is known in the end only.
        """
        if part_of is not None:
            for coder in self._keys():
                coder.keep_text()
        coders = Coders(self._queries, self._docs, self._contexts, self.categories, part_of)
        self._begin()
        return self.compactor.take_out(coders)

    @property
    def n_bytes(self) -> int:
        """About the memory that everything distinct takes."""
        coders = [*self._keys(), *self.categories.values()]
        return self.compactor.n_bytes + sum(coder.n_bytes for coder in coders)

    def _keys(self) -> list[KeyCoder]:
        maybe = self._queries, self._docs, self._contexts
        return [coder for coder in maybe if coder is not None]

    def _null_rows(self, batch: pa.RecordBatch, row: IntArray) -> npt.NDArray[np.bool_]:
        """Report null keys; returns which rows have one."""
        bad = np.zeros(batch.num_rows, dtype=np.bool_)
        for name, kind in _NULL_KINDS.items():
            if name in batch.schema.names and batch.column(name).null_count:
                null = np.asarray(batch.column(name).is_null())
                self.compactor.problems.add(kind, row[null])
                bad |= null
        return bad

    def _whole(
        self,
        batch: pa.RecordBatch,
        name: str,
        kind: Kind,
        row: IntArray,
        bad: npt.NDArray[np.bool_],
    ) -> IntArray:
        """A column as whole numbers; a row that has none is reported and marked in ``bad``."""
        column = batch.column(name)
        if column.null_count:
            column = column.fill_null(1)
        values = np.asarray(column)
        if pa.types.is_integer(column.type):
            return values.astype(np.int64, copy=False)
        # Beyond 2**53 a float cannot tell neighbouring whole numbers apart.
        fractional = ~((np.floor(values) == values) & (np.abs(values) < 2**53))
        if fractional.any():
            self.compactor.problems.add(kind, row[fractional])
            bad |= fractional
            values = np.where(fractional, 1, values)
        return values.astype(np.int64)

    def _context(self, batch: pa.RecordBatch) -> IntArray | None:
        if "context" not in batch.schema.names:
            return None
        if self._contexts is None:
            self._contexts = KeyCoder(from_text=self._from_text)
        column = batch.column("context")
        return np.where(np.asarray(column.is_null()), NO_CONTEXT, self._contexts.encode(column))


def _weight(batch: pa.RecordBatch) -> npt.NDArray[np.float64] | None:
    if "weight" not in batch.schema.names:
        return None
    # A null becomes NaN, which is reported as no weight; adding 0 makes -0.0 equal to 0.0.
    return np.asarray(batch.column("weight").cast(pa.float64()).fill_null(np.nan)) + 0.0
