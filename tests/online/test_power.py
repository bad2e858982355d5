"""Planning a test: sizes against statsmodels, and the promised power by simulation."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from arms import arm
from scipy.stats import norm
from statsmodels.stats.power import normal_sample_size_one_tail
from statsmodels.stats.proportion import proportions_ztest

from unskew.errors import DataError, UsageError
from unskew.online import plan_ab, read_ab
from unskew.online.power import Baseline, baseline_from_log
from unskew.online.sequential import always_valid_p
from unskew.online.sessions import SessionColumns


def test_a_size_by_hand() -> None:
    """N an arm = (1.96 + 0.84)**2 * (p (1-p) + q (1-q)) / (q - p)**2."""
    p, q = 0.3, 0.33
    z = norm.isf(0.025) + norm.isf(0.2)
    expected = z**2 * (p * (1 - p) + q * (1 - q)) / (q - p) ** 2
    found = plan_ab(p, relative=0.1, sessions_a_day=1_000)
    assert found.sessions == pytest.approx(2 * expected, rel=1e-3)
    assert found.control + found.treatment == found.sessions
    assert found.days == int(np.ceil(found.sessions / 1_000))
    assert found.power == pytest.approx(0.8, abs=1e-3)


@pytest.mark.parametrize("share", [0.5, 0.1])
@pytest.mark.parametrize("power", [0.8, 0.95])
def test_sizes_are_those_of_statsmodels(share: float, power: float) -> None:
    """The size of a test of a mean is that of statsmodels for the same variances."""
    baseline = Baseline(2.0, 1.7, rate=False)
    found = plan_ab(baseline, relative=0.05, power=power, share=share, level=0.9)
    deviation = sqrt(1.7 / (1 - share) + 1.7 / share)
    expected = normal_sample_size_one_tail(0.1, power, 0.05, deviation, deviation)
    assert found.sessions == pytest.approx(float(expected), rel=1e-3, abs=1)


def test_each_of_the_three_follows_from_the_others() -> None:
    """Size from change and power, change from size and power, power from size and change."""
    first = plan_ab(0.2, relative=0.04, power=0.9)
    change = plan_ab(0.2, sessions=first.sessions, power=0.9)
    assert change.relative == pytest.approx(0.04, rel=1e-3)
    power = plan_ab(0.2, sessions=first.sessions, relative=0.04)
    assert power.power == pytest.approx(0.9, abs=1e-4)
    days = plan_ab(0.2, days=7, sessions_a_day=first.sessions / 7, power=0.9)
    assert days.relative == pytest.approx(0.04, rel=1e-3)


@pytest.mark.parametrize(("share", "relative"), [(0.5, 0.1), (0.2, -0.15)])
def test_the_promised_power_holds(share: float, relative: float) -> None:
    """Of simulated tests of the planned size, the planned share finds the change."""
    plan = plan_ab(0.25, relative=relative, share=share)
    rng = np.random.default_rng(0)
    n = 2_000
    sizes = np.array([plan.control, plan.treatment])
    clicks = rng.binomial(sizes, [0.25, 0.25 * (1 + relative)], (n, 2))
    rate = clicks / sizes
    error = np.sqrt((rate * (1 - rate) / sizes).sum(axis=1))
    found = np.abs(rate[:, 1] - rate[:, 0]) / error > norm.isf(0.025)
    assert abs(found.mean() - 0.8) < 4 * sqrt(0.8 * 0.2 / n)
    theirs = [proportions_ztest(c, sizes)[1] < 0.05 for c in clicks[:300]]
    assert np.mean(theirs == found[:300]) > 0.98


def test_the_promised_power_holds_for_users() -> None:
    """A plan from a log with returning users keeps its promise when the test is read by user."""
    rng = np.random.default_rng(1)

    def users(n: int, lift: float) -> tuple[Any, Any]:
        sessions = 1 + rng.poisson(3.0, n)
        return rng.binomial(sessions, 0.8 * rng.beta(1.0, 3.0, n) * lift), sessions

    clicks, sessions = users(4_000, 1.0)
    log = pa.table(
        {
            "session": np.arange(sessions.sum()),
            "user": np.repeat(np.arange(4_000), sessions),
            "position": np.ones(sessions.sum(), dtype=int),
            "click": np.concatenate([np.arange(s) < c for c, s in zip(clicks, sessions, strict=True)])
            .astype(int),
        }
    )  # fmt: skip
    baseline = baseline_from_log(log, columns=SessionColumns(user="user"))
    naive = baseline_from_log(log)
    assert baseline.value == naive.value
    assert baseline.variance > 1.3 * naive.variance
    plan = plan_ab(baseline, relative=0.15)
    n, found = 600, 0
    for _ in range(n):
        arms = [users(round(plan.sessions / 2 / sessions.mean()), f) for f in (1.0, 1.15)]
        ratio = [y.sum() / m.sum() for y, m in arms]
        variance = [
            len(y) * np.var(y - r * m, ddof=1) / m.sum() ** 2
            for r, (y, m) in zip(ratio, arms, strict=True)
        ]
        found += abs(ratio[1] - ratio[0]) > norm.isf(0.025) * sqrt(sum(variance))
    assert abs(found / n - 0.8) < 0.02 + 4 * sqrt(0.8 * 0.2 / n)


def test_the_promised_power_holds_when_looking_daily() -> None:
    """A sequential plan needs more sessions, and with them finds the change at least as often."""
    plan = plan_ab(0.25, relative=0.1, sequential=True)
    single = plan_ab(0.25, relative=0.1)
    assert 1.5 < plan.sessions / single.sessions < 2.5
    rng = np.random.default_rng(2)
    n, found = 800, 0
    for _ in range(n):
        rate = rng.binomial(plan.control, [0.25, 0.275]) / plan.control
        error = sqrt((rate * (1 - rate)).sum() / plan.control)
        p = always_valid_p((rate[1] - rate[0]) / error, error / rate[0], 0.1)
        found += p < 0.05
    assert abs(found / n - 0.8) < 4 * sqrt(0.8 * 0.2 / n)


def test_what_makes_a_test_longer_or_shorter() -> None:
    """More measures and an uneven split lengthen a test, an earlier period shortens it."""
    size = plan_ab(0.3, relative=0.02).sessions
    assert plan_ab(0.3, relative=0.02, n_measures=6).sessions > size
    assert plan_ab(0.3, relative=0.02, share=0.1).sessions > 2 * size
    assert plan_ab(0.3, relative=0.02, removed=0.4).sessions == pytest.approx(0.6 * size, rel=1e-3)


def test_a_baseline_of_any_measure() -> None:
    """The baseline of a log is the value that a reading of it shows."""
    log = arm(300)
    read = read_ab(log, log, measures=["revenue"], depths=[2]).measures
    for name in ("click@2", "clicks", "abandonment", "first_click_rank", "revenue"):
        found = baseline_from_log(log, name)
        assert found.value == pytest.approx(read[name].control)
        assert found.rate == (name in ("click@2", "abandonment"))


def test_wrong_plans() -> None:
    """Plans that make no sense are refused by the parameter that makes none."""
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (0.3, {}, "give relative .*, or sessions or days"),
        (0.3, {"relative": 0.1, "sessions": 100, "power": 0.9}, "give two: the third"),
        (1.3, {"relative": 0.1}, "baseline must be a share of sessions between 0 and 1, got 1.3"),
        (0.3, {"relative": 0.0}, "relative must be above -1 and not 0"),
        (0.6, {"relative": 0.8}, "would raise the share 0.6 to 1 or above"),
        (0.3, {"relative": 0.1, "power": 1.0}, "power must lie between"),
        (0.3, {"relative": 0.1, "share": 1.0}, "share must lie between 0 and 1"),
        (0.3, {"relative": 0.1, "level": 0.0}, "level must lie between 0 and 1"),
        (0.3, {"relative": 0.1, "removed": 1.0}, "removed must be a share"),
        (0.3, {"relative": 0.1, "n_measures": 0}, "n_measures must be 1 or more"),
        (0.3, {"days": 3}, "days goes with sessions_a_day"),
        (0.3, {"sessions": 2}, "a test needs 4 sessions or more"),
        (0.9, {"sessions": 10, "power": 0.99}, "finds no increase with power 0.99"),
        (0.3, {"relative": 1e-9}, "no test of a sensible size"),
        (0.3, {"relative": 0.1, "sessions_a_day": 0}, "sessions_a_day must be above 0"),
        (0.3, {"sessions": 1_000, "sequential": True}, "needs expected"),
    ]
    for baseline, options, message in wrong:
        with pytest.raises(UsageError, match=message):
            plan_ab(baseline, **options)


def test_a_log_that_never_varies() -> None:
    """A measure that is the same in every session cannot be planned for."""
    log = {"session": [1, 2], "position": [1, 1], "click": [1, 1]}
    with pytest.raises(DataError, match="click@1 does not vary over the sessions"):
        baseline_from_log(log)
