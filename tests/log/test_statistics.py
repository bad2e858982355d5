"""The sufficient statistics equal sums over raw sessions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from rows import Row, as_table, logs

import unskew
from unskew import Impressions
from unskew.log.counts import count_statistics, n_shown
from unskew.log.grades import discount, gain
from unskew.log.reference import reference_counts
from unskew.pairs.reference import reference_pairs
from unskew.pairs.statistic import pair_statistics


def pairs_as_dict(data: Impressions) -> dict[tuple[int, int, int], float]:
    """The sparse pairs by page and slots."""
    pairs = pair_statistics(data)
    page = np.repeat(np.arange(data.n_pages), np.diff(pairs.offsets))
    keys = zip(page.tolist(), pairs.slot_i.tolist(), pairs.slot_j.tolist(), strict=True)
    return dict(zip(keys, pairs.weight.tolist(), strict=True))


@settings(deadline=None, max_examples=60)
@given(rows=logs())
def test_pairs_equal_a_sum_over_sessions(rows: list[Row]) -> None:
    """W equals the brute-force sum to 1e-12, with grades, weights and gaps."""
    data = unskew.read_log(as_table(rows))
    expected = reference_pairs(data.sessions())
    assert pairs_as_dict(data) == pytest.approx(expected, rel=1e-12, abs=0)


@settings(deadline=None, max_examples=30)
@given(rows=logs())
def test_counts_equal_a_sum_over_sessions(rows: list[Row]) -> None:
    """N and C equal the brute-force sums."""
    data = unskew.read_log(as_table(rows))
    impressions, clicks = reference_counts(data.sessions())
    counts = count_statistics(data)
    found_n = dict(enumerate(counts.impressions.tolist()))
    page = np.repeat(np.arange(data.n_pages), np.diff(data.pages.offsets))
    slot = np.arange(len(page)) - data.pages.offsets[page]
    found_c = {
        (int(g), int(i)): c for g, i, c in zip(page, slot, counts.clicks, strict=True) if c > 0
    }
    assert found_n == pytest.approx(impressions, rel=1e-12)
    assert found_c == pytest.approx({k: c for k, c in clicks.items() if c > 0}, rel=1e-12)


def test_pairs_by_hand() -> None:
    """Two sessions of a page worked out on paper: a click at 2, and a cart at 1 above a click at 3."""
    rows = [Row(0, "q", d, k, c) for d, k, c in (("a", 1, 0), ("b", 2, 1), ("c", 3, 0))]
    rows += [Row(1, "q", d, k, c) for d, k, c in (("a", 1, 2), ("b", 2, 0), ("c", 3, 1))]
    # Session 0: gain 1 at b, IDCG = 1 / log2(2) = 1, so W[b, a] = W[b, c] = 1.
    # Session 1: gains 3, 0, 1; IDCG = 3 / log2(2) + 1 / log2(3).
    ideal = 3.0 + 1.0 / np.log2(3.0)
    expected = {
        (0, 1, 0): 1.0,
        (0, 1, 2): 1.0,
        (0, 0, 1): 3.0 / ideal,
        (0, 0, 2): 2.0 / ideal,
        (0, 2, 1): 1.0 / ideal,
    }
    found = pairs_as_dict(unskew.read_log(as_table(rows)))
    assert found == pytest.approx(expected, rel=1e-14)


def test_an_all_clicked_page_has_no_pairs() -> None:
    """Where everything has the same grade nothing is ordered."""
    rows = [Row(0, "q", d, k, 1) for k, d in enumerate("abc", start=1)]
    assert len(pair_statistics(unskew.read_log(as_table(rows)))) == 0


def test_a_weight_counts_like_repetition() -> None:
    """A session of weight 3 gives the statistics of three sessions."""
    page = [("a", 1, 0), ("b", 2, 1)]
    once = [Row(0, "q", *result, weight=3.0) for result in page]
    thrice = [Row(s, "q", *result) for s in range(3) for result in page]
    assert pairs_as_dict(unskew.read_log(as_table(once))) == pytest.approx(
        pairs_as_dict(unskew.read_log(as_table(thrice))), rel=1e-15
    )


def test_long_pages() -> None:
    """A page of a thousand results with two clicks has two rows of pairs, not a million entries."""
    n = 1_000
    rows = [Row(0, "q", k, k, int(k in (3, 700))) for k in range(1, n + 1)]
    pairs = pair_statistics(unskew.read_log(as_table(rows)))
    assert len(pairs) == 2 * (n - 2)
    assert set(pairs.slot_i.tolist()) == {2, 699}


def test_gain_and_discount() -> None:
    """The gain of a plain click is 1, and the discount of the first rank is 1."""
    assert gain([0, 1, 2, 3]).tolist() == [0.0, 1.0, 3.0, 7.0]
    assert discount([1, 3]).tolist() == [1.0, 0.5]


def test_a_context_is_selected() -> None:
    """Statistics of one context are those of a log that holds only its sessions."""
    rows = [Row(0, "q", "a", 1, 1, context="phone"), Row(0, "q", "b", 2, 0, context="phone")]
    rows += [Row(1, "q", "a", 1, 0, context="desk"), Row(1, "q", "b", 2, 1, context="desk")]
    data = unskew.read_log(as_table(rows))
    assert pairs_as_dict(data.in_context("phone")) == {(0, 0, 1): 1.0}
    assert data.in_context("phone", "desk").n_sessions == 2
    with pytest.raises(unskew.UsageError, match=r"context must be among \['desk', 'phone'\]"):
        data.in_context("tablet")


def test_how_many_results_were_shown() -> None:
    """Pages of three and of one, in sessions times their weight, or in masses of the patterns."""
    data = Impressions.from_arrays(
        None, [1, 0, 0, 1, 1], session=[1, 1, 1, 2, 3], query=[1, 1, 1, 2, 2], doc=[1, 2, 3, 4, 4],
        position=[1, 2, 3, 1, 1], weight=[0.5, 0.5, 0.5, 2.0, 2.0],
    )  # fmt: skip
    assert n_shown(data) == 3 * 0.5 + 2 * 2.0
    assert n_shown(data, np.array([10.0, 1.0])) == 3 * 10.0 + 1.0
