"""Held-out data that is watched during training: relevance labels, or clicks."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError, UsageError
from unskew.evaluation.metrics import METRICS, rank_queries
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.pairs.pair_losses import PairLosses
from unskew.pairs.statistic import pair_statistics
from unskew.position_bias import PositionBias


class Validation(Protocol):
    """Held-out rows, and how well each round of training ranked them."""

    name: str
    higher_is_better: bool
    features: Features

    def look(self, score: FloatArray) -> None:
        """Note the scores of the held-out rows after one more round."""

    def measures(self, bias: PositionBias) -> FloatArray:
        """The quality of every round so far, all of them judged with this bias."""


def mean_ndcg(
    score: FloatArray, relevance: FloatArray, offsets: npt.NDArray[np.int64], k: int
) -> float:
    """Mean NDCG@k over the queries with a relevant document; equal scores keep the given order."""
    ranked = rank_queries(score, offsets, split_ties=True)
    per_query = METRICS["ndcg"].per_query(relevance, ranked, k=k, relevant_from=1.0, max_grade=0)
    counted = per_query[~np.isnan(per_query)]
    return float(counted.mean()) if len(counted) else 0.0


class LabelValidation:
    """NDCG@k on relevance labels."""

    higher_is_better = True

    def __init__(self, data: LabelledData, k: int) -> None:
        if not (data.relevance > 0).any():
            raise DataError("validation labels must hold a relevant document: every grade is 0")
        self.name = f"ndcg@{k}"
        self.features = data.features
        self._data, self._k = data, k
        self._ndcg: list[float] = []

    def look(self, score: FloatArray) -> None:
        """Note the mean NDCG@k of one more round."""
        self._ndcg.append(mean_ndcg(score, self._data.relevance, self._data.offsets, self._k))

    def measures(self, bias: PositionBias) -> FloatArray:
        """Mean NDCG@k of every round; labels know no bias."""
        return np.array(self._ndcg)


class ClickValidation:
    """The debiased pairwise loss on held-out clicks, log(1 + exp(-sigma * gap)) in the mean.

    Rounds can only be compared by a yardstick that is the same for all of them:

    - The bias moves while it is learned. So of every round the losses are kept by the position of
      the click, without any bias, and all rounds are judged by one bias, the latest.
    - Pairs are not weighted by their NDCG difference, which follows the ranks of the round: the
      better a clicked result is ranked, the more its pairs would count, and the loss would rise.
    - Only the clicked side is debiased. Once trees know the training pages by heart, `t_minus` sinks
      at low positions; weighted by it, the held-out loss would go on falling while the ranking gets
      worse.
    """

    higher_is_better = False
    name = "click loss"

    def __init__(self, data: Impressions, *, n_positions: int, sigma: float) -> None:
        pairs = pair_statistics(data)
        if not len(pairs):
            raise DataError("validation clicks hold no pair of a clicked and an unclicked result")
        self.features = data.features
        self._pairs = PairLosses.of(data.pages, pairs, n_positions)
        self._n_positions, self._sigma = n_positions, sigma
        self._mass = self._pairs.by_clicked_position(self._pairs.weight, n_positions)
        self._losses: list[FloatArray] = []

    def look(self, score: FloatArray) -> None:
        """Note the losses of one more round."""
        losses = self._pairs.logistic(score, self._sigma) * self._pairs.weight
        self._losses.append(self._pairs.by_clicked_position(losses, self._n_positions))

    def measures(self, bias: PositionBias) -> FloatArray:
        """The weighted mean of each round's loss: biases that fall all together must not raise it."""
        weight = 1.0 / bias.t_plus
        mean: FloatArray = np.array(self._losses) @ weight / (self._mass @ weight)
        return mean


def best_round(validation: Validation, measures: FloatArray) -> int:
    """The number of the best round, counted from 1; of equal ones the first."""
    return int(np.argmax(measures if validation.higher_is_better else -measures)) + 1


def validation_of(
    data: LabelledData | Impressions | None, *, n_positions: int, sigma: float, k: int
) -> Validation | None:
    """What watches over that data."""
    if data is None:
        return None
    if isinstance(data, LabelledData):
        return LabelValidation(data, k)
    if isinstance(data, Impressions):
        return ClickValidation(data, n_positions=n_positions, sigma=sigma)
    raise UsageError(
        f"validation must be LabelledData or Impressions, got {type(data).__name__}: make one with "
        "LabelledData.from_rows or Impressions.from_arrays"
    )
