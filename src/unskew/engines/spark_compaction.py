"""Compaction on Spark: sessions are compacted where they lie, and the pieces of a query added up.

First, Spark brings the rows of each session together and sorts them; every partition streams through
the same `Compactor` as on one machine and gives pieces of Impressions, one for each part. Then the
pieces of a part, and the rows of the features table for its queries, meet in one task, which adds the
pieces up, joins the features and writes the part. A query with most of the sessions is compacted in as
many pieces as there are partitions. The driver sees nothing but the counts of the parts.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.engines.spark_session import spark_reason
from unskew.engines.spark_table import (
    SparkTable,
    key_column,
    log_columns,
    part_column,
    resolved,
    spark_name,
)
from unskew.errors import DataError, EngineError, UnskewError
from unskew.log.attach import attach_features
from unskew.log.coding import SessionCoder
from unskew.log.columns import FeatureColumns, require_columns
from unskew.log.impressions import Impressions
from unskew.log.merging import cut_by_query, merge
from unskew.log.parts import Parts, WrittenPart, parts_writer, write_part
from unskew.log.read import LogOptions
from unskew.log.schema import Columns, Kind, Problem
from unskew.log.sessions import add_sorted_sessions
from unskew.places import Place

_PIECE, _FEATURES = 0, 1
_NO_PART = -1
_BATCH_ROWS = 2**17
# So many pieces of a part are held before they are added up.
_PIECES_HELD = 32
_TOLD = "part int, kind int, data binary"


def compact_spark(frame: Any, out: Place, n_parts: int, options: LogOptions) -> Parts:
    """Compact a DataFrame of clicks into parts, and its features with them."""
    table = SparkTable.of(frame, "the log")
    columns, features = resolved(table, options)
    log = frame.select(*log_columns(frame, columns, features))
    sorted_log = log.repartition("session").sortWithinPartitions("session", "position")
    session_task = _compact_sessions(features, options.first_position, n_parts, columns)
    pieces = sorted_log.mapInArrow(session_task, _TOLD)
    with parts_writer(out) as writer:
        joined, schema = _with_features(pieces, columns, options, n_parts)
        task = _write_parts(writer.staging, writer.folder(0).name, schema, columns, options)
        placed = _one_part_a_task(joined, n_parts).sortWithinPartitions("part", "kind")
        try:
            rows = placed.mapInArrow(task, "told binary").collect()
        except Exception as error:
            raise EngineError(f"Spark could not compact the log ({spark_reason(error)})") from error
        told = [pickle.loads(row["told"]) for row in rows]  # noqa: S301
        _raise_problems(told, table.name)
        written = sorted(
            (one for one in told if isinstance(one, WrittenPart)), key=lambda one: one.entry.name
        )
        if not written:
            raise DataError(Problem(Kind.EMPTY, 1, None, table.name).message)
        if not sum(one.entry.counts["clicks"] for one in written):
            raise DataError(Problem(Kind.NO_CLICK, 1, columns.click, table.name).message)
        for one in written:
            writer.take(one)
    return Parts.open(out)


def _with_features(
    pieces: Any, columns: Columns, options: LogOptions, n_parts: int
) -> tuple[Any, pa.Schema | None]:
    """The pieces and, below them, the rows of the features table, each with its part."""
    from pyspark.sql import functions as f

    source = options.features
    if source is None or options.feature_columns is not None:
        return pieces, None
    table = SparkTable.of(source, "the features table")
    require_columns(table, {"query": columns.query, "doc": columns.doc})
    keys = {columns.query, columns.doc}
    fields = [
        (key_column(source, name) if name in keys else f.col(spark_name(name))).alias(name)
        for name in source.columns
        if name in keys or name not in options.ignore
    ]
    rows = source.select(*fields)
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(rows.schema)
    part = part_column(f.col(spark_name(columns.query)), n_parts)
    feature_rows = rows.select(
        # A row without a query belongs nowhere: the first part reports it.
        f.coalesce(part, f.lit(0)).alias("part"), f.lit(_FEATURES).alias("kind"),
        f.lit(None).cast("binary").alias("data"), f.struct("*").alias("features"),
    )  # fmt: skip
    empty = f.lit(None).cast(feature_rows.schema["features"].dataType)
    return pieces.withColumn("features", empty).unionByName(feature_rows), schema


def _one_part_a_task(frame: Any, n_parts: int) -> Any:
    """The rows of a part in one task; problems, which have no part, with the first."""
    from pyspark.sql import functions as f

    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(n_parts, f.greatest(f.col("part"), f.lit(0)))
    return frame.repartition(n_parts, "part")


def part_of(queries: npt.NDArray[Any], n_parts: int) -> npt.NDArray[np.int64]:
    """The part of each query."""
    texts = (str(key).encode("utf-8", "surrogatepass") for key in queries.tolist())
    return np.array([zlib.crc32(text) % n_parts for text in texts], dtype=np.int64)


# The first stage: sessions become pieces ------------------------------------------------------------


class _WatchingCoder(SessionCoder):
    """A coder that remembers the first row of each kind of problem while it has the row at hand."""

    def __init__(self, features: FeatureColumns, columns: Columns, position_shift: int) -> None:
        super().__init__(features, position_shift=position_shift)
        self.examples: dict[Kind, str] = {}
        self._columns, self._names = columns, features.names

    def add(
        self,
        batch: pa.RecordBatch,
        starts: npt.NDArray[np.int64],
        features: npt.NDArray[np.floating] | None,
        row: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Take in whole sessions, and note what is wrong with them."""
        super().add(batch, starts, features, row)
        problems = self.compactor.problems
        assert row is not None, "rows are numbered"  # noqa: S101
        for kind in Kind:
            if problems.counts[kind] and kind not in self.examples:
                at = int(np.flatnonzero(row == problems.first_row[kind])[0])
                self.examples[kind] = self._example(kind, batch, features, at)

    def _example(self, kind: Kind, batch: pa.RecordBatch, features: Any, at: int) -> str:
        session = batch.column("session")[at].as_py()
        if kind.role == "feature":
            name = next(n for n, v in zip(self._names, features[at], strict=True) if np.isinf(v))
            return f"session {session!r}, {name} {float('inf')!r}"
        role = str(kind.role)
        value = batch.column(role)[at].as_py()
        shown = f"{getattr(self._columns, role)} {value!r}"
        return shown if role == "session" else f"session {session!r}, {shown}"


def _compact_sessions(
    features: FeatureColumns, first_position: int, n_parts: int, columns: Columns
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What every task of the first stage does."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        coder = _WatchingCoder(features, columns, 1 - first_position)
        add_sorted_sessions(_numbered(batches), coder, features)
        compactor = coder.compactor
        for kind, count, _ in compactor.problems.found(compactor.n_sessions):
            column = None if kind.role in (None, "feature") else getattr(columns, str(kind.role))
            found = Problem(kind, count, column, coder.examples.get(kind, ""))
            yield _row(_NO_PART, _PIECE, found)
        data = coder.take_out()
        if data is not None:
            numbers, group = np.unique(part_of(data.queries, n_parts), return_inverse=True)
            cuts = cut_by_query(data, group, len(numbers))
            for number, cut in zip(numbers.tolist(), cuts, strict=True):
                yield _row(number, _PIECE, cut)

    return run


def _numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Larger batches, with a number for every row."""
    held: list[pa.RecordBatch] = []
    n, before = 0, 0

    def joined() -> pa.RecordBatch:
        rows = pa.concat_batches(held)
        columns = [_plain(column) for column in rows.columns]
        number = pa.array(np.arange(before, before + rows.num_rows))
        return pa.RecordBatch.from_arrays([*columns, number], [*rows.schema.names, "row"])

    for batch in batches:
        held.append(batch)
        n += batch.num_rows
        if n >= _BATCH_ROWS:
            yield joined()
            before, n, held = before + n, 0, []
    if n:
        yield joined()


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column


def _row(part: int, kind: int, content: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "part": pa.array([part], pa.int32()),
            "kind": pa.array([kind], pa.int32()),
            "data": pa.array([pickle.dumps(content)], pa.binary()),
        }
    )


# The second stage: pieces become parts --------------------------------------------------------------


class _PartBuilder:
    """The pieces and features of one part, until it is written."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._pieces: list[Impressions] = []
        self._features: list[pa.RecordBatch] = []

    def add(self, piece: Impressions) -> None:
        self._pieces.append(piece)
        if len(self._pieces) >= _PIECES_HELD:
            self._pieces = [merge(self._pieces)]

    def add_features(self, rows: pa.RecordBatch) -> None:
        self._features.append(rows)

    def finish(
        self, folder: Place, schema: pa.Schema | None, columns: Columns, options: LogOptions
    ) -> list[Any]:
        """Write the part; returns what there is to tell of it."""
        if not self._pieces:
            return []
        data = merge(self._pieces).with_gains(options.gains)
        if schema is None:
            return [write_part(data, folder)]
        rows = pa.Table.from_batches(self._features, schema)
        ignored = replace(options, ignore=(), progress=False)
        attached = attach_features(data, rows, columns, ignored)
        data, problems = attached.impressions, attached.problems
        told: list[Any] = [
            replace(
                one, where=one.where.partition(" (pyarrow Table)")[2].partition("(")[2].rstrip(")")
            )
            for one in problems
        ]
        return told or [write_part(data, folder)]


def _write_parts(
    staging: Place, first_name: str, schema: pa.Schema | None, columns: Columns, options: LogOptions
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What every task of the second stage does; its rows are sorted by part."""
    token = first_name.rpartition("-")[2]
    # The features come as rows: the task must not carry the table itself.
    options = replace(options, features=None)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        attempt = context.taskAttemptId() if context is not None else 0
        try:
            _check_seen(staging)
            for builder in _built(batches, schema):
                if isinstance(builder, Problem):
                    yield _told(builder)
                    continue
                folder = staging / f"part-{builder.number:05d}-{token}-{attempt}"
                for one in builder.finish(folder, schema, columns, options):
                    yield _told(one)
        except UnskewError as error:
            yield _told(error)

    return run


def _check_seen(staging: Place) -> None:
    if not staging.is_dir():
        raise EngineError(
            f"an executor does not see {staging.parent}: give a folder that all machines share, or a URI"
        )


def _built(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema | None
) -> Iterator[_PartBuilder | Problem]:
    """The parts of a task, each once all its pieces and features are there."""
    builder: _PartBuilder | None = None
    for batch in batches:
        numbers, kinds = batch.column("part").to_numpy(), batch.column("kind").to_numpy()
        ends = np.append(np.flatnonzero(np.diff(numbers) | np.diff(kinds)) + 1, len(numbers))
        start = 0
        for end in ends.tolist():
            rows = batch.slice(start, end - start)
            start = end
            if not rows.num_rows:
                continue
            number = int(numbers[end - 1])
            if number == _NO_PART:
                yield from (pickle.loads(one.as_py()) for one in rows.column("data"))  # noqa: S301
                continue
            if builder is None or builder.number != number:
                if builder is not None:
                    yield builder
                builder = _PartBuilder(number)
            _take(builder, rows, int(kinds[end - 1]), schema)
    if builder is not None:
        yield builder


def _take(builder: _PartBuilder, rows: pa.RecordBatch, kind: int, schema: pa.Schema | None) -> None:
    if kind == _PIECE:
        for one in rows.column("data"):
            builder.add(pickle.loads(one.as_py()))  # noqa: S301
    elif schema is not None:
        columns = rows.column("features").flatten()
        plain = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
        builder.add_features(pa.RecordBatch.from_arrays(plain, schema=schema))


def _told(content: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"told": pa.array([pickle.dumps(content)], pa.binary())})


def _raise_problems(told: list[Any], name: str) -> None:
    """The first kind of problem, with the counts of all tasks and some of its rows."""
    for error in told:
        if isinstance(error, UnskewError):
            raise error
    problems = [one for one in told if isinstance(one, Problem)]
    if not problems:
        return
    first = min(problems, key=lambda one: one.kind).kind
    same = sorted((one for one in problems if one.kind == first), key=lambda one: one.where)
    rows = "; ".join([one.where for one in same if one.where][:3])
    total = Problem(first, sum(one.count for one in same), same[0].column, f"{name} ({rows})")
    more = len({one.kind for one in problems}) - 1
    hint = f" ({more} more kinds of problems)" if more else ""
    raise DataError(total.message + hint)
