"""How much a position distorts a click; one estimator per file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unskew.lazy import lazy_names
from unskew.registry import METHODS

if TYPE_CHECKING:
    from unskew.bias.bootstrap import bootstrap_bias as bootstrap_bias
    from unskew.bias.by_context import fit_by_context as fit_by_context
    from unskew.bias.comparison import compare_estimators as compare_estimators
    from unskew.bias.estimator import BiasEstimator as BiasEstimator
    from unskew.bias.harvesting import Harvesting as Harvesting
    from unskew.bias.identify import facts_of as facts_of
    from unskew.bias.pairwise import PairwiseDebiasing as PairwiseDebiasing
    from unskew.bias.randomization import Randomization as Randomization
    from unskew.bias.regression_em import RegressionEM as RegressionEM
    from unskew.bias.relative_ctr import RelativeCTR as RelativeCTR
    from unskew.bias.saved import load_bias as load_bias
    from unskew.bias.saved import save_bias as save_bias
    from unskew.bias.shuffling import shuffling_of as shuffling_of
    from unskew.position_bias import PositionBias as PositionBias
    from unskew.rankers.neural.dual_learning import DualLearning as DualLearning

# The estimators of the registry are public names, beside those above.
_NAMES, __getattr__, __dir__ = lazy_names(
    __name__, (entry.home for entry in METHODS.values() if entry.home)
)

__all__ = ["METHODS", *_NAMES]
