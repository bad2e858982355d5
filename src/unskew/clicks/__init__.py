"""Click models: how users click on a page. One file each, which simulates and fits, and a registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unskew.clicks.base import EYE_TRACKING, ClickModel
from unskew.errors import UsageError
from unskew.lazy import lazy_names
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

# The class of every registered model is a public name here, beside those above.
_NAMES, __getattr__, __dir__ = lazy_names(__name__, (entry.home for entry in CLICK_MODELS.values()))

__all__ = ["CLICK_MODELS", "EYE_TRACKING", "ClickModel", "click_model", *_NAMES]


def click_model(name: str, **parameters: Any) -> ClickModel:
    """Make a click model by its name, such as ``click_model("pbm", theta=0.5)``.

    Examples
    --------
    >>> from unskew.clicks import click_model
    >>> click_model("pbm", theta=0.5).click_probabilities([4, 0, 2]).round(2).tolist()
    [0.82, 0.08, 0.19]

    """
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
