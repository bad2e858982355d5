"""The metrics as their definitions say, in plain NumPy: the specification of the kernels.

`doubly_robust_dcg_of_query` goes through the sessions of one query, impression by impression.
`metric_of_order` takes the grades of one query in a given order. `expected_metric` averages it over
every order of the tied rows, one by one: it is slow, and it is what ``ties="average"`` means.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, permutations, product

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray


def _dcg(value: FloatArray, k: int) -> float:
    return float(sum(v / np.log2(rank + 1.0) for rank, v in enumerate(value[:k], start=1)))


def metric_of_order(
    name: str,
    grade: npt.ArrayLike,
    *,
    k: int | None = None,
    relevant_from: float = 1.0,
    max_grade: int = 4,
) -> float:
    """One metric of one query whose grades are given from the top of the ranking down."""
    grades = np.asarray(grade, dtype=np.float64)
    cut = len(grades) if k is None else k
    relevant = grades >= relevant_from
    ranks = np.arange(1, len(grades) + 1)
    shown = ranks <= cut
    if name in {"ndcg", "ndcg-linear"}:
        value = grades if name == "ndcg-linear" else np.exp2(grades) - 1.0
        ideal = _dcg(np.sort(value)[::-1], cut)
        return _dcg(value, cut) / ideal if ideal > 0 else float("nan")
    if name == "err":
        satisfied = (np.exp2(grades) - 1.0) / 2.0**max_grade
        not_before = np.concatenate(([1.0], np.cumprod(1.0 - satisfied)[:-1]))
        total = float((not_before * satisfied / ranks)[shown].sum())
        return total if grades.any() else float("nan")
    if not relevant.any():
        return float("nan")
    if name == "map":
        precision = np.cumsum(relevant) / ranks
        return float((precision * relevant * shown).sum() / relevant.sum())
    if name == "mrr":
        first = int(np.argmax(relevant)) + 1
        return 1.0 / first if first <= cut else 0.0
    if name == "precision":
        return float((relevant & shown).sum() / cut)
    raise ValueError(name)


def expected_metric(
    name: str, score: npt.ArrayLike, grade: npt.ArrayLike, *, k: int | None = None
) -> float:
    """The mean of a metric over all orders of the rows with equal scores."""
    scores, grades = np.asarray(score, dtype=np.float64), np.asarray(grade, dtype=np.float64)
    order = np.argsort(-scores, kind="stable")
    groups = [list(rows) for _, rows in groupby(order.tolist(), key=lambda row: scores[row])]
    values = [
        metric_of_order(name, grades[[row for group in orders for row in group]], k=k)
        for orders in product(*(permutations(group) for group in groups))
    ]
    return float(np.mean(values))


def doubly_robust_dcg_of_query(
    sessions: list[list[tuple[int, int, int]]],
    score: dict[int, float],
    examination: list[float],
    prediction: dict[int, float],
    *,
    k: int,
    clip: float,
) -> float:
    """The doubly robust DCG@k of one query under the position-based model.

    A session lists its results as (document, position, click); no two scores are equal.
    """
    shown, visible, surprise = (dict.fromkeys(score, 0.0) for _ in range(3))
    for session in sessions:
        for document, position, click in session:
            theta = examination[position - 1]
            shown[document] += 1
            visible[document] += theta
            surprise[document] += click - theta * prediction[document]
    seen = [document for document in score if shown[document] > 0]
    attraction = {
        document: prediction[document]
        + surprise[document] / max(visible[document], clip * shown[document])
        for document in seen
    }
    order = sorted(seen, key=lambda document: -score[document])
    return _dcg(np.array([attraction[document] for document in order]), k)


def click_value(
    sessions: list[list[tuple[int, int, int]]],
    weight: Callable[[int], float],
    rank: dict[int, int] | None,
    examination: list[float],
    prediction: dict[int, float] | None,
    *,
    clip: float,
) -> float:
    """The value of a ranking of one query's documents, session by session: IPS, or DR.

    A session lists its results as (document, position, click); ``weight`` is what a result counts at
    a rank. A rank of None is the order that was logged; without a prediction it is IPS.
    """
    documents = {document for session in sessions for document, _, _ in session}
    m = prediction or dict.fromkeys(documents, 0.0)
    shown = dict.fromkeys(documents, 0)
    visible = dict.fromkeys(documents, 0.0)
    for session in sessions:
        for document, position, _ in session:
            shown[document] += 1
            visible[document] += examination[position - 1]
    values = []
    for session in sessions:
        z = 0.0 if rank is None else sum(weight(rank[d]) * m[d] for d in documents)
        for document, position, click in session:
            theta = examination[position - 1]
            surprise = click - theta * m[document]
            if rank is None:
                z += weight(position) * (m[document] + surprise / max(theta, clip))
            elif prediction is None:
                share = shown[document] / len(sessions)
                z += weight(rank[document]) * surprise / max(theta, clip) / share
            else:
                divisor = max(visible[document], clip * shown[document])
                z += len(sessions) * weight(rank[document]) * surprise / divisor
        values.append(z)
    return float(np.mean(values))
