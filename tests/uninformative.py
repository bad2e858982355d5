"""Logs that say little or nothing, one for each way, as tables; their true examination is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from unskew.log.impressions import Impressions

THETA = np.array([1.0, 0.6, 0.3])
RELEVANCE = np.array([0.8, 0.5, 0.3])
N = len(THETA)


def _table(
    *, n_queries: int = 30, n_sessions: int = 2400, one_click: bool = False, seed: int = 0
) -> pa.Table:
    """Shuffled lists of three documents and position-based clicks; a feature tells the relevance."""
    rng = np.random.default_rng(seed)
    doc = np.array([rng.permutation(N) for _ in range(n_sessions)])
    chance = THETA * RELEVANCE[doc]
    if one_click:
        # At most one click a session: half of each chance, so that they add up to less than 1.
        drawn = rng.random((n_sessions, 1))
        upper = np.cumsum(0.5 * chance, axis=1)
        click = (drawn < upper) & (drawn >= upper - 0.5 * chance)
    else:
        click = rng.random((n_sessions, N)) < chance
    query = np.repeat(np.arange(n_sessions) % n_queries, N)
    shift = rng.normal(scale=0.1, size=(n_queries, N))
    return pa.table(
        {
            "session": np.repeat(np.arange(n_sessions), N),
            "query": query,
            "doc": query * 10 + doc.ravel(),
            "position": np.tile(np.arange(1, N + 1), n_sessions),
            "click": click.ravel().astype(int),
            "price": RELEVANCE[doc.ravel()] + shift[query, doc.ravel()],
        }
    )


def _with(table: pa.Table, name: str, values: np.ndarray) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, pa.array(values))
    return table.append_column(name, pa.array(values))


def _contexts() -> pa.Table:
    table = _table()
    session = np.asarray(table["session"])
    return _with(table, "device", np.where(session == 7, "watch", "desktop"))


# What is wrong with a log, and the log.
TABLES: dict[str, Callable[[], pa.Table]] = {
    "no click at all": lambda: _with(t := _table(), "click", np.zeros(len(t), dtype=int)),
    "all clicked": lambda: _with(t := _table(), "click", np.ones(len(t), dtype=int)),
    "one query": lambda: _table(n_queries=1),
    "a context seen once": _contexts,
    "one click a session": lambda: _table(one_click=True),
    "constant features": lambda: _with(t := _table(), "price", np.ones(len(t))),
    "no features": lambda: _table().drop_columns("price"),
}


def table_of(kind: str) -> pa.Table:
    """The log as a table."""
    return TABLES[kind]()


def read(kind: str) -> Impressions:
    """The log, its contexts named where it has any."""
    table = table_of(kind)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    features = columns.pop("price", None)
    return Impressions.from_arrays(
        None if features is None else features[:, None],
        columns.pop("click"),
        context=columns.pop("device", None),
        feature_names=None if features is None else ("price",),
        **columns,
    )
