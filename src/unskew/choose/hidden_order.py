"""Hidden order: how much of where documents stood their features do not tell.

A debiased model is right if documents that are alike by their features stood high or low for reasons
that have nothing to do with their relevance. The ranker that was logged may have known more: then the
order of its lists cannot be told from the features, and the examination takes up relevance. Of the
variance of -log(position) within queries,

    hidden = (unpredicted variance between documents - its noise) / (variance of all impressions)

where a document counts by its impressions, its level is predicted by a linear regression that saw other
queries, and its noise is the variance of a mean of so many impressions. The regression is on the
features and on a score that also saw other queries: one that learned from clicks as they are repeats
what trees can tell of the lists. Documents that only moved about at random hide nothing. With lists in
the order of grades that no feature shows, 0.8 to 1 is hidden; behind a linear ranker or one of trees 0.2
to 0.4, because a place also depends on the rest of the list; and more where queries are so few that
nothing can learn what that ranker did.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray, IntArray
from unskew.bias.cells import Cells
from unskew.bias.order_regression import OrderRegression
from unskew.log.counts import sums
from unskew.log.impressions import Impressions

# What is added to the variance of every feature: queries are few compared with features.
RIDGE = 0.1
_TINY = 1e-12


def hidden_share(data: Impressions, fold: IntArray, score: FloatArray) -> float:
    """The share of the logged order that features do not tell.

    ``fold`` has a number for each query, ``score`` one for each document.
    """
    cells = Cells.of(data)
    shown, level = cells.per_group(cells.impressions), -np.log1p(cells.position)
    counted = np.maximum(shown, _TINY)
    mean = cells.per_group(cells.impressions * level) / counted
    moved = np.maximum(cells.per_group(cells.impressions * level**2) / counted - mean**2, 0.0)
    query = data.documents.query
    stood = _centred(mean, shown, query)
    missed = stood - _centred(_predicted(data, cells, fold, score), shown, query)
    noise = np.where(shown >= 2.0, moved / np.maximum(shown - 1.0, 1.0), 0.0)
    total = float((shown * (stood**2 + moved)).sum())
    left = float((shown * (missed**2 - noise)).sum())
    return float(np.clip(left / total, 0.0, 1.0)) if total > _TINY else 0.0


def _predicted(data: Impressions, cells: Cells, fold: IntArray, score: FloatArray) -> FloatArray:
    """The level of every document by a regression on the documents of the other folds."""
    of_document = fold[data.documents.query]
    found = np.zeros(len(of_document))
    for number in np.unique(fold).tolist():
        inside = of_document == number
        regression = OrderRegression(data, cells, score, among=~inside, ridge=RIDGE)
        found[inside] = regression.predict()[inside]
    return found


def _centred(value: FloatArray, weight: FloatArray, query: npt.NDArray[np.integer]) -> FloatArray:
    """The values less their weighted mean within each query."""
    n = int(query.max()) + 1
    total = np.maximum(sums(query, weight, n), _TINY)
    centred: FloatArray = value - (sums(query, weight * value, n) / total)[query]
    return centred
