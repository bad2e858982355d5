"""Unskew learns search rankers from biased clicks.

import unskew

data = unskew.read_log("clicks.parquet", features="features.parquet")
ranker = unskew.UnbiasedLambdaMART(p=0.5).fit(data)
ranker.position_bias_
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unskew import bias as bias
    from unskew import clicks as clicks
    from unskew import datasets as datasets
    from unskew import online as online
    from unskew import simulate as simulate
    from unskew.errors import DataError as DataError
    from unskew.errors import MissingDependencyError as MissingDependencyError
    from unskew.errors import StoreError as StoreError
    from unskew.errors import UnskewError as UnskewError
    from unskew.errors import UsageError as UsageError
    from unskew.evaluation.counterfactual import evaluate_clicks as evaluate_clicks
    from unskew.evaluation.evaluation import Evaluation as Evaluation
    from unskew.evaluation.evaluation import average_rank as average_rank
    from unskew.evaluation.evaluation import evaluate as evaluate
    from unskew.evaluation.significance import compare as compare
    from unskew.export.scorer import Scorer as Scorer
    from unskew.loading import load as load
    from unskew.log.features import Features as Features
    from unskew.log.impressions import Impressions as Impressions
    from unskew.log.labelled import LabelledData as LabelledData
    from unskew.log.read import read_labels as read_labels
    from unskew.log.read import read_log as read_log
    from unskew.position_bias import PositionBias as PositionBias
    from unskew.rankers.click_model.ranker import ClickModelRanker as ClickModelRanker
    from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART as UnbiasedLambdaMART
    from unskew.rankers.neural.ranker import NeuralRanker as NeuralRanker
    from unskew.rankers.ranksvm.ranker import PropensityRankSVM as PropensityRankSVM

__version__ = "0.1.0"

# Each public name and the module it lives in. They load on first use, so that importing the package
# stays quick and touches no optional dependency.
_HOME = {
    "DataError": "unskew.errors",
    "MissingDependencyError": "unskew.errors",
    "StoreError": "unskew.errors",
    "UnskewError": "unskew.errors",
    "UsageError": "unskew.errors",
    "ClickModelRanker": "unskew.rankers.click_model.ranker",
    "Features": "unskew.log.features",
    "Impressions": "unskew.log.impressions",
    "LabelledData": "unskew.log.labelled",
    "NeuralRanker": "unskew.rankers.neural.ranker",
    "PositionBias": "unskew.position_bias",
    "PropensityRankSVM": "unskew.rankers.ranksvm.ranker",
    "UnbiasedLambdaMART": "unskew.rankers.lambdamart.ranker",
    "Evaluation": "unskew.evaluation.evaluation",
    "average_rank": "unskew.evaluation.evaluation",
    "evaluate": "unskew.evaluation.evaluation",
    "evaluate_clicks": "unskew.evaluation.counterfactual",
    "compare": "unskew.evaluation.significance",
    "Scorer": "unskew.export.scorer",
    "load": "unskew.loading",
    "read_labels": "unskew.log.read",
    "read_log": "unskew.log.read",
}

# Public modules, which load on first use as well.
_MODULES = ("bias", "clicks", "datasets", "online", "simulate")

__all__ = ["__version__", *_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"unskew.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'unskew' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
