"""Positions far down cost what they hold, and a warning says what is odd about them."""

from __future__ import annotations

import resource

import numpy as np
import pyarrow as pa
import pytest

import unskew
from unskew import bias
from unskew.clicks import compare_click_models
from unskew.log.positions import curve_length


@pytest.mark.parametrize(
    ("positions", "length"),
    [
        ([1], 1),
        ([3, 1, 2], 3),
        ([1, 1_000], 1_000),
        ([1, 2, 1_020], 1_020),
        (list(range(1, 20_001, 10)), 19_991),
        ([], 0),
    ],
)
def test_positions_that_are_not_sparse_have_a_value_each(positions: list[int], length: int) -> None:
    """Up to a thousand positions, and up to ten for each that occurs, nothing is shared."""
    assert curve_length(np.array(positions, dtype=np.int32)) == length


@pytest.mark.parametrize(
    ("positions", "length"),
    [([1, 2, 1_021], 1_020), ([1, 1_011], 1_010), ([*range(1, 11), 2**31 - 1, 10**7], 1_100)],
)
def test_sparse_positions_share_the_last_value(positions: list[int], length: int) -> None:
    """Those beyond the room share the entry behind all others, and are counted."""
    with pytest.warns(UserWarning, match=rf"positions go up to .*those beyond {length:,} "):
        assert curve_length(np.array(positions, dtype=np.int32)) == length


def log(far: int) -> pa.Table:
    """A log of ten positions in which one row stands far down."""
    rng = np.random.default_rng(0)
    n = 200
    session, position = np.repeat(np.arange(n), 10), np.tile(np.arange(1, 11), n)
    query, doc = session % 20, np.tile(np.arange(10), n)
    feature = rng.normal(size=200)[query * 10 + doc]
    chance = 1 / (1 + np.exp(-feature)) / position
    click = (rng.random(len(session)) < chance).astype(int)
    click[19] = 1
    position[9] = far
    return pa.table(
        {
            "session": session, "query": query, "doc": doc, "position": position, "click": click,
            "x": feature, "y": feature**2,
        }
    )  # fmt: skip


@pytest.mark.parametrize("far", [10_000_000, 2**31 - 1])
@pytest.mark.filterwarnings("ignore:.*clipped|.*fragile|.*hardly")
def test_one_row_far_down_costs_nothing(far: int, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Reading, every estimator, every click model and training stay small, and the model too."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data, near = unskew.read_log(log(far)), unskew.read_log(log(10))
    assert data.max_position == far
    with pytest.warns(
        UserWarning, match=rf"positions go up to {far:,}.*beyond 1,100 \(1 of them\)"
    ):
        assert data.n_curve_positions(None) == 1_100
    assert data.n_curve_positions(5) == 5
    curve = bias.RelativeCTR().fit(data).t_plus
    assert len(curve) == 1_100
    np.testing.assert_array_equal(curve[:9], bias.RelativeCTR().fit(near).t_plus[:9])
    settings = {"n_estimators": 5, "min_data_in_leaf": 3, "verbose": 0, "random_state": 0}
    ranker = unskew.UnbiasedLambdaMART(**settings, n_jobs=1).fit(data)
    assert len(ranker.t_plus_) == 1_100
    ranker.save(tmp_path / "model")
    assert sum(file.stat().st_size for file in (tmp_path / "model").iterdir()) < 2_000_000
    outcomes = {one.name: one for one in compare_click_models(data, models=["pbm", "ubm", "dbn"])}
    assert outcomes["pbm"].fitted is not None
    assert "positions are too many. Remedy: let those far down share" in str(outcomes["ubm"].reason)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000
