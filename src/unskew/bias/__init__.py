"""How much a position distorts a click; one estimator per file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unskew.bias.comparison import compare_estimators as compare_estimators
    from unskew.bias.dual import DualLearning as DualLearning
    from unskew.bias.estimator import BiasEstimator as BiasEstimator
    from unskew.bias.pairwise import PairwiseDebiasing as PairwiseDebiasing
    from unskew.bias.position_bias import PositionBias as PositionBias
    from unskew.bias.randomization import Randomization as Randomization
    from unskew.bias.regression_em import RegressionEM as RegressionEM
    from unskew.bias.relative_ctr import RelativeCTR as RelativeCTR
    from unskew.bias.shuffling import shuffling_of as shuffling_of

# Each public name and the module it lives in; they load on first use.
_HOME = {
    "BiasEstimator": "estimator",
    "DualLearning": "dual",
    "PairwiseDebiasing": "pairwise",
    "PositionBias": "position_bias",
    "Randomization": "randomization",
    "RegressionEM": "regression_em",
    "RelativeCTR": "relative_ctr",
    "compare_estimators": "comparison",
    "shuffling_of": "shuffling",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unskew.bias' has no attribute {name!r}")
    value = getattr(import_module(f"unskew.bias.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
