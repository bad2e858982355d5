"""How much a position distorts a click; one estimator per file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

# Each public name and the module it lives in: the estimators of the registry, and the rest. They load
# on first use.
_HOME = {
    **{
        name: module
        for entry in METHODS.values()
        if entry.home
        for module, _, name in [entry.home.partition(":")]
    },
    "BiasEstimator": "unskew.bias.estimator",
    "PositionBias": "unskew.position_bias",
    "bootstrap_bias": "unskew.bias.bootstrap",
    "compare_estimators": "unskew.bias.comparison",
    "facts_of": "unskew.bias.identify",
    "fit_by_context": "unskew.bias.by_context",
    "load_bias": "unskew.bias.saved",
    "save_bias": "unskew.bias.saved",
    "shuffling_of": "unskew.bias.shuffling",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unskew.bias' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
