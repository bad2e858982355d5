"""Labelled ranking data: public datasets from a folder, generated data without any download."""

from __future__ import annotations

from unskew.datasets.folders import DATASETS, Dataset, read_dataset
from unskew.datasets.generated import GRADE_SHARES, make_search_dataset
from unskew.datasets.tables import features_table

__all__ = [
    "DATASETS",
    "GRADE_SHARES",
    "Dataset",
    "features_table",
    "make_search_dataset",
    "read_dataset",
]
