"""Unskew learns search rankers from biased clicks.

import unskew

data = unskew.read_log("clicks.parquet", features="features.parquet")
ranker = unskew.fit(data)
ranker.choice_
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unskew.lazy import lazy_names

if TYPE_CHECKING:
    from unskew import bias as bias
    from unskew import clicks as clicks
    from unskew import datasets as datasets
    from unskew import engines as engines
    from unskew import export as export
    from unskew import log as log
    from unskew import online as online
    from unskew import pairs as pairs
    from unskew import simulate as simulate
    from unskew.choose.advice import advise as advise
    from unskew.choose.fit import fit as fit
    from unskew.choose.ranker import AutoRanker as AutoRanker
    from unskew.choose.tuning import tune as tune
    from unskew.engines.compaction import compact as compact
    from unskew.errors import DataError as DataError
    from unskew.errors import EngineError as EngineError
    from unskew.errors import MissingDependencyError as MissingDependencyError
    from unskew.errors import StoreError as StoreError
    from unskew.errors import UnskewError as UnskewError
    from unskew.errors import UsageError as UsageError
    from unskew.evaluation.counterfactual import evaluate_clicks as evaluate_clicks
    from unskew.evaluation.evaluation import Evaluation as Evaluation
    from unskew.evaluation.evaluation import average_rank as average_rank
    from unskew.evaluation.evaluation import evaluate as evaluate
    from unskew.evaluation.log_evaluation import evaluate_log as evaluate_log
    from unskew.evaluation.significance import compare as compare
    from unskew.export.scorer import Scorer as Scorer
    from unskew.loading import load as load
    from unskew.log.features import Features as Features
    from unskew.log.impressions import Impressions as Impressions
    from unskew.log.labelled import LabelledData as LabelledData
    from unskew.log.parts import Parts as Parts
    from unskew.log.read import read_labels as read_labels
    from unskew.log.read import read_log as read_log
    from unskew.position_bias import PositionBias as PositionBias
    from unskew.rankers.click_model.ranker import ClickModelRanker as ClickModelRanker
    from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART as UnbiasedLambdaMART
    from unskew.rankers.neural.ranker import NeuralRanker as NeuralRanker
    from unskew.rankers.ranksvm.ranker import PropensityRankSVM as PropensityRankSVM
    from unskew.reporting.report import Report as Report
    from unskew.reporting.report import report as report

__version__ = "0.1.0"

# What is imported above for type checkers is public; it loads on first use, so that importing the
# package touches no optional dependency.
_NAMES, __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["__version__", *_NAMES]
