"""`unskew bias`: the position bias of a log by several estimators, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from unskew.cli.console import output, print_json, show
from unskew.cli.reading import Log, LogInput, load_ranker
from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.bias.comparison import Outcome
    from unskew.log.impressions import Impressions
    from unskew.position_bias import PositionBias

# Positions drawn before the rest is summed up in one line, and the width of a curve.
SHOWN_POSITIONS = 20
WIDTH = 12


def run(
    log: Log,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="A method (repeatable): {methods}; by default all that can be estimated alone.",
        ),
    ] = None,
    shuffled: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help="The context value of sessions with shuffled lists."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="A saved model whose scores pairwise debiasing takes."),
    ] = None,
    n_positions: Annotated[
        int | None, typer.Option(help="Positions with a bias of their own (default all).", min=1)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    *,
    reading: LogInput,
) -> None:
    """Estimate the position bias of a log by every method that fits it.

    Methods that do not fit the log say why. Where relevance follows position, as it does behind a
    good ranker, methods disagree; those that see shuffled lists or documents that moved are right.
    """
    from unskew.bias.comparison import compare_estimators

    data = reading.impressions(log)
    outcomes = compare_estimators(
        data,
        methods=method or None,
        progress=not reading.quiet,
        context=None if shuffled is None else _context(data, shuffled),
        scores=None if model is None else load_ranker(model),
        n_positions=n_positions,
        n_jobs=reading.threads,
    )
    if as_json:
        print_json({"methods": [one.to_dict() for one in outcomes]})
    else:
        _show(outcomes)
    if all(one.bias is None for one in outcomes):
        raise typer.Exit(1)


def _context(data: Impressions, value: str) -> Any:
    """The context of that name: on the command line every value is text."""
    for known in data.contexts.tolist():
        if str(known) == value:
            return known
    shown = ", ".join(map(str, data.contexts[:8])) or "none; name its column with --context"
    raise UsageError(f"--shuffled: the log has no context {value!r}. Its contexts: {shown}")


def _show(outcomes: list[Outcome]) -> None:
    columns: dict[str, list[float]] = {}
    for one in outcomes:
        if one.bias is not None:
            columns |= _curves(one.method, one.bias)
    if columns:
        show(("Position bias", "bold"), ", relative to position 1")
        _draw(columns)
    output.print(_table(outcomes))
    for one in outcomes:
        for note in one.notes:
            show((f"{one.method}:", "yellow"), f" {note}")


def _draw(columns: dict[str, list[float]]) -> None:
    """The curves side by side, as many at a time as the terminal is wide."""
    from unskew.terminal import curves

    names = list(columns)
    at_once = max(1, (output.width - len("position")) // (WIDTH + len("  0.000   ")))
    for first in range(0, len(names), at_once):
        block = {name: columns[name] for name in names[first : first + at_once]}
        show(curves(block, width=WIDTH, rows=SHOWN_POSITIONS) + "\n")


def _curves(method: str, bias: PositionBias) -> dict[str, list[float]]:
    """The curves of a result that say something: t_minus only if it was estimated."""
    curves = {method: bias.t_plus.tolist()}
    if (bias.t_minus != 1.0).any():
        curves[f"{method} t_minus"] = bias.t_minus.tolist()
    return curves


def _table(outcomes: list[Outcome]) -> Table:
    from unskew.registry import METHODS

    table = Table(box=None)
    table.add_column("method")
    table.add_column("seconds", justify="right")
    table.add_column("what it is, or why it does not fit this log", overflow="fold")
    for one in outcomes:
        if one.bias is not None:
            table.add_row(one.method, f"{one.seconds:.1f}", METHODS[one.method].summary)
        else:
            reason = Text.assemble(("does not fit:", "red"), f" {one.reason or ''}")
            table.add_row(one.method, "–", reason)
    return table
