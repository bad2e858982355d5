"""Intervention harvesting: values by hand, the readable twin, recovery, logs that yield nothing."""

from __future__ import annotations

import numpy as np
import pytest

from shown import Shown, labelled, log_of, simulated
from unskew.bias import Harvesting, RelativeCTR
from unskew.bias.cells import Cells
from unskew.bias.harvesting import all_pairs, harvest
from unskew.bias.reference import harvested
from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions

MOVING = (
    Shown("ab", (1,), 30), Shown("ba", (1,), 10), Shown("ab", (2,), 5), Shown("ba", (2,), 15),
    Shown("abc", (3,), 10), Shown("cab", (1, 2), 20), Shown("bca", (1,), 12),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:the curve merely repeats the CTR")
def test_two_documents_by_hand():
    """a: 6/10 clicked at 1, 2/10 at 2; b: 4/20 and 4/20: weights 5 and 10, a ratio of 3 to 5."""
    data = log_of(
        Shown("ax", (1,), 6), Shown("ax", (), 4), Shown("ya", (2,), 2), Shown("ya", (), 8),
        Shown("bx", (1,), 4, query="r"), Shown("bx", (), 16, query="r"),
        Shown("yb", (2,), 4, query="r"), Shown("yb", (), 16, query="r"),
    )  # fmt: skip
    pairs = harvest(Cells.of(data, by_version=False))
    assert pairs.impressions[0, 1] == pairs.impressions[1, 0] == 10 * 10 / 20 + 20 * 20 / 40
    assert pairs.clicks[0, 1] == pytest.approx(5 * 0.6 + 10 * 0.2)
    assert pairs.clicks[1, 0] == pytest.approx(5 * 0.2 + 10 * 0.2)
    assert pairs.documents[0, 1] == 2
    for way in ("all-pairs", "chain"):
        assert Harvesting(way=way).fit(data).t_plus == pytest.approx([1.0, 3 / 5])


def test_the_tables_equal_the_readable_twin():
    """Pair by pair, with weights, several queries and pages of different lengths."""
    data = log_of(
        *MOVING, Shown("ba", (2,), 7, query="r", weight=2.5), Shown("ab", (1,), 3, query="r")
    )
    clicks = harvest(Cells.of(data, by_version=False)).clicks
    for (k, other), value in harvested(list(data.sessions())).items():
        assert clicks[k - 1, other - 1] == pytest.approx(value)


def test_all_pairs_solve_their_equations():
    """At the solution, expected and harvested clicks agree at every position."""
    clicks = harvest(Cells.of(log_of(*MOVING), by_version=False)).clicks
    theta = all_pairs(clicks)
    chance = theta[:, None] / (theta[:, None] + theta)
    assert ((clicks + clicks.T) * chance).sum(axis=1) == pytest.approx(clicks.sum(axis=1), rel=1e-6)


@pytest.mark.parametrize("way", ["all-pairs", "chain"])
def test_a_known_curve_is_recovered(way):
    """Within 0.04 behind a ranker whose lists change, where relative CTR is off by more than 0.1."""
    labels = labelled(n_queries=60)
    noisy = [
        labels.features.values[:, 0] + np.random.default_rng(k).normal(size=600) for k in range(8)
    ]
    parts = [
        simulated(labels, sessions=25_000, score=score, seed=k) for k, score in enumerate(noisy)
    ]
    data, truth = merged([part for part, _ in parts]), parts[0][1]
    assert np.abs(RelativeCTR().fit(data).t_plus - truth).max() > 0.1
    assert np.abs(Harvesting(way=way).fit(data).t_plus - truth).max() < 0.04


def merged(parts):
    """One log of several with the same documents."""
    from unskew.log.impressions import Impressions

    rows = {name: [] for name in ("session", "query", "doc", "position", "click")}
    number = 0
    for part in parts:
        for session in part.sessions():
            number += 1
            for doc, position in zip(session.doc, session.position, strict=True):
                values = (number, session.query, doc, position, int(position in session.clicked))
                for column, value in zip(rows.values(), values, strict=True):
                    column.append(value)
    return Impressions.from_arrays(None, rows.pop("click"), **rows)


def test_a_log_in_which_nothing_moved():
    """There is nothing to harvest; features are offered."""
    with pytest.raises(DataError, match=r"no document links position\(s\) \[2\].*regression-em"):
        Harvesting().fit(log_of(Shown("ab", (1,), 20), Shown("ab", (2,), 20)))


def test_a_broken_chain():
    """Neighbours that share no document break the chain, and all pairs are offered."""
    data = log_of(Shown("abc", (1,), 20), Shown("cba", (1,), 20), Shown("abc", (3,), 9))
    fixed = log_of(
        Shown("axc", (1,), 20), Shown("cxa", (1, 3), 20), Shown("bx", (2,), 20), Shown("xb", (1,), 9),
        Shown("aqc", (2,), 20), Shown("cya", (2,), 20), query_of(data),
    )  # fmt: skip
    with pytest.raises(DataError, match=r"positions 2 and 3: the chain.*way='all-pairs'"):
        Harvesting(way="chain").fit(fixed)


def query_of(data):
    """Sessions of another query, in which nothing moved."""
    return Shown("mno", (1,), data.n_queries, query="other")


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (log_of(Shown("ab", (), 20), Shown("ba", (), 20)), "the log has no click"),
        (log_of(Shown("ab", (1, 2), 20), Shown("ba", (1, 2), 20)), "every result of the log was"),
        (log_of(Shown("ab", (2,), 20), Shown("ba", (2,), 20)), "position 1 was never clicked"),
    ],
)
def test_logs_without_an_answer(log, message):
    """A log that says nothing gets a reason instead of a curve."""
    with pytest.raises(DataError, match=message):
        Harvesting().fit(log)


def test_the_way_is_checked():
    """A way that does not exist is refused by name."""
    with pytest.raises(UsageError, match=r"way must be one of \['all-pairs', 'chain'\]"):
        Harvesting(way="triples").fit(log_of(*MOVING))


@pytest.mark.filterwarnings("ignore:the curve merely repeats the CTR")
def test_documents_whose_features_change_are_one_document():
    """A document that has other features at another position has moved all the same."""
    docs, position, click = ["a", "x", "y", "a"] * 10, [1, 2] * 20, [1, 0, 0, 1, 1, 0, 0, 0] * 5
    rows = {"session": np.repeat(np.arange(20), 2), "query": ["q"] * 40, "doc": docs}
    changing = Impressions.from_arrays(
        np.array(position, dtype=float)[:, None], click, position=position, **rows
    )
    plain = Impressions.from_arrays(None, click, position=position, **rows)
    found = Harvesting(min_shown=1).fit(changing)
    assert found.t_plus.tolist() == Harvesting(min_shown=1).fit(plain).t_plus.tolist()


def test_positions_below_the_last_that_moved_are_borrowed():
    """Documents that swap the first two places say nothing of the third, which takes the second's."""
    data = log_of(
        Shown("ab", (1,), 20), Shown("ba", (1,), 20), Shown("ab", (2,), 8), Shown("ba", (2,), 8),
        Shown("abz", (3,), 4),
    )  # fmt: skip
    for way in ("chain", "all-pairs"):
        bias = Harvesting(way=way).fit(data)
        assert bias.t_plus[1] == bias.t_plus[2] < 1
        assert bias.borrowed_positions == (3,)


def test_all_pairs_of_any_scale():
    """Clicks of a thousandth of the weight give the same curve."""
    clicks = harvest(Cells.of(log_of(*MOVING), by_version=False)).clicks
    assert all_pairs(clicks / 1000) == pytest.approx(all_pairs(clicks), rel=1e-6)


def test_positions_that_share_no_document_get_nothing():
    """Two positions in the ratio of 4 to 1, and two more that no document moved to or from."""
    clicks = np.zeros((4, 4))
    clicks[0, 1], clicks[1, 0] = 4.0, 1.0
    assert all_pairs(clicks) == pytest.approx([1.0, 0.25, 0.0, 0.0])


def test_a_curve_that_falls_steeply_solves_its_equations():
    """Pairs of positions whose examination is small still count."""
    theta = np.array([1.0, 0.1, 0.05, 0.02])
    clicks = 10 * theta[:, None] * (1 - np.eye(4))
    assert all_pairs(clicks) == pytest.approx(theta, rel=1e-6)


def test_a_chain_breaks_where_the_upper_position_was_never_clicked():
    """What moved between 2 and 3 was clicked at 3 alone: the error names both, and the way out."""
    data = log_of(
        Shown("ab", (1,), 20), Shown("ba", (1, 2), 20), Shown("xmn", (1,), 20, query="r"),
        Shown("ynm", (3,), 20, query="r"),
    )  # fmt: skip
    message = "positions 2 and 3 were never clicked at 2: the chain.*way='all-pairs'"
    with pytest.raises(DataError, match=message):
        Harvesting(way="chain").fit(data)


def test_a_chain_ends_above_a_position_that_few_documents_reached():
    """One document moved from 1 to 3, once: nothing links 2 and 3, and 3 is borrowed from 2."""
    data = log_of(
        Shown("ab", (1,), 20), Shown("ba", (1,), 20), Shown("ab", (2,), 8), Shown("ba", (2,), 8),
        Shown("cxy", (1,), 9, query="r"), Shown("zwc", (3,), 1, query="r"),
    )  # fmt: skip
    bias = Harvesting(way="chain", min_shown=5).fit(data)
    assert bias.t_plus[1] == bias.t_plus[2] < 1
    assert bias.borrowed_positions == (3,)


def test_a_chain_whose_first_link_is_missing():
    """Documents that moved from 1 to 3 and from 2 to 3 do not link 1 and 2 directly."""
    data = log_of(
        Shown("axb", (1, 3), 20), Shown("yza", (3,), 20), Shown("ucv", (2,), 20, query="r"),
        Shown("wtc", (1,), 20, query="r"),
    )  # fmt: skip
    with pytest.raises(DataError, match=r"positions 1 and 2: the chain.*way='all-pairs'"):
        Harvesting(way="chain").fit(data)


def test_a_chain_of_any_scale():
    """Sessions that weigh a hundredth give the same curve."""
    shown = (
        Shown("ab", (1,), 20), Shown("ba", (1,), 20), Shown("ab", (2,), 8), Shown("ba", (2,), 8),
    )  # fmt: skip
    light = log_of(*(one._replace(weight=0.01) for one in shown))
    chain = Harvesting(way="chain", min_shown=0)
    assert chain.fit(light).t_plus == pytest.approx(chain.fit(log_of(*shown)).t_plus)


def test_a_chain_of_documents_that_hardly_moved():
    """Where too little moved to measure anything, that is said, and not that a link is missing."""
    data = log_of(
        Shown("axb", (1,), 20), Shown("yza", (3,), 1), Shown("ucv", (2,), 20, query="r"),
        Shown("wtc", (1,), 1, query="r"),
    )  # fmt: skip
    with pytest.raises(DataError, match="shown often enough to measure its bias"):
        Harvesting(way="chain", min_shown=21).fit(data)
