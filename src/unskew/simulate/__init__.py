"""Simulated clicks: logging policies, click models, and the log they make of labelled data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unskew.lazy import lazy_names

if TYPE_CHECKING:
    from unskew.clicks import CLICK_MODELS as CLICK_MODELS
    from unskew.clicks import ClickModel as ClickModel
    from unskew.clicks import click_model as click_model
    from unskew.simulate.policies import LoggingPolicy as LoggingPolicy
    from unskew.simulate.policies import changing_policy as changing_policy
    from unskew.simulate.policies import drifting_policy as drifting_policy
    from unskew.simulate.policies import epsilon_policy as epsilon_policy
    from unskew.simulate.policies import model_policy as model_policy
    from unskew.simulate.policies import random_policy as random_policy
    from unskew.simulate.policies import rank_svm_policy as rank_svm_policy
    from unskew.simulate.policies import score_policy as score_policy
    from unskew.simulate.propensities import Propensities as Propensities
    from unskew.simulate.sampling import sample as sample
    from unskew.simulate.sampling import sample_batches as sample_batches
    from unskew.simulate.sampling import sample_to_parquet as sample_to_parquet
    from unskew.simulate.sampling import true_propensities as true_propensities

__all__, __getattr__, __dir__ = lazy_names(__name__)
