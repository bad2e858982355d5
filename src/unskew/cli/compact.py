"""`unskew compact`: a click log becomes Impressions on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unskew.cli.console import show
from unskew.cli.reading import Log, LogInput, is_saved
from unskew.cli.writing import check_folder
from unskew.errors import UsageError


def run(
    log: Log,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to write.")],
    parts: Annotated[
        int | None,
        typer.Option(
            min=1, help="Divide the queries over so many parts, to train beyond one machine."
        ),
    ] = None,
    *,
    reading: LogInput,
) -> None:
    """Compress a click log into documents, pages and patterns, without loss.

    The folder holds Parquet files. Every command that takes a log takes the folder as well.
    """
    if is_saved(log):
        raise UsageError(f"{log} is compact already")
    kind = "impressions" if parts is None else "impressions-parts"
    check_folder("--out", out, [log, reading.features], kind)
    data = reading.impressions(log)
    data.save(out, parts=parts)
    show(f"{data}\nsaved to ", (str(out), "bold"), "" if parts is None else f" in {parts} parts")
