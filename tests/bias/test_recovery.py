"""Recovery: what the estimators find in position-based clicks whose true propensities are known."""

from __future__ import annotations

import numpy as np
import pytest

from shown import labelled, simulated
from unskew.bias import PairwiseDebiasing, Randomization, RegressionEM, RelativeCTR

SESSIONS = 200_000


@pytest.fixture(scope="module")
def independent():
    """200,000 sessions whose relevance does not depend on position: lists are shuffled."""
    return simulated(labelled(n_queries=60), sessions=SESSIONS, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        RelativeCTR(),
        Randomization(),
        RegressionEM(n_jobs=1),
        RegressionEM(relevance="table"),
    ],
    ids=["relative-ctr", "randomization", "regression-em", "table-em"],
)
def test_true_propensities_are_recovered(independent, estimator):
    """Within 0.03 at every position."""
    data, truth = independent
    assert data.n_sessions == SESSIONS
    assert np.abs(estimator.fit(data).t_plus - truth).max() < 0.03


@pytest.mark.slow
def test_pairwise_debiasing_is_no_estimate_of_propensities(independent):
    """With constant scores t_plus falls far below the truth, as the documentation says."""
    data, truth = independent
    bias = PairwiseDebiasing(scores=np.zeros(len(data.documents))).fit(data)
    assert 0.3 < np.abs(bias.t_plus - truth).max() < 0.5
    assert (bias.t_plus[1:] < truth[1:]).all()
