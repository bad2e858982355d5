"""Pages side by side: nothing is lost, nothing is added, and what cannot be together is apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logs import DOCUMENTS_PER_QUERY, impressions_of, random_sessions
from unskew.pairs.bundles import LANES, PairTable
from unskew.pairs.reference import ClickedPage
from unskew.pairs.statistic import pair_statistics


def table_of(sessions, n_positions=20):
    """The sessions, compacted, and their pairs in bundles."""
    n_documents = 1 + max(max(session.document) for session in sessions)
    data = impressions_of(sessions, np.zeros((n_documents, 1)))
    return data, PairTable.build(data.pages, pair_statistics(data), n_positions)


def one_click(slot, n=10, query=0, position=None):
    """A page of ``n`` results with a click at one slot."""
    first = query * DOCUMENTS_PER_QUERY
    grades = tuple(int(k == slot) for k in range(n))
    return ClickedPage(tuple(range(first, first + n)), position or tuple(range(1, n + 1)), grades)


def pairs_in(table):
    """Every pair with a weight: preferred document, its position, the other's, and the weight."""
    found = []
    for bundle, m in enumerate(table.lanes):
        cells, slots = table.cells[bundle], table.slots[bundle]
        for at in range(table.pairs[bundle], table.pairs[bundle + 1]):
            start = table.weights[bundle] + (at - table.pairs[bundle]) * m
            a, b = int(table.upper[at]), int(table.lower[at])
            for lane in range(m):
                d_a, d_b = table.document[cells + np.array([a, b]) * m + lane].tolist()
                p_a, p_b = table.position[slots + np.array([a, b])].tolist()
                down, up = table.w_down[start + lane], table.w_up[start + lane]
                found += [(d_a, p_a, d_b, p_b, down)] if down else []
                found += [(d_b, p_b, d_a, p_a, up)] if up else []
    return sorted(found)


def pairs_of_the_statistic(data, n_positions):
    """The same from the pair statistic itself."""
    pages, pairs = data.pages, pair_statistics(data)
    found = []
    for page in range(len(pages)):
        for k in range(pairs.offsets[page], pairs.offsets[page + 1]):
            i, j = pages.offsets[page] + pairs.slot_i[k], pages.offsets[page] + pairs.slot_j[k]
            p_i, p_j = (min(int(pages.position[e]), n_positions) - 1 for e in (i, j))
            d_i, d_j = int(pages.document[i]), int(pages.document[j])
            found.append((d_i, p_i, d_j, p_j, pairs.weight[k]))
    return sorted(found)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_queries=st.sampled_from([1, 5, 100]),
    n_positions=st.sampled_from([1, 3, 20]),
)
def test_every_pair_keeps_its_documents_positions_and_weight(seed, n_queries, n_positions):
    """The bundles hold exactly the pairs of the statistic."""
    sessions = random_sessions(np.random.default_rng(seed), n_queries=n_queries)
    data, table = table_of(sessions, n_positions)
    assert pairs_in(table) == pairs_of_the_statistic(data, n_positions)


def test_chunks_cover_every_bundle_once():
    """Chunks are consecutive runs of bundles, from the first to the last."""
    _, table = table_of(random_sessions(np.random.default_rng(5), n_queries=300))
    assert table.chunks[0] == 0
    assert table.chunks[-1] == len(table.lanes)
    assert (np.diff(table.chunks) > 0).all()
    assert len(table.chunks) > 2


def test_pages_clicked_alike_share_a_bundle():
    """A hundred pages clicked at slot 2 and a hundred at slot 7 make four bundles without a gap."""
    sessions = [one_click((2, 7)[query % 2], query=query) for query in range(200)]
    _, table = table_of(sessions)
    assert sorted(table.lanes.tolist()) == [36, 36, LANES, LANES]
    assert ((table.w_down > 0) ^ (table.w_up > 0)).all()


def test_shorter_pages_join_longer_ones():
    """Pages of different length that begin at the same positions stand side by side."""
    sessions = [one_click(0, n=n, query=n) for n in (3, 4, 5)]
    _, table = table_of(sessions)
    assert table.lanes.tolist() == [3]
    assert table.size.tolist() == [3, 4, 5]


def test_much_shorter_pages_stay_apart():
    """A page more than twice as long would leave most of the other's lane empty."""
    _, table = table_of([one_click(0, n=n, query=n) for n in (3, 6, 7)])
    assert table.lanes.tolist() == [2, 1]
    assert len(table.document) == 2 * 6 + 7


@pytest.mark.parametrize("position", [(1, 2, 4), (2, 3, 4)])
def test_other_positions_stay_apart(position):
    """A page with a gap has a bias of its own at that slot: it is in no bundle of pages without."""
    sessions = [one_click(0, n=3), one_click(0, n=3, query=1, position=position)]
    _, table = table_of(sessions)
    assert table.lanes.tolist() == [1, 1]


def test_equal_hashes_do_not_bring_pages_together():
    """The hash only sorts: pages whose hash is the same but whose positions differ stay apart."""
    # Slots stand 1 and 1, or 0 and 1000004, below where they usually do: 1 * 1000003 + 1 = 1000004.
    sessions = [
        one_click(0, n=2, position=(2, 3)),
        one_click(0, n=2, query=1, position=(1, 1000006)),
    ]
    _, table = table_of(sessions, n_positions=2_000_000)
    assert table.lanes.tolist() == [1, 1]


def test_unlike_pages_take_no_more_room_than_allowed():
    """Pages that have no pair in common stay apart instead of sharing a sparse bundle."""
    rng = np.random.default_rng(0)
    sessions = [one_click(int(rng.integers(10)), query=query) for query in range(50)]
    _, table = table_of(sessions)
    assert len(table.w_down) <= 3 * table.n_pairs
    assert table.n_pairs == 50 * 9


def test_directions_of_a_pair_are_merged():
    """Two sessions that disagree about a pair share one entry with both weights."""
    sessions = [ClickedPage((0, 1), (1, 2), (1, 0)), ClickedPage((0, 1), (1, 2), (0, 1), 2.0)]
    _, table = table_of(sessions, n_positions=2)
    assert table.n_pairs == 1
    assert table.w_down.tolist() == [1.0]
    assert table.w_up.tolist() == [2.0]
