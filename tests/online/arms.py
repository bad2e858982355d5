"""Small arms for the tests of A/B readings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def arm(
    n_sessions: int,
    *,
    rate: float = 0.3,
    seed: int = 0,
    n_users: int | None = None,
    prefix: str = "c",
    length: int = 5,
    days: int = 4,
) -> pa.Table:
    """A log whose results are clicked with probability ``rate / position``.

    Users differ: each has a click rate of its own around ``rate``.
    """
    rng = np.random.default_rng(seed)
    user = rng.integers(n_users or n_sessions, size=n_sessions)
    taste = rng.uniform(0.5, 1.5, n_users or n_sessions)[user]
    place = np.tile(np.arange(1, length + 1), n_sessions)
    chance = np.repeat(rate * taste, length) / place
    click = (rng.random(n_sessions * length) < chance).astype(np.int8)
    query = rng.integers(3, size=n_sessions)

    def rows(values: Any) -> Any:
        return np.repeat(values, length)

    return pa.table(
        {
            "session": rows(np.arange(n_sessions)),
            "query": rows(np.array(["a", "b", "c"])[query]),
            "doc": place + 10 * rows(query),
            "position": place.astype(np.int32),
            "click": click,
            "user": rows(np.array([f"{prefix}{u}" for u in user])),
            "time": rows(rng.integers(days, size=n_sessions)),
            "segment": rows(np.where(user % 2 == 0, "phone", "desk")),
            "revenue": click * rng.gamma(2.0, 5.0, n_sessions * length),
        }
    )


def both(n_sessions: int = 400, **options: Any) -> tuple[pa.Table, pa.Table]:
    """A control, and a treatment that is better."""
    return (
        arm(n_sessions, seed=1, prefix="c", **options),
        arm(n_sessions, seed=2, prefix="t", rate=0.4, **options),
    )


def first_clicks(log: pa.Table) -> np.ndarray[Any, Any]:
    """The first clicked position of every session, 0 without a click, by a loop over rows."""
    found: dict[Any, int] = {}
    for row in log.to_pylist():
        first = found.setdefault(row["session"], 0)
        if row["click"] and (first == 0 or row["position"] < first):
            found[row["session"]] = row["position"]
    return np.array(list(found.values()))
