"""A matrix or a data frame becomes Features: one reader for logs given as arrays and for rankers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.errors import DataError, UsageError
from unskew.log.columns import choose_features
from unskew.log.features import Features
from unskew.log.sources import connect, open_table
from unskew.log.sources.frames import is_frame


def features_from(
    X: Any, *, names: Sequence[str] | None = None, categorical: Sequence[str] = ()
) -> Features:
    """Features of a NumPy array or a pandas, Polars or Arrow frame; Features stay as they are.

    A frame's numeric columns are features as they are, its categorical columns by their categories.
    The columns of a matrix are called f0, f1 and so on unless ``names`` says otherwise.
    """
    if isinstance(X, Features):
        return X
    if is_frame(X):
        if names is not None:
            raise UsageError("feature_names goes with plain arrays; a frame has names of its own")
        features = _from_frame(X, categorical)
    elif categorical:
        raise UsageError("categorical goes with a data frame: an array holds numbers only")
    else:
        features = _from_matrix(X, names)
    infinite = np.argwhere(np.isinf(features.values))
    if len(infinite):
        row, column = infinite[0]
        raise DataError(
            f"row {row + 1:,}: feature {features.names[column]!r} is infinite. Remedy: cap it, or "
            "write NaN for a missing value."
        )
    return features


def _from_frame(frame: Any, categorical: Sequence[str]) -> Features:
    with connect() as connection:
        table = open_table(frame, connection, what="X")
        chosen = choose_features(table, categorical=categorical)
        batches = list(table.scan(", ".join(chosen.sql())))
    if not batches:
        return Features(np.empty((0, len(chosen.names)), dtype=chosen.dtype), chosen.names)
    return chosen.features(pa.concat_batches(batches))


def _from_matrix(X: Any, names: Sequence[str] | None) -> Features:
    if hasattr(X, "toarray"):
        raise UsageError("X is a sparse matrix, but features must be dense: use X.toarray()")
    try:
        values = np.asarray(X)
        if np.iscomplexobj(values):
            raise ValueError("Complex data not supported: features must be real numbers")
        if values.dtype != np.float32:
            values = values.astype(np.float64, copy=False)
    except ValueError as error:
        raise DataError(f"X must hold numbers: {error}") from error
    except TypeError as error:
        raise TypeError(f"X must hold numbers: {error}") from error
    if values.ndim != 2:
        raise UsageError(
            f"X must be a matrix of shape (rows, features), got {values.ndim} dimension(s). Reshape "
            "your data with X.reshape(-1, 1) if it has one feature, X.reshape(1, -1) if it is one row"
        )
    given = tuple(names) if names is not None else tuple(f"f{k}" for k in range(values.shape[1]))
    if len(given) != values.shape[1] or len(set(given)) != len(given):
        raise UsageError(
            f"feature_names must be {values.shape[1]} different names, got {len(given)}"
        )
    return Features(values, given, named=names is not None)
