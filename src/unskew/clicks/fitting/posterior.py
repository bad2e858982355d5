"""Posterior relevance: what is known of a document's relevance once its clicks have been seen.

With a beta prior of mean m (the query's mean, or sigmoid(g(x)) of a ranker) and strength s,

    p(r | clicks) ~ r ** (s m) * (1 - r) ** (s (1 - m)) * product over impressions of P(click or not | r)

over z = logit(r), whose mean and spread are summed up on a grid of z. For the affine family the product
is exact. For the chain family the expected counts of the E-step stand in for it: clicks out of examined
impressions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.clicks.fitting.affine import AffineLikelihood
from unskew.clicks.fitting.likelihood import ClickLikelihood

__all__ = ["Posterior", "posterior_of"]

FloatArray = npt.NDArray[np.float64]

_TINY = 1e-12
# Logits from nearly never to nearly always relevant: the grid of the sum.
GRID = np.linspace(-14.0, 14.0, 225)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The mean and the standard deviation of each document's relevance."""

    mean: FloatArray
    spread: FloatArray


@njit(cache=True, nogil=True, error_model="numpy")
def _grid_moments(starts, cells, slope, base, prior, strength, grid, mean, spread):  # type: ignore[no-untyped-def]
    """Sum the posterior of every document over the grid of relevances."""
    log = np.empty(len(grid))
    for d in range(len(prior)):
        for g in range(len(grid)):
            r = grid[g]
            log[g] = strength * (prior[d] * np.log(r) + (1.0 - prior[d]) * np.log1p(-r))
        for k in range(starts[d], starts[d + 1]):
            a, b = slope[cells.state[k]], base[cells.state[k]]
            n, c = cells.shown[k], cells.clicks[k]
            for g in range(len(grid)):
                p = min(max(b + (a - b) * grid[g], _TINY), 1.0 - _TINY)
                log[g] += c * np.log(p) + (n - c) * np.log1p(-p)
        highest = log.max()
        total, first, second = 0.0, 0.0, 0.0
        for g in range(len(grid)):
            weight = np.exp(log[g] - highest)
            total += weight
            first += weight * grid[g]
            second += weight * grid[g] * grid[g]
        mean[d] = first / total
        spread[d] = np.sqrt(max(second / total - mean[d] * mean[d], 0.0))


def posterior_of(
    likelihood: ClickLikelihood, relevance: FloatArray, prior: FloatArray, strength: float
) -> Posterior:
    """The posterior of every document under a beta prior of these means and that strength.

    A document without clicks and impressions keeps its prior. ``relevance`` is where the E-step of a
    chain model is taken.
    """
    middle = np.clip(prior, 1e-6, 1.0 - 1e-6)
    if isinstance(likelihood, AffineLikelihood):
        cells = likelihood.cells
        starts = np.searchsorted(cells.document, np.arange(len(prior) + 1))
        mean, spread = np.empty((2, len(prior)))
        grid = 1.0 / (1.0 + np.exp(-GRID))
        _grid_moments(
            starts, cells, likelihood.slope, likelihood.base, middle, strength, grid, mean, spread
        )
        return Posterior(mean, spread)
    evidence = likelihood.evidence(relevance)
    hits = evidence.successes + strength * middle
    trials = evidence.trials + strength
    mean = hits / np.maximum(trials, _TINY)
    return Posterior(mean, np.sqrt(mean * (1.0 - mean) / (trials + 1.0)))
