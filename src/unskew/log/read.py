"""Reading: any click log becomes Impressions, any table of grades becomes LabelledData."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from unskew.errors import DataError
from unskew.log.examine import LogOptions, examine_log
from unskew.log.impressions import Impressions
from unskew.log.keys import KeyCoder, decode_categories
from unskew.log.labelled import LabelledData
from unskew.log.letor import is_letor, read_letor
from unskew.log.plan import feature_matrix, key_sql, number_sql, plan_features
from unskew.log.schema import Columns, missing_column
from unskew.log.sources import Source, Table, connect, open_table

__all__ = ["read_labels", "read_log"]


def read_log(
    source: Source,
    *,
    session: str = "session",
    query: str = "query",
    doc: str = "doc",
    position: str = "position",
    click: str = "click",
    weight: str | None = None,
    context: str | None = None,
    time: str | None = None,
    features: Source | Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    table: str | None = None,
    first_position: int = 1,
    memory_limit: str | None = None,
    threads: int | None = None,
    temp_directory: str | None = None,
    progress: bool = False,
) -> Impressions:
    """Read a click log: one row per result shown, with the session it was shown in.

    Parameters
    ----------
    source
        A Parquet or CSV file (also gzip), a folder or glob or list of them, an Arrow table or stream,
        a pandas or Polars frame, a DuckDB relation, or a DuckDB database file with ``table``.
    session, query, doc, position, click
        What these columns are called. Positions count from 1. A click is 0 or 1, or a grade: 2 for a
        cart, 3 for a purchase, as far as you like.
    weight, context, time
        Optional columns: how much a session counts; a device or layout; when it was. Columns with
        these names are taken for that without being named here. The time is not kept.
    features
        Where the features are: a second table keyed by query and doc (anything ``source`` can be), or
        a list of columns of the log. By default every remaining column of the log is a feature.
    categorical
        Feature columns to be kept as categories. Dictionary and enum columns are so by themselves.
    ignore
        Columns that are no features.
    table
        The table within a DuckDB database file.
    first_position
        0 if the first place is written as position 0.
    memory_limit, threads, temp_directory
        Limits for DuckDB, such as ``"1GB"``; what does not fit is spilled to the temporary folder.
    progress
        Show a progress bar.

    Raises
    ------
    DataError
        If anything is wrong with the log: the message names the file, the column, the first offending
        row, what was required and what to do.

    """
    columns = Columns(session, query, doc, position, click, weight, context, time)
    options = LogOptions(
        columns=columns,
        features=features,
        categorical=categorical,
        ignore=ignore,
        table=table,
        first_position=first_position,
        memory_limit=memory_limit,
        threads=threads,
        temp_directory=temp_directory,
        progress=progress,
    )
    found = examine_log(source, options)
    if found.problems or found.impressions is None:
        raise DataError(found.problems[0].message)
    return found.impressions


def read_labels(
    source: Source,
    *,
    query: str = "query",
    doc: str = "doc",
    relevance: str = "relevance",
    features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    table: str | None = None,
    n_features: int | None = None,
) -> LabelledData:
    """Read documents with relevance grades: LETOR/SVMlight text (also gzip), or a table.

    A table needs the columns ``query`` and ``relevance``, and may have ``doc``; every remaining
    column is a feature unless ``features`` names them. ``n_features`` is for LETOR text whose last
    features happen to be absent in this file.
    """
    if isinstance(source, str | os.PathLike) and is_letor(os.fspath(source)):
        return read_letor(source, n_features=n_features)
    with connect() as connection:
        opened = open_table(
            source, connection, what="the labels", table=table, text_columns=[query, doc]
        )
        for role, name in (("query", query), ("relevance", relevance)):
            if name not in opened.columns:
                raise missing_column(name, opened.columns, opened.name, option=role)
        taken = [name for name in (query, doc, relevance) if name in opened.columns]
        plan = plan_features(
            opened, taken=taken, names=features, categorical=categorical, ignore=ignore
        )
        select = [
            key_sql(opened, query) + " AS query",
            number_sql(opened, relevance) + " AS relevance",
            *([key_sql(opened, doc) + " AS doc"] if doc in taken else []),
            *(f"{sql} AS f{k}" for k, sql in enumerate(plan.sql())),
        ]
        batches = list(opened.scan(", ".join(select)))
    if not sum(batch.num_rows for batch in batches):
        raise DataError(f"{opened.name}: there is not a single row")
    rows = pa.concat_batches(batches)
    for role, name in (("query", query), ("doc", doc), ("relevance", relevance)):
        if role in rows.schema.names and rows.column(role).null_count:
            row = int(np.flatnonzero(np.asarray(rows.column(role).is_null()))[0])
            raise DataError(
                f"{opened.where(row)}: column {name!r} is null. Remedy: fill it in, or leave such "
                "rows out."
            )
    coders = {name: KeyCoder() for name in plan.names if name in plan.categorical}
    matrix = feature_matrix(rows, plan, coders)
    return LabelledData.from_rows(
        decode_categories(matrix, plan.names, coders),
        np.asarray(rows.column("relevance"), dtype=np.float64),
        _keys(rows, "query", opened),
        _keys(rows, "doc", opened) if doc in taken else None,
    )


def _keys(rows: pa.RecordBatch, name: str, table: Table) -> np.ndarray:
    coder = KeyCoder(from_text=table.from_text)
    return coder.ranked(coder.encode(rows.column(name)))[0]
