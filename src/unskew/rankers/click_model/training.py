"""LikelihoodTraining: a tree on the likelihood of the clicks, then EM for the click model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from unskew.array_types import FloatArray
from unskew.clicks.fitting.strength import looks_worth
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.rankers.click_model.objective import Objective
from unskew.rankers.click_model.validation import LikelihoodValidation
from unskew.rankers.tree_rounds import TreeRounds
from unskew.trees.boosters import Grower


class Round(NamedTuple):
    """The model after a round: how many trees, and the click model with them."""

    n_trees: int
    click_model: LearnedClickModel | None


class Start(NamedTuple):
    """Where boosting begins.

    ``documents`` are those of the objective that were shown in training, the rows of the trees;
    ``offset`` is the logit of the relevance at a score of 0; ``most_looks`` is how many looks at one
    document count at most, if there is such a limit.
    """

    objective: Objective
    documents: npt.NDArray[np.intp]
    n_documents: int
    offset: float
    most_looks: float | None = None


def share_that_counts(
    relevance: FloatArray, information: FloatArray, most_looks: float
) -> FloatArray:
    """Which share of the clicks of each document counts: of n looks as many as ``most_looks`` at most.

    Documents of the same features still differ. If their relevances are drawn from a beta distribution
    of strength s, n looks at one of them say as much about its mean as ``n (s + 1) / (n + s)`` looks at
    as many documents; ``most_looks`` is s + 1.
    """
    looks = np.maximum(looks_worth(relevance, information), 1.0)
    share: FloatArray = most_looks / (looks + most_looks - 1.0)
    return share


class LikelihoodTraining(TreeRounds):
    """Trees that grow on the gradient and the Fisher information of an objective."""

    def __init__(
        self, grower: Grower, start: Start, *, n_rounds: int, done_before: int = 0
    ) -> None:
        super().__init__(grower, n_rounds=n_rounds, done_before=done_before)
        self.objective, self.offset = start.objective, start.offset
        # What ends the training, the clicks that are new to it, and what to tell the user.
        self.watch: LikelihoodValidation | None = None
        self.unseen: tuple[Impressions, FloatArray] | None = None
        self.notices: list[str] = []
        self._documents, self._most_looks = start.documents, start.most_looks
        self._relevance = np.full(start.n_documents, expit(start.offset))
        self._look()

    @property
    def bias(self) -> PositionBias:
        """The bias after the last round."""
        return self.objective.bias

    def step(self) -> bool:
        """One tree and the EM steps after it; False if no split was possible."""
        relevance = self._relevance
        evidence = self.objective.evidence(relevance)
        gradient, information = evidence.gradient, evidence.information
        if self._most_looks is not None:
            counted = share_that_counts(relevance, information, self._most_looks)
            gradient, information = counted * gradient, counted * information
        if not self.grow(-gradient[self._documents], information[self._documents]):
            return False
        self._look()
        self.objective.update(self._relevance)
        return True

    def _look(self) -> None:
        """Take over the scores of the trees."""
        self._relevance[self._documents] = expit(self.offset + self.grower.score)

    def model(self) -> Round:
        """How many trees there are, and the click model."""
        return Round(self.n_trees, self.objective.learned())

    @property
    def remarks(self) -> list[str]:
        """That no split was possible, that no tree helped, and what was noticed before."""
        found = [*self.notices, *super().remarks]
        if self.watch is not None and self.watch.never_better:
            found.append(
                "no tree made the held-out clicks more likely than no tree at all: what the features "
                "say about the clicks is no more than chance, and so is this ranking. Give more "
                "sessions or better features"
            )
        return found
