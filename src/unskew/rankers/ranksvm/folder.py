"""PropensityRankSVM on disk: JSON alone. Loading never runs code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from unskew.errors import StoreError, UsageError
from unskew.rankers.ranksvm.ranker import PropensityRankSVM
from unskew.rankers.saved_settings import describe, history, params_from, restore, write_json
from unskew.rankers.standardizer import Standardizer
from unskew.store import read_folder, write_folder

__all__ = ["KIND", "load", "save"]

KIND = "ranksvm"
_VERSION = 1
_MODEL, _HISTORY = "model.json", "bias_history.json"


def save(ranker: PropensityRankSVM, path: str | os.PathLike[str]) -> None:
    """Write a fitted ranker into a folder, atomically."""
    ranker._check_fitted()
    model = {
        "coef": ranker.coef_.tolist(),
        "standardizer": ranker.standardizer_.to_dict(),
        "objective": ranker.objective_,
        "gap": ranker.gap_,
    }
    kept = history(ranker)
    files: dict[str, Callable[[Path], None]] = {
        _MODEL: lambda file: write_json(file, model),
        _HISTORY: lambda file: write_json(file, kept),
    }
    write_folder(path, kind=KIND, version=_VERSION, meta=describe(ranker), files=files)


def load(path: str | os.PathLike[str]) -> PropensityRankSVM:
    """The ranker that `save` wrote."""
    stored = read_folder(path, kind=KIND, version=_VERSION)
    try:
        ranker = PropensityRankSVM(**params_from(stored.meta))
        model = json.loads(stored.files[_MODEL].read_text(encoding="utf-8"))
        ranker.coef_ = np.array(model["coef"], dtype=np.float64)
        ranker.standardizer_ = Standardizer.from_dict(model["standardizer"])
        ranker.objective_, ranker.gap_ = model["objective"], model["gap"]
        restore(ranker, stored.meta, stored.files[_HISTORY])
    except (KeyError, TypeError, UsageError) as error:
        raise StoreError(f"{path} does not describe a ranker ({error}): save it again") from error
    return ranker
