"""Doubly robust DCG: by hand, against its readable twin, unbiased if either half is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from logs import doubly_robust_dcg
from unskew.evaluation.click_values import ClickView, document_weights
from unskew.evaluation.metrics import METRICS
from unskew.log.counts import sums
from unskew.log.impressions import Impressions

THETA = np.array([1.0, 0.6, 0.3, 0.15])


def impressions(sessions, queries=None):
    """Impressions of sessions that list (document, position, click), one query unless told."""
    rows = [
        (number, 0 if queries is None else queries[number], *row)
        for number, session in enumerate(sessions)
        for row in session
    ]
    session, query, doc, position, click = np.array(rows).T
    return Impressions.from_arrays(
        doc[:, None].astype(float), click, session=session, query=query, doc=doc, position=position
    )


def drawn(rng, relevance, n_sessions):
    """Sessions of shuffled lists with clicks by examination times relevance."""
    sessions = []
    for _ in range(n_sessions):
        docs = rng.permutation(len(relevance))[: len(THETA)]
        click = rng.random(len(docs)) < THETA[: len(docs)] * relevance[docs]
        sessions.append(
            [(d, k + 1, int(c)) for k, (d, c) in enumerate(zip(docs, click, strict=True))]
        )
    return sessions


def estimate(data, score, theta, prediction, *, k=10, clip=0.1):
    """The doubly robust DCG of every query, as the estimates and the choice of a blend have it."""
    view = ClickView.of(data, np.asarray(theta), clip)
    weight = document_weights(view, np.asarray(score), METRICS["dcg"], k)
    attraction = view.attraction(np.asarray(prediction))
    return sums(view.query_of, weight * attraction, data.n_queries)


def test_by_hand():
    """Document 0 was seen at 1.5 of 2 impressions and clicked once, document 1 likewise never."""
    data = impressions([[(0, 1, 1), (1, 2, 0)], [(1, 1, 0), (0, 2, 0)]])
    first = 0.4 + (0 - 1.5 * 0.4) / 1.5
    second = 0.2 + (1 - 1.5 * 0.2) / 1.5
    view = ClickView.of(data, np.array([1.0, 0.5]), 0.1)
    assert view.attraction(np.array([0.2, 0.4])) == pytest.approx([second, first])
    found = estimate(data, [1.0, 2.0], [1.0, 0.5], [0.2, 0.4])
    assert found == pytest.approx([first + second / np.log2(3)])


@pytest.mark.parametrize("clip", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_as_the_readable_twin(k, clip):
    """Compressed counts give what going through every impression gives."""
    rng = np.random.default_rng(3)
    relevance, score, prediction = rng.random((3, 6))
    sessions = drawn(rng, relevance, 20)
    data = impressions(sessions)
    docs = data.documents.doc.astype(int)
    given = (data, score[docs], THETA, prediction[docs])
    expected, _ = doubly_robust_dcg(*given, k=k, clip=clip)
    assert estimate(*given, k=k, clip=clip) == pytest.approx(expected)


def mean_over_queries(theta, prediction, clip, n_queries=400):
    """The mean estimate over queries that are alike, with its standard error, and the truth."""
    rng = np.random.default_rng(11)
    score = np.array([2.0, 5.0, 4.0, 1.0, 3.0])
    sessions = [one for _ in range(n_queries) for one in drawn(rng, RIGHT, 25)]
    data = impressions(sessions, np.repeat(np.arange(n_queries), 25))
    docs = data.documents.doc.astype(int)
    found = estimate(data, score[docs], theta, prediction[docs], clip=clip)
    truth = (RIGHT[np.argsort(-score)] / np.log2(np.arange(2, 7))).sum()
    return found.mean(), found.std() / np.sqrt(n_queries), truth


RIGHT = np.array([0.8, 0.1, 0.5, 0.3, 0.65])
WRONG = np.full(5, 0.9)


@pytest.mark.parametrize(
    ("prediction", "clip", "unbiased"),
    [(WRONG, 0.0, True), (RIGHT, 0.9, True), (RIGHT, 0.0, True), (WRONG, 0.9, False)],
)
def test_unbiased_if_either_half_is_right(prediction, clip, unbiased):
    """Right examination or right prediction: the mean over queries is the truth; with neither not."""
    mean, error, truth = mean_over_queries(THETA, prediction, clip)
    assert (abs(mean - truth) < 4 * error) == unbiased


def test_clipping_takes_variance():
    """With a right prediction clipping leaves less to chance, and adds no bias."""
    _, clipped, _ = mean_over_queries(THETA, RIGHT, 0.8)
    _, whole, _ = mean_over_queries(THETA, RIGHT, 0.0)
    assert clipped < 0.8 * whole


def test_patterns_that_are_left_out():
    """A query without a session is worth nothing, and another one is as it was."""
    data = impressions([[(0, 1, 1), (1, 2, 0)], [(2, 1, 0), (3, 2, 1)]], queries=[0, 1])
    score, prediction = [1.0, 2.0, 3.0, 4.0], [0.5, 0.5, 0.5, 0.5]
    whole = estimate(data, score, THETA, prediction)
    part = estimate(data.take_patterns(np.array([1])), score, THETA, prediction)
    assert part == pytest.approx([0.0, whole[1]])


def test_clicks_without_relevance_are_taken_off():
    """With the base of each position the estimate is exact where clicks are what the model expects."""
    base, relevance = np.array([0.2, 0.1]), np.array([0.5, 0.25])
    data = impressions([[(0, 1, 1), (1, 2, 1)]] * 4)
    view = ClickView.of(data, np.array([0.8, 0.4]), 0.1, base=base)
    assert view.base.tolist() == [0.2, 0.1]
    expected = replace(view, clicks=view.shown * (view.theta * relevance + view.base))
    for prediction in ([0.5, 0.25], [0.9, 0.1]):
        assert expected.attraction(np.array(prediction)) == pytest.approx(relevance)


def test_equal_scores_share_their_ranks():
    """Tied documents have the mean discount of their ranks, so their order in the log is no matter."""
    data = impressions([[(0, 1, 1), (1, 2, 0)]])
    found = estimate(data, [1.0, 1.0], [1.0, 1.0], [0.5, 0.5])
    assert found == pytest.approx([(1 + 0) * (1 + 1 / np.log2(3)) / 2])
