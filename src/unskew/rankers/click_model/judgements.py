"""Judgements: what clicks and a ranker together know about the relevance of every document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.clicks.fitting.posterior import Posterior
from unskew.errors import UsageError
from unskew.log.counts import count_statistics
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.rankers.inputs import column_of


def exposure(data: Impressions) -> tuple[FloatArray, FloatArray]:
    """Impressions and clicks of each document row, in sessions times their weight."""
    counts, pages, n = count_statistics(data), data.pages, len(data.documents)
    shown = np.repeat(counts.impressions, np.diff(pages.offsets))
    impressions = np.bincount(pages.document, weights=shown, minlength=n)
    clicks = np.bincount(pages.document, weights=counts.clicks, minlength=n)
    return impressions.astype(np.float64), clicks.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Judgements:
    """The relevance of documents with its uncertainty, row for row.

    Attributes
    ----------
    query, doc
        Which document; one whose features changed has a row for each version.
    relevance, spread
        The mean and the standard deviation of its relevance given its clicks, between 0 and 1.
    impressions, clicks
        How often it was shown and clicked; 0 for a document that never was.
    features
        Its features.

    """

    query: npt.NDArray[Any]
    doc: npt.NDArray[Any]
    relevance: FloatArray
    spread: FloatArray
    impressions: FloatArray
    clicks: FloatArray
    features: Features

    def __len__(self) -> int:
        return len(self.relevance)

    def __repr__(self) -> str:
        shown = int(np.count_nonzero(self.impressions))
        return f"Judgements({len(self):,} documents, {shown:,} of them shown)"

    def with_candidates(
        self, features: Features, query: Any, doc: Any, *, prior: FloatArray, strength: float
    ) -> Judgements:
        """These and, below them, the candidates that are not among them, judged by their prior."""
        n = len(features)
        queries, docs = column_of(query, "query", n), column_of(doc, "doc", n)
        known = set(zip(self.query.tolist(), self.doc.tolist(), strict=True))
        keys = zip(queries.tolist(), docs.tolist(), strict=True)
        rows = np.array([k for k, key in enumerate(keys) if key not in known], dtype=np.intp)
        mean, nothing = prior[rows], np.zeros(len(rows))
        return Judgements(
            query=_joined(self.query, queries[rows], "query"),
            doc=_joined(self.doc, docs[rows], "doc"),
            relevance=np.concatenate((self.relevance, mean)),
            spread=np.concatenate((self.spread, np.sqrt(mean * (1.0 - mean) / (strength + 1.0)))),
            impressions=np.concatenate((self.impressions, nothing)),
            clicks=np.concatenate((self.clicks, nothing)),
            features=Features(
                np.concatenate((self.features.values, features.values[rows])),
                self.features.names,
                self.features.categories,
            ),
        )

    def grades(
        self,
        highest: int = 3,
        *,
        thresholds: Sequence[float] | None = None,
        quantiles: Sequence[float] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Whole grades from 0 to ``highest``, as people give them.

        A document has the grade of how many ``thresholds`` its relevance reaches. Without any, they
        divide the range from 0 to the highest relevance into equal gains, ``2 ** grade - 1``;
        ``quantiles`` take them from the documents instead, (0.5, 0.8, 0.95) giving the upper half a
        grade of 1 or higher.
        """
        if thresholds is not None and quantiles is not None:
            raise UsageError("give thresholds or quantiles, not both")
        if quantiles is not None:
            limits = np.quantile(self.relevance, _ascending(quantiles, "quantiles"))
        elif thresholds is not None:
            limits = _ascending(thresholds, "thresholds")
        else:
            if not 1 <= highest <= 31:
                raise UsageError(f"highest must lie between 1 and 31, got {highest}")
            # Half way between the gains of a grade and the one below.
            gains = np.exp2(np.arange(highest + 1)) - 1.0
            limits = (gains[1:] + gains[:-1]) / 2 / gains[-1] * self.relevance.max(initial=0.0)
        return np.searchsorted(limits, self.relevance, side="right")

    def labelled(self, *, grades: npt.ArrayLike | None = None) -> LabelledData:
        """Labelled data: the relevance as a real number, or these ``grades``.

        Real numbers are gains: ``UnbiasedLambdaMART().fit_labels(…, gains="linear")``.
        """
        relevance = self.relevance if grades is None else np.asarray(grades, dtype=np.float64)
        return LabelledData.from_rows(self.features, relevance, self.query, self.doc)

    def to_arrow(self, *, grades: npt.ArrayLike | None = None) -> Any:
        """An Arrow table: query, doc, relevance, spread, impressions, clicks, and grade if given."""
        import pyarrow as pa

        columns = {
            "query": pa.array(self.query), "doc": pa.array(self.doc), "relevance": self.relevance,
            "spread": self.spread, "impressions": self.impressions, "clicks": self.clicks,
        }  # fmt: skip
        return pa.table(columns if grades is None else {**columns, "grade": np.asarray(grades)})


def judged(data: Impressions, features: Features, found: Posterior) -> Judgements:
    """The posterior of every document of a log with its exposure."""
    documents = data.documents
    impressions, clicks = exposure(data)
    return Judgements(
        data.queries[documents.query], documents.doc, found.mean, found.spread, impressions, clicks,
        features,
    )  # fmt: skip


def _joined(mine: npt.NDArray[Any], others: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    numbers = [array.dtype.kind in "iu" for array in (mine, others)]
    if numbers[0] != numbers[1] and len(others):
        kinds = ["numbers" if is_number else "texts" for is_number in numbers]
        raise UsageError(
            f"{name} must be {kinds[0]}, as in the log, got {kinds[1]}: convert the column"
        )
    return np.concatenate((mine, others)) if len(others) else mine


def _ascending(values: Sequence[float], name: str) -> FloatArray:
    limits = np.asarray(values, dtype=np.float64)
    if limits.ndim != 1 or not len(limits) or (np.diff(limits) <= 0).any():
        raise UsageError(f"{name} must be numbers in ascending order, got {list(values)}")
    if not ((limits >= 0) & (limits <= 1)).all():
        raise UsageError(f"{name} must lie between 0 and 1, got {list(values)}")
    return limits
