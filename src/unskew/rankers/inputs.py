"""What a ranker is given to score: a matrix, a data frame of any kind, or our own containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import DataError, UsageError, warn
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.log.matrix import features_from
from unskew.log.schema import nearest_names
from unskew.pairs.statistic import Pairs, pair_statistics


def features_of(X: Any) -> Features:
    """The features of X, row for row; the columns of a matrix are called f0, f1 and so on."""
    if isinstance(X, LabelledData | Impressions):
        return X.features
    features = features_from(X)
    if not isinstance(X, Features):
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

    Columns are found by their names; those of an array, which has none, are taken by their place.
    A category that the model has never seen is a missing value, and a warning counts them.
    """
    if not features.named:
        if len(features.names) != len(names):
            raise DataError(
                f"X has {len(features.names)} features, but {model} is expecting {len(names)} "
                "features as input"
            )
        return features.values
    missing = [name for name in names if name not in features.names]
    if missing:
        unnamed = names == tuple(f"f{k}" for k in range(len(names)))
        hint = ". It was trained on an array without names: give X as an array" if unnamed else ""
        raise DataError(
            f"the model was trained with the feature(s) {missing}, which X does not have"
            f"{nearest_names(missing, features.names)}: it has {list(features.names)}{hint}"
        )
    values = features.values
    if features.names != names:
        values = values[:, [features.names.index(name) for name in names]]
    return _recoded(values, features.categories, names, categories)


def _recoded(
    values: npt.NDArray[np.floating],
    given: Mapping[str, tuple[str, ...]],
    names: tuple[str, ...],
    wanted: Mapping[str, tuple[str, ...]],
) -> npt.NDArray[np.floating]:
    """The values with the category codes of the model; the columns are those of ``names``."""
    for k, name in enumerate(names):
        if (name in given) != (name in wanted):
            required, found = (
                ("categories", "numbers") if name in wanted else ("numbers", "categories")
            )
            raise DataError(
                f"feature {name!r} holds {found}, but the model was trained with {required} there. "
                f"Remedy: give it as {required}, as in the training data."
            )
        if name not in given or given[name] == wanted[name]:
            continue
        place = {text: float(code) for code, text in enumerate(wanted[name])}
        codes = np.array([*(place.get(text, np.nan) for text in given[name]), np.nan])
        column = np.where(np.isnan(values[:, k]), len(given[name]), values[:, k]).astype(np.intp)
        _warn_of_unseen(name, given[name], codes, column)
        values = values.copy()
        values[:, k] = codes[column]
    return values


def _warn_of_unseen(
    name: str,
    texts: tuple[str, ...],
    codes: npt.NDArray[np.float64],
    column: npt.NDArray[np.intp],
) -> None:
    """Count the rows whose category the model has never seen; the last code is a missing value."""
    rows = np.bincount(column, minlength=len(codes))[:-1]
    unseen = np.flatnonzero(np.isnan(codes[:-1]) & (rows > 0))
    if len(unseen):
        shown = ", ".join(repr(texts[k]) for k in unseen[:3]) + (" …" if len(unseen) > 3 else "")
        warn(
            f"feature {name!r}: {rows[unseen].sum():,} of {len(column):,} rows have a category that the "
            f"model has never seen ({shown}); they count as missing",
        )


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
            "or as a second table, read_log(…, features=…) (--features)"
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
