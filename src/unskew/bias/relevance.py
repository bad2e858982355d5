"""Relevance models of Regression-EM: what the M-step fits to the expected relevance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from unskew.bias.cells import Cells
from unskew.errors import DataError
from unskew.log.impressions import Impressions
from unskew.trees.boosters import TreeSettings, library

__all__ = ["RELEVANCE_MODELS", "Relevance"]

FloatArray = npt.NDArray[np.float64]

# Where relevance starts for every document.
START = 0.5


class Relevance(Protocol):
    """A model of P(relevant), one value per document, that is fitted again and again."""

    gamma: FloatArray

    def refit(self, relevant: FloatArray, information: FloatArray) -> None:
        """Move gamma towards the expected number of relevant impressions of each document.

        ``information`` is what the clicks on a document tell about the logit of its gamma.
        """


class TableRelevance:
    """One free parameter per document: the share of its impressions that were relevant."""

    def __init__(self, impressions: FloatArray) -> None:
        self._impressions = np.maximum(impressions, np.finfo(np.float64).tiny)
        self.gamma = np.full(len(impressions), START)

    def refit(self, relevant: FloatArray, information: FloatArray) -> None:
        """The closed form of the M-step."""
        self.gamma = relevant / self._impressions


class TreeRelevance:
    """Boosted trees on the features, grown on the cross-entropy by a few trees each time."""

    def __init__(
        self, data: Impressions, impressions: FloatArray, trees: TreeSettings, per_iteration: int
    ) -> None:
        self._impressions = impressions
        self._per_iteration = per_iteration
        self._growing, self._has_trees = True, False
        self._grower = library("lightgbm").start(data.features, trees, None)
        self.gamma = np.full(len(impressions), START)

    def refit(self, relevant: FloatArray, information: FloatArray) -> None:
        """Grow trees along the gradient of the cross-entropy with the expected labels.

        Its own second derivative counts impressions that nobody examined as if they had told
        something: steps would be too short by the share of them. That of the click likelihood,
        whose gradient is the same, is used instead.
        """
        for _ in range(self._per_iteration):
            if not self._growing:
                break
            gradient = self._impressions * self.gamma - relevant
            self._growing = self._grower.grow(gradient, information)
            if self._growing:
                self._has_trees = True
                self.gamma = 1.0 / (1.0 + np.exp(-self._grower.score))
        if not self._has_trees:
            # No split was possible: all documents get the same relevance.
            self.gamma = np.full(len(relevant), relevant.sum() / self._impressions.sum())


def _table(data: Impressions, cells: Cells, trees: TreeSettings, per_iteration: int) -> Relevance:
    _check_documents_move(cells)
    return TableRelevance(cells.per_group(cells.impressions))


def _trees(data: Impressions, cells: Cells, trees: TreeSettings, per_iteration: int) -> Relevance:
    if not data.features.n_features:
        raise DataError(
            "the log has no features to tell relevance by: give them with the log, or use "
            "relevance='table' if documents were seen at several positions"
        )
    return TreeRelevance(data, cells.per_group(cells.impressions), trees, per_iteration)


# What makes each relevance model, before it has learned anything.
RELEVANCE_MODELS: Mapping[str, Callable[[Impressions, Cells, TreeSettings, int], Relevance]] = (
    MappingProxyType({"trees": _trees, "table": _table})
)


def _check_documents_move(cells: Cells) -> None:
    """Without documents seen at two positions, nothing compares the two."""
    n = cells.n_groups + cells.n_positions
    links = coo_array(
        (np.ones(len(cells)), (cells.group, cells.n_groups + cells.position)), shape=(n, n)
    )
    _, part = connected_components(links, directed=False)
    at = part[cells.n_groups :]
    shown = cells.shown.impressions > 0
    top = int(np.argmax(shown))
    apart = np.flatnonzero(shown & (at != at[top])) + 1
    if len(apart):
        raise DataError(
            f"no document links position(s) {apart[:10].tolist()} to position {top + 1}: without "
            "documents seen at several positions nothing tells position from relevance here; "
            "relevance='trees' compares documents by their features"
        )
