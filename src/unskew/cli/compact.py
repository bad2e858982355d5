"""`unskew compact`: a click log becomes Impressions on disk."""

from __future__ import annotations

from typing import Annotated

import typer

from unskew.cli import options as o
from unskew.cli.console import output


def run(
    log: o.Log,
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="The folder to write.")],
    session: o.Session = "session",
    query: o.Query = "query",
    doc: o.Doc = "doc",
    position: o.Position = "position",
    click: o.Click = "click",
    weight: o.Weight = None,
    context: o.Context = None,
    time: o.Time = None,
    features: o.FeaturesTable = None,
    categorical: o.Categorical = None,
    ignore: o.Ignore = None,
    table: o.TableName = None,
    first_position: o.FirstPosition = 1,
    memory_limit: o.MemoryLimit = None,
    threads: o.Threads = None,
    quiet: o.Quiet = False,
) -> None:
    """Compress a click log into documents, pages and patterns, without loss.

    The folder holds Parquet files. Every command that takes a log takes the folder as well.
    """
    from unskew.errors import UsageError

    if o.is_saved(log):
        raise UsageError(f"{log} is compact already")
    data = o.open_log(log, locals())
    data.save(out)
    output.print(f"{data}\nsaved to [bold]{out}[/]", highlight=False, soft_wrap=True)
