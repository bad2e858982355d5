"""Significance: intervals and tests against scipy, by hand, and on known truth."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from unskew.errors import DataError, UsageError
from unskew.evaluation.evaluation import Evaluation
from unskew.evaluation.significance import (
    _BLOCK,
    Interval,
    bootstrap_interval,
    compare,
    fisher_randomization,
    holm,
    paired_t_test,
)


def evaluation(values):
    """An evaluation with one metric, m."""
    values = np.asarray(values, dtype=float)
    return Evaluation(np.arange(len(values)), {"m": values})


class TestBootstrap:
    """Intervals of a mean."""

    def test_against_a_loop(self):
        """SciPy's percentile interval is that of a plain loop over resamples, up to their noise."""
        rng = np.random.default_rng(2)
        values = np.random.default_rng(0).exponential(size=300)
        found = bootstrap_interval(values, n_resamples=20_000, seed=1)
        means = [rng.choice(values, size=300).mean() for _ in range(20_000)]
        ends = np.quantile(means, [0.025, 0.975])
        assert (found.low, found.high) == pytest.approx(tuple(ends), abs=0.005)

    def test_equal_values(self):
        """Queries that are all alike have an interval without width, and no warning."""
        found = bootstrap_interval([0.5, 0.5, 0.5])
        assert (found.low, found.high) == (0.5, 0.5)

    def test_coverage(self):
        """A 90% interval holds the true mean in about 90% of repeated samples."""
        rng = np.random.default_rng(3)
        held = sum(
            0.0 in bootstrap_interval(rng.normal(size=80), level=0.9, n_resamples=400, seed=s)
            for s in range(400)
        )
        assert 335 <= held <= 378

    def test_seed(self):
        """The same seed gives the same interval; NaN values are left out."""
        values = np.random.default_rng(1).normal(size=50)
        with_nan = np.append(values, np.nan)
        assert bootstrap_interval(values, seed=4) == bootstrap_interval(with_nan, seed=4)
        assert bootstrap_interval(values, seed=4) != bootstrap_interval(values, seed=5)

    def test_errors(self):
        """One value, an impossible level and no resamples are refused."""
        with pytest.raises(DataError, match="two queries or more, got 1"):
            bootstrap_interval([1.0, np.nan])
        with pytest.raises(UsageError, match="level must lie between 0 and 1, got 95"):
            bootstrap_interval([1.0, 2.0], level=95)
        with pytest.raises(UsageError, match="n_resamples must be 1 or more"):
            bootstrap_interval([1.0, 2.0], n_resamples=0)


class TestFisher:
    """The paired randomisation test."""

    @pytest.mark.parametrize("shift", [0.0, 0.02, 0.05])
    def test_against_scipy(self, shift):
        """The p-value is that of SciPy's permutation test, up to resampling noise."""
        values = np.random.default_rng(5).normal(shift, 0.2, size=120)
        theirs = stats.permutation_test(
            (values,), np.mean, permutation_type="samples", n_resamples=5_000, vectorized=True,
            rng=np.random.default_rng(1),
        ).pvalue  # fmt: skip
        found = fisher_randomization(values, n_resamples=20_000)
        assert found == pytest.approx(theirs, abs=4 * np.sqrt(0.25 / 5_000))

    def test_against_every_sign(self):
        """The p-value is the share of all 2^n sign assignments, up to resampling noise."""
        d = np.array([0.3, -0.1, 0.4, 0.2, 0.05, -0.3, 0.25, 0.1])
        every = [abs(np.dot(signs, d)) for signs in product([-1, 1], repeat=len(d))]
        exact = np.mean(np.array(every) >= abs(d.sum()) - 1e-12)
        assert fisher_randomization(d, n_resamples=40_000, seed=0) == pytest.approx(exact, abs=0.01)

    def test_level(self):
        """Without a difference, a test at 5% rejects in about 5% of repeated samples."""
        rng = np.random.default_rng(5)
        rejected = sum(
            fisher_randomization(rng.normal(size=40), n_resamples=499, seed=s) <= 0.05
            for s in range(600)
        )
        assert 12 <= rejected <= 50

    def test_blocks_and_seed(self):
        """Many queries are handled in blocks, and a clear difference is found."""
        d = np.random.default_rng(2).normal(0.02, 0.2, size=9_000)
        assert fisher_randomization(d, n_resamples=999, seed=1) == 1 / 1000
        assert fisher_randomization(-d, n_resamples=999, seed=1) == 1 / 1000

    def test_no_resamples(self):
        """No resamples are refused."""
        with pytest.raises(UsageError, match="n_resamples must be 1 or more"):
            fisher_randomization([1.0, 2.0], n_resamples=0)


class TestTAndHolm:
    """The t-test and the correction."""

    def test_t_test(self):
        """The p-value is scipy's ttest_rel."""
        rng = np.random.default_rng(0)
        a, b = rng.normal(size=30), rng.normal(size=30)
        assert paired_t_test(a - b) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-12)

    def test_constant_difference(self):
        """No difference anywhere gives 1, the same difference everywhere 0, without a warning."""
        assert paired_t_test([0.0, 0.0, 0.0]) == 1.0
        assert paired_t_test([0.1, 0.1, 0.1]) == 0.0

    def test_holm_by_hand(self):
        """0.01, 0.04, 0.03 become 0.03, 0.06, 0.06; no correction exceeds 1."""
        assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
        assert holm([0.9, 0.8]) == [1.0, 1.0]

    def test_holm_range(self):
        """Something that is no probability is refused."""
        with pytest.raises(UsageError, match="between 0 and 1"):
            holm([0.5, 1.5])


class TestCompare:
    """Comparing several rankers."""

    def test_against_baseline(self):
        """A better ranker has a positive difference, an interval above zero and a small p-value."""
        rng = np.random.default_rng(1)
        base = rng.uniform(size=200)
        rankers = {
            "base": evaluation(base),
            "better": evaluation(base + 0.05 + rng.normal(0, 0.1, 200)),
            "same": evaluation(base + rng.normal(0, 0.1, 200)),
        }
        better, same = compare(rankers, metric="m", baseline="base")
        assert (better.a, better.b, better.n_queries) == ("better", "base", 200)
        assert better.interval.low > 0
        assert better.p_corrected < 0.01
        assert 0 in same.interval
        assert better.p_corrected == pytest.approx(2 * better.p_value)

    def test_all_pairs(self):
        """Without a baseline every pair is compared."""
        rankers = {
            name: evaluation(np.arange(5) * scale) for name, scale in (("a", 1), ("b", 2), ("c", 3))
        }
        assert [(c.a, c.b) for c in compare(rankers, metric="m", test="t")] == [
            ("a", "b"),
            ("a", "c"),
            ("b", "c"),
        ]

    def test_errors(self):
        """Different queries, unknown names and a lone ranker are refused."""
        a, b = evaluation([1, 2, 3]), evaluation([1, 2])
        with pytest.raises(DataError, match="evaluated on different queries"):
            compare({"a": a, "b": b}, metric="m")
        with pytest.raises(UsageError, match="metric 'x' was not evaluated"):
            compare({"a": a, "b": a}, metric="x")
        with pytest.raises(UsageError, match="baseline must be one of"):
            compare({"a": a, "b": a}, metric="m", baseline="c")
        with pytest.raises(UsageError, match="test must be one of"):
            compare({"a": a, "b": a}, metric="m", test="sign")
        with pytest.raises(UsageError, match="two rankers or more"):
            compare({"a": a}, metric="m")


def test_a_metric_that_one_of_them_lacks():
    """Both sides of a paired comparison need the metric, whichever of them lacks it."""
    both = Evaluation(np.arange(3), {"m": np.ones(3), "other": np.ones(3)})
    for pair in ({"a": both, "b": evaluation([1, 2, 3])}, {"a": evaluation([1, 2, 3]), "b": both}):
        with pytest.raises(UsageError, match=r"'other' was not evaluated for both 'a' and 'b'"):
            compare(pair, metric="other")


def test_fisher_counts_what_is_equally_far():
    """Differences that add up to nothing are as far from zero as any: the p-value is 1."""
    assert fisher_randomization([1.0, -1.0], n_resamples=99) == 1.0


def test_fisher_changes_the_sign_of_every_query():
    """Eight queries that differ among many that do not: one of 128 assignments is as far."""
    for before in (0, 1, 8, 64, 72):
        differences = np.concatenate([np.zeros(before), np.full(8, 10.0)])
        found = fisher_randomization(differences, n_resamples=20_000, seed=3)
        assert found == pytest.approx(2 / 256, abs=0.004)


def test_an_interval_holds_its_ends():
    """Both ends belong to the interval."""
    interval = Interval(0.1, 0.2, 0.95)
    assert 0.1 in interval
    assert 0.2 in interval
    assert 0.15 in interval
    assert 0.0999 not in interval
    assert 0.2001 not in interval


def test_every_resample_counts():
    """Queries that are all alike have an interval of one point, from one resample on."""
    for n_resamples in (1, 2, 50):
        found = bootstrap_interval([2.0, 2.0, 2.0], n_resamples=n_resamples)
        assert (found.low, found.high) == (2.0, 2.0)
        assert 0 < fisher_randomization([1.0, 2.0], n_resamples=n_resamples) <= 1


def test_a_t_test_of_equal_differences():
    """Differences that are all alike: surely none if they are 0, surely one if they are not."""
    assert paired_t_test([0.0, 0.0, 0.0]) == 1.0
    assert paired_t_test([0.5, 0.5, 0.5]) == 0.0
    assert paired_t_test([1.0, 1.0]) == 0.0


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, -0.5])
def test_levels_lie_between_0_and_1(level):
    """A level that is no share is refused."""
    with pytest.raises(UsageError, match="level must lie between 0 and 1"):
        bootstrap_interval([1.0, 2.0], level=level)


def test_fisher_in_blocks_counts_every_resample_once():
    """With so many queries that resamples come in blocks, a p-value is still a share of them."""
    assert fisher_randomization(np.tile([1.0, -1.0], _BLOCK // 100), n_resamples=70) == 1.0
