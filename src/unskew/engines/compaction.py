"""`unskew.compact`: a click log becomes parts, wherever it lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unskew.errors import UsageError, warn
from unskew.log.into_parts import compact_into_parts
from unskew.log.parts import Parts
from unskew.log.read import LogOptions
from unskew.log.schema import Columns
from unskew.places import PlaceLike, absolute, place_of


def is_spark_frame(source: Any) -> bool:
    """Whether this is a Spark DataFrame, classic or Connect."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame"


def compact(
    source: Any,
    out: PlaceLike,
    *,
    parts: int = 16,
    session: str = "session",
    query: str = "query",
    doc: str = "doc",
    position: str = "position",
    click: str = "click",
    weight: str | None = None,
    context: str | None = None,
    time: str | None = None,
    features: Any = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    first_position: int = 1,
    memory_limit: str | None = None,
    progress: bool = False,
) -> Parts:
    """Compact a click log into a folder or URI of parts, on Spark if it is a Spark DataFrame.

    ``source`` and ``features`` are Spark DataFrames, or anything that `unskew.read_log` reads; the
    columns mean what they mean there. A log on Spark is compacted by the executors, which write the
    parts: ``out`` must be a URI, or a folder that they and this program see under the same path. A log
    on this machine is compacted within bounded memory: what exceeds 768 MiB of distinct pages
    and patterns (a quarter of ``memory_limit``, where that is less) is written beside ``out``, or among
    the temporary files if that is a URI, and added up part by part. ``memory_limit`` is DuckDB's as
    well.

    Examples
    --------
    >>> import unskew
    >>> log = {
    ...     "session": [1, 1, 2, 2], "query": ["tea"] * 4, "doc": ["green", "black"] * 2,
    ...     "position": [1, 2, 1, 2], "click": [1, 0, 0, 1], "price": [3.0, 4.0, 3.0, 4.0],
    ... }
    >>> parts = unskew.compact(log, out="parts", parts=2)
    >>> parts.whole().n_sessions
    2

    """
    options = LogOptions(
        columns=Columns(session, query, doc, position, click, weight, context, time),
        features=features, categorical=categorical, ignore=ignore, first_position=first_position,
        progress=progress, memory_limit=memory_limit,
    )  # fmt: skip
    if parts < 1:
        raise UsageError(f"parts must be a whole number, 1 or higher, got {parts}")
    folder = absolute(place_of(out))
    if is_spark_frame(source):
        if (
            features is not None
            and options.feature_columns is None
            and not is_spark_frame(features)
        ):
            raise UsageError(
                "features must be a Spark DataFrame like the log, or columns of the log, got "
                f"{type(features).__name__}"
            )
        from unskew.engines.spark_compaction import compact_spark

        return compact_spark(source, folder, parts, options)
    for note in compact_into_parts(source, options, folder, parts).notes:
        warn(note)
    return Parts.open(folder)
