"""The search: what decides between click models."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.choose.found import Trial
from unskew.choose.search import _explained


def trial(log_likelihood: float | None, gain: float | None) -> Trial:
    """A training that fared like this."""
    return Trial("", "debiased", 0, {}, 1, 0.0, log_likelihood, gain)


def test_what_features_add_counts_twice() -> None:
    """The log-likelihood is a mean over so many impressions, the gain a sum."""
    assert _explained(trial(-0.25, 30.0), 1000.0) == pytest.approx(-220.0)
    # Parameters that take up in what queries differ raise the one by 40 and lower the other by 100.
    assert _explained(trial(-0.25, 130.0), 1000.0) > _explained(trial(-0.21, 30.0), 1000.0)


@pytest.mark.parametrize("missing", [(None, None), (-0.25, None), (None, 30.0)])
def test_nothing_is_explained(missing: tuple[float | None, float | None]) -> None:
    """A training that no round of was judged loses against every other."""
    assert _explained(trial(*missing), 1000.0) == -np.inf
