"""Checkpoints: a training on disk, so that it can go on where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.engines.job import Progress
from unskew.errors import StoreError
from unskew.places import Place, is_saved
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.rankers.click_model.training import Round
from unskew.rankers.saving import finite, numbers, read_json, write_json
from unskew.registry import BOOSTERS
from unskew.store import open_folder, parse_json, write_folder

KIND = "checkpoint"
VERSION = 1
_TREES, _STATE, _DOCUMENTS = "trees.json", "state.json", "documents.npy"


def write_checkpoint(folder: Place, progress: Progress, key: str) -> None:
    """Replace what the folder holds by this state, whole at every moment."""
    state = {
        "n_trees": progress.n_trees,
        "t_plus": progress.t_plus.tolist(),
        "t_minus": progress.t_minus.tolist(),
        "looks": progress.looks.tolist(),
        "models": [_plain(model) for model in progress.models],
        "offset": progress.offset,
        "without_a_tree": progress.without_a_tree,
    }
    files: dict[str, Callable[[Path], None]] = {
        _TREES: lambda file: _write(file, progress.trees),
        _STATE: lambda file: write_json(file, state),
    }
    documents = progress.documents
    if documents is not None:
        files[_DOCUMENTS] = lambda file: np.save(file, documents, allow_pickle=False)
    meta = {"training": key, "rounds": len(progress.t_plus)}
    write_folder(folder, kind=KIND, version=VERSION, meta=meta, files=files)


def _write(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def read_checkpoint(folder: Place, key: str) -> Progress | None:
    """The state of that training; None if there is none, an error if it is another training's."""
    if not is_saved(folder):
        return None
    with open_folder(folder, kind=KIND, version=VERSION) as stored:
        if stored.meta.get("training") != key:
            raise StoreError(
                f"{folder} holds the checkpoint of another training (other parts or settings): give "
                "another folder, or remove this one to begin anew"
            )
        try:
            trees = stored.files[_TREES]
            found = _restored(read_json(stored.files[_STATE]), trees.read_bytes(), trees)
            if _DOCUMENTS not in stored.files:
                return found
            return replace(found, documents=_shares(stored.files[_DOCUMENTS]))
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"{folder} does not hold a checkpoint ({error}): remove it to begin anew"
            ) from error


def _restored(state: dict[str, Any], trees: bytes, file: Path) -> Progress:
    content = parse_json(trees, file)
    BOOSTERS["xgboost"].load().read(file)  # XGBoost itself must be able to read them
    n_trees = len(content["learner"]["gradient_booster"]["model"]["trees"])
    if state["n_trees"] != n_trees:
        raise ValueError(f"{n_trees} trees, but {state['n_trees']!r} are told of")
    t_plus, t_minus = _curves(state)
    looks = _looks(state["looks"])
    models = [_model(model, n_trees) for model in state["models"]]
    offset, without = (
        None if state[name] is None else finite(state[name], name)
        for name in ("offset", "without_a_tree")
    )
    return Progress(n_trees, trees, t_plus, t_minus, looks, models, offset, without)


def _curves(state: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Both curves of every round: numbers above 0, as many in every round."""
    curves = [
        np.array([numbers(row, name) for row in state[name]], dtype=np.float64)
        for name in ("t_plus", "t_minus")
    ]
    if curves[0].shape != curves[1].shape or curves[0].ndim != 2:
        raise ValueError("t_plus and t_minus differ in length, or in the number of rounds")
    for curve in curves:
        if not ((curve > 0) & np.isfinite(curve)).all():
            raise ValueError("t_plus and t_minus must be above 0 and finite")
    return curves[0], curves[1]


def _looks(rows: Any) -> FloatArray:
    """What the held-out parts said of each round: a number, or one for each position."""
    if isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows):
        looks = np.array([numbers(row, "looks") for row in rows], dtype=np.float64)
    else:
        looks = numbers(rows, "looks")
    if not np.isfinite(looks).all():
        raise ValueError("looks must be finite")
    return looks


def _shares(file: Path) -> FloatArray:
    """One number from 0 to 1 for each document."""
    found = np.load(file, allow_pickle=False)
    if found.dtype != np.float64 or found.ndim != 1 or not ((found >= 0) & (found <= 1)).all():
        raise ValueError(f"{file.name} must hold numbers from 0 to 1")
    return np.asarray(found)


def _plain(model: Any) -> Any:
    """The model of a round: a number of trees, or that with a click model."""
    if not isinstance(model, Round):
        return model
    found = model.click_model
    return [model.n_trees, None if found is None else found.to_dict()]


def _model(content: Any, most: int) -> Any:
    n_trees, found = (content, None) if isinstance(content, int) else content
    if type(n_trees) is not int or not 0 <= n_trees <= most:
        raise ValueError(f"a round has {n_trees!r} of {most} trees")
    if isinstance(content, int):
        return content
    return Round(n_trees, None if found is None else LearnedClickModel.from_dict(found))
