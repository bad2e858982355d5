"""`unskew interleave`: mix two rankings, and read who won."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from unskew.cli import reading as o
from unskew.cli.choices import command, commands_of
from unskew.cli.console import AsJson, ends, errors, output, present, show
from unskew.cli.groups import refuse_idle
from unskew.cli.writing import Overwrite, check_table_output, write_table

if TYPE_CHECKING:
    from unskew.online.preference import InterleavingReading, Preference


commands = commands_of("Interleave two rankings, and read from the clicks who won.")


@command(commands, "mix")
def mix(
    a: Annotated[str, typer.Argument(metavar="A", help="Rankings: query, doc, rank or score.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Rankings of the same queries.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The mixed lists: .parquet or .csv.")],
    method: Annotated[
        str, typer.Option(help="team-draft, competitive-pairs or probabilistic.")
    ] = "team-draft",
    length: Annotated[int | None, typer.Option(help="Documents of a list at most.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same lists.")] = 0,
    query: o.Query = "query",
    doc: o.Doc = "doc",
    rank: Annotated[str | None, typer.Option(help="The column of ranks.")] = None,
    score: Annotated[str | None, typer.Option(help="Or the column of scores.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Mix two rankings into one table: query, position, doc, team and the credit of a click."""
    from unskew.online.rankings import mix_rankings

    check_table_output(out, [a, b], overwrite=overwrite)
    mixed = mix_rankings(
        a, b, method=method, length=length, seed=seed, query=query, doc=doc, rank=rank, score=score
    )
    write_table(mixed, out)
    teams = mixed["team"].to_pylist()
    shared = teams.count(None)
    nobody = f", {shared:,} of nobody" if shared else ""
    show(
        f"{out}: {len(set(mixed['query'].to_pylist())):,} lists, {teams.count('A'):,} documents "
        f"of A, {teams.count('B'):,} of B{nobody}",
        to=errors,
    )


@command(commands, "read")
def read(
    log: Annotated[str, typer.Argument(metavar="LOG", help="Clicks on the mixed lists.")],
    user: Annotated[str | None, typer.Option(help="The user column.")] = None,
    mixed: Annotated[
        str | None, typer.Option(help="What 'mix' wrote, for a log without teams.")
    ] = None,
    session: o.Session = "session",
    click: o.Click = "click",
    team: Annotated[str, typer.Option(help="The team column: A, B or empty.")] = "team",
    credit: Annotated[
        str | None, typer.Option(help="The column of what a click says, from -1 (B) to 1 (A).")
    ] = None,
    query: o.Query = "query",
    doc: o.Doc = "doc",
    level: Annotated[float, typer.Option(help="The confidence level.")] = 0.95,
    table: o.TableName = None,
    as_json: AsJson = False,
) -> None:
    """Say which ranker the clicks prefer, per impression and per user, with intervals."""
    from unskew.online.preference import read_interleaving

    columns = {"--query": query != "query", "--doc": doc != "doc"}
    if mixed is None:
        refuse_idle("it goes with --mixed", columns)
    else:
        refuse_idle("the teams are those of --mixed", {"--team": team != "team"})
    found = read_interleaving(
        log, session=session, click=click, team=team, user=user, credit=credit, mixed=mixed,
        query=query, doc=doc, level=level, table=table,
    )  # fmt: skip
    present(found, _show, as_json=as_json)


def _show(found: InterleavingReading) -> None:
    show((found.sentence, "bold green" if found.winner else ""))
    table = Table("of", "prefer A", "prefer B", "neither", "share of A", "interval", "p")
    rows: list[tuple[str, Preference | None]] = [
        ("impressions", found.impressions), ("users", found.users),
    ]  # fmt: skip
    for name, row in rows:
        if row is not None:
            share = "–" if row.share_a is None else f"{row.share_a:.2%}"
            p = "–" if row.p is None else f"{row.p:.3g}"
            table.add_row(
                name, f"{row.wins_a:,}", f"{row.wins_b:,}", f"{row.ties:,}", share,
                ends(row.interval, ".2%"), p,
            )  # fmt: skip
    output.print(table)
    for name, lead in (("impression", found.per_impression), ("pair", found.per_pair)):
        if lead.value is not None and lead.p is not None:
            around = ends(lead.interval, "+.4f")
            text = f"A leads by {lead.value:+.4f} {around} clicks per {name} (p = {lead.p:.3g})"
            show((text, "dim"))
