"""What a ranker is given to score: a matrix, a data frame of any kind, or our own containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.log.matrix import features_from
from unskew.log.sources.frames import is_frame
from unskew.pairs.statistic import Pairs, pair_statistics


def features_of(X: Any) -> Features:
    """The features of X, row for row; the columns of a matrix are called f0, f1 and so on."""
    if isinstance(X, LabelledData | Impressions):
        return X.features
    features = features_from(X)
    if not isinstance(X, Features) and not is_frame(X):
        for size, what in zip(features.values.shape, ("sample", "feature"), strict=True):
            if not size:
                raise DataError(
                    f"X has 0 {what}(s) (shape={features.values.shape}) while a minimum of 1 is "
                    "required."
                )
    return features


def aligned(
    features: Features,
    names: tuple[str, ...],
    categories: Mapping[str, tuple[str, ...]],
    *,
    model: str = "the model",
) -> npt.NDArray[np.floating]:
    """The columns that a model was trained on, in its order and with its category codes.

    A category that the model has never seen is a missing value. Columns called f0, f1 and so on
    have no names of their own: they are taken by their place.
    """
    unnamed = tuple(f"f{k}" for k in range(len(features.names)))
    if features.names == names or features.names == unnamed or names == unnamed:
        if len(features.names) != len(names):
            raise DataError(
                f"X has {len(features.names)} features, but {model} is expecting {len(names)} "
                "features as input"
            )
        values, found = features.values, features.names
    else:
        missing = [name for name in names if name not in features.names]
        if missing:
            raise DataError(
                f"the model was trained with the feature(s) {missing}, which X does not have: it "
                f"has {list(features.names)}"
            )
        values = features.values[:, [features.names.index(name) for name in names]]
        found = names
    return _recoded(values, found, features.categories, names, categories)


def _recoded(
    values: npt.NDArray[np.floating],
    found: tuple[str, ...],
    given: Mapping[str, tuple[str, ...]],
    names: tuple[str, ...],
    wanted: Mapping[str, tuple[str, ...]],
) -> npt.NDArray[np.floating]:
    for k, name in enumerate(names):
        texts = given.get(found[k])
        if texts is None or texts == wanted.get(name):
            continue
        place = {text: float(code) for code, text in enumerate(wanted.get(name, ()))}
        codes = np.array([*(place.get(text, np.nan) for text in texts), np.nan])
        column = values[:, k]
        values = values.copy()
        values[:, k] = codes[np.where(np.isnan(column), len(texts), column).astype(np.intp)]
    return values


def column_of(values: Any, name: str, length: int) -> npt.NDArray[Any]:
    """One column beside X, as an array of that length."""
    if values is None:
        raise UsageError(f"{name} is needed: give one value per row of X")
    array = np.asarray(values)
    if array.ndim != 1 or len(array) != length:
        raise UsageError(
            f"{name} must have one value for each of the {length} rows of X, got shape "
            f"{array.shape}"
        )
    return array


def check_rankable(features: Features) -> None:
    """Refuse documents that no ranker can tell apart."""
    if not features.n_features:
        raise DataError(
            "the log has no features, so there is nothing to rank by: give them with the log "
            "or as a second table, read_log(…, features=…)"
        )
    values = features.values
    if len(values) == 1:
        raise DataError("the log has one sample only: a ranking needs two documents or more")
    blocks = (values[start : start + 1024] for start in range(0, len(values), 1024))
    if not any(_differs(block, values[0]) for block in blocks):
        raise DataError("every feature has the same value in all documents: nothing to rank by")


def _differs(values: npt.NDArray[np.floating], row: npt.NDArray[np.floating]) -> bool:
    """Whether any row of the values is another one; two missing values are the same."""
    return bool(np.any((values != row) & ~(np.isnan(values) & np.isnan(row))))


def pairs_of(data: Impressions) -> Pairs:
    """The pair statistic of a log that has something to learn from, or an error that says why not."""
    check_rankable(data.features)
    pairs = pair_statistics(data)
    if not len(pairs):
        raise DataError(
            "there is nothing to learn from: no session has both a clicked result and one "
            "clicked less (every page is clicked whole or not at all)"
        )
    return pairs
