"""Doubly robust DCG of a ranker, query by query, from clicks that a click model explains in part.

A click model says how likely a click on document d is where it was shown, in some state s (a
position, or a position and the last click above it):

    P(click | d, s) = examination[s] * r(d) + base[s]

r is the attraction of the document, the chance of a click once it is examined; base is 0 for all
models but trust bias. Summed up over what the log has of a document (shown[d, s] and clicks[d, s]),
with a prediction m of the attraction by some model, its doubly robust estimate is

    r_dr(d) = m(d) + sum over s of (clicks - shown * (examination * m(d) + base)) / divisor(d)
    divisor(d) = max(sum over s of shown * examination,  clip * sum over s of shown)

(after Oosterhuis, TOIS 2023, with one divisor per document in place of one per impression: of a
document seen at several positions the visible impressions count more, which has less variance). It is
unbiased if the bias is right, whatever the prediction: the numerator is then
sum(shown * examination) * (r - m). And it is unbiased if the prediction is right, whatever the
divisor: the numerator is then 0 on average, so that clipping does no harm. The DCG of an order is

    DCG@k(q) = sum over the documents d of q ranked up to k of  r_dr(d) / log2(1 + rank)

over the documents that the log has shown for the query; one that was never shown has no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError, UsageError
from unskew.evaluation.metrics import examination, quotient, rank_queries
from unskew.evaluation.significance import Interval
from unskew.log.counts import count_statistics, sums
from unskew.log.grades import discount
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

# An examination below this share of all impressions of a document is raised to it.
CLIP = 0.1


class Sightings(NamedTuple):
    """What a log has of its documents: one entry for each document in each state it was shown in.

    Attributes
    ----------
    document
        The row in the log's documents.
    shown, clicks
        Impressions and clicks there, in sessions times their weight.
    examination, base
        By the click model: the chance of a click there is ``examination * attraction + base``.

    """

    document: npt.NDArray[np.integer]
    shown: FloatArray
    clicks: FloatArray
    examination: FloatArray
    base: FloatArray


@dataclass(frozen=True, eq=False)
class DoublyRobustDCG:
    """The DCG of one ranker for each query of a log, and the attractions behind it.

    Attributes
    ----------
    per_query
        The DCG, row for row with the log's queries; NaN for a query without a session.
    sessions
        How many sessions each query has, times their weight.
    attraction
        The estimate for each document; a single one may lie below 0 or above 1.

    """

    per_query: FloatArray
    sessions: FloatArray
    attraction: FloatArray

    @property
    def mean(self) -> float:
        """The mean over queries, each of them counting once."""
        return float(np.nanmean(self.per_query))

    def interval(self, level: float = 0.95) -> Interval:
        """A normal interval of the mean over queries."""
        from scipy.stats import norm

        if not 0 < level < 1:
            raise UsageError(f"level must lie between 0 and 1, got {level}")
        found = self.per_query[~np.isnan(self.per_query)]
        if len(found) < 2:
            raise DataError(
                f"an interval needs two queries or more with sessions, got {len(found)}"
            )
        half = float(norm.ppf((1 + level) / 2) * found.std(ddof=1) / np.sqrt(len(found)))
        return Interval(self.mean - half, self.mean + half, level)


def sightings_by_position(
    data: Impressions,
    bias: PositionBias | npt.ArrayLike,
    mass: FloatArray | None = None,
    *,
    base: npt.ArrayLike = (0.0,),
) -> Sightings:
    """The sightings of a log under the position-based model.

    ``bias`` is a `PositionBias`, whose ``t_plus`` is the examination, or an examination by position;
    ``base`` is the chance by position of a click that relevance has no part in. Beyond their ends the
    last values continue. ``mass`` says how much each pattern counts, by default its sessions times
    their weight.
    """
    curve = np.asarray(getattr(bias, "t_plus", bias), dtype=np.float64)
    if curve.ndim != 1 or not len(curve) or not (np.isfinite(curve) & (curve > 0)).all():
        raise UsageError(
            f"bias must have one number above 0 for each position, got {np.asarray(bias)!r}"
        )
    pages = data.pages
    counts = count_statistics(data, mass)
    shown = np.repeat(counts.impressions, np.diff(pages.offsets))
    entries = np.flatnonzero(shown > 0)
    position = pages.position[entries]
    return Sightings(
        pages.document[entries], shown[entries], counts.clicks[entries],
        examination(position, curve), examination(position, np.asarray(base, dtype=np.float64)),
    )  # fmt: skip


def doubly_robust_attraction(
    sightings: Sightings, prediction: FloatArray, *, clip: float = CLIP
) -> FloatArray:
    """The doubly robust estimate of each document's attraction; its prediction if never shown."""
    at, shown = sightings.document, sightings.shown
    n = len(prediction)
    expected = shown * (sightings.examination * prediction[at] + sightings.base)
    surprise = sums(at, sightings.clicks - expected, n)
    divisor = np.maximum(sums(at, shown * sightings.examination, n), clip * sums(at, shown, n))
    found: FloatArray = prediction + quotient(surprise, divisor, otherwise=0.0)
    return found


def doubly_robust_dcg(
    data: Impressions,
    score: npt.ArrayLike,
    bias: PositionBias | npt.ArrayLike | Sightings,
    prediction: npt.ArrayLike,
    *,
    k: int = 10,
    clip: float = CLIP,
    mass: FloatArray | None = None,
) -> DoublyRobustDCG:
    """Estimate the DCG@k of a ranker on every query of a click log.

    Parameters
    ----------
    data
        The click log.
    score
        The ranker's score of each document, row for row with ``data.documents``. Documents with equal
        scores share the mean discount of their ranks. Each feature version of a document is ranked.
    bias
        How results are examined: a `PositionBias` or a curve by position, or `Sightings` by any
        click model.
    prediction
        The attraction of each document by a model, between 0 and 1, in the units of the bias: the
        chance of a click where the examination is 1.
    k
        Where the ranking is cut.
    clip
        The examination of a document, as a share of its impressions, is raised to it.
    mass
        How much each pattern counts, by default its sessions times their weight: 0 leaves it out.

    """
    if k < 1:
        raise UsageError(f"k must be 1 or more, got {k}")
    if not 0.0 <= clip <= 1.0:
        raise UsageError(f"clip must lie in [0, 1], got {clip}")
    scores = _per_document("score", score, data)
    model = _per_document("prediction", prediction, data)
    if not ((model >= 0) & (model <= 1)).all():
        raise DataError("prediction must lie between 0 and 1: it is the chance of a click")
    seen = bias if isinstance(bias, Sightings) else sightings_by_position(data, bias, mass)
    attraction = doubly_robust_attraction(seen, model, clip=clip)
    sessions = _sessions(data, mass)
    value = rank_weights(data, scores, k, seen) * attraction
    per_query = sums(data.documents.query, value, data.n_queries)
    return DoublyRobustDCG(np.where(sessions > 0, per_query, np.nan), sessions, attraction)


def rank_weights(data: Impressions, score: FloatArray, k: int, seen: Sightings) -> FloatArray:
    """The discount of each document by its rank among those of its query that were shown.

    Beyond rank k, and for documents that were not shown, it is 0.
    """
    shown = np.unique(seen.document)
    query = data.documents.query[shown]
    by_query = shown[np.argsort(query, kind="stable")]
    offsets = np.concatenate(([0], np.cumsum(np.bincount(query, minlength=data.n_queries))))
    # A query whose sessions are left out has no documents, and so no place in the ranking.
    ranked = rank_queries(score[by_query], np.unique(offsets).astype(np.int64), split_ties=False)
    weight = np.where(ranked.rank <= k, discount(ranked.rank), 0.0)
    found = np.zeros(len(score))
    found[by_query[ranked.order]] = ranked.tied_mean(weight)
    return found


def _sessions(data: Impressions, mass: FloatArray | None) -> FloatArray:
    query = data.pages.query[data.patterns.page]
    return sums(query, data.patterns.mass if mass is None else mass, data.n_queries)


def _per_document(name: str, values: npt.ArrayLike, data: Impressions) -> FloatArray:
    column = np.asarray(values, dtype=np.float64)
    if column.shape != (len(data.documents),):
        raise DataError(
            f"{name} must have one value for each of the {len(data.documents):,} document rows of the "
            f"log, got shape {column.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise DataError(f"{name} must be finite: document {bad[0] + 1:,} has {column[bad[0]]}")
    return column
