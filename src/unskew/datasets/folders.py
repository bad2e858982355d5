"""The public datasets, read from a folder in the layout in which they are distributed.

Nothing is downloaded. Files may be plain or gzipped (``train.txt`` or ``train.txt.gz``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.labelled import LabelledData


@dataclass(frozen=True)
class Layout:
    """Which files hold which part of which fold, below the folder.

    A part is a tuple of files that are read one after the other; an empty tuple means that the
    dataset has no such part.
    """

    name: str
    folds: Mapping[int, Mapping[str, tuple[str, ...]]]

    def expected(self, fold: int) -> list[str]:
        """The files of a fold."""
        return [file for part in self.folds[fold].values() for file in part]


def _folders() -> Layout:
    parts = {"train": "train.txt", "validation": "vali.txt", "test": "test.txt"}
    return Layout(
        "five folders",
        {k: {part: (f"Fold{k}/{file}",) for part, file in parts.items()} for k in range(1, 6)},
    )


def _fifths() -> Layout:
    def fifth(k: int) -> str:
        return f"S{(k - 1) % 5 + 1}.txt"

    return Layout(
        "five parts",
        {
            k: {
                "train": (fifth(k), fifth(k + 1), fifth(k + 2)),
                "validation": (fifth(k + 3),),
                "test": (fifth(k + 4),),
            }
            for k in range(1, 6)
        },
    )


def _one_fold(name: str, train: str, validation: str | None, test: str) -> Layout:
    middle = () if validation is None else (validation,)
    return Layout(name, {1: {"train": (train,), "validation": middle, "test": (test,)}})


LAYOUTS: tuple[Layout, ...] = (
    _folders(),
    _fifths(),
    _one_fold("Yahoo set 1", "set1.train.txt", "set1.valid.txt", "set1.test.txt"),
    _one_fold("Yahoo set 2", "set2.train.txt", "set2.valid.txt", "set2.test.txt"),
    _one_fold("three files", "train.txt", "vali.txt", "test.txt"),
    _one_fold("Istella sample", "sample/train.txt", "sample/vali.txt", "sample/test.txt"),
    _one_fold("two files", "train.txt", None, "test.txt"),
    _one_fold("Istella full", "full/train.txt", None, "full/test.txt"),
)


@dataclass(frozen=True)
class KnownDataset:
    """A public dataset: the layouts in which it comes, its features and its highest grade."""

    layouts: tuple[str, ...]
    n_features: int
    max_grade: int


DATASETS: Mapping[str, KnownDataset] = MappingProxyType(
    {
        "mq2007": KnownDataset(("five folders", "five parts"), 46, 2),
        "mq2008": KnownDataset(("five folders", "five parts"), 46, 2),
        "mslr-web10k": KnownDataset(("five folders",), 136, 4),
        "mslr-web30k": KnownDataset(("five folders",), 136, 4),
        "istella": KnownDataset(("two files", "Istella full"), 220, 4),
        "istella-s": KnownDataset(("three files", "Istella sample"), 220, 4),
        "yahoo-set1": KnownDataset(("Yahoo set 1",), 700, 4),
        "yahoo-set2": KnownDataset(("Yahoo set 2",), 700, 4),
    }
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """One fold of a labelled dataset; `validation` is None where the dataset has none.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> data = unskew.datasets.Dataset(labels, None, labels, fold=1, max_grade=4)
    >>> data.train.n_queries
    30

    """

    train: LabelledData
    validation: LabelledData | None
    test: LabelledData
    fold: int
    max_grade: int


def read_dataset(
    folder: str | os.PathLike[str], *, name: str | None = None, fold: int = 1
) -> Dataset:
    """Read one fold of a public dataset from its folder.

    Parameters
    ----------
    folder
        Where the dataset lies, in its official layout.
    name
        Which dataset it is, one of `DATASETS`. It fixes the number of features and the highest
        grade. Without it the layout is recognised by its files, the number of features is the
        highest in any file, and the highest grade is the highest that occurs.
    fold
        Which fold, from 1; datasets without folds have only fold 1.

    Examples
    --------
    >>> from pathlib import Path
    >>> import unskew
    >>> Path("Fold1").mkdir()
    >>> for part in ("train", "vali", "test"):
    ...     _ = Path("Fold1", f"{part}.txt").write_text("2 qid:1 1:0.5 2:1")
    ...
    >>> data = unskew.datasets.read_dataset(".", name="mslr-web10k")
    >>> len(data.train), data.fold, data.max_grade
    (1, 1, 4)

    """
    root, known, layout = _open(folder, name, fold)
    parts = {
        part: [_read(path, known) for file in files if (path := _find(root, file))]
        for part, files in layout.folds[fold].items()
    }
    n_features = max(piece.features.n_features for pieces in parts.values() for piece in pieces)
    joined = {part: _join(pieces, n_features) for part, pieces in parts.items() if pieces}
    highest = int(max(data.relevance.max() for data in joined.values()))
    return Dataset(
        joined["train"],
        joined.get("validation"),
        joined["test"],
        fold,
        highest if known is None else known.max_grade,
    )


def count_folds(folder: str | os.PathLike[str], *, name: str | None = None) -> int:
    """How many folds of a public dataset lie in its folder, from the first on."""
    root, _, layout = _open(folder, name, 1)
    complete = [all(_find(root, file) for file in layout.expected(fold)) for fold in layout.folds]
    return complete.index(False) if False in complete else len(complete)


def _open(
    folder: str | os.PathLike[str], name: str | None, fold: int
) -> tuple[Path, KnownDataset | None, Layout]:
    """The folder, the dataset that was named, and the layout in which the fold lies there."""
    root = Path(folder)
    if name is not None and name not in DATASETS:
        raise UsageError(f"dataset {name!r} is not known: choose among {list(DATASETS)}")
    if not root.is_dir():
        raise DataError(f"{root} is not a folder: give the folder that holds the dataset")
    known = None if name is None else DATASETS[name]
    layouts = [layout for layout in LAYOUTS if known is None or layout.name in known.layouts]
    return root, known, _recognise(root, layouts, fold)


def _find(root: Path, file: str) -> Path | None:
    """The file, plain or gzipped; None if it is there in neither form."""
    return next((path for path in (root / file, root / f"{file}.gz") if path.is_file()), None)


def _recognise(root: Path, layouts: list[Layout], fold: int) -> Layout:
    """The layout whose files are all there, or an error that says what was expected where."""
    with_fold = [layout for layout in layouts if fold in layout.folds]
    if not with_fold:
        last = max(k for layout in layouts for k in layout.folds)
        raise UsageError(f"fold must lie between 1 and {last} for this dataset, got {fold}")

    def missing(layout: Layout) -> list[str]:
        return [file for file in layout.expected(fold) if not _find(root, file)]

    # Of the layouts that miss something, the one that misses least is probably meant.
    nearest = min(with_fold, key=lambda one: len(missing(one)) / len(one.expected(fold)))
    absent = missing(nearest)
    if not absent:
        return nearest
    if len(absent) < len(nearest.expected(fold)):
        raise DataError(
            f"{root} looks like the layout {nearest.name!r}, but fold {fold} misses "
            f"{', '.join(absent)} (plain or .gz)"
        )
    expected = "; or ".join(", ".join(layout.expected(fold)) for layout in with_fold)
    found = sorted(entry.name for entry in root.iterdir())[:6]
    raise DataError(
        f"{root} holds no dataset in a known layout: expected {expected} (plain or .gz); found "
        f"{', '.join(found) if found else 'an empty folder'}"
    )


def _read(path: Path, known: KnownDataset | None) -> LabelledData:
    from unskew.log.letor import read_letor

    n_features = None if known is None else known.n_features
    data = read_letor(path, n_features=n_features, dtype=np.float32)
    highest = float(data.relevance.max())
    if known is not None and highest > known.max_grade:
        raise DataError(
            f"{path} has a grade of {highest:g}, but the dataset's highest is {known.max_grade}: "
            "is it the dataset that was named?"
        )
    return data


def _join(pieces: list[LabelledData], n_features: int) -> LabelledData:
    """Several files as one, with as many features as any file of the fold has."""
    widened = [_widen(piece, n_features) for piece in pieces]
    if len(widened) == 1:
        return widened[0]
    values = np.concatenate([piece.features.values for piece in widened])
    columns = zip(*((piece.relevance, piece.query, piece.doc) for piece in widened), strict=True)
    features = Features(values, widened[0].features.names)
    return LabelledData(features, *(np.concatenate(column) for column in columns))


def _widen(data: LabelledData, n_features: int) -> LabelledData:
    """Absent features of a sparse file are zeros; so are those that a whole file lacks."""
    missing = n_features - data.features.n_features
    if missing == 0:
        return data
    values = np.pad(data.features.values, ((0, 0), (0, missing)))
    names = tuple(str(i + 1) for i in range(n_features))
    return replace(data, features=Features(values, names))
