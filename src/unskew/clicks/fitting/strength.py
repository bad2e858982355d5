"""Strength: how much things of one kind resemble each other, in trials, estimated from a log.

Documents of a query have relevances that differ, and so have documents their satisfaction. If those
are drawn from a beta distribution of mean m and strength s, a document with n trials and k successes
is best given (k + s m) / (n + s). Clicks are no plain trials, because nobody knows what was examined:
they are worth as many trials as carry the same Fisher information. Of those trials the strength is
taken under which a beta-binomial distribution gives them the highest likelihood.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln

from unskew.array_types import FloatArray

# The strengths among which one is chosen: from hardly any shrinking to hardly anything else.
STRENGTHS = np.geomspace(0.25, 512.0, 34)
# About how many documents the strength is estimated from.
MOST_DOCUMENTS = 2_000
_TINY = 1e-12
_CHANCES = (1e-6, 1.0 - 1e-6)


def informed_trials(
    chance: FloatArray, information: FloatArray, gradient: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Trials of a coin of that chance with the same information and gradient, and their successes.

    Both are about the logit of the chance. The successes of a single document may lie outside of 0 to
    its trials.
    """
    trials = looks_worth(chance, information)
    return trials, np.clip(chance, *_CHANCES) * trials + gradient


def looks_worth(chance: FloatArray, information: FloatArray) -> FloatArray:
    """How many looks at documents of that chance have this information about its logit."""
    r = np.clip(chance, *_CHANCES)
    trials: FloatArray = information / (r * (1.0 - r))
    return trials


def estimate_strength(trials: FloatArray, successes: FloatArray, mean: FloatArray) -> float:
    """The strength of a beta prior with these means that explains the trials best."""
    seen = np.flatnonzero(trials > _TINY)
    # Evenly spread over the log, so many documents tell it well enough.
    seen = seen[:: max(1, len(seen) // MOST_DOCUMENTS)]
    n = trials[seen]
    s, m = np.clip(successes[seen], 0.0, n), np.clip(mean[seen], 1e-4, 1.0 - 1e-4)

    def likelihood(k: float) -> float:
        a, b = k * m, k * (1.0 - m)
        return float((betaln(s + a, n - s + b) - betaln(a, b)).sum())

    # Every fourth strength first, then those around the best of them.
    coarse = STRENGTHS[::4]
    best = int(np.argmax([likelihood(k) for k in coarse])) * 4
    fine = STRENGTHS[max(best - 3, 0) : best + 4]
    return float(fine[int(np.argmax([likelihood(k) for k in fine]))])
