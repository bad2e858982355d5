"""The options by which every command reads a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from unskew.log.impressions import Impressions
    from unskew.log.read import LogOptions

__all__ = [
    "Categorical",
    "Click",
    "Context",
    "Doc",
    "FeaturesTable",
    "FirstPosition",
    "Ignore",
    "Log",
    "MemoryLimit",
    "Position",
    "Query",
    "Quiet",
    "Session",
    "TableName",
    "Threads",
    "Time",
    "Weight",
    "is_saved",
    "log_options",
    "open_log",
]

_COLUMNS = "Columns of the log"
_READING = "Reading"

Log = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="A click log: Parquet or CSV file, folder, glob, DuckDB database, or a folder that "
        "'unskew compact' wrote.",
    ),
]
Session = Annotated[str, typer.Option(help="The session column.", rich_help_panel=_COLUMNS)]
Query = Annotated[str, typer.Option(help="The query column.", rich_help_panel=_COLUMNS)]
Doc = Annotated[str, typer.Option(help="The document column.", rich_help_panel=_COLUMNS)]
Position = Annotated[
    str, typer.Option(help="The position column, counted from 1.", rich_help_panel=_COLUMNS)
]
Click = Annotated[
    str, typer.Option(help="The click column: 0 or 1, or a grade.", rich_help_panel=_COLUMNS)
]
Weight = Annotated[
    str | None, typer.Option(help="The session weight column.", rich_help_panel=_COLUMNS)
]
Context = Annotated[
    str | None,
    typer.Option(help="The context column: device, layout, …", rich_help_panel=_COLUMNS),
]
Time = Annotated[
    str | None, typer.Option(help="The time column; not a feature.", rich_help_panel=_COLUMNS)
]
FeaturesTable = Annotated[
    str | None,
    typer.Option(
        help="A table of features keyed by query and doc. Without it, the remaining columns of the "
        "log are the features.",
        rich_help_panel=_READING,
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(help="A feature kept as categories (repeatable).", rich_help_panel=_READING),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(help="A column that is no feature (repeatable).", rich_help_panel=_READING),
]
TableName = Annotated[
    str | None,
    typer.Option(help="The table within a DuckDB database file.", rich_help_panel=_READING),
]
FirstPosition = Annotated[
    int,
    typer.Option(help="0 if the first place is written as position 0.", rich_help_panel=_READING),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(help="Memory for DuckDB, such as 1GB; the rest spills.", rich_help_panel=_READING),
]
Threads = Annotated[int | None, typer.Option(help="Threads for DuckDB.", rich_help_panel=_READING)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]


def log_options(given: dict[str, Any]) -> LogOptions:
    """The options of `read_log` from a command's local variables."""
    from unskew.log.read import LogOptions
    from unskew.log.schema import Columns

    roles = ("session", "query", "doc", "position", "click", "weight", "context", "time")
    return LogOptions(
        columns=Columns(**{role: given[role] for role in roles}),
        features=given["features"],
        categorical=given["categorical"] or (),
        ignore=given["ignore"] or (),
        table=given["table"],
        first_position=given["first_position"],
        memory_limit=given["memory_limit"],
        threads=given["threads"],
        progress=not given["quiet"],
    )


def is_saved(log: str) -> bool:
    """Whether a log is a folder that Unskew saved, and not a raw log."""
    from unskew.store import MANIFEST

    return (Path(log) / MANIFEST).is_file()


def open_log(log: str, given: dict[str, Any]) -> Impressions:
    """The Impressions of a raw log, or those that a folder holds."""
    from unskew.errors import DataError
    from unskew.log.read import read_with_problems
    from unskew.log.saved import load

    if is_saved(log):
        return load(log)
    found = read_with_problems(log, log_options(given))
    if found.problems or found.impressions is None:
        more = len(found.problems) - 1
        hint = f" ({more} more kinds of problems: unskew inspect lists them)" if more else ""
        raise DataError(found.problems[0].message + hint)
    return found.impressions
