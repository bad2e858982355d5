"""Labelled data as tables: the features that a click log needs, the labels that metrics need."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.log.labelled import LabelledData


def _column(values: npt.NDArray[Any]) -> pa.Array:
    return pa.array(values if np.issubdtype(values.dtype, np.number) else values.astype(str))


def features_table(data: LabelledData) -> pa.Table:
    """One row per document: ``query``, ``doc`` and the features, and no grade among them."""
    columns = {"query": _column(data.query), "doc": _column(data.doc)}
    for index, name in enumerate(data.features.names):
        columns[name] = pa.array(np.ascontiguousarray(data.features.values[:, index]))
    return pa.table(columns)


def labels_table(data: LabelledData) -> pa.Table:
    """One row per document: ``query``, ``doc``, ``relevance`` and the features."""
    return features_table(data).add_column(2, "relevance", pa.array(data.relevance))
