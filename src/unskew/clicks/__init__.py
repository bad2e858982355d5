"""Click models: how users click on a page. One file each, named in the registry."""

from __future__ import annotations

from typing import Any

from unskew.clicks.base import EYE_TRACKING, ClickModel
from unskew.errors import UsageError
from unskew.lazy import lazy_names
from unskew.registry import CLICK_MODELS

# The class of every registered model is a public name here; it loads on first use.
_CLASSES, __getattr__, __dir__ = lazy_names(
    __name__, [entry.home for entry in CLICK_MODELS.values()]
)

__all__ = ["CLICK_MODELS", "EYE_TRACKING", "ClickModel", "click_model", *_CLASSES]


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
