"""The pair statistic of real-valued gains: by hand, against its twin, and against that of clicks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logs import impressions_of
from unskew.log.grades import gain
from unskew.log.impressions import Pages
from unskew.pairs.gains import gain_pairs
from unskew.pairs.reference import ClickedPage, reference_gain_pairs
from unskew.pairs.statistic import Pairs, pair_statistics


def pages_of(sizes: list[int]) -> Pages:
    """One page of so many documents each, numbered through."""
    n = sum(sizes)
    return Pages(
        query=np.arange(len(sizes), dtype=np.int32),
        offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        document=np.arange(n, dtype=np.int32),
        position=np.concatenate([np.arange(1, size + 1) for size in sizes]).astype(np.int32),
    )


def as_dict(pairs: Pairs) -> dict[tuple[int, int, int], float]:
    """The pairs by page and slots."""
    page = np.repeat(np.arange(len(pairs.offsets) - 1), np.diff(pairs.offsets))
    keys = zip(page.tolist(), pairs.slot_i.tolist(), pairs.slot_j.tolist(), strict=True)
    return dict(zip(keys, pairs.weight.tolist(), strict=True))


def test_two_results_by_hand():
    """Gains of 0.5 and 0.2: their difference over 0.5 / log2(2) + 0.2 / log2(3)."""
    found = gain_pairs(pages_of([2, 1]), np.array([0.2, 0.5, 0.7]))
    assert as_dict(found) == {(0, 1, 0): pytest.approx(0.3 / (0.5 + 0.2 / np.log2(3)))}
    assert found.offsets.tolist() == [0, 1, 1]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.lists(
            st.one_of(st.just(0.0), st.just(0.5), st.floats(0, 1)), min_size=1, max_size=7
        ),
        min_size=1, max_size=6,
    )
)  # fmt: skip
def test_the_kernel_agrees_with_its_twin(pages):
    """Every pair of different gains, sorted by page and slots, with the weight of the definition."""
    found = gain_pairs(pages_of([len(page) for page in pages]), np.concatenate(pages))
    expected = reference_gain_pairs(pages)
    assert list(as_dict(found)) == sorted(expected)
    assert as_dict(found) == pytest.approx(expected)


def test_gains_of_grades_are_the_statistic_of_clicks():
    """A page clicked once with grades has the pairs of the gains that these grades have."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 4, size=(5, 6))
    sessions = [
        ClickedPage(tuple(range(10 * q, 10 * q + 6)), tuple(range(1, 7)), tuple(row.tolist()))
        for q, row in enumerate(grades)
    ]
    data = impressions_of(sessions, np.zeros((50, 1)))
    worth = np.zeros(50)
    for q, row in enumerate(grades):
        worth[10 * q : 10 * q + 6] = gain(row)
    found, expected = gain_pairs(data.pages, worth), pair_statistics(data)
    assert as_dict(found) == pytest.approx(as_dict(expected))
    assert list(as_dict(found)) == list(as_dict(expected))
