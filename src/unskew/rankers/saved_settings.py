"""What every saved ranker has in its folder, whatever its model: settings, biases, features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unskew.errors import UsageError
from unskew.position_bias import PositionBias
from unskew.rankers.base import Ranker
from unskew.rankers.bias_history import BiasHistory

__all__ = ["describe", "history", "params_from", "plain", "restore", "write_json"]


def describe(ranker: Ranker) -> dict[str, Any]:
    """The settings, the bias and the features of a fitted ranker, as JSON knows them.

    An estimator given as ``debias`` is saved as the bias that it found.
    """
    params = ranker.get_params(deep=False)
    if hasattr(params["debias"], "fit"):
        params["debias"] = ranker.position_bias_
    params["debias"] = _debias_to_json(params["debias"])
    if params["random_state"] is not None and not isinstance(params["random_state"], int):
        params["random_state"] = None  # a generator's state is not a setting
    return {
        "params": {name: plain(value, name) for name, value in params.items()},
        "position_bias": ranker.position_bias_.to_dict(),
        "feature_names": list(ranker.feature_names_),
        "features_are_named": hasattr(ranker, "feature_names_in_"),
        "categories": {name: list(texts) for name, texts in ranker.categories_.items()},
    }


def history(ranker: Ranker) -> dict[str, Any]:
    """Both bias curves after every round."""
    return {
        "t_plus": ranker.bias_history_.t_plus.tolist(),
        "t_minus": ranker.bias_history_.t_minus.tolist(),
    }


def params_from(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that `describe` wrote."""
    params = dict(meta["params"])
    if isinstance(params["debias"], dict):
        params["debias"] = PositionBias.from_dict(params["debias"])
    return params


def restore(ranker: Ranker, meta: Mapping[str, Any], history_file: Path) -> dict[str, Any]:
    """Give a new ranker its biases and features back; returns what the history file holds."""
    kept: dict[str, Any] = json.loads(history_file.read_text(encoding="utf-8"))
    ranker.bias_history_ = BiasHistory(np.array(kept["t_plus"]), np.array(kept["t_minus"]))
    ranker.position_bias_ = PositionBias.from_dict(meta["position_bias"])
    ranker._set_features(
        tuple(meta["feature_names"]),
        {name: tuple(texts) for name, texts in meta["categories"].items()},
        named=meta["features_are_named"],
    )
    return kept


def _debias_to_json(debias: Any) -> Any:
    if isinstance(debias, PositionBias):
        return debias.to_dict()
    if debias is None or isinstance(debias, str):
        return debias
    return np.asarray(debias, dtype=np.float64).tolist()


def plain(value: Any, name: str) -> Any:
    """A parameter as JSON knows it."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    try:
        json.dumps(value)
    except TypeError:
        raise UsageError(
            f"{name}={value!r} cannot be saved: only numbers, texts and lists of them can"
        ) from None
    return value


def write_json(file: Path, content: Any) -> None:
    """One JSON file."""
    file.write_text(json.dumps(content), encoding="utf-8")
