"""LightGBM's own text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unskew.array_types import FloatArray
from unskew.export.format import Exportable, Scores

_MODEL = "model.txt"


class _LightGBMFile:
    def files(self, model: Exportable) -> Mapping[str, bytes]:
        text = model.ranker.trees_.raw.model_to_string()
        if "\nobjective=" not in text:
            # A model trained on given gradients has none, and other readers of the text ask for it.
            text = text.replace("\nfeature_names=", "\nobjective=lambdarank\nfeature_names=", 1)
        return {_MODEL: text.encode()}

    def score(self, files: Mapping[str, Path], values: FloatArray, version: str) -> Scores:
        import lightgbm

        booster = lightgbm.Booster(model_file=str(files[_MODEL]))
        return {_MODEL: np.asarray(booster.predict(values, raw_score=True), dtype=np.float64)}


FORMAT = _LightGBMFile()
