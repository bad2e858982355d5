"""Click models: how users click on a page. One file each, which simulates and fits, and a registry."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unskew.clicks.base import EYE_TRACKING, ClickModel
from unskew.errors import UsageError
from unskew.registry import CLICK_MODELS

if TYPE_CHECKING:
    from unskew.clicks.cascade import CascadeModel as CascadeModel
    from unskew.clicks.contextual import ContextualModel as ContextualModel
    from unskew.clicks.dbn import DynamicBayesianModel as DynamicBayesianModel
    from unskew.clicks.dcm import DependentClickModel as DependentClickModel
    from unskew.clicks.fitting.comparison import ClickModelOutcome as ClickModelOutcome
    from unskew.clicks.fitting.comparison import compare_click_models as compare_click_models
    from unskew.clicks.fitting.fitted import FittedClickModel as FittedClickModel
    from unskew.clicks.fitting.fitted import fit_click_model as fit_click_model
    from unskew.clicks.fitting.measures import ClickMeasures as ClickMeasures
    from unskew.clicks.pbm import PositionBasedModel as PositionBasedModel
    from unskew.clicks.trust_bias import TrustBiasModel as TrustBiasModel
    from unskew.clicks.ubm import UserBrowsingModel as UserBrowsingModel

# Each public name and its home: the classes of the registry, and what fits them. They load on first
# use.
_HOME = {
    **{
        entry.home.partition(":")[2]: entry.home.partition(":")[0]
        for entry in CLICK_MODELS.values()
    },
    "ClickMeasures": "unskew.clicks.fitting.measures",
    "ClickModelOutcome": "unskew.clicks.fitting.comparison",
    "FittedClickModel": "unskew.clicks.fitting.fitted",
    "compare_click_models": "unskew.clicks.fitting.comparison",
    "fit_click_model": "unskew.clicks.fitting.fitted",
}

__all__ = ["CLICK_MODELS", "EYE_TRACKING", "ClickModel", "click_model", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unskew.clicks' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def click_model(name: str, **parameters: Any) -> ClickModel:
    """Make a click model by its name, such as ``click_model("pbm", theta=0.5)``."""
    if name not in CLICK_MODELS:
        raise UsageError(f"click model {name!r} is not known: choose among {list(CLICK_MODELS)}")
    kind: type[ClickModel] = CLICK_MODELS[name].load()
    unknown = [given for given in parameters if given not in kind.parameters()]
    if unknown:
        raise UsageError(
            f"click model {name!r} has no parameter {unknown[0]!r}: it has "
            f"{', '.join(kind.parameters())}"
        )
    return kind(**parameters)
