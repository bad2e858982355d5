"""Judge: what held-out clicks say about the parts of a search and about sums of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.choose.candidates import BLIND, DEBIASED
from unskew.choose.found import Found, Member
from unskew.choose.splits import Folds
from unskew.evaluation.click_values import ClickView, document_weights
from unskew.evaluation.counterfactual import CLIP
from unskew.evaluation.metrics import METRICS
from unskew.log.counts import sums
from unskew.log.impressions import Impressions

# The DCG is cut here.
CUT = 10


class Agreement(NamedTuple):
    """Correlations of scores within queries, on documents whose clicks no model has seen.

    Between two models of the debiased half that saw no query in common, between two such of the
    undebiased one, and between one of each: that saw no query in common, or the same ones.
    """

    debiased: float
    undebiased: float
    both: float
    same: float


class Judge:
    """Doubly robust DCG and agreement, on the folds for which a search has models.

    ``relevance`` is that of each document by a model that saw none of its clicks; of documents whose
    fold has no model it is the mean.
    """

    def __init__(self, data: Impressions, folds: Folds, found: Found, k: int = CUT) -> None:
        self.data, self.folds, self._found, self._k = data, folds, found, k
        members = found.of(DEBIASED) or found.of(BLIND)
        examination, base = np.mean([_curves(one) for one in members.values()], axis=0)
        query = data.pages.query[data.patterns.page]
        self.judged = np.isin(folds.of_query, list(members))
        judged = data.take_patterns(np.flatnonzero(self.judged[query]))
        self._view = ClickView.of(judged, examination, CLIP, base=base)
        found_relevance = {number: one.relevance for number, one in members.items()}
        self.relevance = np.full(
            len(data.documents), np.mean(np.concatenate([*found_relevance.values()]))
        )
        for number, relevance in found_relevance.items():
            self.relevance[self._rows(number)] = relevance
        self._attraction = self._view.attraction(self.relevance)

    def _rows(self, fold: int) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self.folds.of_query[self.data.documents.query] == fold)

    def scores(self, part: str) -> tuple[FloatArray, list[int]]:
        """The standardised held-out scores of one part, and the folds that it has."""
        score = np.zeros(len(self.data.documents))
        members = self._found.of(part)
        for number, member in members.items():
            score[self._rows(number)] = _standardised(member)
        return score, sorted(members)

    def blended(self, weights: Mapping[str, float]) -> FloatArray:
        """The held-out scores of a sum of parts."""
        score: FloatArray = np.sum(
            [w * self.scores(part)[0] for part, w in weights.items()], axis=0
        )
        return score

    def per_query(self, score: FloatArray) -> FloatArray:
        """The DCG of each query of the log by these scores; 0 for those that are not judged."""
        weight = document_weights(self._view, score, METRICS["dcg"], self._k)
        return sums(self.data.documents.query, weight * self._attraction, self.data.n_queries)

    def queries_of(self, folds: Sequence[int]) -> npt.NDArray[np.intp]:
        """Which queries belong to these folds."""
        return np.flatnonzero(np.isin(self.folds.of_query, folds))

    def agreement(self, undebiased: Mapping[str, float]) -> Agreement | None:
        """How far models of halves of the queries agree; None if there are none.

        The undebiased half is a sum of parts.
        """
        folds = self._found.compared([DEBIASED, *undebiased])
        if not folds:
            return None
        (one, other), (second, second_other) = (
            [self._of_half(weights, folds, half) for half in (0, 1)]
            for weights in ({DEBIASED: 1.0}, undebiased)
        )
        return Agreement(
            _correlation(one, other),
            _correlation(second, second_other),
            (_correlation(one, second_other) + _correlation(other, second)) / 2.0,
            (_correlation(one, second) + _correlation(other, second_other)) / 2.0,
        )

    def _of_half(self, weights: Mapping[str, float], folds: Sequence[int], half: int) -> FloatArray:
        """The scores of a sum of parts within their queries, by the models of one half of each fold."""
        found = []
        for number in folds:
            query = self.data.documents.query[self._rows(number)]
            score = np.zeros(len(query))
            for part, weight in weights.items():
                one = self._found.halves[part][number][half]
                score += weight * _of_unit_spread(_centred(one, query, self.data.n_queries))
            found.append(_of_unit_spread(score))
        return np.concatenate(found)


def _curves(member: Member) -> tuple[FloatArray, FloatArray]:
    """The examination by position, and the clicks that come without relevance."""
    parameters = member.ranker.click_model_.parameters
    curve: FloatArray = member.ranker.t_plus_
    if "trust" not in parameters:
        return curve, np.zeros_like(curve)
    base = parameters["trust"]
    return np.maximum(parameters["examination"] - base, 1e-6), base


def _centred(values: FloatArray, group: npt.NDArray[np.integer], n: int) -> FloatArray:
    count = np.maximum(np.bincount(group, minlength=n), 1)
    found: FloatArray = values - (sums(group, values, n) / count)[group]
    return found


def _correlation(a: FloatArray, b: FloatArray) -> float:
    """The correlation of scores whose means are 0; 0 if they do not differ at all."""
    spread = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum()) / spread if spread > 0 else 0.0


def _of_unit_spread(score: FloatArray) -> FloatArray:
    """Scores whose mean is 0, with a mean square of 1; scores that do not differ stay."""
    spread = float(np.sqrt((score**2).mean()))
    return score / spread if spread > 0 else score


def _standardised(member: Member) -> FloatArray:
    spread = member.spread
    centred: FloatArray = member.score - member.score.mean()
    return np.asarray(centred / spread) if spread > 0 else centred
