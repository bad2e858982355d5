"""How many trees of how many leaves a log gets if nobody says."""

from __future__ import annotations

import pytest

from logs import random_log
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.rankers.saving import load
from unskew.rankers.sizes import default_leaves, default_trees


@pytest.fixture(scope="module")
def log():
    """Clicks on 400 documents."""
    return random_log(0)


def test_sizes_follow_the_data(log, tmp_path):
    """Small logs get few small trees, the numbers can be read, saved, and given instead."""
    ranker = UnbiasedLambdaMART(random_state=0, verbose=0).fit(log)
    assert (ranker.n_estimators_, ranker.num_leaves_) == (100, 4)  # of 400 documents
    assert ranker.trees_.n_rounds <= 100
    assert ranker.get_params()["num_leaves"] is None
    ranker.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.n_estimators_, again.num_leaves_) == (100, 4)
    assert again.min_data_in_leaf_ == ranker.min_data_in_leaf_
    given = UnbiasedLambdaMART(n_estimators=7, num_leaves=3, verbose=0).fit(log)
    assert (given.n_estimators_, given.num_leaves_, given.trees_.n_rounds) == (7, 3, 7)


@pytest.mark.parametrize(
    ("documents", "trees", "leaves"),
    [
        (10, 50, 4),
        (400, 100, 4),
        (1_000, 158, 4),
        (4_000, 300, 7),
        (20_000, 300, 16),
        (10**6, 300, 31),
    ],
)
def test_the_rules_of_sizes(documents, trees, leaves):
    """Square roots of the number of documents, up to the paper's 300 trees of 31 leaves."""
    assert (default_trees(documents), default_leaves(documents)) == (trees, leaves)


def test_min_data_in_leaf_counts_rows_of_the_log(log):
    """By default a leaf needs about 50 rows of the log, however many documents these are."""

    def in_leaf(data):
        return UnbiasedLambdaMART()._sizes(len(data.documents), data.n_rows).min_data_in_leaf

    assert in_leaf(log) == round(50 * len(log.documents) / log.n_rows)
    assert in_leaf(random_log(0, n_queries=5, sessions_per_query=1)) >= 50
    assert in_leaf(random_log(0, n_queries=2, sessions_per_query=200)) == 1
