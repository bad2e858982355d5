"""Real logs: Expedia against its shuffled searches, Yandex against documents that moved."""

from __future__ import annotations

import numpy as np
import pytest

import unskew
from unskew.bias import (
    Harvesting,
    Randomization,
    RegressionEM,
    bootstrap_bias,
    compare_estimators,
)

# Positions 5 and 11 of these pages are mostly taken by something else: few searches show a hotel there.
POSITIONS = [2, 3, 4, 6, 7, 8, 9, 10]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the bias of position")
def test_expedia_lies_inside_what_its_shuffled_searches_say(expedia):
    """Every estimator of examination that does not refuse, at every position shown to most."""
    at = np.array(POSITIONS) - 1
    shuffled = bootstrap_bias(Randomization(context=1), expedia, n_resamples=200)
    low, high = shuffled.interval_plus[:, at]
    methods = ["harvesting", "table-em", "regression-em", "relative-ctr"]
    found = {one.method: one for one in compare_estimators(expedia, methods=methods, n_jobs=1)}
    for name in ("harvesting", "table-em"):
        assert "no document links" in found[name].reason
    curve = found["regression-em"].bias.t_plus[at]
    assert ((low <= curve) & (curve <= high)).all()
    assert curve[-1] < 0.5


@pytest.mark.slow
def test_yandex_table_and_harvesting_agree(real_data):
    """Two ways to use documents that moved differ by less than 0.05 at every position."""
    data = unskew.read_log(real_data / "yandex" / "sessions.parquet", progress=False)
    harvested = Harvesting().fit(data).t_plus
    table = RegressionEM(relevance="table").fit(data).t_plus
    assert np.abs(harvested - table).max() < 0.05
