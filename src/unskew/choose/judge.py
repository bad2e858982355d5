"""Judge: what held-out clicks say about the parts of a search and about sums of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


class Judge:
    """Doubly robust DCG and the order of the lists, on the folds for which a search has models."""

    def __init__(self, data: Impressions, folds: Folds, found: Found, k: int = CUT) -> None:
        self.data, self._folds, self._found, self._k = data, folds, found, k
        members = found.of(DEBIASED) or found.of(BLIND)
        examination, base = np.mean([_curves(one) for one in members.values()], axis=0)
        query = data.pages.query[data.patterns.page]
        self.judged = np.isin(folds.of_query, list(members))
        judged = data.take_patterns(np.flatnonzero(self.judged[query]))
        self._view = ClickView.of(judged, examination, CLIP, base=base)
        prediction = np.zeros(len(data.documents))
        for number, member in members.items():
            assert member.relevance is not None, "both halves are click model rankers"  # noqa: S101
            prediction[self._rows(number)] = member.relevance
        self._attraction = self._view.attraction(prediction)

    def _rows(self, fold: int) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self._folds.of_query[self.data.documents.query] == fold)

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
        return np.flatnonzero(np.isin(self._folds.of_query, folds))

    def order_followed(self, part: str, folds: Sequence[int]) -> float:
        """How far the lists follow the scores of a part: their correlation with the place in a list.

        1 if the scores fall evenly from the first result to the last, 0 if they have nothing to do with
        it. Every page counts once, by what its results differ from their mean.
        """
        pages = self.data.pages
        page = np.repeat(np.arange(len(pages.query)), np.diff(pages.offsets))
        taken = np.isin(self._folds.of_query[pages.query], folds)[page]
        page, score = page[taken], self.scores(part)[0][pages.document[taken]]
        place = -pages.position[taken].astype(np.float64)
        score, place = (_centred(one, page, len(pages.query)) for one in (score, place))
        spread = float(np.sqrt((score**2).sum() * (place**2).sum()))
        return float((score * place).sum()) / spread if spread > 0 else 0.0


def _curves(member: Member) -> tuple[FloatArray, FloatArray]:
    """The examination by position, and the clicks that come without relevance."""
    parameters = member.ranker.click_model_.parameters
    curve: FloatArray = member.ranker.t_plus_
    if "trust" not in parameters:
        return curve, np.zeros_like(curve)
    base = parameters["trust"]
    return np.maximum(parameters["examination"] - base, 1e-6), base


def _centred(values: FloatArray, group: npt.NDArray[np.intp], n: int) -> FloatArray:
    count = np.maximum(np.bincount(group, minlength=n), 1)
    found: FloatArray = values - (sums(group, values, n) / count)[group]
    return found


def _standardised(member: Member) -> FloatArray:
    spread = member.spread
    centred: FloatArray = member.score - member.score.mean()
    return np.asarray(centred / spread) if spread > 0 else centred
