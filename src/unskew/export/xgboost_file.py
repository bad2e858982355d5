"""XGBoost's own JSON; LightGBM's trees are converted, exactly for values in single precision."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unskew.export.format import Exportable, Scores, as_json, refuse_categories
from unskew.export.xgboost_forms import saved

__all__ = ["FORMAT"]

FloatArray = npt.NDArray[np.float64]

_MODEL = "model.json"


class _XGBoostFile:
    def files(self, model: Exportable) -> Mapping[str, bytes]:
        if model.trees.single:
            return {_MODEL: bytes(model.ranker.trees_.raw.save_raw("json"))}
        refuse_categories(model.trees, "XGBoost, for trees grown by LightGBM,")
        return {_MODEL: as_json(saved(model.trees))}

    def score(self, files: Mapping[str, Path], values: FloatArray, version: str) -> Scores:
        import xgboost

        booster = xgboost.Booster(model_file=str(files[_MODEL]))
        data = xgboost.DMatrix(
            values, feature_names=booster.feature_names, feature_types=booster.feature_types,
            enable_categorical=True,
        )  # fmt: skip
        score = booster.predict(data, output_margin=True)
        return {_MODEL: np.asarray(score, dtype=np.float64)}


FORMAT = _XGBoostFile()
