"""A ranker on disk: the booster's own file and JSON beside it. Loading never runs code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from unskew.bias.bias_history import BiasHistory
from unskew.bias.position_bias import PositionBias
from unskew.errors import StoreError, UsageError
from unskew.learn.boosters import library
from unskew.learn.lambdamart import UnbiasedLambdaMART
from unskew.store import read_folder, write_folder

__all__ = ["KIND", "load", "save"]

KIND = "UnbiasedLambdaMART"
_VERSION = 1
_HISTORY = "bias_history.json"


def save(ranker: UnbiasedLambdaMART, path: str | os.PathLike[str]) -> None:
    """Write a fitted ranker into a folder, atomically."""
    ranker._check_fitted()
    history = {
        "t_plus": ranker.bias_history_.t_plus.tolist(),
        "t_minus": ranker.bias_history_.t_minus.tolist(),
        "validation": ranker.validation_history_,
    }
    files: dict[str, Callable[[Path], None]] = {
        library(ranker.booster).file_name: ranker.trees_.write,
        _HISTORY: lambda file: _write_json(file, history),
    }
    write_folder(path, kind=KIND, version=_VERSION, meta=_description(ranker), files=files)


def load(path: str | os.PathLike[str]) -> UnbiasedLambdaMART:
    """The ranker that `save` wrote."""
    stored = read_folder(path, kind=KIND, version=_VERSION)
    try:
        params = dict(stored.meta["params"])
        params["debias"] = _debias_from_json(params["debias"])
        ranker = UnbiasedLambdaMART(**params)
        backend = library(ranker.booster)
        ranker.trees_ = backend.read(stored.files[backend.file_name])
        history = json.loads(stored.files[_HISTORY].read_text(encoding="utf-8"))
        ranker.bias_history_ = BiasHistory(
            np.array(history["t_plus"]), np.array(history["t_minus"])
        )
        ranker.validation_history_ = history["validation"]
        ranker.position_bias_ = PositionBias.from_dict(stored.meta["position_bias"])
        ranker.best_round_ = stored.meta["best_round"]
        ranker._set_features(
            tuple(stored.meta["feature_names"]),
            {name: tuple(texts) for name, texts in stored.meta["categories"].items()},
            named=stored.meta["features_are_named"],
        )
    except (KeyError, TypeError, UsageError) as error:
        raise StoreError(f"{path} does not describe a ranker ({error}): save it again") from error
    return ranker


def _description(ranker: UnbiasedLambdaMART) -> dict[str, Any]:
    params = ranker.get_params(deep=False)
    params["debias"] = _debias_to_json(params["debias"])
    if params["random_state"] is not None and not isinstance(params["random_state"], int):
        params["random_state"] = None  # a generator's state is not a setting
    return {
        "params": {name: _plain(value, name) for name, value in params.items()},
        "position_bias": ranker.position_bias_.to_dict(),
        "best_round": ranker.best_round_,
        "feature_names": list(ranker.feature_names_),
        "features_are_named": hasattr(ranker, "feature_names_in_"),
        "categories": {name: list(texts) for name, texts in ranker.categories_.items()},
    }


def _debias_to_json(debias: Any) -> Any:
    if isinstance(debias, PositionBias):
        return debias.to_dict()
    if debias is None or isinstance(debias, str):
        return debias
    return np.asarray(debias, dtype=np.float64).tolist()


def _debias_from_json(debias: Any) -> Any:
    return PositionBias.from_dict(debias) if isinstance(debias, dict) else debias


def _plain(value: Any, name: str) -> Any:
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


def _write_json(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content), encoding="utf-8")
