"""Looking every day: the sequential reading keeps its promise where the ordinary one does not."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from unskew.online.change import Rule, change
from unskew.online.measures import click_measures
from unskew.online.ratio import Ratio
from unskew.online.sequential import (
    always_valid_p,
    critical_value,
    normal_equivalent,
    student_quantile,
)

CLICK = click_measures()[0]


@pytest.mark.parametrize(("statistic", "error", "tau"), [(2.5, 0.01, 0.02), (4.0, 0.3, 0.1)])
def test_p_is_the_mixture_likelihood_ratio(statistic: float, error: float, tau: float) -> None:
    """1 / p is the likelihood ratio averaged over normal effects, by numerical integration."""
    estimate = statistic * error

    def ratio(effect: float) -> float:
        against = norm.pdf(estimate, effect, error) / norm.pdf(estimate, 0.0, error)
        return float(against * norm.pdf(effect, 0.0, tau))

    mixture, _ = quad(ratio, -10 * tau, 10 * tau, points=[0.0, estimate], limit=200)
    assert always_valid_p(statistic, error, tau) == pytest.approx(min(1.0, 1.0 / mixture), rel=1e-6)


def test_p_by_hand() -> None:
    """With tau = error: L = sqrt(1/2) * exp(z**2 / 4)."""
    expected = 1.0 / (sqrt(0.5) * exp(3.0**2 / 4))
    assert always_valid_p(3.0, 0.1, 0.1) == pytest.approx(expected)
    assert always_valid_p(0.0, 0.1, 0.1) == 1.0
    assert always_valid_p(float("inf"), 0.1, 0.1) == 0.0


@pytest.mark.parametrize("error", [0.001, 0.01, 0.5])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_interval_and_p_agree(error: float, alpha: float) -> None:
    """At the critical value the p-value is alpha, so interval and p-value decide alike."""
    critical = critical_value(error, 0.02, alpha)
    assert always_valid_p(critical, error, 0.02) == pytest.approx(alpha)
    assert critical > norm.isf(alpha / 2)


def test_the_interval_is_tightest_near_the_planned_change() -> None:
    """Tau of about 2.8 standard errors gives nearly the smallest critical value at level 0.95."""
    found = {k: critical_value(1.0, k, 0.05) for k in (0.5, 1.0, 2.8, 8.0, 30.0)}
    assert min(found, key=lambda k: found[k]) == 2.8
    best = min(critical_value(1.0, k, 0.05) for k in np.linspace(0.5, 10, 500))
    assert found[2.8] == pytest.approx(best, rel=1e-4)
    assert best == pytest.approx(sqrt((1 + 1 / 2.8**2) * (2 * log(20) + log(1 + 2.8**2))), rel=1e-3)


def test_few_units_count_less() -> None:
    """A t statistic becomes the normal deviate of the same tail, and back."""
    assert normal_equivalent(3.0, 5.0) < 3.0
    assert normal_equivalent(3.0, 1e9) == pytest.approx(3.0, rel=1e-6)
    assert student_quantile(normal_equivalent(3.0, 5.0), 5.0) == pytest.approx(3.0)
    assert always_valid_p(normal_equivalent(60.0, 1e6), 0.01, 0.02) == 0.0


def _daily(rng: np.random.Generator, days: int, a_day: int, rate: float) -> list[Ratio]:
    """The first-click ratio of one arm at the end of each day."""
    clicks = np.cumsum(rng.binomial(a_day, rate, days))
    sessions = a_day * np.arange(1, days + 1)
    value = clicks / sessions
    return [
        Ratio(float(v), float(v * (1 - v) / (n - 1)), int(n), float(n))
        for v, n in zip(value, sessions, strict=True)
    ]


def test_looking_every_day_stays_at_the_level() -> None:
    """With thirty looks the ordinary test is fooled four times as often as promised, this never."""
    rng = np.random.default_rng(0)
    n, days = 1_200, 30
    sequential = ordinary = 0
    for _ in range(n):
        pairs = list(zip(_daily(rng, days, 400, 0.3), _daily(rng, days, 400, 0.3), strict=True))
        z = [(t.value - c.value) / sqrt(t.variance + c.variance) for c, t in pairs]
        error = [sqrt(t.variance + c.variance) / c.value for c, t in pairs]
        ordinary += any(abs(each) > 1.96 for each in z)
        sequential += any(
            always_valid_p(each, at, 0.05) < 0.05 for each, at in zip(z, error, strict=True)
        )
    assert ordinary / n > 0.2
    assert sequential / n < 0.05 + 3 * sqrt(0.05 * 0.95 / n)


def test_returning_users_keep_the_level() -> None:
    """Users who come back every day make the looks more alike, which costs no false alarm."""
    rng = np.random.default_rng(1)
    n, days, users = 800, 20, 200
    wrong = 0
    for _ in range(n):
        taste = rng.beta(1.0, 2.0, (2, users))
        clicks = np.cumsum(rng.binomial(2, taste[:, :, None], (2, users, days)), axis=2)
        sessions = 2.0 * np.arange(1, days + 1)
        means = clicks.mean(axis=1) / sessions
        variances = clicks.var(axis=1, ddof=1) / users / sessions**2
        error = np.sqrt(variances.sum(axis=0))
        z = (means[1] - means[0]) / error
        relative = error / means[0]
        wrong += any(
            always_valid_p(float(s), float(e), 0.1) < 0.05 for s, e in zip(z, relative, strict=True)
        )
    assert wrong / n < 0.05 + 3 * sqrt(0.05 * 0.95 / n)


def test_intervals_cover_on_all_days_together() -> None:
    """The sequence of intervals holds the true change on every day, nineteen times in twenty."""
    rng = np.random.default_rng(2)
    n, days = 150, 12
    rule = Rule(expected=0.1)
    missed = 0
    for _ in range(n):
        pairs = zip(_daily(rng, days, 500, 0.3), _daily(rng, days, 500, 0.33), strict=True)
        missed += any(
            0.1 not in found
            for c, t in pairs
            if (found := change(CLICK, c, t, rule).interval) is not None
        )
    assert missed / n < 0.05 + 3 * sqrt(0.05 * 0.95 / n)


def test_a_real_change_is_found() -> None:
    """The sequential reading finds a change of the planned size, a little later than a single look."""
    rng = np.random.default_rng(3)
    control, treatment = _daily(rng, 30, 4_000, 0.3), _daily(rng, 30, 4_000, 0.315)
    found = change(CLICK, control[-1], treatment[-1], Rule(expected=0.05))
    assert found.p is not None
    assert found.fixed is not None
    assert found.fixed[0] < found.p < 0.05
    assert found.interval is not None
    assert found.fixed[1] is not None
    assert found.interval.low < found.fixed[1].low
