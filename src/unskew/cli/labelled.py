"""What the commands accept as labelled data: a file, a folder of a known dataset, `generated`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.log.labelled import LabelledData

__all__ = ["PARTS", "Labelled", "read_labelled"]

PARTS = ("train", "validation", "test")
GENERATED = "generated"
# Of a generated dataset the first 70% of the queries train, the next 10% validate.
TRAIN_SHARE, VALIDATION_SHARE = 0.7, 0.1


@dataclass(frozen=True, eq=False)
class Labelled:
    """The part that was asked for, the test part, and the highest grade of the scale."""

    data: LabelledData
    test: LabelledData
    max_grade: int


def read_labelled(
    source: str, *, part: str, dataset: str | None, fold: int, n_queries: int, seed: int
) -> Labelled:
    """Read labelled data from wherever the command line points."""
    if part not in PARTS:
        raise UsageError(f"--part must be one of {', '.join(PARTS)}, got {part!r}")
    if source == GENERATED:
        return _generated(part, n_queries, seed)
    if Path(source).is_dir():
        return _folder(source, part, dataset, fold)
    from unskew.log.read import read_labels

    data = read_labels(source)
    return Labelled(data, data, max(1, int(data.relevance.max())))


def _generated(part: str, n_queries: int, seed: int) -> Labelled:
    import numpy as np

    from unskew.datasets import make_search_dataset

    if n_queries < 10:
        raise UsageError(f"--queries must be 10 or more, got {n_queries}")
    data = make_search_dataset(n_queries=n_queries, seed=seed)
    bounds = np.rint(
        np.array([0.0, TRAIN_SHARE, TRAIN_SHARE + VALIDATION_SHARE, 1.0]) * n_queries
    ).astype(int)
    parts = {
        name: data.take_queries(np.arange(bounds[i], bounds[i + 1])) for i, name in enumerate(PARTS)
    }
    return Labelled(parts[part], parts["test"], 4)


def _folder(source: str, part: str, dataset: str | None, fold: int) -> Labelled:
    from unskew.datasets import read_dataset

    found = read_dataset(source, name=dataset, fold=fold)
    data = getattr(found, part)
    if data is None:
        raise UsageError(f"the dataset in {source} has no {part} part: use --part train or test")
    return Labelled(data, found.test, max(1, found.max_grade))
