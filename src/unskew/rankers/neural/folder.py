"""NeuralRanker on disk: the network's weights as safetensors, JSON beside it. Nothing in it runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from unskew.errors import StoreError, UsageError
from unskew.rankers.neural.network import build
from unskew.rankers.neural.pytorch import safetensors
from unskew.rankers.neural.ranker import NeuralRanker
from unskew.rankers.saved_settings import describe, history, params_from, restore, write_json
from unskew.rankers.standardizer import Standardizer
from unskew.store import read_folder, write_folder

__all__ = ["KIND", "load", "save"]

KIND = "neural"
_VERSION = 1
_NETWORK, _MODEL, _HISTORY = "network.safetensors", "model.json", "bias_history.json"


def save(ranker: NeuralRanker, path: str | os.PathLike[str]) -> None:
    """Write a fitted ranker into a folder, atomically."""
    ranker._check_fitted()
    tensors = safetensors()
    model = {
        "standardizer": ranker.standardizer_.to_dict(),
        "loss_history": ranker.loss_history_,
        "validation_history": ranker.validation_history_,
        "best_epoch": ranker.best_epoch_,
    }
    kept = history(ranker)
    state = {name: tensor.contiguous() for name, tensor in ranker.network_.state_dict().items()}
    files: dict[str, Callable[[Path], None]] = {
        _NETWORK: lambda file: tensors.save_file(state, file),
        _MODEL: lambda file: write_json(file, model),
        _HISTORY: lambda file: write_json(file, kept),
    }
    write_folder(path, kind=KIND, version=_VERSION, meta=describe(ranker), files=files)


def load(path: str | os.PathLike[str]) -> NeuralRanker:
    """The ranker that `save` wrote."""
    tensors = safetensors()
    stored = read_folder(path, kind=KIND, version=_VERSION)
    try:
        ranker = NeuralRanker(**params_from(stored.meta))
        model = json.loads(stored.files[_MODEL].read_text(encoding="utf-8"))
        ranker.standardizer_ = Standardizer.from_dict(model["standardizer"])
        network = build(len(ranker.standardizer_), ranker.hidden, seed=0)
        network.load_state_dict(tensors.load_file(stored.files[_NETWORK]))
        ranker.network_ = network.eval()
        ranker.loss_history_ = model["loss_history"]
        ranker.validation_history_ = model["validation_history"]
        ranker.best_epoch_ = model["best_epoch"]
        restore(ranker, stored.meta, stored.files[_HISTORY])
    except (KeyError, TypeError, RuntimeError, UsageError) as error:
        raise StoreError(f"{path} does not describe a ranker ({error}): save it again") from error
    return ranker
