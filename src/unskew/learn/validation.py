"""Held-out data that is watched during training: relevance labels, or clicks."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from unskew.bias.position_bias import PositionBias
from unskew.errors import DataError, UsageError
from unskew.evaluation.metrics import METRICS, rank_queries
from unskew.learn.objective import PairwiseObjective
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.log.statistics import pair_statistics

__all__ = ["ClickValidation", "LabelValidation", "Validation", "mean_ndcg", "validation_of"]

FloatArray = npt.NDArray[np.float64]


class Validation(Protocol):
    """Held-out rows, and one number that says how well they are ranked."""

    name: str
    higher_is_better: bool
    features: Features

    def measure(self, score: FloatArray, bias: PositionBias) -> float:
        """The quality of these scores of the held-out rows, given the present bias."""


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

    def measure(self, score: FloatArray, bias: PositionBias) -> float:
        """Mean NDCG@k."""
        return mean_ndcg(score, self._data.relevance, self._data.offsets, self._k)


class ClickValidation:
    """The debiased pairwise loss on held-out clicks: a mean over pairs by their debiased weight.

    Only the clicked side is debiased. Once trees know the training pages by heart, `t_minus` sinks at
    low positions; weighted by it, the held-out loss would go on falling while the ranking gets worse.
    """

    higher_is_better = False
    name = "click loss"

    def __init__(self, data: Impressions, *, n_positions: int, sigma: float) -> None:
        pairs = pair_statistics(data)
        if not len(pairs):
            raise DataError("validation clicks hold no pair of a clicked and an unclicked result")
        self.features = data.features
        self._objective = PairwiseObjective(
            data.pages, pairs, n_documents=len(data.documents),
            bias=PositionBias.none(n_positions), sigma=sigma,
        )  # fmt: skip
        position = np.minimum(data.pages.position, n_positions) - 1
        start = np.repeat(data.pages.offsets[:-1], np.diff(pairs.offsets))
        self._mass = np.bincount(
            position[start + pairs.slot_i], weights=pairs.weight, minlength=n_positions
        )

    def measure(self, score: FloatArray, bias: PositionBias) -> float:
        """The weighted mean of the loss: biases that fall all together must not raise it."""
        self._objective.bias = PositionBias(bias.t_plus, np.ones(len(bias)))
        return self._objective.loss(score) / float(np.sum(self._mass / bias.t_plus))


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
