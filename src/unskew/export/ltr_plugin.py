"""What the learning-to-rank plugins of Elasticsearch and OpenSearch read: trees in XGBoost's forms.

The rule of both is ``threshold > x`` in single precision, scores are single precision too. They
differ in what they make of a missing value, by plugin, version and form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import UsageError, warn
from unskew.export.format import (
    Exportable,
    Scores,
    as_json,
    from_json,
    refuse_categories,
    score_forest,
)
from unskew.export.missing import (
    MOST_GROWTH,
    missing_filled,
    missing_goes_right,
    missing_split_off,
    require_missing_as_zero,
)
from unskew.export.trees import Forest
from unskew.export.xgboost_forms import (
    DEFAULT,
    RIGHT,
    ZERO_VALUE,
    dumped,
    from_dumped,
    from_saved,
    saved,
)

MODEL, RAW, FEATURE_SET = "model.json", "model-raw.json", "featureset.json"


class LearningToRankPlugin:
    """The two forms of a model that a plugin takes, and a feature set to begin with.

    Parameters
    ----------
    engine
        Its name in messages.
    missing
        By version, what it does with a missing value in the plain form and in the raw form.
    remedy
        What helps if a version reads a missing value as 0.

    """

    def __init__(self, engine: str, missing: Mapping[str, tuple[str, str]], remedy: str) -> None:
        self._engine = engine
        self._missing = missing
        self._remedy = remedy

    def files(self, model: Exportable) -> Mapping[str, bytes]:
        """The bodies of ``_createmodel`` in both forms, and of ``_featureset``."""
        refuse_categories(model.trees, f"the {self._engine} plugin")
        plain, raw = self._missing[model.version]
        forest = self._expressed(model.trees, plain, model.version)
        filled: tuple[int, ...] = ()
        if forest is None:
            forest, filled = self._with_filled(model)
        definition = {"objective": "rank:pairwise", "splits": dumped(forest)}
        features = {"name": f"{model.name}-features", "features": _features(forest.names, filled)}
        files = {
            MODEL: _body(model.name, "model/xgboost+json", definition),
            FEATURE_SET: as_json({"featureset": features}),
        }
        # The raw form reads the same feature set. It is left out where it would be too large; the
        # plain form does the same.
        if raw and raw != plain:
            forest = self._expressed(model.trees, raw, model.version)
        if raw and forest is not None:
            files[RAW] = _body(model.name, "model/xgboost+json+raw", saved(forest))
        return files

    def _with_filled(self, model: Exportable) -> tuple[Forest, tuple[int, ...]]:
        """The trees with a second feature for each that is missing too often to rewrite them."""
        always_right = (
            f"the {self._engine} plugin of version {model.version} sends a missing value to the right "
            "on every split, and trees rewritten for that alone would be more than "
            f"{MOST_GROWTH} times as large"
        )
        found = missing_filled(model.trees)
        if found is None:
            raise UsageError(
                f"{always_right}, even with features that are 0 where one is missing, because many of "
                "the splits that send it left lie below 0: use a version that follows the model (the "
                "newest one), bring the features to a range from 0 on, as the engine's are, or fill "
                "missing values before training"
            )
        names = found.forest.names[len(model.names) :]
        warn(
            f"{always_right}: {FEATURE_SET} has {len(names)} features more than the model ("
            f"{_listed(names)}), each the feature of that name with 0 where it is missing. If you "
            "edit the query of a feature, edit it in both.",
        )
        return found

    def _expressed(self, forest: Forest, missing: str, version: str) -> Forest | None:
        if missing == ZERO_VALUE:
            engine = f"the {self._engine} plugin of version {version}"
            require_missing_as_zero(forest, engine, self._remedy)
        if missing == RIGHT:
            return missing_goes_right(forest)
        return missing_split_off(forest) if missing == DEFAULT else forest

    def score(self, files: Mapping[str, Path], values: FloatArray, version: str) -> Scores:
        """The scores of both forms."""
        plain, raw = self._missing[version]
        features = from_json(files[FEATURE_SET])["featureset"]["features"]
        names = tuple(feature["name"] for feature in features)
        values = _with_filled_columns(values, features)
        trees = _definition(files[MODEL])["splits"]
        scores = {MODEL: score_forest(from_dumped(trees, names, plain), values)}
        if RAW in files:
            scores[RAW] = score_forest(from_saved(_definition(files[RAW]), raw), values)
        return scores


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _body(name: str, kind: str, definition: Any) -> bytes:
    text = json.dumps(definition, allow_nan=False)
    return as_json({"model": {"name": name, "model": {"type": kind, "definition": text}}})


def _definition(path: Path) -> Any:
    return json.loads(from_json(path)["model"]["model"]["definition"])


def _features(names: tuple[str, ...], filled: tuple[int, ...]) -> list[dict[str, Any]]:
    """Features that are numbers in fields of their names, to be changed into what they stand for.

    The last ones repeat those of ``filled``, with 0 for a document that the query does not match.
    """
    own = names[: len(names) - len(filled)]
    templates = [_from_field(name) for name in own]
    templates += [_or_zero(templates[k]) for k in filled]
    return [
        {"name": name, "params": [], "template_language": "mustache", "template": template}
        for name, template in zip(names, templates, strict=True)
    ]


def _from_field(name: str) -> dict[str, Any]:
    return {
        "function_score": {
            "query": {"exists": {"field": name}},
            "field_value_factor": {"field": name},
            "boost_mode": "replace",
        }
    }


def _or_zero(template: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"filter": [{"match_all": {}}], "should": [template]}}


def _with_filled_columns(values: FloatArray, features: list[Mapping[str, Any]]) -> FloatArray:
    """The values of all features of a set: those of the model, and the repeated ones behind them."""
    n = values.shape[1]
    own = [feature["template"] for feature in features[:n]]
    filled = [own.index(feature["template"]["bool"]["should"][0]) for feature in features[n:]]
    return np.column_stack([values, np.nan_to_num(values[:, filled], nan=0.0)])
