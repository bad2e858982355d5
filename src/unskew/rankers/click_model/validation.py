"""LikelihoodValidation: how likely held-out clicks are, by the model of each round."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from unskew.array_types import FloatArray
from unskew.clicks.fitting.likelihood import Evidence
from unskew.log.features import Features
from unskew.position_bias import PositionBias


class _HasEvidence(Protocol):
    def evidence(self, relevance: FloatArray) -> Evidence: ...


class HeldOut(NamedTuple):
    """Clicks or labels that training does not see.

    ``features`` are those of all documents, ``documents`` the ones shown here, so many impressions in
    all; ``present`` gives the likelihood with the model's parameters of the moment.
    """

    features: Features
    documents: npt.NDArray[np.intp]
    n_impressions: float
    present: Callable[[], _HasEvidence]


class LikelihoodValidation:
    """The mean log-likelihood of held-out impressions, clicked or not, after every round.

    ``offset`` is the logit of the relevance at a score of 0; ``best_score`` are the scores of the held
    out documents after the best round, none before the first one.
    """

    name = "log-likelihood"
    higher_is_better = True

    def __init__(self, held_out: HeldOut, offset: float) -> None:
        self.features = held_out.features.take(held_out.documents)
        self._held_out, self._offset = held_out, offset
        self._relevance = np.full(len(held_out.features), expit(offset))
        self.best_score = np.empty(0)
        self._measures: list[float] = []
        self._without_a_tree = self._measure()

    def _measure(self) -> float:
        found = self._held_out.present().evidence(self._relevance)
        return found.log_likelihood / self._held_out.n_impressions

    @property
    def never_better(self) -> bool:
        """Whether no round explained the held-out clicks better than one relevance for all does."""
        return bool(self._measures) and max(self._measures) <= self._without_a_tree

    def look(self, score: FloatArray) -> None:
        """Note the mean log-likelihood of one more round."""
        self._relevance[self._held_out.documents] = expit(self._offset + score)
        measure = self._measure()
        if measure > max(self._measures, default=-np.inf):
            self.best_score = score.copy()
        self._measures.append(measure)

    def measures(self, bias: PositionBias) -> FloatArray:
        """That of every round; each is judged with its own parameters of the click model."""
        return np.array(self._measures)
