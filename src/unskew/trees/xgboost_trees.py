"""Trees grown by XGBoost."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost

from unskew.array_types import FloatArray
from unskew.errors import StoreError, UsageError
from unskew.log.features import Features
from unskew.store import parse_json
from unskew.trees.boosters import (
    Grower,
    TreeByTree,
    Trees,
    TreeSettings,
    allowed_names,
    refusals,
    refuse_foreign,
    refuse_unknown,
    saveable,
    xgboost_allows,
)
from unskew.trees.structure import check_xgboost

# The other names of those parameters that we set.
_ALIASES = {"eta": "learning_rate", "lambda": "reg_lambda", "n_jobs": "nthread"}
# Parameters of XGBoost that training sets itself, or that make something else than one tree a round.
_FOREIGN = {
    "booster", "objective", "eval_metric", "num_class", "num_target", "multi_strategy",
    "num_parallel_tree", "process_type", "updater", "disable_default_eval_metric",
}  # fmt: skip


class XGBoostTrees:
    """An XGBoost booster; it scores in single precision."""

    def __init__(self, booster: xgboost.Booster) -> None:
        self.raw = booster

    @property
    def n_rounds(self) -> int:
        """How many trees there are."""
        return int(self.raw.num_boosted_rounds())

    def _matrix(self, values: npt.NDArray[np.floating]) -> xgboost.DMatrix:
        return _matrix(values, self.raw.feature_names, self.raw.feature_types)

    def predict(
        self, values: npt.NDArray[np.floating], *, first: int = 0, last: int | None = None
    ) -> FloatArray:
        """The sum of the trees ``first`` to ``last`` (excluded) for every row."""
        end = self.n_rounds if last is None else last
        if end <= first:
            return np.zeros(len(values))
        score = self.raw.predict(
            self._matrix(values), output_margin=True, iteration_range=(first, end)
        )
        return np.asarray(score, dtype=np.float64)

    def contributions(self, values: npt.NDArray[np.floating]) -> FloatArray:
        """What each feature adds to the score of every row; the last column is the baseline."""
        return np.asarray(self.raw.predict(self._matrix(values), pred_contribs=True), np.float64)

    def importances(self, kind: str) -> FloatArray:
        """How often ("split") each feature is used, or how much it improves the loss ("gain")."""
        name = {"split": "weight", "gain": "total_gain"}[kind]
        found = self.raw.get_score(importance_type=name)
        return np.array([found.get(f, 0.0) for f in self.raw.feature_names or ()], np.float64)

    def write(self, path: Path) -> None:
        """Write the trees as XGBoost's JSON."""
        raw = bytes(self.raw.save_raw("json"))
        saveable(check_xgboost, parse_json(raw, path))
        path.write_bytes(raw)


class XGBoostGrower:
    """An XGBoost booster in training."""

    def __init__(self, features: Features, settings: TreeSettings, continued: Trees | None) -> None:
        self._params = booster_parameters(settings)
        categorical = set(features.categorical)
        self._names = allowed_names(features.names, xgboost_allows, "f{}".format)
        self._types = ["c" if k in categorical else "q" for k in range(features.n_features)]
        self._data = _matrix(features.values, self._names, self._types)
        self._score: FloatArray | None = None
        self._held_out = TreeByTree(self._one_tree)
        with refusals("XGBoost", xgboost.core.XGBoostError):
            self._booster = xgboost.Booster(
                self._params, [self._data], model_file=None if continued is None else continued.raw
            )
            # What an earlier model was trained with must not survive into this run.
            self._booster.set_param(self._params)

    @property
    def score(self) -> FloatArray:
        """The present score of every training row."""
        if self._score is None:
            with refusals("XGBoost", xgboost.core.XGBoostError):
                score = self._booster.predict(self._data, output_margin=True)
            self._score = np.asarray(score, np.float64)
            self._score.flags.writeable = False
        return self._score

    def grow(self, gradient: FloatArray, hessian: FloatArray) -> bool:
        """Add the tree that these derivatives ask for; False if no split was possible."""
        self._score = None
        number = self._booster.num_boosted_rounds()
        with refusals("XGBoost", xgboost.core.XGBoostError):
            self._booster.boost(
                self._data, number, grad=gradient.astype(np.float32),
                hess=hessian.astype(np.float32),
            )  # fmt: skip
        return "split" in self._booster[number : number + 1].get_dump(dump_format="json")[0]

    def held_out_score(self, values: npt.NDArray[np.floating]) -> FloatArray:
        """The present score of rows that are not trained on, the same ones in every call."""
        return self._held_out.score(values, self._booster.num_boosted_rounds())

    def _one_tree(self, values: npt.NDArray[np.floating], number: int) -> FloatArray:
        return XGBoostTrees(self._booster).predict(values, first=number, last=number + 1)

    def finish(self, n_rounds: int) -> Trees:
        """The first ``n_rounds`` trees, without the training data."""
        return XGBoostTrees(self._booster[:n_rounds])


class _XGBoost:
    file_name = "model.json"

    def start(self, features: Features, settings: TreeSettings, continued: Trees | None) -> Grower:
        return XGBoostGrower(features, settings, continued)

    def read(self, path: Path, n_features: int | None = None) -> Trees:
        raw = path.read_bytes()
        try:
            check_xgboost(parse_json(raw, path), n_features)
            return XGBoostTrees(xgboost.Booster(model_file=bytearray(raw)))
        except (xgboost.core.XGBoostError, ValueError) as error:
            raise StoreError(f"{path} is not an XGBoost model ({error})") from error


LIBRARY = _XGBoost()


def _matrix(values: npt.NDArray[np.floating], names: Any, types: Any) -> xgboost.DMatrix:
    return xgboost.DMatrix(
        values, feature_names=names, feature_types=types, enable_categorical=True
    )


def booster_parameters(settings: TreeSettings, *, here: bool = True) -> dict[str, Any]:
    """LightGBM's meaning in XGBoost's words; it has no smallest number of rows in a leaf.

    ``here`` says whether this process trains, and so must have the GPU that is asked for.
    """
    parameters = {
        "objective": "reg:squarederror",  # never asked: gradients are given
        "base_score": 0.0,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_depth": 0,
        "max_leaves": settings.num_leaves,
        "learning_rate": settings.learning_rate,
        "colsample_bytree": settings.feature_fraction,
        "subsample": settings.bagging_fraction,
        "min_child_weight": settings.min_sum_hessian_in_leaf,
        "reg_lambda": 0.0,
        "nthread": settings.n_jobs or 0,
        "verbosity": 0,
        # XGBoost's default is set again, because a continued booster brings its earlier seed along.
        "seed": 0 if settings.seed is None else settings.seed,
    }
    refuse_foreign(_FOREIGN & set(settings.extra), "XGBoost")
    for name in settings.extra:
        parameters.pop(_ALIASES.get(name, name), None)
    parameters |= settings.extra
    if settings.extra:
        with refusals("XGBoost", xgboost.core.XGBoostError):
            told = _warnings(parameters)
        unused = set(re.findall(r'"(\w+)"', " ".join(one for one in told if "are not used" in one)))
        refuse_unknown(unused & set(settings.extra), "XGBoost")
        if here:
            refuse_missing_gpu(parameters, told)
    return parameters


def refuse_missing_gpu(parameters: Mapping[str, Any], told: Sequence[str] | None = None) -> None:
    """An error if a GPU is asked for where there is none: XGBoost alone would use the processor."""
    device = str(parameters.get("device", "cpu"))
    if device.startswith(("cuda", "gpu")):
        told = _warnings(parameters) if told is None else told
        if any("GPU" in one for one in told):
            raise UsageError(
                f"device={device!r}: XGBoost finds no GPU here; leave device out to train on the "
                "processor"
            )


def _warnings(parameters: Mapping[str, Any]) -> list[str]:
    """What XGBoost warns of when it grows a tree: parameters that it does not use, a missing GPU."""
    rows = np.arange(8.0, dtype=np.float32)
    data = xgboost.DMatrix(rows[:, None])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        booster = xgboost.Booster(
            {**parameters, "validate_parameters": True, "verbosity": 1}, [data]
        )
        booster.boost(data, 0, grad=rows, hess=np.ones_like(rows))
    return [str(one.message) for one in caught]
