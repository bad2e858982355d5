"""Reading: any click log becomes Impressions, any table of grades becomes LabelledData.

A log is read to its end in one pass that counts every kind of problem; `read_log` raises the first of
them, `inspection.py` lists them all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.errors import DataError, UsageError, warn
from unskew.log.attach import Attached, attach_features
from unskew.log.coding import SessionCoder
from unskew.log.columns import FeatureColumns, choose_features, require_columns, select_sql
from unskew.log.feature_list import feature_list
from unskew.log.impressions import Impressions
from unskew.log.keys import KeyCoder
from unskew.log.labelled import LabelledData
from unskew.log.letor import is_letor, read_letor
from unskew.log.opening import open_log
from unskew.log.over_time import Period, over_time
from unskew.log.schema import Columns, Kind, Problem, resolve_columns
from unskew.log.sessions import read_sessions
from unskew.log.skipping import SESSION_KINDS, skipped_note, without_documents
from unskew.log.sources import SourceTable, TableLike, connect, open_table
from unskew.log.spilling import Spill


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
    events: Any = None
    grades: Mapping[Any, Any] | None = None
    gains: Sequence[float] | None = None
    feature_names: Sequence[str] | None = None
    skip_bad_sessions: bool = False
    over_time: bool = False

    def __post_init__(self) -> None:
        if self.first_position not in (0, 1):
            raise UsageError(f"first_position must be 0 or 1, got {self.first_position!r}")
        for option in ("categorical", "ignore"):
            if isinstance(getattr(self, option), str):
                raise UsageError(f"{option} must be a list of columns, got a single text")
        if self.feature_names is not None and self.feature_columns is not None:
            raise UsageError("features names columns already: leave feature_names out")

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
    problems are counted in ``n_left_out``; with ``skip_bad_sessions`` their problems are told in the
    ``notes``, beside whatever else is worth knowing. ``periods`` is how the log changed over time.
    """

    source: str
    n_rows: int
    n_sessions: int
    n_left_out: int
    problems: tuple[Problem, ...]
    impressions: Impressions | None
    notes: tuple[str, ...] = ()
    periods: tuple[Period, ...] = ()


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
    events: TableLike | None = None,
    grades: Mapping[Any, int | None] | None = None,
    gains: Sequence[float] | None = None,
    feature_names: str | os.PathLike[str] | Sequence[str] | None = None,
    skip_bad_sessions: bool = False,
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
    events
        A second table with what was clicked, joined by session and doc (or position); or the events of
        User Behavior Insights, where ``source`` has the queries.
    grades
        What types of events are worth: ``{"click": 1, "cart": 2, "hover": None}``, None for those that
        do not count. The types stand in a column of ``events``, in the click column, or are columns of
        0 and 1 themselves.
    gains
        What the grades 1, 2, … are worth in training, ascending; by default ``2 ** grade - 1``.
    feature_names
        The only features to use, in this order: a list, a text file with one name a line, or the
        folder of a saved model.
    skip_bad_sessions
        Leave out sessions with problems, and say how many of what in a warning.
    memory_limit, threads, temp_directory
        Limits for DuckDB, such as ``"1GB"``; what does not fit is spilled to the temporary folder.
    progress
        Show a progress bar.

    Raises
    ------
    DataError
        If anything is wrong with the log: the message names the file, the column, the first offending
        row, what was required and what to do.

    Examples
    --------
    >>> import unskew
    >>> log = {
    ...     "session": [1, 1, 2, 2], "query": ["tea"] * 4, "doc": ["green", "black"] * 2,
    ...     "position": [1, 2, 1, 2], "click": [1, 0, 0, 1], "price": [3.0, 4.0, 3.0, 4.0],
    ... }
    >>> data = unskew.read_log(log)
    >>> data.n_sessions, data.n_clicks, data.features.names
    (2, 2, ('price',))
    >>> clicks = {"session": [1, 2], "doc": ["green", "black"], "event": ["click", "cart"]}
    >>> shown = {name: values for name, values in log.items() if name != "click"}
    >>> data = unskew.read_log(shown, events=clicks, grades={"click": 1, "cart": 2}, gains=[1, 10])
    >>> [session.grade for session in data.sessions()]
    [(1,), (2,)]

    """
    columns = Columns(session, query, doc, position, click, weight, context, time)
    options = LogOptions(
        columns, features, categorical, ignore, table, first_position, memory_limit, threads,
        temp_directory, progress, events, grades, gains, feature_list(feature_names),
        skip_bad_sessions,
    )  # fmt: skip
    reading = read_with_problems(source, options)
    if reading.problems or reading.impressions is None:
        raise DataError(reading.problems[0].message)
    for note in reading.notes:
        warn(f"{reading.source}: {note}")
    return reading.impressions


def read_with_problems(source: TableLike, options: LogOptions) -> LogReading:
    """Read a log to its end, counting every kind of problem instead of stopping at the first."""
    return finished(read_rows(source, options), options)


@dataclass(frozen=True, eq=False)
class RowsRead:
    """The rows of a log, read to their end, before the features of another table are joined.

    ``coder`` has the valid sessions, or what a `Spill` did not take of them.
    """

    table: SourceTable
    columns: Columns
    features: FeatureColumns
    coder: SessionCoder
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    periods: tuple[Period, ...]


def read_rows(source: TableLike, options: LogOptions, spill: Spill | None = None) -> RowsRead:
    """Read the rows of a log to their end; with ``spill``, memory is bounded."""
    with connect(
        memory_limit=options.memory_limit,
        threads=options.threads,
        temp_directory=options.temp_directory,
    ) as connection:
        opened = open_log(source, options, connection)
        table, notes = opened.table, opened.notes
        columns = resolve_columns(options.columns, table.columns, table.name)
        features = _features_within(table, columns, options)
        coder, _ = read_sessions(
            table,
            columns,
            features,
            first_position=options.first_position,
            progress=options.progress,
            spill=spill,
        )
        compactor = coder.compactor
        problems = [
            _problem(kind, count, row, table, columns, features.names)
            for kind, count, row in compactor.problems.found(compactor.n_sessions)
        ]
        if not coder.n_rows:
            problems = [Problem(Kind.EMPTY, 1, None, table.name)]
        periods = over_time(table, columns) if options.over_time and coder.n_rows else ()
    return RowsRead(table, columns, features, coder, tuple(problems), notes, periods)


def joined(data: Impressions, rows: RowsRead, options: LogOptions) -> Attached:
    """The sessions with the features of the table that ``options`` name, if they name one."""
    if options.features is not None and options.feature_columns is None:
        return attach_features(
            data, options.features, rows.columns, options, log_columns=rows.table.columns
        )
    bad = np.isinf(data.features.values).any(axis=1)
    return Attached(data, [], rows.features.index, bad)


def finished(rows: RowsRead, options: LogOptions) -> LogReading:
    """The reading of a log that was held in memory."""
    compactor = rows.coder.compactor
    impressions = rows.coder.take_out()
    problems, notes = list(rows.problems), rows.notes
    index, bad = rows.features.index, None
    if impressions is not None:
        impressions, more, index, bad = joined(impressions, rows, options)
        problems += more
        if impressions.n_clicks:
            impressions = impressions.with_gains(options.gains)
        else:
            problems.append(Problem(Kind.NO_CLICK, 1, rows.columns.click, rows.table.name))
    if index:
        notes += (numbering_note(index),)
    reading = LogReading(
        source=rows.table.name,
        n_rows=rows.coder.n_rows,
        n_sessions=compactor.n_sessions,
        n_left_out=compactor.n_left_out,
        problems=tuple(sorted(problems, key=lambda problem: problem.kind)),
        impressions=impressions,
        notes=notes,
        periods=rows.periods,
    )
    return _skipped(reading, bad) if options.skip_bad_sessions else reading


def numbering_note(index: Sequence[str]) -> str:
    """What is said of columns that are no features because nobody gave them a name."""
    return (
        "left out of the features, because they are an index or have no name: "
        f"{', '.join(map(repr, index))}"
    )


def _skipped(reading: LogReading, bad: npt.NDArray[np.bool_] | None) -> LogReading:
    """The reading without its bad sessions: what was wrong with them becomes a note.

    ``bad`` marks documents that no session may show. What cannot be mended by leaving sessions out
    stays a problem.
    """
    data, more = reading.impressions, 0
    if data is not None and bad is not None and bad.any():
        data, more = without_documents(data, bad)
    return mended(replace(reading, impressions=data), more)


def mended(reading: LogReading, more: int) -> LogReading:
    """The reading without the problems that leaving sessions out has mended, ``more`` of them late."""
    left_out = reading.n_left_out + more
    left = [problem for problem in reading.problems if problem.kind in SESSION_KINDS]
    if not left or left_out == reading.n_sessions:
        return reading
    note = skipped_note(left, left_out, reading.n_sessions)
    stays = tuple(problem for problem in reading.problems if problem.kind not in SESSION_KINDS)
    return replace(reading, n_left_out=left_out, problems=stays, notes=(*reading.notes, note))


def _features_within(table: SourceTable, columns: Columns, options: LogOptions) -> FeatureColumns:
    """The features within the log itself; none where they come from a table of their own."""
    own = options.feature_columns
    if options.features is not None and own is None:
        return FeatureColumns()
    return choose_features(
        table,
        taken=columns.used,
        names=options.feature_names if own is None else own,
        categorical=options.categorical,
        ignore=[name for name in options.ignore if name not in (options.grades or ())],
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

    Examples
    --------
    >>> import unskew
    >>> table = {"query": [1, 1, 2], "relevance": [2, 0, 1], "bm25": [3.5, 0.5, 2.0]}
    >>> labels = unskew.read_labels(table)
    >>> labels.n_queries, len(labels)
    (2, 3)

    """
    if isinstance(source, str | os.PathLike) and is_letor(source):
        return read_letor(source, n_features=n_features)
    with connect() as connection:
        opened = open_table(
            source,
            connection,
            what="the labels",
            table=table,
            text_columns=[query, doc, *categorical],
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
