"""`unskew compact`: a click log becomes Impressions on disk."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from unskew.cli.console import say, show
from unskew.cli.reading import Log, LogInput
from unskew.cli.writing import FolderOut, check_folder
from unskew.errors import UsageError
from unskew.places import Place, is_saved


def run(
    log: Log,
    out: FolderOut,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1, help="Divide the queries over so many parts, to train beyond one machine."
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="spark: LOG is a table of Spark, or a path that it reads as Parquet."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="The master of Spark, such as spark://host:7077.")
    ] = None,
    *,
    reading: LogInput,
) -> None:
    """Compress a click log into documents, pages and patterns, without loss.

    The folder holds Parquet files. Every command that takes a log takes the folder as well.
    """
    if engine is not None or master is not None:
        _on_spark(log, out, parts or 16, engine, master, reading)
        return
    if is_saved(log):
        raise UsageError(f"{log} is compact already")
    kind = "impressions" if parts is None else "impressions-parts"
    check_folder("--out", out, [log, reading.features], kind)
    if parts is None:
        data = reading.impressions(log)
        data.save(out)
        show(f"{data}\nsaved to ", (str(out), "bold"))
    else:
        _in_parts(log, out, parts, reading)


def _in_parts(log: str, out: Place, parts: int, reading: LogInput) -> None:
    """Compact on this machine with memory bounded by a part."""
    from unskew.log.into_parts import compact_into_parts
    from unskew.log.parts import Parts

    found = compact_into_parts(log, reading.options(), out, parts)
    for note in found.notes:
        say(f"{found.source}: {note}")
    show(f"{Parts.open(out)}\nsaved to ", (str(out), "bold"), f" in {parts} parts")


def _on_spark(
    log: str, out: Place, parts: int, engine: str | None, master: str | None, reading: LogInput
) -> None:
    """Compact where the log lives."""
    from unskew.engines.compaction import compact
    from unskew.engines.spark_session import read_frame, spark_session

    if engine != "spark":
        raise UsageError(f"--engine must be spark, got {engine!r}; without it one machine compacts")
    check_folder("--out", out, [reading.features], "impressions-parts")
    session = spark_session(None, master)
    options = reading.options()
    features = None if reading.features is None else read_frame(session, reading.features)
    found = compact(
        read_frame(session, log), out, parts=parts, features=features,
        categorical=options.categorical, ignore=options.ignore,
        first_position=options.first_position, **asdict(options.columns),
    )  # fmt: skip
    show(f"{found}\nsaved to ", (str(out), "bold"))
