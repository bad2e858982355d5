"""Posterior relevance: what is known of a document's relevance once its clicks have been seen.

With a beta prior of mean m (the query's mean, or sigmoid(g(x)) of a ranker) and strength s,

    p(r | clicks) ~ r ** (s m) * (1 - r) ** (s (1 - m)) * P(clicks | r)

over z = logit(r). The likelihood is exact as a function of this one relevance, the model's parameters
and the relevance of the other documents being held at their estimates. Mean and spread are sums over a
grid of z, laid wide at first and then twice more closely around where the mass was found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from unskew.array_types import FloatArray
from unskew.clicks.fitting.likelihood import ClickLikelihood

# The first grid: logits from nearly never to nearly always relevant. The later ones: as many points
# over so many standard deviations either side, and never closer than the grid before could tell.
WIDEST, FIRST_POINTS = 14.0, 113
POINTS, DEVIATIONS, LEAST_STEPS = 49, 7.0, 3.0
PASSES = 3
# Documents at a time: a matrix of some fifty megabytes.
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Posterior:
    """The mean and the standard deviation of each document's relevance."""

    mean: FloatArray
    spread: FloatArray


def posterior_of(
    likelihood: ClickLikelihood, relevance: FloatArray, prior: FloatArray, strength: float
) -> Posterior:
    """The posterior of every document under a beta prior of these means and that strength.

    A document without impressions keeps its prior. ``relevance`` is where the other documents are
    held.
    """
    mean, spread = np.empty((2, len(prior)))
    for first in range(0, len(prior), CHUNK):
        end = min(first + CHUNK, len(prior))
        middle = np.clip(prior[first:end], 1e-6, 1.0 - 1e-6)[:, None]
        centre, half, points = np.zeros(end - first), np.full(end - first, WIDEST), FIRST_POINTS
        for _ in range(PASSES):
            z = centre[:, None] + half[:, None] * np.linspace(-1.0, 1.0, points)
            r = expit(z)
            # log(1 - r) = log(r) - z, without losing digits where r is near 1.
            log_r = -np.logaddexp(0.0, -z)
            log = strength * (log_r - (1.0 - middle) * z)
            likelihood.add_profiles(relevance, first, r, log)
            weight = np.exp(log - log.max(axis=1, keepdims=True))
            weight /= weight.sum(axis=1, keepdims=True)
            step = 2.0 * half / (points - 1)
            centre, deviation = _moments(weight, z)
            half = np.maximum(DEVIATIONS * deviation, LEAST_STEPS * step)
            points = POINTS
        mean[first:end], spread[first:end] = _moments(weight, r)
    return Posterior(mean, spread)


def _moments(weight: FloatArray, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each row."""
    mean = (weight * value).sum(axis=1)
    return mean, np.sqrt((weight * (value - mean[:, None]) ** 2).sum(axis=1))
