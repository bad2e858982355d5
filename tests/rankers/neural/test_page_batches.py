"""Pages as batches: nothing lost, nothing twice, the pairs where they belong."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from logs import impressions_of, random_sessions
from unskew.log.counts import count_statistics
from unskew.pairs.pair_losses import PairLosses
from unskew.pairs.reference import ClickedPage
from unskew.pairs.statistic import pair_statistics
from unskew.rankers.neural.page_batches import PageBatches, clicked_gain

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def log():
    """A log with everything: gaps, grades, weights, pages of one result."""
    sessions = random_sessions(np.random.default_rng(0))
    return impressions_of(sessions, np.zeros((60, 1)))


def test_gain_by_hand():
    """A grade of 2 is worth 3, twice with weight 2.5 and once with 1."""
    heavy = ClickedPage((0, 1), (1, 2), (2, 0), 2.5)
    light = ClickedPage((0, 1), (1, 2), (2, 1), 1.0)
    data = impressions_of([heavy, heavy, light], np.zeros((10, 1)))
    np.testing.assert_allclose(clicked_gain(data), [3 * (2 * 2.5 + 1), 1.0])


def test_plain_clicks_are_worth_their_count():
    """With grades of 1 the gain is the click count."""
    sessions = random_sessions(np.random.default_rng(1), highest_grade=1)
    data = impressions_of(sessions, np.zeros((60, 1)))
    np.testing.assert_allclose(clicked_gain(data), count_statistics(data).clicks)


def test_batches_hold_every_pair_once(log):
    """Over an epoch, the batches' pairs are the pairs of the log, by documents and positions."""
    pairs = pair_statistics(log)
    expected = PairLosses.of(log.pages, pairs, 4)
    batches = PageBatches(log, pairs, n_positions=4, device="cpu")
    found = []
    for batch in batches.shuffled(3, np.random.default_rng(0)):
        ends = [batch.document[batch.i], batch.document[batch.j]]
        ends += [batch.position[batch.i], batch.position[batch.j], batch.weight]
        found += list(zip(*(end.tolist() for end in ends), strict=True))
    rows = zip(
        expected.document_i, expected.document_j, expected.position_i, expected.position_j,
        np.float32(expected.weight), strict=True,
    )  # fmt: skip
    assert sorted(found) == sorted(tuple(map(float, row)) for row in rows)


def test_batches_hold_every_clicked_page_once(log):
    """Without pairs, the batches are the pages with a click, whole and from the top."""
    batches = PageBatches(log, None, n_positions=99, device="cpu")
    worth, offsets = clicked_gain(log), log.pages.offsets
    pages = {
        tuple(zip(log.pages.document[a:b], log.pages.position[a:b] - 1, strict=True))
        for a, b in pairwise(offsets)
        if worth[a:b].any() and b - a > 1
    }
    found = []
    for batch in batches.shuffled(4, np.random.default_rng(0)):
        assert batch.distinct[batch.row].equal(batch.document)
        assert len(set(batch.distinct.tolist())) == len(batch.distinct)
        places = list(zip(batch.document.tolist(), batch.position.tolist(), strict=True))
        for page in range(batch.n_pages):
            own = np.flatnonzero(batch.segment.numpy() == page)
            assert own[0] == batch.first[page]
            found.append(tuple(places[k] for k in own))
    assert len(found) == len(batches) == len(pages)
    assert set(found) == pages
