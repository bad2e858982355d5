"""Candidates: what a caller has of one query's results, as the matrix that a model reads.

A plain array is taken by place. Everything with names is taken by name: rows as dictionaries,
pandas, Polars and Arrow frames. No database connection is opened, as reading a log does.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError, UsageError

# Booleans, integers and floats, as NumPy calls them.
_NUMBERS = "biuf"


class Candidates:
    """How candidates become rows of a model's features, in the order of its training.

    Parameters
    ----------
    names
        The features of the model.
    categories
        For each categorical feature its categories; code ``c`` stands for ``categories[name][c]``.
    absent
        ``"error"`` refuses a feature that the candidates do not have, ``"missing"`` takes it for a
        missing value.

    """

    def __init__(
        self,
        names: tuple[str, ...],
        categories: Mapping[str, tuple[str, ...]],
        *,
        absent: str = "error",
    ) -> None:
        if absent not in {"error", "missing"}:
            raise UsageError(f"absent must be 'error' or 'missing', got {absent!r}")
        self.names = names
        self._list = list(names)
        self._absent = absent
        self._codes = {
            name: {text: float(code) for code, text in enumerate(texts)}
            for name, texts in categories.items()
        }
        self._values = itemgetter(*names) if len(names) > 1 else lambda row: (row[names[0]],)
        # The columns of the last pandas frame and their places, the schema of the last Arrow table
        # that was all numbers: a service sends the same ones again.
        self._last: tuple[Any, npt.NDArray[np.intp] | None] = (None, None)
        self._last_schema: Any = None

    def matrix(self, X: Any) -> FloatArray:
        """The candidates as a C-contiguous matrix, NaN where a value is missing."""
        if isinstance(X, np.ndarray):
            return self._from_array(X)
        if isinstance(X, Mapping):
            raise UsageError(
                "the candidates are one dictionary: give a list of dictionaries, one per candidate"
            )
        library = type(X).__module__.partition(".")[0]
        if library == "pandas":
            return self._from_pandas(X)
        if library == "polars":
            return self._from_polars(X)
        if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
            return self._from_arrow(X)
        if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
            return self._from_dictionaries(X)
        return self._from_array(np.asarray(X))

    # Plain arrays -------------------------------------------------------------------------------

    def _from_array(self, X: npt.NDArray[Any]) -> FloatArray:
        if X.ndim != 2 or X.shape[1] != len(self.names):
            raise DataError(
                f"the candidates must be a matrix with the {len(self.names)} features of the model, "
                f"one row per candidate: got shape {X.shape}"
            )
        if X.dtype == np.float64 and X.flags.c_contiguous:
            return X
        return _floats(X, "the matrix")

    # Dictionaries -------------------------------------------------------------------------------

    def _from_dictionaries(self, rows: Sequence[Mapping[str, Any]]) -> FloatArray:
        try:
            taken = [self._values(row) for row in rows]
        except KeyError:
            taken = [self._taken(row, k) for k, row in enumerate(rows)]
        if not self._codes:
            try:
                return np.array(taken, dtype=np.float64)
            except (TypeError, ValueError):
                pass
        columns = zip(*taken, strict=True)
        return self._stacked(self._from_objects(n, c) for n, c in zip(self.names, columns))  # noqa: B905

    def _taken(self, row: Mapping[str, Any], k: int) -> tuple[Any, ...]:
        self._check_present(row, f"candidate {k + 1}")
        return tuple(row.get(name) for name in self.names)

    def _from_objects(self, name: str, column: Iterable[Any]) -> FloatArray:
        """A column of Python objects: numbers, None for missing, texts of a category."""
        codes = self._codes.get(name, {})
        found = [
            np.nan if v is None else codes.get(v, np.nan) if isinstance(v, str) and codes else v
            for v in column
        ]
        return _floats(found, f"feature {name!r}")

    # Frames -------------------------------------------------------------------------------------

    def _from_pandas(self, frame: Any) -> FloatArray:
        columns = frame.columns
        seen, places = self._last
        if columns is not seen and not columns.equals(seen):
            self._check_present(columns, "the frame")
            places = None
            if list(columns) != self._list:
                places = np.asarray(columns.get_indexer(self._list))
            self._last = (columns, places)
        if places is not None and (places < 0).any():
            return self._by_column(
                lambda name: frame[name] if name in columns else None, len(frame)
            )
        if self._codes:
            return self._by_column(lambda name: frame[name], len(frame))
        try:
            values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            return self._by_column(lambda name: frame[name], len(frame))
        return np.ascontiguousarray(values if places is None else values[:, places])

    def _from_polars(self, frame: Any) -> FloatArray:
        columns = frame.columns
        same = columns == self._list
        if not same:
            self._check_present(columns, "the frame")
        known = set(self.names if same else columns)
        if not self._codes and known.issuperset(self.names):
            # Row by row where nothing is null; with nulls it takes Polars twice as long.
            values = (frame if same else frame.select(self._list)).to_numpy()
            if values.dtype.kind in _NUMBERS:
                return np.ascontiguousarray(values, dtype=np.float64)
        return self._by_column(lambda name: frame[name] if name in known else None, len(frame))

    def _from_arrow(self, frame: Any) -> FloatArray:
        import pyarrow as pa

        table = frame if isinstance(frame, pa.Table | pa.RecordBatch) else pa.table(frame)
        last = self._last_schema
        if last is not None and table.schema.equals(last):
            return self._from_batches(table)
        columns = table.schema.names
        if columns != self._list:
            self._check_present(columns, "the table")
        known = set(columns)
        if not self._codes and known.issuperset(self.names):
            try:
                values = self._from_batches(table.select(self._list))
            except (pa.ArrowException, TypeError, ValueError):
                pass  # a column of another type than numbers: one by one, to name it
            else:
                self._last_schema = table.schema if columns == self._list else None
                return values
        return self._by_column(lambda name: table[name] if name in known else None, len(table))

    def _from_batches(self, table: Any) -> FloatArray:
        """The matrix of a table, or of one batch, whose columns are the features, all numbers."""
        batches = table.to_batches() if hasattr(table, "to_batches") else [table]
        parts = [
            _floats(batch.to_tensor(null_to_nan=True, row_major=True), "the table")
            for batch in batches
        ]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([np.empty((0, len(self.names))), *parts])

    def _by_column(self, column_of: Any, length: int) -> FloatArray:
        return self._stacked(self._column(name, column_of(name), length) for name in self.names)

    def _column(self, name: str, column: Any, length: int) -> FloatArray:
        """One column of any frame; the texts of a categorical feature become its codes."""
        if column is None:
            return np.full(length, np.nan)
        if hasattr(column, "to_pylist"):
            return self._from_objects(name, column.to_pylist())
        if hasattr(column, "isna"):  # pandas: several kinds of missing value
            missing = column.isna().to_numpy()
            column = [None if gone else v for v, gone in zip(column, missing, strict=True)]
        return self._from_objects(name, column)

    def _stacked(self, columns: Iterable[FloatArray]) -> FloatArray:
        return np.ascontiguousarray(np.array(list(columns)).T)

    # What is not there --------------------------------------------------------------------------

    def _check_present(self, found: Iterable[Any], where: str) -> None:
        if self._absent == "missing":
            return
        known = {str(name) for name in found}
        absent = [name for name in self.names if name not in known]
        if absent:
            raise DataError(
                f"{where} lacks the feature(s) {_listed(absent)} of the model{_guesses(absent, known)}"
                ": add them, or let Scorer(…, absent='missing') take them for missing values"
            )


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _guesses(absent: list[str], known: set[str]) -> str:
    close = {name: difflib.get_close_matches(name, known, n=2) for name in absent[:5]}
    texts = [
        f"{' or '.join(map(repr, found))} for {name!r}" for name, found in close.items() if found
    ]
    return f" (did you mean {', '.join(texts)}?)" if texts else ""


def _floats(values: Any, what: str) -> FloatArray:
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{what} must hold numbers, or None for a missing value: {error}"
        ) from error
