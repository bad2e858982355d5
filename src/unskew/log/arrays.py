"""Plain arrays and data frames become Impressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from unskew.errors import DataError, UsageError
from unskew.log.coding import SessionCoder
from unskew.log.columns import FeatureColumns
from unskew.log.features import Features
from unskew.log.impressions import Impressions, run_offsets
from unskew.log.keys import KeyCoder
from unskew.log.matrix import features_from


def impressions_from_arrays(
    X: Any,
    given: Mapping[str, Any],
    *,
    feature_names: Sequence[str] | None,
    categorical: Sequence[str],
) -> Impressions:
    """See `Impressions.from_arrays`; ``given`` are the columns beside X, None where there is none."""
    columns = {name: _column(name, values) for name, values in given.items() if values is not None}
    features = None if X is None else features_from(X, names=feature_names, categorical=categorical)
    lengths = {name: len(column) for name, column in columns.items()}
    if features is not None:
        lengths["X"] = len(features)
    if len(set(lengths.values())) != 1:
        raise UsageError(f"all columns need the same length, got {lengths}")
    if features is None and "doc" not in columns:
        raise UsageError("without features, doc must be given: nothing else tells documents apart")
    if not len(columns["click"]):
        raise DataError("the arrays are empty: a log needs at least one row")
    return _compacted(columns, features)


def _column(name: str, values: Any) -> pa.Array:
    """One column as an Arrow array, from a list, an array or a series."""
    try:
        array = values if isinstance(values, pa.Array) else _arrow(values)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"{name}: cannot be read as a column ({error})") from error
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array


def _arrow(values: Any) -> Any:
    """The values as Arrow holds them; whole numbers beyond 64 bits stay exact as texts."""
    try:
        return pa.array(values, from_pandas=True)
    except OverflowError:
        numbers = np.asarray(values)
        return pa.array(numbers if numbers.dtype.kind == "u" else list(map(str, numbers.tolist())))


def _compacted(columns: dict[str, pa.Array], features: Features | None) -> Impressions:
    readers = {"position": _number, "click": _number, "weight": _number}
    read = {name: readers.get(name, _key)(name, column) for name, column in columns.items()}
    rows = pa.RecordBatch.from_arrays(list(read.values()), names=list(read))
    session = KeyCoder().encode(read["session"])
    order = np.argsort(session, kind="stable")
    starts = run_offsets(session[order])
    in_order = bool((order[1:] > order[:-1]).all())
    matrix = features.values if features is not None and features.n_features else None
    if not in_order:
        rows = rows.take(pa.array(order))
        matrix = matrix[order] if matrix is not None else None
    chosen = FeatureColumns()
    if features is not None:
        chosen = FeatureColumns(features.names, dtype=features.values.dtype)
    coder = SessionCoder(chosen, docs="doc" in columns)
    coder.add(rows, starts, matrix, order)
    _raise_first_problem(coder, columns)
    # Rows without a problem are valid sessions.
    data = cast(Impressions, coder.take_out())
    if features is None:
        return data
    kept = replace(data.features, categories=features.categories, named=features.named)
    return replace(data, documents=replace(data.documents, features=kept))


def _key(name: str, column: pa.Array) -> pa.Array:
    """A key column as integers or text."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return column.cast(pa.int64())
    if pa.types.is_integer(kind) or pa.types.is_string(kind):
        return column
    if pa.types.is_floating(kind):
        values = np.asarray(column)
        present = values[~np.isnan(values)]
        if (present == np.floor(present)).all() and (np.abs(present) < 2**53).all():
            return column.cast(pa.int64())
    return column.cast(pa.string())


def _number(name: str, column: pa.Array) -> pa.Array:
    """A column of numbers as int64 or float64."""
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if not (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise DataError(f"{name}: numbers are needed, got values of type {kind}")
    return column.cast(pa.float64())


def _raise_first_problem(coder: SessionCoder, columns: dict[str, pa.Array]) -> None:
    compactor = coder.compactor
    for kind, count, row in compactor.problems.found(compactor.n_sessions):
        value = columns[str(kind.role)][row].as_py() if kind.role in columns else None
        shown = f" {value}" if isinstance(value, float) and value % 1 else ""
        raise DataError(
            f"row {row + 1:,}: {kind.role}{shown} {kind.wrong} ({count:,} {kind.unit} in all). "
            f"Remedy: {kind.remedy}."
        )
