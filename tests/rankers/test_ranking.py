"""The order of candidates, and what features add to a score."""

from __future__ import annotations

import numpy as np

from unskew.rankers.ranking import Explanation, rank_candidates


def test_ranks_begin_anew_with_every_query():
    """Queries in the order in which they come, each by falling score; ties keep the order given."""
    query = np.array(["b", "a", "b", "a", "b", "c"])
    score = np.array([1.0, 5.0, 3.0, 5.0, 1.0, 0.0])
    found = rank_candidates(score, query, np.arange(6))
    assert found.query.tolist() == ["b", "b", "b", "a", "a", "c"]
    assert found.doc.tolist() == [2, 0, 4, 1, 3, 5]
    assert found.score.tolist() == [3.0, 1.0, 1.0, 5.0, 5.0, 0.0]
    assert found.rank.tolist() == [1, 2, 3, 1, 2, 1]
    assert found.row.tolist() == [2, 0, 4, 1, 3, 5]
    assert len(found) == 6


def test_what_moves_a_score_most():
    """Contributions and baseline add up; the largest come first, whatever their sign."""
    contributions = np.array([[0.5, -2.0, 0.5, 0.1, 0.0, 3.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    found = Explanation(tuple("abcdef"), contributions, 0.25)
    assert found.score.tolist() == [2.35, 1.25]
    top = [("f", 3.0), ("b", -2.0), ("a", 0.5), ("c", 0.5), ("d", 0.1)]
    assert found.top(0) == top
    assert found.top(0, 2) == top[:2]
    assert len(found) == 2
