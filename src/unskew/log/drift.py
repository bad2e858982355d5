"""Drift: how a log differs from the one that a model was trained on, and whether to train again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.log.counts import sums
from unskew.log.impressions import Impressions
from unskew.log.log_summary import FeatureClasses, LogSummary, clicks_at, shown_documents

# The population stability index from which a feature counts as moved: the usual rule of thumb.
MOVED = 0.25
# How far the CTR of positions may move on average, relative to what it was, and by how many standard
# errors it must be more than chance.
CURVE_CHANGE = 0.2
_CHANCE = 4.0
# The share of what is shown that may be new to the model.
UNSEEN = 0.5
# Shares of a class that is empty on one side are taken for this.
_LEAST = 1e-4
_FEWEST_IDS = 30


@dataclass(frozen=True)
class MovedFeature:
    """How far the values of a feature moved, by the population stability index."""

    name: str
    stability_index: float
    missing_before: float
    missing_now: float


@dataclass(frozen=True)
class PositionChange:
    """The CTR at one position in both logs; None where it was not shown."""

    position: int
    before: float | None
    now: float | None


@dataclass(frozen=True)
class Drift:
    """A new log beside the one of the training.

    Attributes
    ----------
    compared
        False for a model that remembers nothing of its log: only its features could be compared.
    ctr_before, ctr_now
        Clicks of all results shown.
    curve_change
        How far the CTR of a position moved, relative to what it was, on average over what is shown.
    positions
        The CTR at every position in both.
    position_index
        How far the places of what is shown moved, as for features.
    features
        How far each feature moved, the furthest first.
    lost_features, new_features
        Features of the model that the log lacks, and those that it has beyond them.
    unseen_documents, unseen_queries
        The share of what is shown whose document or query was not in the training log; None if
        too few could be judged.
    reasons
        Why to train again.

    """

    compared: bool
    lost_features: list[str]
    new_features: list[str]
    reasons: list[str]
    ctr_before: float | None = None
    ctr_now: float | None = None
    curve_change: float | None = None
    positions: tuple[PositionChange, ...] = ()
    position_index: float | None = None
    features: tuple[MovedFeature, ...] = ()
    unseen_documents: float | None = None
    unseen_queries: float | None = None

    @property
    def retrain(self) -> bool:
        """Whether the model should be trained again."""
        return bool(self.reasons)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and dictionaries, ready for JSON."""
        return {"retrain": self.retrain, **asdict(self)}


def compare_log(data: Impressions, names: Sequence[str], before: LogSummary | None) -> Drift:
    """A log beside what a model with these features remembers of its own."""
    lost = [name for name in names if name not in data.features.names]
    new = [name for name in data.features.names if name not in names]
    reasons = []
    if lost:
        shown = ", ".join(lost[:5]) + (" …" if len(lost) > 5 else "")
        reasons.append(f"{len(lost)} of the model's features are not in the log: {shown}")
    if before is None:
        return Drift(False, lost, new, reasons)
    curve = _curve(data, before)
    moved = _features(data, before)
    documents, queries = _unseen(data, before)
    reasons += [*_curve_reasons(curve), *_feature_reasons(moved)]
    if documents is not None and documents > UNSEEN:
        reasons.append(f"{documents:.0%} of what is shown are documents that the model never saw")
    return Drift(
        compared=True, lost_features=lost, new_features=new, reasons=reasons,
        ctr_before=curve.ctr_before, ctr_now=curve.ctr_now, curve_change=curve.change,
        positions=curve.positions, position_index=curve.index, features=moved,
        unseen_documents=documents, unseen_queries=queries,
    )  # fmt: skip


@dataclass(frozen=True)
class _Curve:
    """The clicks by position of both logs."""

    ctr_before: float
    ctr_now: float
    change: float
    errors: float
    index: float
    positions: tuple[PositionChange, ...]


def _curve(data: Impressions, before: LogSummary) -> _Curve:
    position, shown, clicked = clicks_at(data)
    old = {
        p: (n, c)
        for p, n, c in zip(before.positions, before.impressions, before.clicks, strict=True)
    }
    new = {int(p): (float(n), float(c)) for p, n, c in zip(position, shown, clicked, strict=True)}
    every = sorted({*old, *new})
    table = np.array([(*old.get(p, (0.0, 0.0)), *new.get(p, (0.0, 0.0))) for p in every])
    n_old, c_old, n_new, c_new = table.T
    both = (n_old > 0) & (n_new > 0) & (c_old + c_new > 0)
    change, errors = _change(table[both])
    rates = [
        PositionChange(p, c / n if n else None, d / m if m else None)
        for p, (n, c, m, d) in zip(every, table.tolist(), strict=True)
    ]
    index = stability_index(
        n_old / n_old.sum(), n_new / n_new.sum(), before.n_sessions, data.n_sessions
    )
    return _Curve(
        float(c_old.sum() / n_old.sum()), float(c_new.sum() / n_new.sum()), change, errors, index,
        tuple(rates),
    )  # fmt: skip


def _change(table: FloatArray) -> tuple[float, float]:
    """How far the CTR of positions moved on average, relatively, and in standard errors of that."""
    if not len(table):
        return 0.0, 0.0
    n_old, c_old, n_new, c_new = table.T
    pooled = (c_old + c_new) / (n_old + n_new)
    spread = np.sqrt(pooled * (1 - pooled) * (1 / n_old + 1 / n_new))
    distance = np.abs(c_new / n_new - c_old / n_old)
    weight = n_new / n_new.sum()
    relative = float((weight * distance / pooled).sum())
    # By chance alone a distance is 0.8 of its standard error on average, give or take 0.6.
    by_chance = float((weight * 0.8 * spread / pooled).sum())
    around = float(np.sqrt(((weight * 0.6 * spread / pooled) ** 2).sum()))
    return max(relative - by_chance, 0.0), (relative - by_chance) / around if around > 0 else 0.0


def stability_index(before: npt.ArrayLike, now: npt.ArrayLike, n_before: int, n_now: int) -> float:
    """The population stability index of two lists of shares, less what chance alone would give.

    It is the sum of ``(now - before) * log(now / before)`` over the classes.
    """
    a, b = (np.maximum(np.asarray(share, dtype=np.float64), _LEAST) for share in (before, now))
    used = int(((a > _LEAST) | (b > _LEAST)).sum())
    by_chance = max(used - 1, 0) * (1 / max(n_before, 1) + 1 / max(n_now, 1))
    return max(float(((b - a) * np.log(b / a)).sum()) - by_chance, 0.0)


def _features(data: Impressions, before: LogSummary) -> tuple[MovedFeature, ...]:
    weight = shown_documents(data)
    found = []
    for k, name in enumerate(data.features.names):
        old = before.features.get(name)
        if old is None or (old.names is None) != (name not in data.features.categories):
            continue
        found.append(_moved(name, old, old.shares_of(data.features, k, weight), before, data))
    return tuple(sorted(found, key=lambda one: -one.stability_index))


def _moved(
    name: str, old: FeatureClasses, now: FloatArray, before: LogSummary, data: Impressions
) -> MovedFeature:
    index = stability_index(old.shares, now, before.n_documents, data.n_documents)
    return MovedFeature(name, index, old.shares[-1], float(now[-1]))


def _unseen(data: Impressions, before: LogSummary) -> tuple[float | None, float | None]:
    """The share of what is shown whose document, and whose query, is new."""
    weight = shown_documents(data)
    docs, at = np.unique(data.documents.doc, return_inverse=True)
    per_doc = sums(at, weight, len(docs))
    per_query = sums(data.documents.query, weight, len(data.queries))
    shares = []
    for sample, ids, mass in (
        (before.documents, docs, per_doc),
        (before.queries, data.queries, per_query),
    ):
        found = sample.unseen(ids, mass)
        enough = found is not None and (found[0] >= _FEWEST_IDS or sample.halvings == 0)
        shares.append(found[1] if found is not None and enough else None)
    return shares[0], shares[1]


def _curve_reasons(curve: _Curve) -> list[str]:
    reasons = []
    if curve.change > CURVE_CHANGE and curve.errors > _CHANCE:
        reasons.append(
            f"the CTR of a position moved by {curve.change:.0%} on average, more than by chance"
        )
    if curve.index > MOVED:
        reasons.append(
            f"results stand at other positions than in training (stability index {curve.index:.2f})"
        )
    return reasons


def _feature_reasons(moved: Sequence[MovedFeature]) -> list[str]:
    far = [one for one in moved if one.stability_index > MOVED]
    if not far:
        return []
    shown = ", ".join(f"{one.name} {one.stability_index:.2f}" for one in far[:5])
    more = " …" if len(far) > 5 else ""
    return [
        f"{len(far)} of {len(moved)} features moved (stability index above {MOVED}): {shown}{more}"
    ]
