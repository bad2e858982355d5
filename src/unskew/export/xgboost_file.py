"""XGBoost's own JSON; LightGBM's trees are converted, exactly for values in single precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import MissingDependencyError
from unskew.export.format import Exportable, Scores, as_json, refuse_categories
from unskew.export.missing import missing_split_off
from unskew.export.xgboost_forms import saved
from unskew.trees.boosters import allowed_names, xgboost_allows

_MODEL = "model.json"


class _XGBoostFile:
    def files(self, model: Exportable) -> Mapping[str, bytes]:
        if model.trees.single:
            return {_MODEL: bytes(model.ranker.trees_.raw.save_raw("json"))}
        refuse_categories(model.trees, "XGBoost, for trees grown by LightGBM,")
        names = allowed_names(model.names, xgboost_allows, "f{}".format)
        forest = replace(missing_split_off(model.trees), names=tuple(names))
        return {_MODEL: as_json(saved(forest))}

    def score(self, files: Mapping[str, Path], values: FloatArray, version: str) -> Scores:
        try:
            import xgboost
        except ImportError as error:
            raise MissingDependencyError("XGBoost", "xgboost", "checking this format") from error
        booster = xgboost.Booster(model_file=str(files[_MODEL]))
        data = xgboost.DMatrix(
            values, feature_names=booster.feature_names, feature_types=booster.feature_types,
            enable_categorical=True,
        )  # fmt: skip
        score = booster.predict(data, output_margin=True)
        return {_MODEL: np.asarray(score, dtype=np.float64)}


FORMAT = _XGBoostFile()
