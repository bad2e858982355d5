"""Cells: impressions and clicks of documents at positions, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shown import Shown, log_of
from unskew.bias.cells import Cells, PositionCounts, shown_by_position
from unskew.log.impressions import Impressions


def test_by_hand():
    """Two pages of the same documents: four cells, each with its sessions and clicks."""
    cells = Cells.of(log_of(Shown("ab", (1,), 3), Shown("ba", (1, 2), 2, weight=0.5)))
    assert cells.group.tolist() == [0, 0, 1, 1]
    assert cells.position.tolist() == [0, 1, 0, 1]
    assert cells.impressions.tolist() == [3.0, 1.0, 1.0, 3.0]
    assert cells.clicks.tolist() == [3.0, 1.0, 1.0, 0.0]
    assert cells.per_group(cells.clicks).tolist() == [4.0, 1.0]


def test_positions_add_up_with_and_without_documents():
    """The sums over cells are the counts by position."""
    data = log_of(Shown("abc", (2,), 4), Shown("cb", (1,), 3), Shown("xy", (2,), 5, query="r"))
    direct, by_cell = shown_by_position(data), Cells.of(data).shown
    np.testing.assert_array_equal(direct.impressions, by_cell.impressions)
    np.testing.assert_array_equal(direct.clicks, by_cell.clicks)
    assert direct.ctr == pytest.approx([3 / 12, 9 / 12, 0.0])


def test_lower_positions_are_merged():
    """Beyond n_positions, a document at two positions is one cell."""
    data = log_of(Shown("abc", (3,), 4), Shown("acb", (3,), 3))
    cells = Cells.of(data, n_positions=2)
    assert cells.position.tolist() == [0, 1, 1]
    assert cells.clicks.tolist() == [0.0, 3.0, 4.0]


def test_sessions_of_weight_zero_are_not_there():
    """A document that only they showed has no cell."""
    cells = Cells.of(log_of(Shown("ab", (1,), 3), Shown("cb", (1,), 3, weight=0.0)))
    assert 2 not in cells.group
    assert cells.n_groups == 3


def test_feature_versions_can_be_one_document():
    """A document whose features changed is one document to a table, two rows to a regression."""
    data = Impressions.from_arrays(
        np.array([[1.0], [5.0], [2.0], [5.0]]), [1, 0, 0, 1],
        session=[1, 1, 2, 2], query=[1, 1, 1, 1], doc=["a", "b", "a", "b"], position=[1, 2, 1, 2],
    )  # fmt: skip
    assert data.documents.number.tolist() == [0, 0, 1]
    assert Cells.of(data).impressions.tolist() == [1.0, 1.0, 2.0]
    assert Cells.of(data, by_version=False).impressions.tolist() == [2.0, 2.0]


def test_which_positions_were_shown_often():
    """At least so many times, and at all."""
    counts = PositionCounts(np.array([5.0, 1.0, 2.0, 0.0]), np.zeros(4))
    assert counts.often(2).tolist() == [True, False, True, False]
    assert counts.often(0).tolist() == [True, True, True, False]
    assert counts.ctr.tolist() == [0.0] * 4


def test_the_ctr_of_light_sessions():
    """Impressions that weigh less than one have a CTR as well."""
    counts = PositionCounts(np.array([0.5, 0.0]), np.array([0.25, 0.0]))
    assert counts.ctr.tolist() == [0.5, 0.0]


def test_what_moved():
    """Impressions and clicks of documents seen at two positions or more; others count for nothing."""
    data = log_of(
        Shown("abx", (1,), 3), Shown("bay", (1, 3), 2), Shown("zca", (2,), 5), Shown("zcw", (), 1)
    )
    # a: 3, 2 and 5 times at 1, 2 and 3; b: 2 and 3 times at 1 and 2; all others stayed.
    moved = Cells.of(data).moved
    assert moved.impressions.tolist() == [5.0, 5.0, 5.0]
    assert moved.clicks.tolist() == [5.0, 0.0, 0.0]
