"""How well a fitted click model predicts clicks: log-likelihood and perplexity, by position.

Perplexity at a position is 2 ** (- mean log2 of the probability given to what happened there), 1 for
certainty and 2 for a fair coin; over all positions it is the mean of theirs. It is *conditional* if the
clicks above are known when a click is predicted. (Dupret and Piwowarski, SIGIR 2008; Chuklin, Markov and
de Rijke, Click Models for Web Search, 2015.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.clicks.fitting.likelihood import ClickLikelihood, Prediction
from unskew.errors import DataError

_TINY = 1e-12
# Patterns that are predicted at a time: some hundred megabytes of pages of ten.
CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class ClickMeasures:
    """Measures of one model on one set of sessions.

    ``log_likelihood`` is the mean over results shown; the curves have one entry per position, NaN
    where none was shown.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=3_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> (found,) = unskew.clicks.compare_click_models(data, models=["cascade"])
    >>> bool(found.measures.perplexity >= 1)
    True

    """

    n_results: float
    log_likelihood: float
    perplexity: float
    conditional_perplexity: float
    perplexity_by_position: FloatArray
    conditional_perplexity_by_position: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; None for positions where nothing was shown."""
        curves = {
            name: [None if np.isnan(value) else float(value) for value in getattr(self, name)]
            for name in ("perplexity_by_position", "conditional_perplexity_by_position")
        }
        return {
            "n_results": self.n_results,
            "log_likelihood": self.log_likelihood,
            "perplexity": self.perplexity,
            "conditional_perplexity": self.conditional_perplexity,
            **curves,
        }


def measure(*predictions: Prediction) -> ClickMeasures:
    """The measures of these predictions, taken together."""
    return _measures(predictions)


def measure_log(likelihood: ClickLikelihood, relevance: FloatArray) -> ClickMeasures:
    """The measures of a click model on the log it stands on, some patterns at a time."""
    return _measures(_predictions(likelihood, relevance))


def _predictions(likelihood: ClickLikelihood, relevance: FloatArray) -> Iterator[Prediction]:
    clicks = likelihood.clicks
    mass = clicks.arrays.mass
    counts = np.flatnonzero(mass > 0)
    for first in range(0, len(counts), CHUNK):
        chosen = counts[first : first + CHUNK]
        yield likelihood.on(clicks.data.take_patterns(chosen), mass[chosen]).predict(relevance)


def _measures(predictions: Iterable[Prediction]) -> ClickMeasures:
    """Sums of each prediction by position, added up."""
    sums = np.zeros((3, 0))
    for found in predictions:
        place = found.position - 1
        both = np.array(
            [
                np.bincount(place, weights=weight * found.mass)
                for weight in (
                    np.ones(len(place)),
                    _surprise(found.marginal, found.clicked),
                    _surprise(found.conditional, found.clicked),
                )
            ]
        )
        longest = max(sums.shape[1], both.shape[1])
        sums, both = (np.pad(one, ((0, 0), (0, longest - one.shape[1]))) for one in (sums, both))
        sums = sums + both
    mass = sums[0]
    if not mass.any():
        raise DataError("there is no session to measure a click model on")
    seen = mass > 0
    curves = np.full((2, len(mass)), np.nan)
    curves[:, seen] = np.exp(sums[1:, seen] / mass[seen])
    return ClickMeasures(
        n_results=float(mass.sum()),
        log_likelihood=-float(sums[2].sum() / mass.sum()),
        perplexity=float(curves[0, seen].mean()),
        conditional_perplexity=float(curves[1, seen].mean()),
        perplexity_by_position=curves[0],
        conditional_perplexity_by_position=curves[1],
    )


def _surprise(probability: FloatArray, clicked: npt.NDArray[np.bool_]) -> FloatArray:
    """Minus the logarithm of the probability of what happened."""
    bounded = np.clip(probability, _TINY, 1.0 - _TINY)
    return -np.where(clicked, np.log(bounded), np.log1p(-bounded))
