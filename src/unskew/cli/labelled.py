"""What the commands accept as labelled data: a file, a folder of a known dataset, `generated`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.log.labelled import LabelledData

__all__ = ["PARTS", "Labelled", "read_labelled"]

PARTS = ("train", "validation", "test")


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
    from unskew.datasets.opening import GENERATED, GeneratedSize, open_labelled

    if part not in PARTS:
        raise UsageError(f"--part must be one of {', '.join(PARTS)}, got {part!r}")
    if source == GENERATED and n_queries < 10:
        raise UsageError(f"--queries must be 10 or more, got {n_queries}")
    opened = open_labelled(source, dataset=dataset, size=GeneratedSize(n_queries))
    found = opened.as_given(fold, seed)
    data = getattr(found, part)
    if data is None:
        raise UsageError(f"the dataset in {source} has no {part} part: use --part train or test")
    return Labelled(data, found.test, max(1, found.max_grade))
