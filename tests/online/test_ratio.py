"""Ratios of sums over units: variances, intervals and adjustment against other implementations."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from unskew.online.change import Rule, change
from unskew.online.measures import click_measures
from unskew.online.ratio import Ratio, Units, adjusted_ratios, ratios, relative_interval, welch

CLICK = click_measures()[0]


def units(y: object, n: object = None) -> Units:
    """Units that occur once each."""
    numerator = np.asarray(y, dtype=np.float64)
    denominator = np.ones(len(numerator)) if n is None else np.asarray(n, dtype=np.float64)
    return Units(numerator, denominator, np.ones(len(numerator)))


def one(given: Units) -> Ratio:
    """The ratio of all units."""
    return ratios(given, np.zeros(len(given.y), dtype=np.int64), 1)[0]


def test_a_ratio_by_hand() -> None:
    """Two users with 1 of 2 and 3 of 4 sessions: R = 4/6, Var = 2/1 * (2 * (1/3)**2) / 6**2."""
    found = one(units([1, 3], [2, 4]))
    assert found.value == pytest.approx(4 / 6)
    assert found.variance == pytest.approx(2 * ((1 - 4 / 3) ** 2 + (3 - 8 / 3) ** 2) / 36)
    assert (found.units, found.mass) == (2, 6)


def test_repeated_units_count_as_often() -> None:
    """A unit with a count of three is three units."""
    packed = Units(np.array([1.0, 0.0]), np.array([2.0, 1.0]), np.array([3.0, 2.0]))
    unpacked = units([1, 1, 1, 0, 0], [2, 2, 2, 1, 1])
    assert one(packed).variance == pytest.approx(one(unpacked).variance)


def test_groups_are_read_apart() -> None:
    """Each group gets the ratio it would get alone; an empty group has none."""
    y, n = np.array([1.0, 0, 1, 1, 0, 1]), np.array([1.0, 2, 1, 3, 1, 1])
    group = np.array([0, 0, 2, 2, 2, 0])
    found = ratios(Units(y, n, np.ones(6)), group, 3)
    for g in (0, 2):
        alone = one(units(y[group == g], n[group == g]))
        assert found[g].value == pytest.approx(alone.value)
        assert found[g].variance == pytest.approx(alone.variance)
    assert found[1].mass == 0
    assert np.isnan(found[1].value)


def test_welch_is_that_of_scipy() -> None:
    """With one session per unit the p-value is Welch's t-test."""
    rng = np.random.default_rng(0)
    a, b = rng.gamma(2.0, 1.0, 60), rng.gamma(2.0, 1.3, 45)
    found = change(CLICK, one(units(a)), one(units(b)), Rule())
    expected = ttest_ind(b, a, equal_var=False)
    assert found.p == pytest.approx(float(expected.pvalue), rel=1e-10)
    pair = welch(one(units(a)), one(units(b)))
    assert pair is not None
    assert pair.statistic == pytest.approx(float(expected.statistic), rel=1e-10)
    assert pair.freedom == pytest.approx(float(expected.df), rel=1e-10)


def test_clusters_are_those_of_statsmodels() -> None:
    """The variance over users is the cluster-robust variance of the mean over sessions."""
    rng = np.random.default_rng(1)
    user = rng.integers(40, size=300)
    value = rng.random(300) + rng.normal(size=40)[user]
    fit = sm.OLS(value, np.ones(300)).fit(
        cov_type="cluster", cov_kwds={"groups": user, "use_correction": False}
    )
    present = np.unique(user)
    per_user = units(
        [value[user == u].sum() for u in present], [(user == u).sum() for u in present]
    )
    found = one(per_user)
    n = len(present)
    assert found.value == pytest.approx(float(fit.params[0]))
    assert found.variance == pytest.approx(float(fit.bse[0]) ** 2 * n / (n - 1), rel=1e-10)


def test_the_adjustment_is_a_regression() -> None:
    """With one session per user the adjusted difference is the coefficient of the arm in OLS."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 2))
    arm = np.repeat([0, 1], 100)
    y = 3.0 + 0.4 * arm + x @ [1.0, -0.5] + rng.normal(size=200)
    control, treatment = adjusted_ratios(
        units(y[arm == 0]), units(y[arm == 1]), x[arm == 0], x[arm == 1]
    )
    fit = sm.OLS(y, sm.add_constant(np.column_stack([arm, x]))).fit()
    assert treatment.value - control.value == pytest.approx(float(fit.params[1]), rel=1e-10)
    plain = one(units(y[arm == 0])).variance + one(units(y[arm == 1])).variance
    assert control.variance + treatment.variance < 0.6 * plain


def test_constant_covariates_change_nothing() -> None:
    """An earlier period in which all users were alike leaves the ratios as they are."""
    y, n = np.array([1.0, 2, 0, 3]), np.array([2.0, 2, 1, 4])
    before = np.ones((4, 3))
    control, treatment = adjusted_ratios(units(y, n), units(y + 1, n), before, before)
    assert control.value == pytest.approx(one(units(y, n)).value)
    assert treatment.variance == pytest.approx(one(units(y + 1, n)).variance)


@settings(max_examples=200, deadline=None)
@given(
    c=st.floats(0.01, 10.0),
    t=st.floats(-5.0, 10.0),
    vc=st.floats(1e-6, 4.0),
    vt=st.floats(1e-6, 4.0),
    sign=st.sampled_from([-1.0, 1.0]),
)
def test_the_interval_inverts_the_test(
    c: float, t: float, vc: float, vt: float, sign: float
) -> None:
    """Fieller's ends are where |t - (1 + r) c| is exactly the critical number of errors."""
    control, treatment = Ratio(sign * c, vc, 50, 50), Ratio(t, vt, 50, 50)
    critical = 1.96
    found = relative_interval(control, treatment, critical, 0.95)
    if c**2 <= critical**2 * vc:
        assert found is None
        return
    assert found is not None
    assert (t - sign * c) / c in found
    for end in (found.low, found.high):
        ratio = 1.0 + sign * end
        distance = abs(t - ratio * sign * c)
        assert distance == pytest.approx(critical * np.sqrt(vt + ratio**2 * vc), rel=1e-5, abs=1e-7)
    significant = abs(t - sign * c) > critical * np.sqrt(vc + vt)
    assert significant == (0.0 not in found)


@pytest.mark.parametrize("expected", [None, 0.1])
def test_arms_without_variance(expected: float | None) -> None:
    """Arms that never vary agree with p = 1 or differ with p = 0; one unit says nothing."""
    rule = Rule(expected=expected)
    still = Ratio(0.5, 0.0, 10, 10)
    assert change(CLICK, still, still, rule).p == 1.0
    assert change(CLICK, still, Ratio(0.6, 0.0, 10, 10), rule).p == 0.0
    single = change(CLICK, Ratio(0.5, float("nan"), 1, 1), still, rule)
    assert single.p is None
    assert single.interval is None
    assert "cannot be compared" in single.sentence


def test_a_control_of_zero_has_no_relative_change() -> None:
    """The difference is tested, while the relative change stays undefined."""
    found = change(CLICK, Ratio(0.0, 0.0, 100, 100), Ratio(0.5, 0.001, 100, 100), Rule())
    assert found.relative is None
    assert found.interval is None
    assert found.p is not None
    assert found.p < 1e-6


def _heterogeneous(rng: np.random.Generator, lift: float, n: int = 150) -> Ratio:
    """Users with click rates and activity of their own: a ratio that plain tests get wrong."""
    sessions = 1 + rng.poisson(4.0, n)
    rate = np.clip(rng.beta(1.0, 2.0, n) * lift, 0, 1)
    return one(units(rng.binomial(sessions, rate), sessions))


def test_no_difference_is_found_at_the_nominal_rate() -> None:
    """Under no difference p falls below 0.05 one time in twenty, users repeated as they may be."""
    rng = np.random.default_rng(3)
    n = 1_500
    p = np.array(
        [
            change(CLICK, _heterogeneous(rng, 1.0), _heterogeneous(rng, 1.0), Rule()).p
            for _ in range(n)
        ]
    )
    # Four standard deviations of a binomial share.
    assert abs((p < 0.05).mean() - 0.05) < 4 * np.sqrt(0.05 * 0.95 / n)
    assert abs((p < 0.5).mean() - 0.5) < 4 * np.sqrt(0.25 / n)


def test_intervals_cover_at_the_nominal_rate() -> None:
    """The interval holds the true relative change nineteen times in twenty."""
    rng = np.random.default_rng(4)
    n = 1_500
    covered = 0
    for _ in range(n):
        found = change(CLICK, _heterogeneous(rng, 1.0), _heterogeneous(rng, 0.8), Rule())
        assert found.interval is not None
        covered += -0.2 in found.interval
    assert abs(covered / n - 0.95) < 4 * np.sqrt(0.05 * 0.95 / n)


def test_adjusted_readings_keep_both_promises() -> None:
    """With an earlier period false alarms and coverage are as promised, and power is gained."""
    rng = np.random.default_rng(5)
    n, users = 1_000, 120
    alarms = covered = narrower = 0
    for _ in range(n):
        pairs, before = [], []
        for lift in (1.0, 0.9):
            taste = rng.beta(1.0, 2.0, users)
            earlier, sessions = 1 + rng.poisson(4.0, users), 1 + rng.poisson(4.0, users)
            seen = rng.random(users) < 0.8
            x = np.column_stack([rng.binomial(earlier, taste), earlier, np.ones(users)])
            before.append(x * seen[:, None])
            pairs.append([units(rng.binomial(sessions, taste * f), sessions) for f in (1.0, lift)])
        same = adjusted_ratios(pairs[0][0], pairs[1][0], *before)
        alarm = change(CLICK, *same, Rule()).p
        assert alarm is not None
        alarms += alarm < 0.05
        differing = adjusted_ratios(pairs[0][0], pairs[1][1], *before)
        found = change(CLICK, *differing, Rule()).interval
        plain = change(CLICK, one(pairs[0][0]), one(pairs[1][1]), Rule()).interval
        assert found is not None
        assert plain is not None
        covered += -0.1 in found
        narrower += found.high - found.low < plain.high - plain.low
    bound = 4 * np.sqrt(0.05 * 0.95 / n)
    assert abs(alarms / n - 0.05) < bound
    assert abs(covered / n - 0.95) < bound
    assert narrower / n > 0.95
