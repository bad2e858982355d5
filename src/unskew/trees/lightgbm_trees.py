"""Trees grown by LightGBM.

The gradients are handed over round by round instead of as an objective: LightGBM copies its
parameters deeply, an objective among them, and with it would go the position bias.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import StoreError, UsageError
from unskew.log.features import Features
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
)
from unskew.trees.lightgbm_bins import Bins
from unskew.trees.structure import check_lightgbm

# Parameters of LightGBM that training sets itself, or that only its own program and its own reading
# of files look at.
_FOREIGN = {
    "config", "task", "objective", "metric", "data", "valid", "num_iterations", "num_class",
    "early_stopping_round", "first_metric_only", "input_model", "output_model", "output_result",
    "snapshot_freq", "save_binary", "header", "label_column", "weight_column", "group_column",
    "ignore_column", "categorical_feature", "two_round", "pre_partition", "num_iteration_predict",
    "start_iteration_predict", "predict_raw_score", "predict_leaf_index", "predict_contrib",
    "convert_model", "convert_model_language", "machine_list_filename", "is_unbalance",
    "scale_pos_weight", "objective_seed", "lambdarank_truncation_level", "label_gain", "eval_at",
}  # fmt: skip


class LightGBMTrees:
    """A LightGBM booster without its training data."""

    def __init__(self, booster: lightgbm.Booster, n_jobs: int = 0) -> None:
        self.raw = booster
        self._n_jobs = n_jobs

    @property
    def n_rounds(self) -> int:
        """How many trees there are."""
        return int(self.raw.num_trees())

    def predict(
        self, values: npt.NDArray[np.floating], *, first: int = 0, last: int | None = None
    ) -> FloatArray:
        """The sum of the trees ``first`` to ``last`` (excluded) for every row."""
        count = (self.n_rounds if last is None else last) - first
        if count <= 0:
            return np.zeros(len(values))
        score = self.raw.predict(
            values,
            raw_score=True,
            start_iteration=first,
            num_iteration=count,
            validate_features=False,
            num_threads=self._n_jobs,
        )
        return np.asarray(score, dtype=np.float64)

    def contributions(self, values: npt.NDArray[np.floating]) -> FloatArray:
        """What each feature adds to the score of every row; the last column is the baseline."""
        return np.asarray(self.raw.predict(values, pred_contrib=True), dtype=np.float64)

    def importances(self, kind: str) -> FloatArray:
        """How often ("split") each feature is used, or how much it improves the loss ("gain")."""
        return np.asarray(self.raw.feature_importance(importance_type=kind), dtype=np.float64)

    def write(self, path: Path) -> None:
        """Write the trees as LightGBM's text."""
        # Not by LightGBM: a full disk is then the system's error, and other text never stays.
        text = self.raw.model_to_string()
        saveable(check_lightgbm, text)
        path.write_bytes(text.encode("utf-8"))


class LightGBMGrower:
    """A LightGBM booster in training."""

    def __init__(self, features: Features, settings: TreeSettings, continued: Trees | None) -> None:
        self._params = parameters(settings)
        self._n_jobs = settings.n_jobs or 0
        self._continued = continued.raw if continued is not None else None
        self._rows = len(features)
        self._before = continued.predict(features.values) if continued is not None else None
        names = allowed_names(features.names, _is_allowed, "Column_{}".format)
        self._bins = Bins(names, features.categorical, self._params)
        self._data = self._bins.of(features.values, keep_values=continued is not None)
        self._held_out = TreeByTree(self._one_tree)
        self._started: lightgbm.Booster | None = None
        self._score: FloatArray | None = None

    @property
    def _booster(self) -> lightgbm.Booster:
        if self._started is None:
            raise RuntimeError("no tree was grown yet")
        return self._started

    @property
    def score(self) -> FloatArray:
        """The present score of every training row."""
        if self._score is None:
            self._score = self._present_score()
        return self._score

    def _present_score(self) -> FloatArray:
        if self._started is None:
            return np.zeros(self._rows) if self._before is None else self._before
        self._booster.eval_train(feval=self._keep_score)
        return self._kept_score

    def _keep_score(self, score: FloatArray, data: Any) -> tuple[str, float, bool]:
        """An evaluation that measures nothing: LightGBM shows the scores of its rows to it alone."""
        self._kept_score = score.copy()
        self._kept_score.flags.writeable = False
        return "score", 0.0, True

    def grow(self, gradient: FloatArray, hessian: FloatArray) -> bool:
        """Add the tree that these derivatives ask for; False if no split was possible."""

        def derivatives(score: FloatArray, data: Any) -> tuple[FloatArray, FloatArray]:
            return gradient, hessian

        self._score = None
        with refusals("LightGBM", lightgbm.basic.LightGBMError):
            if self._started is not None:
                return not self._started.update(fobj=derivatives)
            return self._start(derivatives)

    def _start(self, derivatives: Any) -> bool:
        """Grow the first tree."""
        # `train` is the public way to continue from another booster; one round of it gives a
        # booster that can be updated. A function survives the deep copy of the parameters.
        self._started = lightgbm.train(
            {**self._params, "objective": derivatives},
            self._data,
            num_boost_round=1,
            init_model=self._continued,
            keep_training_booster=True,
        )
        return self._first_tree_has_a_split()

    def _first_tree_has_a_split(self) -> bool:
        """A tree without a split is dropped, unless it would be the only one."""
        before = self._continued.num_trees() if self._continued is not None else 0
        if self._booster.num_trees() == before:
            return False
        tree = self._booster.dump_model(start_iteration=before, num_iteration=1)["tree_info"][0]
        return bool(tree["num_leaves"] > 1)

    def held_out_score(self, values: npt.NDArray[np.floating]) -> FloatArray:
        """The present score of rows that are not trained on, the same ones in every call."""
        if self._continued is not None or len(values) == 0:
            return self._held_out.score(values, self._booster.num_trees())
        if not self._booster.valid_sets:
            # In the bins of the training rows a tree is followed several times faster.
            self._booster.add_valid(self._bins.of(values, self._data), "held out")
        self._booster.eval_valid(feval=self._keep_score)
        return self._kept_score

    def _one_tree(self, values: npt.NDArray[np.floating], number: int) -> FloatArray:
        return LightGBMTrees(self._booster, self._n_jobs).predict(
            values, first=number, last=number + 1
        )

    def finish(self, n_rounds: int) -> Trees:
        """The first ``n_rounds`` trees, without the training data."""
        text = self._booster.model_to_string(num_iteration=n_rounds)
        return LightGBMTrees(lightgbm.Booster(model_str=text), self._n_jobs)


def _is_allowed(name: str) -> bool:
    """Whether LightGBM keeps a name: its file separates names by blanks, and its JSON is unescaped."""
    return name != "" and name.isprintable() and not set(name) & set(',:=[]{}"\\ ')


class _LightGBM:
    file_name = "model.txt"

    def start(self, features: Features, settings: TreeSettings, continued: Trees | None) -> Grower:
        return LightGBMGrower(features, settings, continued)

    def read(self, path: Path, n_features: int | None = None) -> Trees:
        try:
            text = path.read_bytes().decode("utf-8")
            check_lightgbm(text, n_features)
            return LightGBMTrees(lightgbm.Booster(model_str=text))
        except (lightgbm.basic.LightGBMError, ValueError) as error:
            raise StoreError(f"{path} is not a LightGBM model ({error})") from error


LIBRARY = _LightGBM()


def parameters(settings: TreeSettings) -> dict[str, Any]:
    """The settings in LightGBM's words."""
    main_names = _main_names() if settings.extra else {}
    refuse_unknown(set(settings.extra) - set(main_names), "LightGBM")
    refuse_foreign({n for n in settings.extra if main_names[n] in _FOREIGN}, "LightGBM")
    _check_boosting(settings.extra, main_names)
    parameters = {
        "objective": "none",
        "metric": "none",
        "verbosity": -1,
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.num_leaves,
        "feature_fraction": settings.feature_fraction,
        "bagging_fraction": settings.bagging_fraction,
        "bagging_freq": 1 if settings.bagging_fraction < 1 else 0,
        "min_data_in_leaf": settings.min_data_in_leaf,
        "min_data_in_bin": settings.min_data_in_bin,
        # Without it LightGBM stops the process's work with an error if no feature can be split.
        "feature_pre_filter": False,
        "min_sum_hessian_in_leaf": settings.min_sum_hessian_in_leaf,
        "num_threads": settings.n_jobs or 0,
        # Left to itself LightGBM times two ways of counting and takes the faster one, which adds up
        # in another order: two runs would differ in their last digits.
        "deterministic": True,
        "force_col_wise": True,
    }
    if settings.seed is not None:
        parameters["seed"] = settings.seed
    # LightGBM prefers num_leaves to its alias max_leaf: our value goes if the caller used either.
    for name in settings.extra:
        parameters.pop(main_names[name], None)
    if "force_row_wise" in settings.extra:
        parameters.pop("force_col_wise", None)
    return {**parameters, **settings.extra}


def _check_boosting(extra: Mapping[str, Any], main_names: Mapping[str, str]) -> None:
    """Refuse kinds of boosting that change trees after they were grown."""
    for name, value in extra.items():
        if main_names[name] == "boosting" and value not in {"gbdt", "gbrt", "goss"}:
            raise UsageError(
                f"{name} must be 'gbdt' or 'goss', got {value!r}: other kinds of boosting drop or "
                "average earlier trees, and the position bias is learned from their sum"
            )


@cache
def _main_names() -> dict[str, str]:
    """Every name of a parameter that LightGBM knows, and the one that it is an alias of.

    LightGBM says so through its C interface alone, which is public; the way that its Python package
    has to it is not.
    """
    file = next(Path(lightgbm.__file__).parent.rglob("lib_lightgbm.*"))
    dump = ctypes.CDLL(str(file)).LGBM_DumpParamAliases
    dump.argtypes = [ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_char_p]
    size = ctypes.c_int64(0)
    # The first call only asks for the length.
    dump(0, ctypes.byref(size), ctypes.create_string_buffer(1))
    text = ctypes.create_string_buffer(size.value)
    dump(size.value, ctypes.byref(size), text)
    aliases: dict[str, list[str]] = json.loads(text.value)
    return {name: main for main, others in aliases.items() for name in (main, *others)}
