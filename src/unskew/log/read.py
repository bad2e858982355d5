"""Reading: any click log becomes Impressions, any table of grades becomes LabelledData.

A log is read to its end in one pass that counts every kind of problem; `read_log` raises the first of
them, `inspection.py` lists them all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.errors import DataError, UsageError
from unskew.log.attach import attach_features
from unskew.log.columns import FeatureColumns, choose_features, require_columns, select_sql
from unskew.log.impressions import Impressions
from unskew.log.keys import KeyCoder
from unskew.log.labelled import LabelledData
from unskew.log.letor import is_letor, read_letor
from unskew.log.schema import Columns, Kind, Problem, resolve_columns
from unskew.log.sessions import read_sessions
from unskew.log.sources import SourceTable, TableLike, connect, open_table


@dataclass(frozen=True)
class LogOptions:
    """How to read a log: see `unskew.read_log`, whose parameters these are."""

    columns: Columns = field(default_factory=Columns)
    features: Any = None
    categorical: Sequence[str] = ()
    ignore: Sequence[str] = ()
    table: str | None = None
    first_position: int = 1
    memory_limit: str | None = None
    threads: int | None = None
    temp_directory: str | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        if self.first_position not in (0, 1):
            raise UsageError(f"first_position must be 0 or 1, got {self.first_position!r}")
        for option in ("categorical", "ignore"):
            if isinstance(getattr(self, option), str):
                raise UsageError(f"{option} must be a list of columns, got a single text")

    @property
    def feature_columns(self) -> list[str] | None:
        """The feature columns by name, if ``features`` names columns of the log itself."""
        given = self.features
        if isinstance(given, list | tuple) and all(isinstance(name, str) for name in given):
            return list(given)
        return None


@dataclass(frozen=True, eq=False)
class LogReading:
    """A log read to its end: what it holds and what is wrong with it.

    ``impressions`` has the sessions without problems, and is None if there is none. Sessions with
    problems are counted in ``n_left_out``.
    """

    source: str
    n_rows: int
    n_sessions: int
    n_left_out: int
    problems: tuple[Problem, ...]
    impressions: Impressions | None


def read_log(
    source: TableLike,
    *,
    session: str = "session",
    query: str = "query",
    doc: str = "doc",
    position: str = "position",
    click: str = "click",
    weight: str | None = None,
    context: str | None = None,
    time: str | None = None,
    features: TableLike | Sequence[str] | None = None,
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
        columns, features, categorical, ignore, table, first_position, memory_limit, threads,
        temp_directory, progress,
    )  # fmt: skip
    reading = read_with_problems(source, options)
    if reading.problems or reading.impressions is None:
        raise DataError(reading.problems[0].message)
    return reading.impressions


def read_with_problems(source: TableLike, options: LogOptions) -> LogReading:
    """Read a log to its end, counting every kind of problem instead of stopping at the first."""
    columns = options.columns
    keys = [columns.session, columns.query, columns.doc, columns.context or "context"]
    with connect(
        memory_limit=options.memory_limit,
        threads=options.threads,
        temp_directory=options.temp_directory,
    ) as connection:
        table = open_table(
            source, connection, what="the log", table=options.table, text_columns=keys
        )
        columns = resolve_columns(columns, table.columns, table.name)
        features = _features_within(table, columns, options)
        coder, _ = read_sessions(
            table,
            columns,
            features,
            first_position=options.first_position,
            progress=options.progress,
        )
        compactor = coder.compactor
        problems = [
            _problem(kind, count, row, table, columns, features.names)
            for kind, count, row in compactor.problems.found(compactor.n_sessions)
        ]
        if not coder.n_rows:
            problems = [Problem(Kind.EMPTY, 1, None, table.name)]
        valid = compactor.n_sessions - compactor.n_left_out
        impressions = coder.impressions() if valid else None
    if impressions is not None:
        if options.features is not None and options.feature_columns is None:
            impressions, found = attach_features(impressions, options.features, columns, options)
            problems += found
        if not impressions.n_clicks:
            problems.append(Problem(Kind.NO_CLICK, 1, columns.click, table.name))
    return LogReading(
        source=table.name,
        n_rows=coder.n_rows,
        n_sessions=compactor.n_sessions,
        n_left_out=compactor.n_left_out,
        problems=tuple(sorted(problems, key=lambda problem: problem.kind)),
        impressions=impressions,
    )


def _features_within(table: SourceTable, columns: Columns, options: LogOptions) -> FeatureColumns:
    """The features within the log itself; none where they come from a table of their own."""
    names = options.feature_columns
    if options.features is not None and names is None:
        return FeatureColumns()
    return choose_features(
        table,
        taken=columns.used,
        names=names,
        categorical=options.categorical,
        ignore=options.ignore,
    )


def _problem(
    kind: Kind,
    count: int,
    row: int,
    table: SourceTable,
    columns: Columns,
    features: Sequence[str],
) -> Problem:
    """One kind of problem with its first row as an example."""
    role = kind.role
    shown = [columns.session]
    if role == "feature":
        shown += features
    elif role is not None:
        shown.append(getattr(columns, role))
    example = table.first_row(f"unskew_row = {row}", list(dict.fromkeys(shown)))
    values = example.values if example else {}
    column = shown[-1]
    if role == "feature":
        column = next((n for n in features if values.get(n) in (np.inf, -np.inf)), column)
    session = values.get(columns.session)
    details = [f"session {session!r}"] if role != "session" else []
    details.append(f"{column} {values.get(column)!r}")
    return Problem(kind, count, column, f"{table.where(row)} ({', '.join(details)})")


def read_labels(
    source: TableLike,
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
    if isinstance(source, str | os.PathLike) and is_letor(source):
        return read_letor(source, n_features=n_features)
    with connect() as connection:
        opened = open_table(
            source, connection, what="the labels", table=table, text_columns=[query, doc]
        )
        require_columns(opened, {"query": query, "relevance": relevance})
        roles = {"query": query, "doc": doc, "relevance": relevance}
        present = {role: name for role, name in roles.items() if name in opened.columns}
        chosen = choose_features(
            opened,
            taken=list(present.values()),
            names=features,
            categorical=categorical,
            ignore=ignore,
        )
        keys = {role: present.get(role) for role in ("query", "doc")}
        select = select_sql(opened, keys, {"relevance": relevance}, chosen)
        batches = list(opened.scan(", ".join(select)))
    if not sum(batch.num_rows for batch in batches):
        raise DataError(f"{opened.name}: there is not a single row")
    rows = pa.concat_batches(batches)
    for role, name in present.items():
        if rows.column(role).null_count:
            row = int(np.flatnonzero(np.asarray(rows.column(role).is_null()))[0])
            raise DataError(
                f"{opened.where(row)}: column {name!r} is null. Remedy: fill it in, or leave such "
                "rows out."
            )
    return LabelledData.from_rows(
        chosen.features(rows),
        np.asarray(rows.column("relevance"), dtype=np.float64),
        _keys(rows, "query", opened),
        _keys(rows, "doc", opened) if "doc" in present else None,
    )


def _keys(rows: pa.RecordBatch, name: str, table: SourceTable) -> npt.NDArray[Any]:
    coder = KeyCoder(from_text=table.from_text)
    return coder.ranked(coder.encode(rows.column(name)))[0]
