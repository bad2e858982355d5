"""The table of the kernels: nothing is lost, nothing is added, and chunks cover it once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from logs import impressions_of, random_sessions
from unskew.pairs.reference import ClickedPage
from unskew.pairs.statistic import pair_statistics
from unskew.pairs.table import PairTable


def table_of(sessions, n_positions=20):
    """The sessions, compacted, and their table."""
    n_documents = 1 + max(max(session.document) for session in sessions)
    data = impressions_of(sessions, np.zeros((n_documents, 1)))
    return data, PairTable.build(data.pages, pair_statistics(data), n_positions)


def pairs_in(table):
    """Every pair: preferred document, its position, the other's, and the weight."""
    found = []
    for page in range(len(table.entries) - 1):
        first = int(table.entries[page])
        for k in range(int(table.pairs[page]), int(table.pairs[page + 1])):
            i, j = first + int(table.slot_i[k]), first + int(table.slot_j[k])
            ends = [(int(table.document[e]), int(table.position[e])) for e in (i, j)]
            found.append((*ends[0], *ends[1], table.weight[k]))
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
    """The table holds exactly the pairs of the statistic."""
    sessions = random_sessions(np.random.default_rng(seed), n_queries=n_queries)
    data, table = table_of(sessions, n_positions)
    assert pairs_in(table) == pairs_of_the_statistic(data, n_positions)


def test_chunks_cover_every_page_once():
    """Chunks are consecutive runs of pages, from the first to the last."""
    _, table = table_of(random_sessions(np.random.default_rng(5), n_queries=300))
    assert table.chunks[0] == 0
    assert table.chunks[-1] == len(table.entries) - 1
    assert (np.diff(table.chunks.astype(int)) > 0).all()
    assert len(table.chunks) > 2


def test_pages_without_pairs_take_no_room():
    """A page that nobody clicked, or clicked throughout, is not in the table."""
    clicked = ClickedPage((0, 1, 2), (1, 2, 4), (0, 1, 0))
    others = [ClickedPage((3, 4), (1, 2), (0, 0)), ClickedPage((5, 6), (1, 2), (1, 1))]
    _, table = table_of([*others, clicked])
    assert table.document.tolist() == [0, 1, 2]
    assert table.position.tolist() == [0, 1, 3]
    assert table.slots().tolist() == [0, 1, 2]
