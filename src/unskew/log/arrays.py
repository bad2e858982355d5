"""Plain arrays and data frames become Impressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.errors import DataError, UsageError
from unskew.log.compact import NO_CONTEXT, Batch, Compactor
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.keys import KeyCoder, decode_categories
from unskew.log.plan import feature_matrix, plan_features
from unskew.log.schema import RULES, Kind
from unskew.log.sources import connect, open_table

__all__ = ["features_from", "impressions_from_arrays"]


def features_from(
    X: Any, *, names: Sequence[str] | None = None, categorical: Sequence[str] = ()
) -> Features:
    """A feature matrix from a NumPy array or a pandas, Polars or Arrow frame; Features stay as they are.

    A frame's numeric columns are features as they are, its categorical columns by their categories.
    """
    if isinstance(X, Features):
        return X
    if hasattr(X, "__arrow_c_stream__") or type(X).__module__.partition(".")[0] == "pandas":
        if names is not None:
            raise UsageError("feature_names goes with plain arrays; a frame has names of its own")
        return _from_frame(X, categorical)
    if hasattr(X, "toarray"):
        raise UsageError("X is a sparse matrix, but features must be dense: use X.toarray()")
    try:
        values = np.asarray(X)
        if values.dtype != np.float32:
            values = values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"X must hold numbers: {error}") from error
    if values.ndim != 2:
        raise UsageError(
            f"X must be a matrix of shape (rows, features), got {values.ndim} dimension(s)"
        )
    given = tuple(names) if names is not None else tuple(f"f{k}" for k in range(values.shape[1]))
    if len(given) != values.shape[1] or len(set(given)) != len(given):
        raise UsageError(
            f"feature_names must be {values.shape[1]} different names, got {len(given)}"
        )
    if categorical:
        raise UsageError("categorical goes with a data frame: an array holds numbers only")
    _check_finite(values, given)
    return Features(np.ascontiguousarray(values), given)


def _from_frame(frame: Any, categorical: Sequence[str]) -> Features:
    with connect() as connection:
        table = open_table(frame, connection, what="X")
        plan = plan_features(table, taken=(), names=None, categorical=categorical, ignore=())
        select = ", ".join(f"{sql} AS f{k}" for k, sql in enumerate(plan.sql()))
        rows = pa.concat_batches(list(table.scan(select)))
    coders = {name: KeyCoder() for name in plan.names if name in plan.categorical}
    features = decode_categories(feature_matrix(rows, plan, coders), plan.names, coders)
    _check_finite(features.values, plan.names)
    return features


def _check_finite(values: npt.NDArray[np.floating], names: Sequence[str]) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise DataError(
            f"row {row + 1:,}: feature {names[column]!r} is infinite. Remedy: cap it, or write NaN for "
            "a missing value."
        )


def impressions_from_arrays(
    X: Any,
    click: Any,
    *,
    session: Any,
    query: Any,
    position: Any,
    doc: Any = None,
    weight: Any = None,
    context: Any = None,
    feature_names: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
) -> Impressions:
    """See `Impressions.from_arrays`."""
    given = {
        "click": click, "session": session, "query": query, "position": position,
        "doc": doc, "weight": weight, "context": context,
    }  # fmt: skip
    columns = {name: _column(name, values) for name, values in given.items() if values is not None}
    features = None if X is None else features_from(X, names=feature_names, categorical=categorical)
    lengths = {name: len(column) for name, column in columns.items()}
    if features is not None:
        lengths["X"] = len(features)
    if len(set(lengths.values())) != 1:
        raise UsageError(f"all columns need the same length, got {lengths}")
    if features is None and doc is None:
        raise UsageError("without features, doc must be given: nothing else tells documents apart")
    return _compacted(columns, features)


def _column(name: str, values: Any) -> pa.Array:
    """One column as an Arrow array, from a list, an array or a series."""
    try:
        array = pa.array(values, from_pandas=True) if not isinstance(values, pa.Array) else values
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"{name}: cannot be read as a column ({error})") from error
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array


def _compacted(columns: dict[str, pa.Array], features: Features | None) -> Impressions:
    n = len(columns["click"])
    if not n:
        raise DataError("the arrays are empty: a log needs at least one row")
    for name in ("session", "query", "doc", "position", "click"):
        if name in columns and columns[name].null_count:
            row = int(np.flatnonzero(np.asarray(columns[name].is_null()))[0])
            raise DataError(
                f"row {row + 1:,}: {name} is null. Remedy: fill it in, or leave it out."
            )
    coders = {name: KeyCoder() for name in ("session", "query", "doc", "context")}
    codes = {
        name: coder.encode(_key(name, columns[name]))
        for name, coder in coders.items()
        if name in columns
    }
    position = _whole("position", columns["position"], Kind.POSITION_NOT_WHOLE)
    grade = _whole("click", columns["click"], Kind.CLICK_NOT_GRADE)
    order, starts = _sessions_together(codes["session"])
    compactor = Compactor(
        feature_names=features.names if features is not None and features.n_features else (),
        feature_dtype=features.values.dtype if features is not None else np.float64,
        check_docs="doc" in codes,
    )
    if "context" in columns:
        null = np.asarray(columns["context"].is_null())
        codes["context"] = np.where(null, NO_CONTEXT, codes["context"])[order]
    compactor.add(
        Batch(
            starts=starts,
            query=codes["query"][order],
            doc=codes["doc"][order] if "doc" in codes else np.zeros(n, dtype=np.int64),
            position=position[order],
            grade=grade[order],
            row=order,
            context=codes.get("context"),
            weight=_weight(columns["weight"])[order] if "weight" in columns else None,
            features=_rows_in(order, features) if features is not None and features.names else None,
        )
    )
    _raise_first_problem(compactor)
    data = compactor.result(
        queries=coders["query"],
        docs=coders["doc"] if "doc" in codes else None,
        contexts=coders["context"] if "context" in codes else None,
    )
    return data if features is None else _with_categories(data, features)


def _rows_in(order: npt.NDArray[np.int64], features: Features) -> npt.NDArray[np.floating]:
    # Most logs are in order already, and the matrix is the largest thing there is.
    in_order = bool((order[1:] > order[:-1]).all())
    return features.values if in_order else features.values[order]


def _with_categories(data: Impressions, features: Features) -> Impressions:
    named = replace(data.features, categories=features.categories)
    return replace(data, documents=replace(data.documents, features=named))


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


def _whole(name: str, column: pa.Array, kind: Kind) -> npt.NDArray[np.int64]:
    if pa.types.is_boolean(column.type) or pa.types.is_integer(column.type):
        return np.asarray(column.cast(pa.int64()))
    if not pa.types.is_floating(column.type):
        raise DataError(f"{name}: numbers are needed, got values of type {column.type}")
    values = np.asarray(column.cast(pa.float64()))
    bad = np.flatnonzero(~((values == np.floor(values)) & (np.abs(values) < 2**53)))
    if len(bad):
        raise DataError(
            f"row {bad[0] + 1:,}: {name} {values[bad[0]]} {RULES[kind].wrong}. "
            f"Remedy: {RULES[kind].remedy}."
        )
    return values.astype(np.int64)


def _weight(column: pa.Array) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(column.cast(pa.float64()).fill_null(np.nan)) + 0.0
    except pa.ArrowException as error:
        raise DataError(f"weight: numbers are needed, got values of type {column.type}") from error


def _sessions_together(
    session: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """An order of rows in which each session's stand side by side, and where sessions begin."""
    order = np.arange(len(session))
    if (session[1:] < session[:-1]).any():
        order = np.argsort(session, kind="stable")
    ordered = session[order]
    change = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return order, np.concatenate(([0], change, [len(session)])).astype(np.int64)


def _raise_first_problem(compactor: Compactor) -> None:
    for kind in Kind:
        count = int(compactor.problems[kind])
        # In arrays the first place may be told apart from a mistake as well as in a file.
        if kind == Kind.ZERO_BASED and 2 * count < compactor.n_sessions:
            continue
        if count:
            rule = RULES[kind]
            row = int(compactor.first_row[kind])
            raise DataError(
                f"row {row + 1:,}: {rule.role} {rule.wrong} ({count:,} {rule.unit} in all). "
                f"Remedy: {rule.remedy}."
            )
