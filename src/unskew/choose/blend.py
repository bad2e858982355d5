"""Blend: how far to trust the debiased half, and one sum of trees out of all models.

    score = trust * debiased + (1 - trust) * blind

with the standardised scores of both halves, each the mean over its models. The trust is chosen by the
doubly robust DCG of held-out queries, which were ranked by models that did not see them: examination
and prediction are those of the debiased half. That measure is noisy, and where a log cannot tell
examination from relevance it is wrong as well. So of all shares that are within one standard error of
the best one (paired by query) the one nearest to `PREFERRED` is taken: debiasing must show its worth
to be trusted wholly, and do harm to be left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.choose.candidates import BLIND, DEBIASED, FINISH
from unskew.choose.search import Found, Member
from unskew.choose.splits import Folds
from unskew.evaluation.doubly_robust import (
    Sightings,
    doubly_robust_attraction,
    rank_weights,
    sightings_by_position,
)
from unskew.log.counts import sums
from unskew.log.impressions import Impressions

# The debiased half is never trusted alone: where its examination is wrong, the measure is wrong too.
SHARES = (0.0, 0.25, 0.5, 0.7, 0.85)
# The share of the debiased half where the clicks leave it open.
PREFERRED = 0.6
# What LambdaMART on posterior relevance counts in the debiased half, beside 1 for the likelihood.
FINISHING = 0.5
# The DCG that decides is cut here.
CUT = 10


@dataclass(frozen=True)
class Blend:
    """One way to add up the parts of a search, and what the held-out clicks say of it.

    Attributes
    ----------
    weights
        What each part counts; a part that is not named counts nothing.
    value, error
        Its doubly robust DCG on held-out queries, and the standard error of its distance to the best
        one; NaN where nothing was measured.

    """

    weights: Mapping[str, float]
    value: float = np.nan
    error: float = np.nan

    @property
    def trust(self) -> float:
        """The share of the debiased half."""
        return sum(w for part, w in self.weights.items() if part != BLIND)


def blend_weights(trust: float, *, finished: bool) -> dict[str, float]:
    """The weights of the parts for a share of the debiased half."""
    part = FINISHING / (1.0 + FINISHING) if finished else 0.0
    weights = {BLIND: 1.0 - trust, DEBIASED: trust * (1.0 - part), FINISH: trust * part}
    return {name: weight for name, weight in weights.items() if weight > 0}


class Judge:
    """Doubly robust DCG on the folds for which a search has all that is to be compared."""

    def __init__(self, data: Impressions, folds: Folds, found: Found, k: int = CUT) -> None:
        self.data, self._folds, self._found, self._k = data, folds, found, k
        members = found.of(DEBIASED) or found.of(BLIND)
        curve = np.mean([one.ranker.t_plus_ for one in members.values()], axis=0)
        query = data.pages.query[data.patterns.page]
        self.judged = np.isin(folds.of_query, list(members))
        mass = np.where(self.judged[query], data.patterns.mass, 0.0)
        self._seen: Sightings = sightings_by_position(data, curve, mass)
        prediction = np.zeros(len(data.documents))
        for number, member in members.items():
            assert member.relevance is not None, "both halves are click model rankers"  # noqa: S101
            prediction[self._rows(number)] = member.relevance
        self._attraction = doubly_robust_attraction(self._seen, prediction)

    def _rows(self, fold: int) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self._folds.of_query[self.data.documents.query] == fold)

    def scores(self, part: str) -> tuple[FloatArray, list[int]]:
        """The standardised held-out scores of one part, and the folds that it has."""
        score = np.zeros(len(self.data.documents))
        members = self._found.of(part)
        for number, member in members.items():
            score[self._rows(number)] = _standardised(member)
        return score, sorted(members)

    def per_query(self, score: FloatArray) -> FloatArray:
        """The DCG of each query of the log by these scores; 0 for those that are not judged."""
        weight = rank_weights(self.data, score, self._k, self._seen)
        return sums(self.data.documents.query, weight * self._attraction, self.data.n_queries)

    def queries_of(self, folds: Sequence[int]) -> npt.NDArray[np.intp]:
        """Which queries belong to these folds."""
        return np.flatnonzero(np.isin(self._folds.of_query, folds))


def choose_blend(judge: Judge, found: Found) -> tuple[Blend, list[Blend]]:
    """The blend to take, and all that were compared."""
    if not found.of(DEBIASED):
        alone = Blend({BLIND: 1.0})
        return alone, [alone]
    scores = {part: judge.scores(part) for part in (BLIND, DEBIASED, FINISH) if found.of(part)}
    both = sorted(set(scores[BLIND][1]) & set(scores[DEBIASED][1]))
    if not both:
        # The models of the two halves judge each other on no query in common.
        middle = Blend(blend_weights(0.5, finished=False))
        return middle, [middle]
    blends = measured(
        judge, scores, both, [blend_weights(trust, finished=False) for trust in SHARES]
    )
    chosen = nearest_to_preferred(blends)
    if FINISH not in scores or chosen.trust == 0 or scores[FINISH][1] != both:
        return chosen, blends
    pair = [chosen.weights, blend_weights(chosen.trust, finished=True)]
    plain, finished = measured(judge, scores, both, pair)
    blends.append(finished)
    return (finished if finished.value >= plain.value else chosen), blends


def measured(
    judge: Judge,
    scores: Mapping[str, tuple[FloatArray, list[int]]],
    folds: Sequence[int],
    weights: Sequence[Mapping[str, float]],
) -> list[Blend]:
    """Each blend with its mean DCG and the standard error of its distance to the best."""
    queries = judge.queries_of(folds)
    values = np.array([
        judge.per_query(np.asarray(sum(w * scores[p][0] for p, w in one.items())))[queries]
        for one in weights
    ])  # fmt: skip
    best = values[int(np.argmax(values.mean(axis=1)))]
    errors = (
        (best - values).std(axis=1, ddof=1) / np.sqrt(len(queries))
        if len(queries) > 1
        else [np.inf] * len(values)
    )
    return [
        Blend(dict(one), float(value.mean()), float(error))
        for one, value, error in zip(weights, values, errors, strict=True)
    ]


def nearest_to_preferred(blends: Sequence[Blend]) -> Blend:
    """Of the blends within one standard error of the best, the one nearest to the preferred share."""
    best = max(one.value for one in blends)
    near = [one for one in blends if one.value >= best - one.error]
    return min(near, key=lambda one: (abs(one.trust - PREFERRED), -one.value))


def _standardised(member: Member) -> FloatArray:
    spread = member.spread
    centred: FloatArray = member.score - member.score.mean()
    return np.asarray(centred / spread) if spread > 0 else centred


def tree_weights(found: Found, weights: Mapping[str, float]) -> list[tuple[Member, float]]:
    """Every model of the blend with the factor of its trees.

    The sum is scaled to the spread of the first part's logits, so that the score stays one.
    """
    parts = [found.of(part) for part in weights]
    first = next(p for p, part in zip(parts, weights, strict=True) if part != FINISH)
    unit = float(np.mean([member.spread for member in first.values()]))
    return [
        (member, unit * weight / len(members) / member.spread if member.spread > 0 else 0.0)
        for members, weight in zip(parts, weights.values(), strict=True)
        for member in members.values()
    ]
