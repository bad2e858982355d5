"""Click models: how users click on a page. One file each, all in one registry."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from unskew.clicks.base import EYE_TRACKING, ClickModel
from unskew.clicks.cascade import CascadeModel
from unskew.clicks.contextual import ContextualModel
from unskew.clicks.dbn import DynamicBayesianModel
from unskew.clicks.dcm import DependentClickModel
from unskew.clicks.pbm import PositionBasedModel
from unskew.clicks.trust_bias import TrustBiasModel
from unskew.clicks.ubm import UserBrowsingModel
from unskew.errors import UsageError

__all__ = [
    "CLICK_MODELS",
    "EYE_TRACKING",
    "CascadeModel",
    "ClickModel",
    "ContextualModel",
    "DependentClickModel",
    "DynamicBayesianModel",
    "PositionBasedModel",
    "TrustBiasModel",
    "UserBrowsingModel",
    "click_model",
]

CLICK_MODELS: Mapping[str, type[ClickModel]] = MappingProxyType(
    {
        model.name: model
        for model in (
            PositionBasedModel,
            CascadeModel,
            UserBrowsingModel,
            DynamicBayesianModel,
            DependentClickModel,
            TrustBiasModel,
            ContextualModel,
        )
    }
)


def click_model(name: str, **parameters: Any) -> ClickModel:
    """Make a click model by its name, such as ``click_model("pbm", theta=0.5)``."""
    if name not in CLICK_MODELS:
        raise UsageError(f"click model {name!r} is not known: choose among {list(CLICK_MODELS)}")
    model = CLICK_MODELS[name]
    unknown = [given for given in parameters if given not in model.parameters()]
    if unknown:
        raise UsageError(
            f"click model {name!r} has no parameter {unknown[0]!r}: it has "
            f"{', '.join(model.parameters())}"
        )
    return model(**parameters)
