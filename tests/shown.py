"""Logs of hand-written sessions, and simulated ones whose true propensities are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.simulate import random_policy, sample, score_policy, true_propensities


class Shown(NamedTuple):
    """Sessions that showed these documents from the top and had these positions clicked."""

    docs: str
    clicked: tuple[int, ...] = ()
    times: int = 1
    query: str = "q"
    positions: tuple[int, ...] | None = None
    context: str | None = None
    weight: float = 1.0


def log_of(*sessions: Shown, features: dict[str, float] | None = None) -> Impressions:
    """The Impressions of these sessions; a document is a letter."""
    rows: dict[str, list[object]] = {name: [] for name in ("session", "query", "doc", "position")}
    rows |= {"click": [], "context": [], "weight": []}
    number = 0
    for shown in sessions:
        positions = shown.positions or range(1, len(shown.docs) + 1)
        for _ in range(shown.times):
            number += 1
            for doc, position in zip(shown.docs, positions, strict=True):
                values = (number, shown.query, doc, position, int(position in shown.clicked),
                          shown.context, shown.weight)  # fmt: skip
                for column, value in zip(rows.values(), values, strict=True):
                    column.append(value)
    if all(value is None for value in rows["context"]):
        del rows["context"]
    X = None if features is None else np.array([[features[str(doc)]] for doc in rows["doc"]])
    return Impressions.from_arrays(X, rows.pop("click"), **rows)


def labelled(*, n_queries: int = 100, docs: int = 10, seed: int = 0) -> LabelledData:
    """Graded documents whose two features tell most of the grade."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_queries * docs, 2))
    grade = np.digitize(values[:, 0] + 0.5 * rng.normal(size=len(values)), [-1.0, 0.0, 1.0, 1.8])
    query = np.repeat(np.arange(n_queries), docs)
    names = ("good", "noise")
    return LabelledData(Features(values, names), grade.astype(float), query, np.arange(len(query)))


def simulated(
    data: LabelledData, *, sessions: int, seed: int = 0, score: np.ndarray | None = None
) -> tuple[Impressions, np.ndarray]:
    """Position-based clicks on shuffled lists, or on lists ranked by a score; and the true curve."""
    policy = random_policy(data) if score is None else score_policy(data, score)
    log = sample(data, policy=policy, sessions=sessions, seed=seed)
    columns = {name: log[name].to_numpy() for name in ("session", "query", "position")}
    doc = log["doc"].to_numpy()
    click = log["click"].to_numpy()
    names = data.features.names
    impressions = Impressions.from_arrays(
        data.features.values[doc], click, doc=doc, feature_names=names, **columns
    )
    return impressions, true_propensities(log).relative
