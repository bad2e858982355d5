"""Doubly robust DCG: by hand, against its readable twin, unbiased if either half is right."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.errors import DataError, UsageError
from unskew.evaluation.doubly_robust import (
    Sightings,
    doubly_robust_attraction,
    doubly_robust_dcg,
    sightings_by_position,
)
from unskew.evaluation.reference import doubly_robust_dcg_of_query
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


def test_by_hand():
    """Document 0 was seen at 1.5 of 2 impressions and clicked once, document 1 likewise never."""
    data = impressions([[(0, 1, 1), (1, 2, 0)], [(1, 1, 0), (0, 2, 0)]])
    found = doubly_robust_dcg(data, [1.0, 2.0], [1.0, 0.5], [0.2, 0.4])
    first = 0.4 + (0 - 1.5 * 0.4) / 1.5
    second = 0.2 + (1 - 1.5 * 0.2) / 1.5
    assert found.attraction == pytest.approx([second, first])
    assert found.per_query == pytest.approx([first + second / np.log2(3)])
    assert found.mean == pytest.approx(found.per_query[0])


@pytest.mark.parametrize("clip", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_as_the_readable_twin(k, clip):
    """Compressed counts give what going through every impression gives."""
    rng = np.random.default_rng(3)
    relevance, score, prediction = rng.random((3, 6))
    sessions = drawn(rng, relevance, 20)
    data = impressions(sessions)
    docs = data.documents.doc.astype(int)
    found = doubly_robust_dcg(data, score[docs], THETA, prediction[docs], k=k, clip=clip)
    expected = doubly_robust_dcg_of_query(
        sessions, dict(enumerate(score)), THETA.tolist(), dict(enumerate(prediction)),
        k=k, clip=clip,
    )  # fmt: skip
    assert found.mean == pytest.approx(expected)


def mean_over_queries(theta, prediction, clip, n_queries=400):
    """The mean estimate over queries that are alike, with its standard error, and the truth."""
    rng = np.random.default_rng(11)
    score = np.array([2.0, 5.0, 4.0, 1.0, 3.0])
    sessions = [one for _ in range(n_queries) for one in drawn(rng, RIGHT, 25)]
    data = impressions(sessions, np.repeat(np.arange(n_queries), 25))
    docs = data.documents.doc.astype(int)
    found = doubly_robust_dcg(data, score[docs], theta, prediction[docs], clip=clip).per_query
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


def test_sightings_with_a_base():
    """Clicks that come without relevance are taken off before the rest is divided."""
    seen = Sightings(np.array([0]), *(np.array([x]) for x in (10.0, 4.0, 0.5, 0.1)))
    found = doubly_robust_attraction(seen, np.array([0.3]), clip=0.0)
    assert found == pytest.approx([0.3 + (4 - 10 * (0.5 * 0.3 + 0.1)) / 5])


def test_patterns_without_mass_are_left_out():
    """A query whose sessions count nothing has no DCG, and another one is as it was."""
    data = impressions([[(0, 1, 1), (1, 2, 0)], [(2, 1, 0), (3, 2, 1)]], queries=[0, 1])
    score, prediction = [1.0, 2.0, 3.0, 4.0], [0.5, 0.5, 0.5, 0.5]
    whole = doubly_robust_dcg(data, score, THETA, prediction)
    part = doubly_robust_dcg(data, score, THETA, prediction, mass=np.array([0.0, 1.0]))
    assert np.isnan(part.per_query[0])
    assert part.per_query[1] == pytest.approx(whole.per_query[1])
    assert part.mean == pytest.approx(whole.per_query[1])
    low, high = whole.interval(0.9).low, whole.interval(0.9).high
    assert low < whole.mean < high


def test_clicks_without_relevance_are_taken_off():
    """With the base of each position the estimate is exact where clicks are what the model expects."""
    base, relevance = np.array([0.2, 0.1]), np.array([0.5, 0.25])
    data = impressions([[(0, 1, 1), (1, 2, 1)]] * 4)
    seen = sightings_by_position(data, [0.8, 0.4], base=base)
    assert seen.base.tolist() == [0.2, 0.1]
    expected = seen._replace(clicks=seen.shown * (seen.examination * relevance + seen.base))
    for prediction in ([0.5, 0.25], [0.9, 0.1]):
        found = doubly_robust_attraction(expected, np.array(prediction))
        assert found == pytest.approx(relevance)


def test_equal_scores_share_their_ranks():
    """Tied documents have the mean discount of their ranks, so their order in the log is no matter."""
    data = impressions([[(0, 1, 1), (1, 2, 0)]])
    found = doubly_robust_dcg(data, [1.0, 1.0], [1.0, 1.0], [0.5, 0.5])
    assert found.per_query[0] == pytest.approx((1 + 0) * (1 + 1 / np.log2(3)) / 2)


def test_what_is_refused():
    """Scores, predictions, curves and cuts that make no sense are named."""
    data = impressions([[(0, 1, 1), (1, 2, 0)]])
    with pytest.raises(
        DataError, match="score must have one value for each of the 2 document rows"
    ):
        doubly_robust_dcg(data, [1.0], THETA, [0.5, 0.5])
    with pytest.raises(DataError, match="prediction must be finite: document 2 has nan"):
        doubly_robust_dcg(data, [1.0, 2.0], THETA, [0.5, np.nan])
    with pytest.raises(DataError, match="prediction must lie between 0 and 1"):
        doubly_robust_dcg(data, [1.0, 2.0], THETA, [0.5, 1.5])
    with pytest.raises(UsageError, match="bias must have one number above 0 for each position"):
        sightings_by_position(data, [1.0, 0.0])
    with pytest.raises(UsageError, match="k must be 1 or more, got 0"):
        doubly_robust_dcg(data, [1.0, 2.0], THETA, [0.5, 0.5], k=0)
    with pytest.raises(UsageError, match=r"clip must lie in \[0, 1\], got 2"):
        doubly_robust_dcg(data, [1.0, 2.0], THETA, [0.5, 0.5], clip=2)
    with pytest.raises(DataError, match="an interval needs two queries or more"):
        doubly_robust_dcg(data, [1.0, 2.0], THETA, [0.5, 0.5]).interval()
