"""Matching: the curve of documents alike, and the standard errors that go with it."""

from __future__ import annotations

import numpy as np
import pytest

from shown import labelled, simulated
from unskew.bias.balance import Strata, balanced_examination, strata_of
from unskew.bias.cells import Cells
from unskew.bias.competition import Competition, bend_of, ranks_of
from unskew.bias.matching import Matching

PAGE = 6
THETA = np.arange(1, PAGE + 1) ** -1.0


def matching(rng: np.random.Generator, *, n_queries: int, shown: int) -> Matching:
    """Position-based clicks on lists by a score that strata know; it tells most of the relevance."""
    score = rng.normal(size=(n_queries, PAGE))
    score = -np.sort(-score, axis=1).ravel()
    group = np.arange(len(score))
    query, position = group // PAGE, group % PAGE
    impressions = np.full(len(group), float(shown))
    relevance = 1.0 / (1.0 + np.exp(1.0 - 1.5 * score - rng.normal(size=len(score))))
    clicks = rng.binomial(shown, THETA[position] * relevance).astype(float)
    cells = Cells(group, position, impressions, clicks, len(group), PAGE)
    grown = Competition(
        query=query, rank=ranks_of(score, query, np.ones(len(group), dtype=bool)),
        stratum=strata_of(-score, impressions, 40),
        relevance=1.0 / (1.0 + np.exp(0.85 * (1.0 - 1.5 * score))),
    )  # fmt: skip
    strata = Strata.of(cells, grown.stratum, grown.relevance)
    steep = balanced_examination(strata)
    return Matching(grown, cells, cells, strata, steep, bend_of(cells, steep, grown))


def test_standard_errors_hold_the_truth_at_their_rate():
    """Two of them to either side hold the true curve in 90 to 99% of 60 logs of other documents."""
    rng = np.random.default_rng(7)
    held = []
    for _ in range(60):
        found = matching(rng, n_queries=150, shown=60)
        curve = found.curve / found.curve[0]
        held.append(np.abs(curve - THETA)[1:] <= 1.96 * found.error[1:])
        assert found.error[0] == 0.0
    assert 0.9 <= np.mean(held) <= 0.99


def test_more_queries_make_a_curve_surer():
    """Nine times the queries make the standard errors less than half as large."""
    few = matching(np.random.default_rng(0), n_queries=100, shown=50)
    many = matching(np.random.default_rng(0), n_queries=900, shown=50)
    assert (2.0 * many.error[1:] < few.error[1:]).all()


def test_documents_that_moved_count():
    """On shuffled lists documents compare positions by themselves: the truth, and surer for it."""
    data, truth = simulated(labelled(n_queries=40), sessions=6_000, seed=1)
    n = len(data.documents)
    alike = Competition(
        query=data.documents.query, rank=np.ones(n, dtype=np.int64),
        stratum=np.zeros(n, dtype=np.int64), relevance=np.full(n, 0.3),
    )  # fmt: skip
    found = Matching.of(data, alike, Cells.of(data))
    assert np.abs(found.curve / found.curve[0] - truth).max() < 0.1
    fixed = found.moving.moved.clicks.sum()
    assert fixed == pytest.approx(data.n_clicks)
    assert found.error.max() < 0.06
