"""A reading that allows looking every day: always-valid p-values and confidence sequences.

An ordinary p-value holds for one look at a size fixed beforehand. Whoever looks every day and stops at
the first p below 0.05 is wrong far more often than one time in twenty. What is computed here holds for
all looks together, whenever one stops.

With d the estimate of an effect after some look, s its standard error, and effects spread beforehand
like a normal with mean 0 and standard deviation tau, the mixture likelihood ratio against no effect is

    L = sqrt(s**2 / (s**2 + tau**2)) * exp(tau**2 * d**2 / (2 * s**2 * (s**2 + tau**2)))

By Ville's inequality L reaches 1 / alpha with probability alpha at most over all looks if there is no
effect, so p = min(1, 1 / L) is valid at every look, and

    d ± s * sqrt((1 + s**2 / tau**2) * (2 * log(1 / alpha) + log(1 + tau**2 / s**2)))

covers the truth at all looks together with probability 1 - alpha (Robbins, Ann. Math. Stat. 1970;
Johari, Koomen, Pekelis and Walsh, Operations Research 2022; with estimated variances asymptotically:
Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Annals of Statistics 2024).

``tau`` decides where the interval is tightest, not whether it is valid. It is tightest when tau is about
2.8 standard errors (at level 0.95), and 2.8 standard errors are also the change that a test finds with
power 0.8. So tau is the relative change for which the test was planned.

Users who come back make a day's estimate depend on the days before more strongly than independent
sessions would. Paths that are more alike cross a bound less often (Slepian's inequality), so the
guarantee stands.
"""

from __future__ import annotations

from math import exp, inf, isinf, log, log1p, sqrt

from scipy.special import log_ndtr, ndtri_exp
from scipy.stats import t as student

# The relative change for which a test is taken to have been planned.
DEFAULT_EXPECTED = 0.02


def always_valid_p(statistic: float, error: float, tau: float) -> float:
    """The always-valid p-value of an estimate that is ``statistic`` standard errors from 0.

    ``error`` is the standard error, in the units of ``tau``.
    """
    if isinf(statistic):
        return 0.0
    if error == 0:
        return 1.0
    spread = (tau / error) ** 2
    exponent = 0.5 * statistic**2 * spread / (1.0 + spread) - 0.5 * log1p(spread)
    return exp(min(0.0, -exponent))


def critical_value(error: float, tau: float, alpha: float) -> float:
    """How many standard errors the confidence sequence reaches to either side."""
    if error == 0:
        return inf
    spread = (tau / error) ** 2
    return sqrt((1.0 + 1.0 / spread) * (2.0 * log(1.0 / alpha) + log1p(spread)))


def normal_equivalent(statistic: float, freedom: float) -> float:
    """The normal deviate with the tail of a t statistic: what few units have to say counts less."""
    if isinf(statistic) or isinf(freedom):
        return statistic
    return float(-ndtri_exp(student.logsf(abs(statistic), freedom)))


def student_quantile(critical: float, freedom: float) -> float:
    """The quantile of Student's t with the tail of a normal deviate: the inverse of the above."""
    if isinf(critical) or isinf(freedom):
        return critical
    return float(student.isf(exp(float(log_ndtr(-critical))), freedom))
