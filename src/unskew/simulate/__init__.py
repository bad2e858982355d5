"""Simulated clicks: logging policies, click models, and the log they make of labelled data."""

from __future__ import annotations

from unskew.clicks import CLICK_MODELS, ClickModel, click_model
from unskew.simulate.policies import (
    LoggingPolicy,
    changing_policy,
    drifting_policy,
    epsilon_policy,
    model_policy,
    random_policy,
    rank_svm_policy,
    score_policy,
)
from unskew.simulate.propensities import Propensities
from unskew.simulate.sampling import (
    sample,
    sample_batches,
    sample_to_parquet,
    true_propensities,
)

__all__ = [
    "CLICK_MODELS",
    "ClickModel",
    "LoggingPolicy",
    "Propensities",
    "changing_policy",
    "click_model",
    "drifting_policy",
    "epsilon_policy",
    "model_policy",
    "random_policy",
    "rank_svm_policy",
    "sample",
    "sample_batches",
    "sample_to_parquet",
    "score_policy",
    "true_propensities",
]
