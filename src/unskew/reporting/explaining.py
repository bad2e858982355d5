"""Which features matter to a model, and why it puts one result above another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.array_types import FloatArray, IntArray
from unskew.log.features import Features
from unskew.rankers.inputs import aligned

# Documents on which a model without importances of its own is probed.
PROBED = 1_000


@dataclass(frozen=True, eq=False)
class Importance:
    """How much each feature matters to a model, as shares, and how that was found."""

    share: FloatArray
    how: str


def importance_of(model: Any, features: Features, *, seed: int = 0) -> Importance | None:
    """The importances that the model has, or how much its scores move if a feature is shuffled."""
    share = getattr(model, "feature_importances_", None)
    if share is not None:
        return Importance(
            np.asarray(share),
            "how much the splits on it improved the loss (gain), as a share of all",
        )
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(features), min(PROBED, len(features)), replace=False)
    values = _values(model, features.take(rows))
    base = model.predict(_as_features(model, values))
    moved = np.empty(values.shape[1])
    for k in range(values.shape[1]):
        shuffled = values.copy()
        shuffled[:, k] = rng.permutation(values[:, k])
        moved[k] = np.abs(model.predict(_as_features(model, shuffled)) - base).mean()
    total = moved.sum()
    if not total > 0:
        return None
    how = f"how far scores move if it is shuffled among {len(rows):,} documents, as a share of all"
    return Importance(moved / total, how)


def contributions(model: Any, features: Features, rows: IntArray) -> FloatArray:
    """What each feature adds to the score of the first of two rows more than to that of the second.

    Trees say so themselves; of other models each feature is exchanged alone.
    """
    pair = features.take(rows)
    if hasattr(model, "explain"):
        parts = model.explain(pair).contributions
        found: FloatArray = parts[0] - parts[1]
        return found
    values = _values(model, pair)
    n = values.shape[1]
    exchanged = np.repeat(values[:1], n + 1, axis=0)
    exchanged[np.arange(n), np.arange(n)] = values[1]
    score = model.predict(_as_features(model, exchanged))
    moved: FloatArray = score[n] - score[:n]
    return moved


def _as_features(model: Any, values: Any) -> Features:
    return Features(values, model.feature_names_, model.categories_)


def _values(model: Any, features: Features) -> FloatArray:
    """A copy of the columns that a model was trained on, in its order."""
    found = aligned(features, model.feature_names_, model.categories_)
    return np.array(found, dtype=np.float64)
