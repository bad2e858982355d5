"""A ranker on disk: its model files, its biases and settings as JSON. Loading never runs code.

unskew.json         the kind of ranker, its settings, its bias, its features, the best round
bias_history.json   both curves and the validation measure of every round
log.json            what the log was like that it learned from, to compare a later one with
tuning.json         what a search for its settings has tried, if there was one
and the files of the model, which each ranker names and writes itself
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unskew.errors import StoreError, UsageError
from unskew.log.log_summary import LogSummary
from unskew.places import PlaceLike, place_of
from unskew.position_bias import PositionBias
from unskew.rankers.bias_history import BiasHistory
from unskew.rankers.settings import check_settings
from unskew.registry import RANKERS, check_debias, ranker_name, ranker_of_folder
from unskew.store import StoredFolder, open_folder, parse_json, read_kind, write_folder

if TYPE_CHECKING:
    from unskew.rankers.base import Ranker


# 1: as saved by 0.1.0, where each ranker had a format of its own; 2: one for all.
_VERSION = 2
_HISTORY = "bias_history.json"
_LOG = "log.json"
_TUNING = "tuning.json"


def save(ranker: Ranker, path: PlaceLike) -> None:
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
    log = getattr(ranker, "training_log_", None)
    if log is not None:
        files[_LOG] = lambda file: write_json(file, log.to_dict())
    tuning = getattr(ranker, "tuning_", None)
    if tuning is not None:
        files[_TUNING] = lambda file: write_json(file, tuning)
    write_folder(
        path, kind=entry.name, old_kinds=entry.old_kinds, version=_VERSION, meta=_described(ranker),
        files=files,
    )  # fmt: skip


def load(path: PlaceLike) -> Ranker:
    """The ranker that `save` wrote."""
    kind = read_kind(path)
    entry = ranker_of_folder(kind)
    if entry is None:
        raise StoreError(f"{place_of(path)} holds {kind!r}, which is not a ranker")
    with open_folder(path, kind=entry.name, old_kinds=entry.old_kinds, version=_VERSION) as stored:
        try:
            return _restored(entry.load(), stored)
        except (
            AttributeError, KeyError, TypeError, RuntimeError, ValueError, OverflowError
        ) as error:  # fmt: skip
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"{place_of(path)} does not describe a ranker ({error}): save it again"
            ) from error


def _restored(kind: Any, stored: StoredFolder) -> Ranker:
    meta = stored.meta
    bias = PositionBias.from_dict(meta["position_bias"])
    params = _params(meta)
    ranker: Ranker = kind(**params)
    check_settings(ranker.get_params(deep=False), ranker.constraints)
    check_debias(ranker.debias, ranker_name(ranker))
    _set_features(ranker, meta)
    ranker.best_round_ = _optional_count(meta.get("best_round"), "best_round")
    history = read_json(stored.files[_HISTORY])
    ranker.bias_history_ = _history(history, len(bias))
    ranker.validation_history_ = numbers(history.get("validation", []), "validation").tolist()
    # Models of labels have none, and earlier versions wrote none.
    log = stored.files.get(_LOG)
    ranker.training_log_ = None if log is None else LogSummary.from_dict(read_json(log))
    if _TUNING in stored.files:
        ranker.tuning_ = _tuning(read_json(stored.files[_TUNING]))
    ranker._restore(stored.files)
    ranker._restore_numbers(_fitted_numbers(meta.get("fitted", {})))
    ranker.position_bias_ = bias
    return ranker


def _set_features(ranker: Ranker, meta: Mapping[str, Any]) -> None:
    names, named = texts(meta["feature_names"], "feature_names"), meta["features_are_named"]
    categories = {name: texts(of, "categories") for name, of in meta["categories"].items()}
    if not isinstance(named, bool) or not set(categories) <= set(names):
        raise ValueError("categories or features_are_named are wrong")
    ranker._set_features(names, categories, named=named)


def _history(content: Mapping[str, Any], n_positions: int) -> BiasHistory:
    """Both curves of every round: numbers above 0, one for each position."""
    curves = []
    for name in ("t_plus", "t_minus"):
        rows = [numbers(row, name) for row in content[name]]
        if any(len(row) != n_positions for row in rows):
            raise ValueError(f"{name} has another length than the position bias")
        curve = np.array(rows, dtype=np.float64).reshape(len(rows), -1 if rows else n_positions)
        if not ((curve > 0) & np.isfinite(curve)).all():
            raise ValueError(f"{name} must be above 0 and finite")
        curves.append(curve)
    if len(curves[0]) != len(curves[1]):
        raise ValueError("t_plus and t_minus have another number of rounds")
    return BiasHistory(*curves)


def _tuning(content: dict[str, Any]) -> dict[str, Any]:
    """The table of a search: a list of trials and what else belongs to it."""
    trials = content.get("trials")
    if not isinstance(trials, list) or not all(isinstance(one, dict) for one in trials):
        raise ValueError("tuning.json must hold a list of trials")
    return content


def numbers(values: Any, name: str) -> npt.NDArray[np.float64]:
    """A list of numbers as an array; anything else is a ValueError."""
    if not isinstance(values, list) or not set(map(type, values)) <= {int, float}:
        raise ValueError(f"{name} must be a list of numbers")
    return np.array(values, dtype=np.float64)


def finite(value: Any, name: str) -> float:
    """A finite number; anything else is a ValueError."""
    if type(value) not in (int, float) or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def texts(values: Any, name: str) -> tuple[str, ...]:
    """A list of distinct texts as a tuple; anything else is a ValueError."""
    if not isinstance(values, list) or not set(map(type, values)) <= {str}:
        raise ValueError(f"{name} must be a list of texts")
    if len(set(values)) != len(values):
        raise ValueError(f"{name} has an entry twice")
    return tuple(values)


def _fitted_numbers(content: Any) -> dict[str, int]:
    if not isinstance(content, dict) or not all(type(one) is int for one in content.values()):
        raise ValueError("fitted must be an object of whole numbers")
    return content


def _optional_count(value: Any, name: str) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise ValueError(f"{name} must be a whole number, 1 or higher, or null")
    return value


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
        "fitted": ranker._fitted_numbers(),
    }


def _params(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that `_described` wrote."""
    params = dict(meta["params"])
    state = params.get("random_state")
    if state is not None and type(state) is not int:
        raise ValueError("random_state must be a whole number or null")
    if isinstance(params["debias"], list):
        numbers(params["debias"], "debias")
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
    content = parse_json(file.read_bytes(), file)
    if not isinstance(content, dict):
        raise StoreError(f"{file} does not hold an object: save it again")
    return content


def write_json(file: Path, content: Any) -> None:
    """Write one JSON file."""
    file.write_text(json.dumps(content), encoding="utf-8")
