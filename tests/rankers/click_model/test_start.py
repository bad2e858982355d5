"""Where boosting begins, and which queries are held out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from logs import random_log
from unskew.clicks.fitting.fitted import likelihood_of
from unskew.errors import DataError
from unskew.rankers.click_model.objective import ClickObjective, LabelObjective
from unskew.rankers.click_model.start import start_curves, starting_offset
from unskew.rankers.split import held_out_queries, shown_documents, split_by_query


@pytest.mark.parametrize("name", ["pbm", "ubm", "trust"])
def test_curves_begin_at_the_click_rates(name):
    """With the one relevance to begin with, each position is clicked as often as in the log."""
    data = random_log(0)
    likelihood = likelihood_of(name, data)
    offset = start_curves(likelihood)
    assert likelihood.slope.max() == pytest.approx(1.0, abs=0.1)
    found = likelihood.predict(np.full(len(data.documents), expit(offset)))
    for position in (1, 5, 10):
        at = found.position == position
        expected = (found.mass * found.clicked)[at].sum()
        assert (found.mass * found.conditional)[at].sum() == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("name", ["pbm", "ubm", "trust", "cascade", "dbn", "dcm"])
def test_the_offset_is_the_best_one_relevance(name):
    """At the start no shift of all relevances makes the clicks more likely."""
    data = random_log(0)
    likelihood = likelihood_of(name, data)
    objective = ClickObjective(likelihood, name=name, n_positions=10)
    n = len(data.documents)
    offset = starting_offset(objective, n, start_curves(likelihood))
    total = {
        shift: likelihood.evidence(np.full(n, expit(offset + shift))).log_likelihood
        for shift in (-0.05, 0.0, 0.05)
    }
    assert total[0.0] > max(total[-0.05], total[0.05])


def test_the_offset_of_labels_is_their_mean():
    """Labels begin at the logit of their mean."""
    relevance = np.array([0.0, 0.0, 0.4, 1.0])
    objective = LabelObjective(relevance, np.ones(4))
    assert expit(starting_offset(objective, 4, 0.0)) == pytest.approx(0.35)


def test_both_parts_have_clicked_queries():
    """A fifth of the clicked queries and a fifth of the others are held out, never all."""
    clicked = np.arange(100) < 60
    held_out = held_out_queries(clicked, 0.2, np.random.default_rng(0))
    assert np.count_nonzero(held_out[clicked]) == 12
    assert np.count_nonzero(held_out[~clicked]) == 8
    few = held_out_queries(np.array([True, False, True]), 0.99, np.random.default_rng(0))
    assert np.count_nonzero(few[[0, 2]]) == 1
    with pytest.raises(DataError, match="but there are 1 with a click: give validation="):
        held_out_queries(np.array([True, False]), 0.2, np.random.default_rng(0))


def test_a_split_shares_no_document():
    """The two parts of a log have all sessions and no query in common."""
    data = random_log(0)
    training, held_out = split_by_query(data, 0.3, np.random.default_rng(1))
    np.testing.assert_array_equal(training + held_out, data.patterns.mass)
    one, other = shown_documents(data, training), shown_documents(data, held_out)
    assert len(one) + len(other) == len(data.documents)
    assert not set(data.documents.query[one]) & set(data.documents.query[other])
    assert len(other) == pytest.approx(0.3 * len(data.documents), abs=1)
