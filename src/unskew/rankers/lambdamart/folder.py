"""UnbiasedLambdaMART on disk: the booster's own file and JSON beside it. Loading never runs code."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from unskew.errors import StoreError, UsageError
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.rankers.saved_settings import describe, history, params_from, restore, write_json
from unskew.store import read_folder, write_folder
from unskew.trees.boosters import library

__all__ = ["KIND", "load", "save"]

KIND = "UnbiasedLambdaMART"
_VERSION = 1
_HISTORY = "bias_history.json"


def save(ranker: UnbiasedLambdaMART, path: str | os.PathLike[str]) -> None:
    """Write a fitted ranker into a folder, atomically."""
    ranker._check_fitted()
    kept = {**history(ranker), "validation": ranker.validation_history_}
    files: dict[str, Callable[[Path], None]] = {
        library(ranker.booster).file_name: ranker.trees_.write,
        _HISTORY: lambda file: write_json(file, kept),
    }
    meta = {**describe(ranker), "best_round": ranker.best_round_}
    write_folder(path, kind=KIND, version=_VERSION, meta=meta, files=files)


def load(path: str | os.PathLike[str]) -> UnbiasedLambdaMART:
    """The ranker that `save` wrote."""
    stored = read_folder(path, kind=KIND, version=_VERSION)
    try:
        ranker = UnbiasedLambdaMART(**params_from(stored.meta))
        backend = library(ranker.booster)
        ranker.trees_ = backend.read(stored.files[backend.file_name])
        kept = restore(ranker, stored.meta, stored.files[_HISTORY])
        ranker.validation_history_ = kept["validation"]
        ranker.best_round_ = stored.meta["best_round"]
    except (KeyError, TypeError, UsageError) as error:
        raise StoreError(f"{path} does not describe a ranker ({error}): save it again") from error
    return ranker
