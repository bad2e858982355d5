"""How well a fitted click model predicts clicks: log-likelihood and perplexity, by position.

Perplexity at a position is 2 ** (- mean log2 of the probability given to what happened there), 1 for
certainty and 2 for a fair coin; over all positions it is the mean of theirs. It is *conditional* if the
clicks above are known when a click is predicted. (Dupret and Piwowarski, SIGIR 2008; Chuklin, Markov and
de Rijke, Click Models for Web Search, 2015.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.clicks.fitting.likelihood import Prediction

__all__ = ["ClickMeasures", "measure"]

FloatArray = npt.NDArray[np.float64]

_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class ClickMeasures:
    """Measures of one model on one set of sessions.

    ``log_likelihood`` is the mean over results shown; the curves have one entry per position, NaN
    where none was shown.
    """

    n_results: float
    log_likelihood: float
    perplexity: float
    conditional_perplexity: float
    perplexity_by_position: FloatArray
    conditional_perplexity_by_position: FloatArray


def measure(found: Prediction) -> ClickMeasures:
    """The measures of these predictions."""
    position = found.position - 1
    mass = np.bincount(position, weights=found.mass)
    curves = []
    for probability in (found.marginal, found.conditional):
        surprise = _surprise(probability, found.clicked) * found.mass
        total = np.bincount(position, weights=surprise)
        curves.append(np.divide(total, mass, out=np.full(len(mass), np.nan), where=mass > 0))
    total_mass = float(mass.sum())
    seen = mass > 0
    return ClickMeasures(
        n_results=total_mass,
        log_likelihood=-float((curves[1][seen] * mass[seen]).sum()) / total_mass,
        perplexity=float(np.exp(curves[0][seen]).mean()),
        conditional_perplexity=float(np.exp(curves[1][seen]).mean()),
        perplexity_by_position=np.exp(curves[0]),
        conditional_perplexity_by_position=np.exp(curves[1]),
    )


def _surprise(probability: FloatArray, clicked: npt.NDArray[np.bool_]) -> FloatArray:
    """Minus the logarithm of the probability of what happened."""
    bounded = np.clip(probability, _TINY, 1.0 - _TINY)
    return -np.where(clicked, np.log(bounded), np.log1p(-bounded))
