"""Labelled data from wherever a person points: a file, the folder of a dataset, or `generated`."""

from __future__ import annotations

import glob
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from unskew.datasets.folders import Dataset, count_folds, read_dataset
from unskew.datasets.generated import make_search_dataset
from unskew.errors import DataError
from unskew.log.labelled import LabelledData
from unskew.log.read import read_labels

GENERATED = "generated"

# Where the training and the validation queries of generated data end: 70% and 10% for commands, five
# eighths and one eighth for the paper's experiments, which test on more.
TENTHS = (0.7, 0.8)
EIGHTHS = (0.625, 0.75)

# A file without parts is cut into five folds: three fifths train, one validates, one tests.
FIFTHS = 5


@dataclass(frozen=True)
class GeneratedSize:
    """How large generated data is."""

    n_queries: int
    n_features: int = 64
    docs_per_query: float = 20.0


@dataclass(frozen=True)
class LabelledSource:
    """Labelled data with its folds.

    Attributes
    ----------
    name
        What results call it.
    path, dataset
        The folder or file, and which dataset a folder holds; None for generated data.
    size, split
        The size of generated data, which every seed generates anew, and where its training and
        validation queries end; None for files.

    """

    name: str
    path: str | None = None
    dataset: str | None = None
    size: GeneratedSize | None = None
    split: tuple[float, float] = TENTHS

    @property
    def n_folds(self) -> int:
        """How many folds it has."""
        if self.path is None:
            return 1
        if Path(self.path).is_dir():
            return count_folds(self.path, name=self.dataset)
        return FIFTHS

    def as_given(self, fold: int, seed: int) -> Dataset:
        """One fold as it is kept: a folder may lack validation, a file is every part of itself."""
        if self.size is not None:
            return _generated(self.size, self.split, seed)
        if self.path is None:
            raise ValueError("a source has a path or a size")
        if Path(self.path).is_dir():
            return read_dataset(self.path, name=self.dataset, fold=fold)
        data = _file(self.path)
        return Dataset(data, data, data, fold, int(data.relevance.max()))

    def parts(self, fold: int, seed: int) -> Dataset:
        """Train, validation and test of one fold, cut by the seed where they are not given."""
        return _parts(self, fold, seed)


def open_labelled(
    data: str, *, dataset: str | None, size: GeneratedSize, split: tuple[float, float] = TENTHS
) -> LabelledSource:
    """The source that ``data`` names: a folder, a file, or ``generated``."""
    if data == GENERATED:
        name = f"generated, {size.n_queries:,} queries of {size.n_features} features"
        return LabelledSource(name, size=size, split=split)
    path = Path(data)
    if path.is_dir():
        return LabelledSource(dataset or path.name, data, dataset)
    if not path.exists() and not glob.has_magic(data):
        raise DataError(
            f"{path} is not there: give the folder of a dataset, a LETOR file, or '{GENERATED}'"
        )
    return LabelledSource(path.name.split(".")[0], data)


@lru_cache(maxsize=2)
def _parts(source: LabelledSource, fold: int, seed: int) -> Dataset:
    found = source.as_given(fold, seed)
    if source.path is not None and not Path(source.path).is_dir():
        return _fifths(found, seed)
    return found if found.validation is not None else _with_validation(found, seed)


@lru_cache(maxsize=1)
def _file(path: str) -> LabelledData:
    return read_labels(path)


def _generated(size: GeneratedSize, split: tuple[float, float], seed: int) -> Dataset:
    data = make_search_dataset(**asdict(size), seed=seed)
    ends = [0, *(round(share * size.n_queries) for share in split), size.n_queries]
    train, validation, test = (
        data.take_queries(np.arange(first, last)) for first, last in pairwise(ends)
    )
    return Dataset(train, validation, test, fold=1, max_grade=4)


def _fifths(whole: Dataset, seed: int) -> Dataset:
    """One fold of a file; every seed cuts the queries anew."""
    data, fold = whole.train, whole.fold
    if data.n_queries < FIFTHS:
        raise DataError(f"the data has {data.n_queries} queries: five folds need five or more")
    order = np.random.default_rng(seed).permutation(data.n_queries)
    fifth = np.array_split(order, FIFTHS)
    turned = [fifth[(fold - 1 + step) % FIFTHS] for step in range(FIFTHS)]
    parts = (np.concatenate(turned[:3]), turned[3], turned[4])
    train, validation, test = (data.take_queries(np.sort(part)) for part in parts)
    return replace(whole, train=train, validation=validation, test=test)


def _with_validation(data: Dataset, seed: int) -> Dataset:
    """A dataset without a validation part lends it a fifth of the training queries."""
    order = np.random.default_rng(seed).permutation(data.train.n_queries)
    cut = max(1, data.train.n_queries // FIFTHS)
    held_out, rest = np.sort(order[:cut]), np.sort(order[cut:])
    return replace(
        data, train=data.train.take_queries(rest), validation=data.train.take_queries(held_out)
    )
