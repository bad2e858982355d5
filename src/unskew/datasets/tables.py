"""Labelled data as tables: the features that a click log needs, the labels that metrics need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.errors import DataError
from unskew.log.labelled import LabelledData


def _column(values: npt.NDArray[Any]) -> pa.Array:
    return pa.array(values if np.issubdtype(values.dtype, np.number) else values.astype(str))


def features_table(data: LabelledData) -> pa.Table:
    """One row per document: ``query``, ``doc`` and the features, and no grade among them.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=4, n_features=16, seed=0)
    >>> unskew.datasets.features_table(labels).column_names[:4]
    ['query', 'doc', 'view_1', 'view_2']

    """
    columns = {"query": _column(data.query), "doc": _column(data.doc)}
    taken = {*columns, "relevance"} & {*data.features.names}
    if taken:
        raise DataError(
            f"a feature is called {min(taken)!r}, which the table needs for itself. Remedy: rename it."
        )
    for index, name in enumerate(data.features.names):
        values = np.ascontiguousarray(data.features.values[:, index])
        columns[name] = _categories(values, data.features.categories.get(name))
    return pa.table(columns)


def _categories(values: npt.NDArray[np.floating], texts: Sequence[str] | None) -> pa.Array:
    """A feature as numbers, or a categorical one as its categories."""
    if texts is None:
        return pa.array(values)
    missing = np.isnan(values)
    codes = pa.array(np.where(missing, 0, values).astype(np.int32), mask=missing)
    return pa.DictionaryArray.from_arrays(codes, pa.array(list(texts), pa.string()))


def labels_table(data: LabelledData) -> pa.Table:
    """One row per document: ``query``, ``doc``, ``relevance`` and the features."""
    return features_table(data).add_column(2, "relevance", pa.array(data.relevance))
