"""Checkpoints: a training on disk, so that it can go on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from unskew.engines.job import Progress
from unskew.errors import StoreError
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.rankers.click_model.training import Round
from unskew.rankers.saving import numbers, read_json, write_json
from unskew.store import MANIFEST, open_folder, write_folder
from unskew.trees.structure import check_xgboost

KIND = "checkpoint"
VERSION = 1
_TREES, _STATE = "trees.json", "state.json"


def write_checkpoint(folder: Path, progress: Progress, key: str) -> None:
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
    write_folder(
        folder,
        kind=KIND,
        version=VERSION,
        meta={"training": key, "rounds": len(progress.t_plus)},
        files={
            _TREES: lambda file: _write(file, progress.trees),
            _STATE: lambda file: write_json(file, state),
        },
    )


def _write(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def read_checkpoint(folder: Path, key: str) -> Progress | None:
    """The state of that training; None if there is none, an error if it is another training's."""
    if not (folder / MANIFEST).is_file():
        return None
    with open_folder(folder, kind=KIND, version=VERSION) as stored:
        if stored.meta.get("training") != key:
            raise StoreError(
                f"{folder} holds the checkpoint of another training (other parts or settings): give "
                "another folder, or remove this one to begin anew"
            )
        try:
            return _restored(read_json(stored.files[_STATE]), stored.files[_TREES].read_bytes())
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{folder} does not hold a checkpoint ({error}): remove it to begin anew"
            ) from error


def _restored(state: dict[str, Any], trees: bytes) -> Progress:
    check_xgboost(json.loads(trees), None)
    curves = [
        np.array([numbers(row, name) for row in state[name]], dtype=np.float64)
        for name in ("t_plus", "t_minus")
    ]
    looks = np.array(state["looks"], dtype=np.float64)
    return Progress(
        int(state["n_trees"]), trees, curves[0], curves[1], looks,
        [_model(model) for model in state["models"]], state["offset"], state["without_a_tree"],
    )  # fmt: skip


def _plain(model: Any) -> Any:
    """The model of a round: a number of trees, or that with a click model."""
    if not isinstance(model, Round):
        return model
    found = model.click_model
    return [model.n_trees, None if found is None else found.to_dict()]


def _model(content: Any) -> Any:
    if isinstance(content, int):
        return content
    n_trees, found = content
    return Round(n_trees, None if found is None else LearnedClickModel.from_dict(found))
