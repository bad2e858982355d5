"""From rows to statements: means, spreads, intervals, orders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from unskew.paper.runs import read_results
from unskew.paper.summary import (
    differences,
    grouped,
    metric_of,
    order_statement,
    per_seed,
    select,
    summarise,
)

NDCG = metric_of("ndcg@10")


@pytest.fixture
def make(done):
    """A result with a given method, seed and NDCG@10."""
    template = read_results(done)[0]

    def result(method, seed, value):
        metrics = {**template.metrics, "ndcg@10": value}
        return replace(template, method=method, seed=seed, metrics=metrics)

    return result


def test_means_and_spreads_are_over_seeds(make):
    """One value for each seed; the mean and the standard deviation of these."""
    rows = [make("a", 2, 0.5), make("a", 1, 0.3)]
    assert per_seed(rows, NDCG) == {1: 0.3, 2: 0.5}
    one = summarise(rows, NDCG)
    assert (one.mean, one.n_seeds) == (pytest.approx(0.4), 2)
    assert one.spread == pytest.approx(np.std([0.3, 0.5], ddof=1))


def test_intervals_are_student_t(make):
    """The paired interval and p-value are those of SciPy's paired t-test."""
    a, b = [0.5, 0.6, 0.55, 0.7], [0.45, 0.5, 0.56, 0.6]
    groups = {
        name: [make(name, seed, value) for seed, value in enumerate(values)]
        for name, values in (("a", a), ("b", b))
    }
    (found,) = differences(groups, [("a", "b")], NDCG)
    test = stats.ttest_rel(a, b)
    low, high = test.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.p_corrected == pytest.approx(test.pvalue)
    assert found.verdict == "not separated"


def test_one_seed_says_nothing(make):
    """With a single seed there is no interval and no verdict."""
    groups = {"a": [make("a", 1, 0.9)], "b": [make("b", 1, 0.1)]}
    (found,) = differences(groups, [("a", "b")], NDCG)
    assert np.isnan(found.low)
    assert found.verdict == "one seed: cannot tell"
    assert order_statement(groups, NDCG) == "a ≈ b"


def test_an_order_is_stated_where_the_interval_supports_it(make):
    """Neighbours that are apart in every seed get '>', others '≈'."""
    values = {"low": [0.10, 0.11, 0.12], "high": [0.5, 0.51, 0.52], "near": [0.49, 0.53, 0.5]}
    groups = {
        name: [make(name, seed, value) for seed, value in enumerate(column)]
        for name, column in values.items()
    }
    assert order_statement(groups, NDCG) == "high ≈ near > low"


def test_only_what_all_have_is_compared(make):
    """A seed that one group lacks is left out of all, so that comparisons stay paired."""
    rows = [make("a", 1, 0.1), make("a", 2, 0.9), make("b", 1, 0.2)]
    groups = grouped(rows, lambda r: r.method)
    assert {name: [r.seed for r in group] for name, group in groups.items()} == {"a": [1], "b": [1]}


def test_select_takes_values_and_choices(make):
    """A tuple allows several values, anything else must be equal."""
    rows = [make("a", 1, 0.1), make("b", 1, 0.1), make("c", 2, 0.1)]
    assert [r.method for r in select(rows, method=("a", "c"), seed=2)] == ["c"]


def test_a_claim_is_judged_by_its_interval(make):
    """Confirmed and the opposite need an interval off zero; everything else is not separated."""
    from unskew.paper.sections.claims import Claim

    values = {"a": [0.5, 0.51, 0.52], "b": [0.1, 0.11, 0.12], "c": [0.45, 0.55, 0.5]}
    rows = [make(m, seed, v) for m, column in values.items() for seed, v in enumerate(column)]
    rows = [replace(row, protocol="paper") for row in rows]

    def verdict(first, second, sign=1):
        claim = Claim("", {"method": first}, {"method": second}, NDCG, sign)
        return claim.verdict(claim.difference(rows))

    assert verdict("a", "b") == "confirmed"
    assert verdict("b", "a") == "the opposite"
    assert verdict("b", "a", sign=-1) == "confirmed"
    assert verdict("a", "c") == "not separated"
    assert Claim("", {"method": "a"}, {"method": "z"}, NDCG).difference(rows) is None
