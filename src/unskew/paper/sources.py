"""Where an experiment's labelled data comes from: a dataset's folder, one file, or a generator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from unskew.datasets import Dataset, make_search_dataset, read_dataset
from unskew.datasets.folders import count_folds
from unskew.errors import DataError
from unskew.log.labelled import LabelledData
from unskew.log.read import read_labels
from unskew.paper.profiles import GeneratedSize

__all__ = ["GENERATED", "Source", "open_source"]

GENERATED = "generated"

# A file without parts is cut into five folds: three fifths train, one validates, one tests.
FIFTHS = 5

# Of generated data five eighths of the queries train, one eighth validates, two eighths test.
EIGHTHS = (0.625, 0.75)


@dataclass(frozen=True)
class Source:
    """Labelled data with its folds.

    Attributes
    ----------
    name
        What results call it.
    n_folds
        How many folds it has.
    path, dataset
        The folder or file, and which dataset a folder holds; None for generated data.
    size
        The size of generated data, which every seed generates anew; None for files.

    """

    name: str
    n_folds: int
    path: Path | None = None
    dataset: str | None = None
    size: GeneratedSize | None = None

    def parts(self, fold: int, seed: int) -> Dataset:
        """Train, validation and test of one fold."""
        return _parts(self, fold, seed)


def open_source(data: str, *, dataset: str | None, size: GeneratedSize) -> Source:
    """The source that ``data`` names: a folder, a file, or ``generated``."""
    if data == GENERATED:
        name = f"generated, {size.n_queries:,} queries of {size.n_features} features"
        return Source(name, 1, size=size)
    path = Path(data)
    if path.is_dir():
        return Source(dataset or path.name, count_folds(path, name=dataset), path, dataset)
    if not path.exists():
        raise DataError(
            f"{path} is not there: give the folder of a dataset, a LETOR file, or '{GENERATED}'"
        )
    return Source(path.name.split(".")[0], FIFTHS, path)


@lru_cache(maxsize=2)
def _parts(source: Source, fold: int, seed: int) -> Dataset:
    if source.size is not None:
        return _generated(source.size, seed)
    if source.path is None:
        raise ValueError("a source has a path or a size")
    if source.path.is_dir():
        return _with_validation(read_dataset(source.path, name=source.dataset, fold=fold), seed)
    return _fifths(_file(source.path), fold, seed)


@lru_cache(maxsize=1)
def _file(path: Path) -> LabelledData:
    return read_labels(str(path))


def _generated(size: GeneratedSize, seed: int) -> Dataset:
    data = make_search_dataset(
        n_queries=size.n_queries,
        n_features=size.n_features,
        docs_per_query=size.docs_per_query,
        seed=seed,
    )
    ends = [0, *(round(share * size.n_queries) for share in EIGHTHS), size.n_queries]
    train, validation, test = (
        data.take_queries(np.arange(first, last)) for first, last in pairwise(ends)
    )
    return Dataset(train, validation, test, fold=1, max_grade=4)


def _fifths(data: LabelledData, fold: int, seed: int) -> Dataset:
    """One fold of a file; every seed cuts the queries anew."""
    if data.n_queries < FIFTHS:
        raise DataError(f"the data has {data.n_queries} queries: five folds need five or more")
    order = np.random.default_rng(seed).permutation(data.n_queries)
    fifth = np.array_split(order, FIFTHS)
    turned = [fifth[(fold - 1 + step) % FIFTHS] for step in range(FIFTHS)]
    return Dataset(
        data.take_queries(np.sort(np.concatenate(turned[:3]))),
        data.take_queries(np.sort(turned[3])),
        data.take_queries(np.sort(turned[4])),
        fold,
        max(1, int(data.relevance.max())),
    )


def _with_validation(data: Dataset, seed: int) -> Dataset:
    """The dataset; one without a validation part lends it a fifth of the training queries."""
    if data.validation is not None:
        return data
    order = np.random.default_rng(seed).permutation(data.train.n_queries)
    cut = max(1, data.train.n_queries // FIFTHS)
    held_out, rest = np.sort(order[:cut]), np.sort(order[cut:])
    return Dataset(
        data.train.take_queries(rest),
        data.train.take_queries(held_out),
        data.test,
        data.fold,
        data.max_grade,
    )
