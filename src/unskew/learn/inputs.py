"""What a ranker is given to score: a matrix, a data frame of any kind, or our own containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData

__all__ = ["aligned", "column_of", "features_of", "is_frame"]


def is_frame(X: Any) -> bool:
    """Whether X is a data frame (pandas, Polars, Arrow): named columns that speak Arrow."""
    return hasattr(X, "__arrow_c_stream__")


def features_of(X: Any, *, categories: Mapping[str, tuple[str, ...]] | None = None) -> Features:
    """The features of X, row for row.

    Text columns of a data frame become category codes: those of ``categories`` if given, a new
    category being a missing value, else those found in X. A matrix has columns f0, f1, …
    """
    if isinstance(X, Features):
        return X
    if isinstance(X, LabelledData | Impressions):
        return X.features
    if is_frame(X):
        return _frame_features(X, categories)
    return _matrix_features(X)


def aligned(
    features: Features, names: tuple[str, ...], categories: Mapping[str, tuple[str, ...]]
) -> npt.NDArray[np.floating]:
    """The columns that a model was trained on, in its order and with its category codes.

    Columns f0, f1, … have no names of their own: they are taken by their place.
    """
    unnamed = tuple(f"f{k}" for k in range(len(features.names)))
    if features.names == names or features.names == unnamed or names == unnamed:
        if len(features.names) != len(names):
            raise DataError(
                f"X has {len(features.names)} features, but the model is expecting {len(names)} "
                "features as input"
            )
        values, found = features.values, features.names
    else:
        missing = [name for name in names if name not in features.names]
        if missing:
            raise DataError(
                f"the model was trained with the feature(s) {missing}, which X does not have: it "
                f"has {list(features.names)}"
            )
        values = features.values[:, [features.names.index(name) for name in names]]
        found = names
    return _recoded(values, found, features.categories, names, categories)


def _recoded(
    values: npt.NDArray[np.floating],
    found: tuple[str, ...],
    given: Mapping[str, tuple[str, ...]],
    names: tuple[str, ...],
    wanted: Mapping[str, tuple[str, ...]],
) -> npt.NDArray[np.floating]:
    for k, name in enumerate(names):
        texts = given.get(found[k])
        if texts is None or texts == wanted.get(name):
            continue
        place = {text: float(code) for code, text in enumerate(wanted.get(name, ()))}
        codes = np.array([*(place.get(text, np.nan) for text in texts), np.nan])
        column = values[:, k]
        values = values.copy()
        values[:, k] = codes[np.where(np.isnan(column), len(texts), column).astype(np.intp)]
    return values


def column_of(values: Any, name: str, length: int) -> npt.NDArray[Any]:
    """One column beside X, as an array of that length."""
    if values is None:
        raise UsageError(f"{name} is needed: give one value per row of X")
    # pandas, Polars and Arrow columns all have it.
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if array.ndim != 1 or len(array) != length:
        raise UsageError(
            f"{name} must have one value for each of the {length} rows of X, got shape "
            f"{array.shape}"
        )
    return array


def _matrix_features(X: Any) -> Features:
    if hasattr(X, "toarray"):
        raise TypeError("X is a sparse matrix: call X.toarray(), Unskew needs a dense one")
    values = np.asarray(X)
    if np.iscomplexobj(values):
        raise ValueError("Complex data not supported: features must be real numbers")
    if values.dtype not in (np.float32, np.float64):
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"X must hold numbers: {error}") from error
    if values.ndim != 2:
        raise DataError(
            f"X must be a matrix, one row per document: got {values.ndim} dimension(s). Reshape "
            "your data with X.reshape(-1, 1) if it has one feature, X.reshape(1, -1) if it is one "
            "document"
        )
    if values.shape[0] == 0:
        raise DataError(
            f"X has 0 sample(s) (shape={values.shape}) while a minimum of 1 is required."
        )
    if values.shape[1] == 0:
        raise DataError(
            f"X has 0 feature(s) (shape={values.shape}) while a minimum of 1 is required."
        )
    if np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0]
        raise DataError(
            f"X has infinity in row {row + 1}, column {column + 1}: features must be finite or "
            "NaN, which is a missing value"
        )
    return Features(values, tuple(f"f{k}" for k in range(values.shape[1])))


def _frame_features(X: Any, known: Mapping[str, tuple[str, ...]] | None) -> Features:
    import pyarrow as pa

    table = pa.table(X).drop_columns(_index_columns(X))
    columns, found = [], {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if _is_text(column.type):
            wanted = None if known is None else known.get(name, ())
            codes, found[name] = _codes(column, wanted)
            columns.append(codes)
        else:
            columns.append(_numbers(name, column))
    values = np.column_stack(columns) if columns else np.empty((table.num_rows, 0))
    _matrix_features(values)
    return Features(values, tuple(table.column_names), found)


def _index_columns(X: Any) -> list[str]:
    # pandas adds an index that is more than a row number as a column.
    import pyarrow as pa

    return [name for name in pa.table(X).column_names if name.startswith("__index_level_")]


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind)
                or types.is_string_view(kind))  # fmt: skip


def _codes(
    column: Any, wanted: tuple[str, ...] | None
) -> tuple[npt.NDArray[np.float64], tuple[str, ...]]:
    texts = column.to_pylist()
    if wanted is None:
        wanted = tuple(sorted({str(text) for text in texts if text is not None}))
    code = {text: float(k) for k, text in enumerate(wanted)}
    values = [np.nan if text is None else code.get(str(text), np.nan) for text in texts]
    return np.array(values, dtype=np.float64), wanted


def _numbers(name: str, column: Any) -> npt.NDArray[np.float64]:
    import pyarrow as pa

    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowInvalid as error:
        raise DataError(f"column {name!r} holds {column.type}, not numbers or text") from error
