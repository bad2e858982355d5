"""`unskew advise`: is a log good enough, for what, by which method, what would make it better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from unskew.cli.console import AsJson, figures, output, present, show
from unskew.cli.reading import Log, LogInput, Shuffled, shuffled_context

if TYPE_CHECKING:
    from unskew.choose.advice import Advice, Contents

# Positions drawn before the rest is summed up in one line.
SHOWN_POSITIONS = 10
_COLOURS = {"yes": "green", "partly": "yellow", "no": "red"}
_TRUST = {"sound": "green", "fragile": "yellow", "unfit": "red"}


def run(
    log: Log,
    shuffled: Shuffled = None,
    resamples: Annotated[
        int, typer.Option(help="Resamples of the log for the intervals; 0 for none.", min=0)
    ] = 50,
    as_json: AsJson = False,
    *,
    reading: LogInput,
) -> None:
    """Say whether a log is good enough, for what, and by which method to train on it.

    Every answer has its evidence: documents that moved, shuffled sessions, features, clicks. The end
    says how sure the answers are, how many sessions would make them surer, and what else would help.
    """
    from unskew.choose.advice import advise

    data = reading.impressions(log)
    found = advise(
        data, shuffled=shuffled_context(data, shuffled), n_resamples=resamples,
        n_jobs=reading.threads, progress=not reading.quiet,
    )  # fmt: skip
    present(found, _tell, as_json=as_json)


def _tell(found: Advice) -> None:
    from unskew.terminal import curves

    show((found.headline, "bold"))
    for use in found.uses:
        show((f"  {use.answer}", _COLOURS[use.answer]), f" – {use.purpose}: {use.reason}")
    show("\n", (f"How to train: {found.method.title}", "bold"))
    show(f"  {found.method.evidence}\n  $ {found.method.command}")
    if found.bias is not None:
        show("\n", (f"Position bias by {found.bias_method}", "bold"))
        drawn = {"t_plus": found.bias.drawn_curves()["t_plus"]}
        show(curves(drawn, spans=found.bias.spans(), rows=SHOWN_POSITIONS))
        for note in found.bias.notes:
            show(note)
    show("\n", ("Estimators of position bias", "bold"))
    output.print(_estimators(found))
    show(("What the log holds", "bold"))
    output.print(_contents(found.contents))
    for one in found.narrowing:
        show(one.sentence)
    for remedy in found.remedies:
        show(("do: ", "bold yellow"), remedy)


def _estimators(found: Advice) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column()
    table.add_column(overflow="fold")
    for one in found.estimators:
        table.add_row(one.method, Text(one.trust, _TRUST[one.trust]), one.reason)
    return table


def _contents(held: Contents) -> Table:
    rows = [
        (f"{held.sessions:,}", f"sessions, {held.sessions_per_query:.1f} a query"),
        (f"{held.clicks:,}", f"clicks, {held.clicks_per_query:.1f} a query"),
        (f"{held.queries:,}", f"queries, {held.clicked_queries:,} of them with a click"),
        (f"{held.repeated_share:.0%}", "of the sessions are of queries asked more than once"),
        (f"{held.repeated_pages:.0%}", "of the sessions showed a page that others showed too"),
        (f"{held.moved_share:.0%}", "of the results shown are documents seen at several positions"),
        (f"{held.features:,}", f"features that differ between documents{_share(held)}"),
        (f"{len(held.contexts):,}", f"contexts{_shuffled(held)}"),
    ]
    return figures(rows)


def _share(held: Contents) -> str:
    if held.position_share is None:
        return ""
    return f"; they explain {held.position_share:.0%} of where documents stood"


def _shuffled(held: Contents) -> str:
    if held.whole_log_shuffled:
        return "; the lists of the whole log look shuffled"
    if held.shuffled_contexts:
        return f"; shuffled: {', '.join(held.shuffled_contexts)}"
    if held.contexts and not held.shuffling_shows:
        return (
            "; whether lists were shuffled does not show, because documents hardly occur twice: "
            "--shuffled VALUE tells"
        )
    return "; none of them looks shuffled" if held.contexts else ""
