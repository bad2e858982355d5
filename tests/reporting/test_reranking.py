"""What a model changes in logged lists: values expanded by hand."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.log.impressions import Impressions
from unskew.log.merging import take_queries
from unskew.reporting.exposure import _gini, exposure_of
from unskew.reporting.reranking import PRIOR, LoggedLists
from unskew.reporting.sample import sample_queries

CURVE = np.array([1.0, 0.5, 0.25])


@pytest.fixture
def log():
    """A list of three, shown 40 times and clicked 10 times at its last place; another of two."""
    rows = []
    for session in range(40):
        click = int(session < 10)
        rows += [(session, 1, d, k, click * (d == 12)) for k, d in enumerate((10, 11, 12), 1)]
    for session in range(40, 50):
        rows += [(session, 2, d, k, 0) for k, d in enumerate((20, 21), 1)]
    session, query, doc, position, click = map(np.array, zip(*rows, strict=True))
    features = doc[:, None].astype(float)
    return Impressions.from_arrays(
        features, click, session=session, query=query, position=position, doc=doc
    )


def scores(log, **by_doc):
    """A score for each document, by its name."""
    return np.array([by_doc.get(f"d{doc}", 0.0) for doc in log.documents.doc])


def test_attraction_is_clicks_over_examination(log):
    """Clicks over examined impressions, with the query's mean seen a few times more."""
    lists = LoggedLists.of(log, CURVE)
    examined = 40 * CURVE
    overall = 10 / (examined.sum() + 10 * CURVE[:2].sum())
    mean = (10 + PRIOR * overall) / (examined.sum() + PRIOR)
    wanted = (np.array([0, 0, 10]) + PRIOR * mean) / (examined + PRIOR)
    assert lists.attraction[:3] == pytest.approx(wanted)


def test_reranking_moves_places(log):
    """The clicked document goes to the top of the first list, the second list stays."""
    order = LoggedLists.of(log, CURVE).reranked(scores(log, d12=2.0, d10=1.0))
    assert order.place.tolist() == [2, 3, 1, 1, 2]
    assert order.theta.tolist() == [0.5, 0.25, 1.0, 1.0, 0.5]
    # Of 50 sessions the 10 of the second query keep their first result.
    assert order.same_top() == pytest.approx(10 / 50)
    # Exposure gained: 0.75 at the third document, of 1.75 and 1.5 in all.
    assert order.moved_exposure() == pytest.approx(40 * 0.75 / (40 * 1.75 + 10 * 1.5))


def test_transitions(log):
    """Rows are logged places, columns new ones, in shares of the results at the logged place."""
    order = LoggedLists.of(log, CURVE).reranked(scores(log, d12=2.0, d10=1.0))
    moved = order.transitions(3)
    assert moved[0] == pytest.approx([10 / 50, 40 / 50, 0])
    assert moved[1] == pytest.approx([0, 10 / 50, 40 / 50])
    assert moved[2] == pytest.approx([1, 0, 0])
    assert order.mean_place(3) == pytest.approx([(10 + 80) / 50, (20 + 120) / 50, 1])


def test_transitions_are_cut(log):
    """What goes below the last column is not counted as anything else."""
    order = LoggedLists.of(log, CURVE).reranked(scores(log, d12=2.0, d10=1.0))
    assert order.transitions(2)[1] == pytest.approx([0, 10 / 50])


def test_changes_by_query(log):
    """The change of a query is the expected clicks of its new lists less those of its old ones."""
    lists = LoggedLists.of(log, CURVE)
    order = lists.reranked(scores(log, d12=2.0, d10=1.0))
    found = order.changes()
    wanted = lists.attraction[:3] @ (np.array([0.5, 0.25, 1.0]) - CURVE)
    assert found.change[0] == pytest.approx(wanted)
    assert found.outcome.tolist() == [1, 0]
    assert found.moved.tolist() == [True, False]
    assert found.change[1] == 0
    assert found.error[1] == 0
    back = lists.reranked(scores(log, d10=-1.0, d11=-2.0, d12=-3.0)).changes()
    assert back.change.tolist() == [0, 0]


def test_a_query_is_lost(log):
    """Moving the clicked document further down from where it could stand loses the query."""
    lists = LoggedLists.of(log, np.array([1.0, 0.5, 0.9]))
    found = lists.reranked(scores(log, d10=3.0, d12=2.0, d11=1.0)).changes()
    assert found.change[0] < 0


def test_exposure(log):
    """Exposure is spread over fifths of the documents by how often they were shown."""
    lists = LoggedLists.of(log, CURVE)
    logged = exposure_of(lists, None)
    assert logged.by_popularity.sum() == pytest.approx(1)
    total = 40 * 1.75 + 10 * 1.5
    assert logged.by_popularity[:2].sum() == pytest.approx(10 * 1.5 / total)
    after = exposure_of(lists, lists.reranked(scores(log, d12=2.0, d10=1.0)))
    assert after.by_popularity[:2] == pytest.approx(logged.by_popularity[:2])


def test_gini():
    """All alike is 0, all to one of four is three quarters, nothing at all is 0."""
    assert _gini(np.ones(4)) == pytest.approx(0)
    assert _gini(np.array([0, 0, 0, 1.0])) == pytest.approx(0.75)
    assert _gini(np.zeros(3)) == 0


def test_taking_queries_takes_everything_of_them(log):
    """The part has the sessions, pages and documents of its queries and nothing else."""
    part = take_queries(log, np.array([1]))
    assert (part.n_queries, part.n_documents, part.n_sessions, part.n_pages) == (1, 2, 10, 1)
    assert part.queries.tolist() == [2]
    assert part.documents.doc.tolist() == [20, 21]
    assert [one.doc for one in part.sessions()] == [(20, 21)] * 10
    assert take_queries(log, np.arange(2)).equals(log)


def test_a_sample_says_so(log):
    """A small log is taken whole; of a larger one whole queries, and the note names both sizes."""
    assert sample_queries(log, 5).note is None
    assert sample_queries(log, None).data is log
    found = sample_queries(log, 3)
    assert found.data.n_queries == 1
    assert "2 queries and 50 sessions" in found.note
