"""`unskew judge`: assessors compare two rankings side by side; who won."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli.choices import command, commands_of
from unskew.cli.console import AsJson, errors, output, print_json, show
from unskew.cli.writing import Overwrite, check_table_output, write_table

if TYPE_CHECKING:
    from unskew.online.judging.results import Results, SignTest
    from unskew.online.judging.serving import Opened


commands = commands_of("Judge two rankings side by side: a web page for assessors, and who won.")


@command(commands, "serve")
def serve(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A ranking: Parquet or CSV, as unskew rank writes.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The ranking to compare it with.")],
    db: Annotated[
        str, typer.Option(metavar="FILE", help="Where the answers are kept; it is made if absent.")
    ],
    queries: Annotated[
        str | None,
        typer.Option(help="The queries to judge: a line each, or a table. Else all of both."),
    ] = None,
    items: Annotated[
        str | None, typer.Option(help="A table of texts to show: doc, title, snippet, url.")
    ] = None,
    guidelines: Annotated[
        str | None, typer.Option(help="A Markdown file to show beside the lists.")
    ] = None,
    top: Annotated[int, typer.Option(help="Results of a list.", min=1, max=100)] = 5,
    sample: Annotated[
        int | None, typer.Option(help="Judge so many random queries whose lists differ.", min=1)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Draws sides and orders.", min=0, max=2**63 - 1)
    ] = None,
    assessor: Annotated[
        list[str] | None, typer.Option(help="Only these may judge; repeatable. Else any name.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port; 0 for any that is free.", min=0, max=65535)
    ] = 8765,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another name browsers call this server; repeatable.")
    ] = None,
) -> None:
    """Serve a page on which assessors compare two rankings, blind, left and right at random.

    Every answer is on disk before the next question shows. The same command goes on where it was
    stopped.
    """
    from unskew.online.judging.serving import Settings
    from unskew.online.judging.serving import serve as serve_pages

    settings = Settings(
        a=a, b=b, db=db, queries=queries, items=items, guidelines=guidelines, top=top, sample=sample,
        seed=seed, assessors=assessor or (), host=host, port=port, allow_hosts=allow_host or (),
    )  # fmt: skip
    try:
        serve_pages(settings, started=lambda opened: _announce(opened, db))
    except KeyboardInterrupt:
        show(f"stopped; the answers are in {db}: unskew judge results {db}", to=errors)


def _announce(opened: Opened, db: str) -> None:
    study = opened.study
    identical = len(study.questions) - len(study.asked)
    same = (
        f" ({identical:,} more have the same top {study.top} and are not asked)"
        if identical
        else ""
    )
    lines = [f"{len(study.asked):,} queries to judge{same}; answers go to {db}"]
    if opened.unlinked:
        lines.append(
            f"{opened.unlinked:,} addresses are not http or https: shown as text, not linked"
        )
    if not opened.is_local:
        lines.append(
            "warning: this address can be reached from other machines, without encryption, and "
            "whoever reaches it can judge under any name; --assessor limits the names"
        )
    lines.append(f"open {opened.url} (Ctrl-C stops)")
    for line in lines:
        show(line, to=errors)


@command(commands, "results")
def results(
    db: Annotated[str, typer.Argument(metavar="DB", help="The file that serve wrote.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write every judgement: Parquet or CSV."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Show who won: a verdict a query, a sign test with its interval, and the agreement."""
    from unskew.online.judging.results import read_results

    check_table_output(out, [db], overwrite=overwrite)
    found = read_results(db)
    if out is not None:
        write_table(found.to_arrow(), out)
    if as_json:
        print_json(found.to_json())
        return
    _show(found)
    if out is not None:
        show(f"{found.judgements.total():,} judgements written to {out}")


def _show(found: Results) -> None:
    from rich.table import Table

    judged = found.judged
    show((f"{judged.name_a} against {judged.name_b}, top {judged.top}", "bold"))
    table = Table("", "win", "same", "both bad", "loss", "skipped")
    table.add_row("queries", *_cells(found.queries))
    if found.judgements.total() != len(found.verdicts):
        table.add_row("judgements", *_cells(found.judgements))
    per_assessor = found.per_assessor()
    if len(per_assessor) > 1:
        table.add_section()
        for name, counts in per_assessor.items():
            table.add_row(name, *_cells(counts))
    output.print(table)
    for line in _sentences(found):
        show(line)


def _cells(counts: Any) -> list[str]:
    from unskew.online.judging.answers import Outcome

    return [f"{counts[outcome]:,}" for outcome in Outcome]


def _sentences(found: Results) -> list[str]:
    judged, agreement = found.judged, found.agreement
    lines = [f"{len(found.verdicts):,} of {len(judged.asked):,} queries judged"]
    if judged.identical:
        lines[0] += f"; {len(judged.identical):,} more had the same list twice and were not asked"
    if found.test.share is None:
        lines.append("no query has a win or a loss yet")
    else:
        low, high = found.test.ratio_interval
        lines.append(
            f"win/loss ratio {_ratio(found.test.ratio)}, 95% interval {_ratio(low)} to "
            f"{_ratio(high)}; sign test p = {found.test.p:.3g}: {_verdict(found.test)}"
        )
    if agreement.queries and agreement.preference is not None:
        lines.append(
            f"agreement (Krippendorff's alpha) {agreement.preference:.2f} on "
            f"{agreement.queries:,} queries that two or more judged"
        )
    elif agreement.queries:
        lines.append("agreement: all preferences are the same, so alpha is not defined")
    else:
        lines.append("agreement: no query has two assessors yet")
    if found.sides.p < 0.05:
        lines.append(
            f"warning: the left list was preferred {found.sides.win:,} times and the right one "
            f"{found.sides.loss:,} times (p = {found.sides.p:.2g}); sides were drawn at random, so "
            "some assessors may favour a side"
        )
    return lines


def _verdict(test: SignTest) -> str:
    if test.p >= 0.05:
        return "no difference is shown"
    return "A is better" if test.win > test.loss else "B is better"


def _ratio(value: float | None) -> str:
    return "–" if value is None else "∞" if value == float("inf") else f"{value:.2f}"
