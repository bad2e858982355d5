"""The measured examination on a real log: Expedia against its shuffled searches."""

from __future__ import annotations

import numpy as np
import pytest

import unskew
from unskew.bias import Randomization, bootstrap_bias

# Positions 5 and 11 of these pages are mostly taken by something else: few searches show a hotel there.
AT = np.array([2, 3, 4, 6, 7, 8, 9, 10]) - 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the bias of position")
def test_expedia_lies_inside_what_its_shuffled_searches_say(expedia):
    """The measured curve lies inside the intervals of the shuffled searches at every position."""
    shuffled = bootstrap_bias(Randomization(context=1), expedia, n_resamples=200)
    ranker = unskew.ClickModelRanker(random_state=0, n_jobs=1, verbose=0).fit(expedia)
    low, high = shuffled.interval_plus[:, AT]
    assert ((low <= ranker.t_plus_[AT]) & (ranker.t_plus_[AT] <= high)).all()
    assert ranker.t_plus_[9] < 0.5
