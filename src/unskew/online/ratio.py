"""A measure of one arm: a ratio of two sums over independent units, with its variance.

Every measure here is a ratio. Click@1 is the sum over users of their sessions whose first click is at
position 1, divided by the sum over users of their sessions. The unit is what was assigned to an arm: a
user where users are known, a session otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np

from unskew.array_types import FloatArray, IntArray
from unskew.evaluation.significance import Interval


class Units(NamedTuple):
    """Distinct units of one arm: numerator, denominator, and how many units have these two."""

    y: FloatArray
    n: FloatArray
    times: FloatArray


@dataclass(frozen=True)
class Ratio:
    """The value of a measure in one arm.

    ``variance`` is that of ``value`` as an estimate, ``units`` the number of independent units and
    ``mass`` the denominator. An arm in which the measure is not defined has ``mass`` 0 and NaN values.
    """

    value: float
    variance: float
    units: int
    mass: float


@dataclass(frozen=True)
class Relative:
    """How a treatment compares with a control.

    ``statistic`` is Welch's t with its degrees of ``freedom``. ``change`` and its standard ``error``
    are relative to the control, and NaN where the control is 0.
    """

    change: float
    statistic: float
    freedom: float
    error: float


def ratios(units: Units, group: IntArray, n_groups: int) -> list[Ratio]:
    """The ratio of each group of units, with its variance by the delta method.

    With R = sum(y) / sum(n) over U units,

        Var(R) = U / (U - 1) * sum((y - R * n)**2) / sum(n)**2

    which is the squared standard error of a mean where n is 1 for every unit, and the cluster-robust
    variance where a unit is a user with several sessions (Deng, Knoblich and Lu, KDD 2018).
    """
    y, n, times = units
    total = np.bincount(group, times, n_groups)
    sum_y = np.bincount(group, times * y, n_groups)
    sum_n = np.bincount(group, times * n, n_groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = sum_y / sum_n
        residual = np.where(times > 0, y - value[group] * n, 0.0)
        square = np.bincount(group, times * residual**2, n_groups)
        variance = np.where(total > 1, total / (total - 1) * square / sum_n**2, np.nan)
    return [
        Ratio(float(value[g]), float(variance[g]), int(total[g]), float(sum_n[g]))
        for g in range(n_groups)
    ]


def adjusted_ratios(
    control: Units, treatment: Units, before_control: FloatArray, before_treatment: FloatArray
) -> tuple[Ratio, Ratio]:
    """Both arms' ratios with the chance differences of an earlier period taken out (CUPED).

    ``before`` has one row per distinct unit and one column per covariate, all of them from before the
    test. With z the influence of a unit on its arm's ratio and theta the pooled regression of z on the
    covariates x,

        R_adjusted = R - theta . (mean of x in the arm - mean of x overall)

    The covariates cannot depend on the treatment, so the expected difference between the arms stays as
    it is, while its variance shrinks to that of the regression's residuals (Deng, Xu, Kohavi and
    Walker, WSDM 2013; for ratios, their appendix B).
    """
    arms = ((control, before_control), (treatment, before_treatment))
    plain = [ratios(u, np.zeros(len(u.y), dtype=np.int64), 1)[0] for u, _ in arms]
    influence, centred, means = [], [], []
    for ratio, (u, x) in zip(plain, arms, strict=True):
        mean = u.times @ x / ratio.units
        influence.append(ratio.units * (u.y - ratio.value * u.n) / ratio.mass)
        centred.append(x - mean)
        means.append(mean)
    weight = np.sqrt(np.concatenate([control.times, treatment.times]))
    theta = np.linalg.lstsq(
        np.vstack(centred) * weight[:, None], np.concatenate(influence) * weight, rcond=None
    )[0]
    overall = (plain[0].units * means[0] + plain[1].units * means[1]) / sum(r.units for r in plain)
    found = []
    for k, (ratio, (u, _)) in enumerate(zip(plain, arms, strict=True)):
        residual = influence[k] - centred[k] @ theta
        freedom = ratio.units * (ratio.units - 1.0)
        variance = float(u.times @ residual**2) / freedom if freedom else float("nan")
        value = ratio.value - float((means[k] - overall) @ theta)
        found.append(Ratio(value, variance, ratio.units, ratio.mass))
    return found[0], found[1]


def welch(control: Ratio, treatment: Ratio) -> Relative | None:
    """The relative change and Welch's t test of the difference; None where an arm has no variance.

    Two arms without any variance that agree have statistic 0; such that differ, an infinite one.
    """
    spread = control.variance + treatment.variance
    difference = treatment.value - control.value
    if not isfinite(spread) or not isfinite(difference):
        return None
    scale = abs(control.value) or float("nan")
    if spread == 0:
        statistic = 0.0 if difference == 0 else copysign(inf, difference)
        return Relative(difference / scale, statistic, inf, 0.0)
    freedom = spread**2 / sum(r.variance**2 / (r.units - 1) for r in (control, treatment))
    return Relative(difference / scale, difference / sqrt(spread), freedom, sqrt(spread) / scale)


def relative_interval(
    control: Ratio, treatment: Ratio, critical: float, level: float
) -> Interval | None:
    """Fieller's interval of the relative change; None where the control may as well be 0.

    It holds every change r with |treatment - (1 + r) * control| <= critical * its standard error, so it
    excludes 0 exactly if the test of the difference does (Fieller, JRSS B 1954).
    """
    c, t, square = control.value, treatment.value, critical**2
    a = c**2 - square * control.variance
    if not a > 0:
        return None
    root = critical * sqrt(
        max(
            t**2 * control.variance
            + c**2 * treatment.variance
            - square * control.variance * treatment.variance,
            0.0,
        )
    )
    sign = 1.0 if c > 0 else -1.0
    ends = sorted(sign * ((t * c + side * root) / a - 1.0) for side in (-1.0, 1.0))
    return Interval(ends[0], ends[1], level)
