"""What a ranker gives back: ordered candidates, and why they stand where they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Ranking:
    """The candidates of many queries, each query's from the best to the worst.

    Queries come in the order of their first candidate. ``row`` is the candidate's row in what was
    ranked; ``rank`` counts from 1 in every query.
    """

    query: npt.NDArray[Any]
    doc: npt.NDArray[Any]
    score: npt.NDArray[np.float64]
    rank: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rank)

    def to_arrow(self) -> Any:
        """An Arrow table with the columns query, doc, score and rank."""
        import pyarrow as pa

        columns = {"query": self.query, "doc": self.doc, "score": self.score, "rank": self.rank}
        return pa.table(columns)


def rank_candidates(
    score: npt.NDArray[np.float64], query: npt.NDArray[Any], doc: npt.NDArray[Any]
) -> Ranking:
    """Order the candidates of every query by score; equal scores keep the order given."""
    _, first, code = np.unique(query, return_index=True, return_inverse=True)
    order = np.lexsort((-score, first[code]))
    group = first[code][order]
    starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    sizes = np.diff(np.append(starts, len(order)))
    rank = np.arange(len(order)) - np.repeat(starts, sizes) + 1
    return Ranking(query[order], doc[order], score[order], rank, order)


@dataclass(frozen=True, eq=False)
class Explanation:
    """What each feature adds to each score: a row's contributions and the baseline sum up to it."""

    names: tuple[str, ...]
    contributions: npt.NDArray[np.float64]
    baseline: float

    def __len__(self) -> int:
        return len(self.contributions)

    @property
    def score(self) -> npt.NDArray[np.float64]:
        """The scores that are explained."""
        total: npt.NDArray[np.float64] = self.contributions.sum(axis=1) + self.baseline
        return total

    def top(self, row: int, n: int = 5) -> list[tuple[str, float]]:
        """The features that move a row's score most, up or down, with what they add."""
        values = self.contributions[row]
        order = np.argsort(-np.abs(values), kind="stable")[:n]
        return [(self.names[k], float(values[k])) for k in order]
