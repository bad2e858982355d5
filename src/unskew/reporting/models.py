"""The models of a report: by name, fitted, and made for the features of the log."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.places import place_of

# What may be given as models: one or several rankers or folders, or rankers by name.
Models = Any


def named_models(models: Models) -> dict[str, Any]:
    """The models by name: that of the folder, or of the kind of ranker, or as given."""
    if isinstance(models, Mapping):
        return {str(name): _loaded(model) for name, model in models.items()}
    listed = models if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    found: dict[str, Any] = {}
    for one in listed:
        is_path = isinstance(one, str | os.PathLike)
        name = place_of(one).resolve().name if is_path else type(one).__name__
        if is_path and name in found:
            raise UsageError(f"two models are called {name!r}: rename one of the folders")
        number = sum(other == name or other.startswith(f"{name} ") for other in found)
        found[f"{name} {number + 1}" if number else name] = _loaded(one)
    return found


def _loaded(model: Any) -> Any:
    if isinstance(model, str | os.PathLike):
        from unskew.loading import load_ranker

        model = load_ranker(model)
    elif not hasattr(model, "predict"):
        raise UsageError(f"a model must be a fitted ranker or its folder, got {str(model)[:60]!r}")
    if not hasattr(model, "position_bias_"):
        raise UsageError(f"{type(model).__name__} is not fitted: call fit before the report")
    return model


def model_scores(
    models: Mapping[str, Any], features: Features, source: str
) -> dict[str, FloatArray]:
    """The scores of every model for the same rows; an error names the model that they do not fit."""
    scores = {}
    for name, model in models.items():
        missing = [f for f in model.feature_names_ if f not in features.names]
        by_place = list(model.feature_names_) == [f"f{k}" for k in range(len(model.feature_names_))]
        if missing and not by_place:
            raise DataError(
                f"model {name!r} was trained with the feature(s) {_some(missing)}, which {source} "
                f"does not have: it has {_some(features.names) or 'none'}; give the data with the "
                "features that the model was trained with, or leave the model out"
            )
        try:
            scores[name] = np.asarray(model.predict(features), dtype=np.float64)
        except DataError as error:
            raise DataError(f"model {name!r} does not fit {source}: {error}") from error
    return scores


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
    return ", ".join(repr(name) for name in names[:8]) + more
