"""A ranker on disk: its model files, its biases and settings as JSON. Loading never runs code.

unskew.json         the kind of ranker, its settings, its bias, its features, the best round
bias_history.json   both curves and the validation measure of every round
and the files of the model, which each ranker names and writes itself
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unskew.errors import StoreError, UsageError
from unskew.position_bias import PositionBias
from unskew.rankers.bias_history import BiasHistory
from unskew.registry import RANKERS, ranker_name, ranker_of_folder
from unskew.store import read_folder, read_kind, write_folder

if TYPE_CHECKING:
    from unskew.rankers.base import Ranker

__all__ = ["load", "read_json", "save", "write_json"]

# 1: as saved by 0.1.0, where each ranker had a format of its own; 2: one for all.
_VERSION = 2
_HISTORY = "bias_history.json"


def save(ranker: Ranker, path: str | os.PathLike[str]) -> None:
    """Write a fitted ranker into a folder, atomically."""
    name = ranker_name(ranker)
    if name is None:
        raise UsageError(
            f"{type(ranker).__name__} is not in the registry of rankers, so that load would not "
            "know it: derive it from a ranker that is"
        )
    entry = RANKERS[name]
    history = {
        "t_plus": ranker.bias_history_.t_plus.tolist(),
        "t_minus": ranker.bias_history_.t_minus.tolist(),
        "validation": ranker.validation_history_,
    }
    files = {**ranker._model_files(), _HISTORY: lambda file: write_json(file, history)}
    write_folder(
        path, kind=entry.name, old_kinds=entry.old_kinds, version=_VERSION, meta=_described(ranker),
        files=files,
    )  # fmt: skip


def load(path: str | os.PathLike[str]) -> Ranker:
    """The ranker that `save` wrote."""
    kind = read_kind(path)
    entry = ranker_of_folder(kind)
    if entry is None:
        raise StoreError(f"{os.fspath(path)} holds {kind!r}, which is not a ranker")
    stored = read_folder(path, kind=entry.name, old_kinds=entry.old_kinds, version=_VERSION)
    meta = stored.meta
    try:
        ranker: Ranker = entry.load()(**_params(meta))
        history = read_json(stored.files[_HISTORY])
        ranker.bias_history_ = BiasHistory(
            np.array(history["t_plus"]), np.array(history["t_minus"])
        )
        ranker.validation_history_ = history.get("validation", [])
        ranker.best_round_ = meta.get("best_round")
        ranker._set_features(
            tuple(meta["feature_names"]),
            {name: tuple(texts) for name, texts in meta["categories"].items()},
            named=meta["features_are_named"],
        )
        ranker._restore(stored.files)
        ranker.position_bias_ = PositionBias.from_dict(meta["position_bias"])
    except (KeyError, TypeError, RuntimeError, UsageError) as error:
        raise StoreError(f"{path} does not describe a ranker ({error}): save it again") from error
    return ranker


def _described(ranker: Ranker) -> dict[str, Any]:
    """The settings, the bias and the features of a fitted ranker, as JSON knows them.

    An estimator given as ``debias`` is saved as the bias that it found.
    """
    params = ranker.get_params(deep=False)
    if hasattr(params["debias"], "fit"):
        params["debias"] = ranker.position_bias_
    params["debias"] = _plain_debias(params["debias"])
    if params["random_state"] is not None and not isinstance(params["random_state"], int):
        params["random_state"] = None  # a generator's state is not a setting
    return {
        "params": {name: _plain(value, name) for name, value in params.items()},
        "position_bias": ranker.position_bias_.to_dict(),
        "feature_names": list(ranker.feature_names_),
        "features_are_named": hasattr(ranker, "feature_names_in_"),
        "categories": {name: list(texts) for name, texts in ranker.categories_.items()},
        "best_round": ranker.best_round_,
    }


def _params(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that `_described` wrote."""
    params = dict(meta["params"])
    if isinstance(params["debias"], dict):
        params["debias"] = PositionBias.from_dict(params["debias"])
    return params


def _plain_debias(debias: Any) -> Any:
    if isinstance(debias, PositionBias):
        return debias.to_dict()
    if debias is None or isinstance(debias, str):
        return debias
    return np.asarray(debias, dtype=np.float64).tolist()


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


def read_json(file: Path) -> dict[str, Any]:
    """What one JSON file holds."""
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def write_json(file: Path, content: Any) -> None:
    """Write one JSON file."""
    file.write_text(json.dumps(content), encoding="utf-8")
