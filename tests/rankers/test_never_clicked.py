"""A bias that a ranker learns says which positions were never clicked."""

from __future__ import annotations

from shown import Shown, log_of
from unskew import UnbiasedLambdaMART


def test_a_position_without_clicks_is_marked():
    """Position 3 stays where the update began; that it was not measured is said and drawn."""
    data = log_of(
        Shown("abc", (1,), 40), Shown("bac", (2,), 20), Shown("cab", (1, 2), 20),
        features={"a": 1.0, "b": 2.0, "c": 3.0},
    )  # fmt: skip
    ranker = UnbiasedLambdaMART(n_estimators=2, min_data_in_leaf=1, n_jobs=1, verbose=0).fit(data)
    assert ranker.position_bias_.never_clicked_positions == (3,)
    assert "position 3: shown but never clicked" in str(ranker.position_bias_)
