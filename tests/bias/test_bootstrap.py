"""Bootstrap intervals: resampling of counts, coverage of the truth, and logs too small for them."""

from __future__ import annotations

import numpy as np
import pytest

from shown import Shown, labelled, log_of, simulated
from unskew.bias import Harvesting, Randomization, RegressionEM, RelativeCTR, bootstrap_bias
from unskew.bias.bootstrap import resampled
from unskew.clicks import fit_click_model
from unskew.errors import DataError, UsageError
from unskew.position_bias import PositionBias

LOG = log_of(
    Shown("ab", (1,), 60), Shown("ab", (2,), 30), Shown("ab", (), 10), Shown("ba", (1,), 20, "r")
)  # fmt: skip


def test_a_resample_has_as_many_sessions():
    """Pattern counts are drawn anew, on average as often as in the log; nothing else changes."""
    rng = np.random.default_rng(0)
    draws = [resampled(LOG, rng) for _ in range(400)]
    assert {draw.n_sessions for draw in draws} == {LOG.n_sessions}
    clicks = [draw.n_clicks for draw in draws]
    assert np.mean(clicks) == pytest.approx(LOG.n_clicks, abs=3 * np.std(clicks) / 20)


def test_queries_are_drawn_whole():
    """Drawn by query, each query has its sessions a whole number of times."""
    rng = np.random.default_rng(0)
    sizes = {resampled(LOG, rng, by="query").n_sessions for _ in range(30)}
    assert sizes == {200, 120, 40}


def test_the_interval_of_one_ratio_by_theory():
    """The spread of a ratio of two binomial rates, to the precision of 2,000 resamples."""
    data = log_of(Shown("ab", (1,), 600), Shown("ab", (2,), 300), Shown("ab", (), 100))
    bias = bootstrap_bias(RelativeCTR(), data, n_resamples=2000)
    # log ratio of two counts of one multinomial: variance 1/600 + 1/300.
    width = 1.96 * np.sqrt(1 / 600 + 1 / 300)
    assert np.log(bias.interval_plus[:, 1] / 0.5) == pytest.approx([-width, width], rel=0.1)
    assert bias.interval_plus[:, 0].tolist() == [1.0, 1.0]
    assert bias.level == 0.95
    assert bias.equals(RelativeCTR().fit(data))


class Counting:
    """An estimator whose answers are known: 1, then 2, 3 and so on for the resamples."""

    def __init__(self):
        self.calls = 0

    def fit(self, data):
        """The next number as the bias of position 2."""
        self.calls += 1
        return PositionBias(np.array([1.0, float(self.calls)]), np.ones(2))


def test_the_ends_are_those_that_so_many_answers_allow():
    """Of 39 answers the lowest and the highest leave 1 in 40 beyond each: 95%. Of 79, the second."""
    low, high = bootstrap_bias(Counting(), LOG, n_resamples=39).interval_plus[:, 1]
    assert (low, high) == pytest.approx((2.0, 40.0))
    low, high = bootstrap_bias(Counting(), LOG, n_resamples=79).interval_plus[:, 1]
    assert (low, high) == pytest.approx((3.0, 79.0))


def test_the_fitted_click_model_has_the_intervals_of_the_table():
    """Both find examination from the places of clicks: the same answer on the log and on resamples."""
    data, _ = simulated(labelled(n_queries=30, seed=1), sessions=3000, seed=1)
    rng = np.random.default_rng(0)
    for one in (data, resampled(data, rng), resampled(data, rng)):
        table = RegressionEM(relevance="table").fit(one)
        fitted = fit_click_model(one, "pbm").position_bias()
        assert fitted.t_plus == pytest.approx(table.t_plus, rel=1e-9)


def test_the_same_seed_gives_the_same_interval():
    """And another seed another one."""
    first, second, other = (bootstrap_bias(RelativeCTR(), LOG, seed=seed) for seed in (1, 1, 2))
    assert first.interval_plus.tolist() == second.interval_plus.tolist()
    assert first.interval_plus.tolist() != other.interval_plus.tolist()


def test_trees_grow_once():
    """Regression-EM's trees are not grown for every resample, and its interval holds its estimate."""
    data, _ = simulated(labelled(n_queries=40), sessions=4000)
    bias = bootstrap_bias(RegressionEM(n_jobs=1), data, n_resamples=40)
    assert (bias.interval_plus[0, 1:] < bias.t_plus[1:]).all()
    assert (bias.t_plus[1:] < bias.interval_plus[1, 1:]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [RelativeCTR(), Randomization(), Harvesting(), RegressionEM(relevance="table")],
    ids=["relative-ctr", "randomization", "harvesting", "table-em"],
)
def test_intervals_hold_the_truth_at_their_rate(estimator):
    """On 20 logs of 9 measured positions, 95% intervals hold between 88% and 99% of the truths."""
    held = []
    for seed in range(20):
        data, truth = simulated(labelled(n_queries=30, seed=seed), sessions=3000, seed=seed)
        low, high = bootstrap_bias(estimator, data, n_resamples=100, seed=seed).interval_plus
        held.append(((low <= truth) & (truth <= high))[1:])
    assert 0.88 <= np.mean(held) <= 0.99


def test_a_log_too_small():
    """If many resamples cannot be estimated, there is no interval to give."""
    data = log_of(Shown("ab", (1,), 1), Shown("ab", (2,), 11), Shown("ab", (), 11))
    with pytest.raises(DataError, match="resamples of the log could not be estimated"):
        bootstrap_bias(RelativeCTR(minimum=0.0001), data, n_resamples=60)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"n_resamples": 2}, "n_resamples must be 20 or more"),
        ({"by": "page"}, r"by must be one of \['session', 'query'\]"),
    ],
)
def test_settings_are_checked(settings, message):
    """A setting that makes no sense is refused by its name."""
    with pytest.raises(UsageError, match=message):
        bootstrap_bias(RelativeCTR(), LOG, **settings)
