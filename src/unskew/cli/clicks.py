"""`unskew clicks`: which click model predicts a log best, and the relevance it finds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unskew.cli.console import AsJson, output, plain_table, print_json, say, show
from unskew.cli.reading import Log, LogInput
from unskew.cli.writing import Overwrite, check_table_output, write_table

if TYPE_CHECKING:
    from unskew.clicks import ClickModelOutcome, FittedClickModel


def run(
    log: Log,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", "-m", help="A click model (repeatable): {click_models}; by default all."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where to write the relevance of every document by the best model: Parquet or CSV.",
        ),
    ] = None,
    share: Annotated[
        float, typer.Option(help="The share of sessions that is held out to measure.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(help="Which sessions are held out.", min=0)] = 0,
    n_positions: Annotated[
        int | None, typer.Option(help="Positions with values of their own (default all).", min=1)
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    *,
    reading: LogInput,
) -> None:
    """Fit click models to a log and measure each on held-out sessions, the best first.

    Models that do not fit the log say why. The relevance table is that of the best model, fitted to
    all sessions: one row per query and document, with its uncertainty, impressions and clicks.
    """
    from unskew.clicks import compare_click_models

    check_table_output(out, [log, reading.features], overwrite=overwrite)
    data = reading.impressions(log)
    outcomes = compare_click_models(
        data, models=model or None, share=share, seed=seed, n_positions=n_positions,
        progress=not reading.quiet,
    )  # fmt: skip
    if as_json:
        print_json({"models": [one.to_dict() for one in outcomes]})
    else:
        _show(outcomes)
    if outcomes[0].fitted is None:
        raise typer.Exit(1)
    if out is not None:
        _write(outcomes[0].fitted, n_positions, out, quiet=reading.quiet)


def _write(best: FittedClickModel, n_positions: int | None, out: Path, *, quiet: bool) -> None:
    """Write the relevance table of the best model, fitted again to all sessions."""
    import warnings

    from unskew.clicks import fit_click_model

    with warnings.catch_warnings():
        # They were shown with the comparison.
        warnings.simplefilter("ignore")
        fitted = fit_click_model(best.data, best.name, n_positions=n_positions)
    write_table(fitted.to_arrow(), out)
    if not quiet:
        say(f"the relevance of {len(fitted.relevance):,} documents by {best.name}: {out}")


def _show(outcomes: list[ClickModelOutcome]) -> None:
    from unskew.registry import CLICK_MODELS

    fits = [(one, one.measures) for one in outcomes if one.measures is not None]
    columns = ("log-lik.", "perplexity", "conditional", "seconds")
    table = plain_table(texts=["model"], numbers=columns, last=["what it is"])
    for one, found in fits:
        numbers = (found.log_likelihood, found.perplexity, found.conditional_perplexity)
        table.add_row(
            one.name, *(f"{number:.4f}" for number in numbers), f"{one.seconds:.2f}",
            CLICK_MODELS[one.name].summary,
        )  # fmt: skip
    if fits:
        show(("Click models", "bold"), " on held-out sessions, the best first")
        output.print(table)
    for one in outcomes:
        if one.measures is None:
            show((f"{one.name} does not fit:", "red"), f" {one.reason or ''}")
        for note in one.notes:
            show((f"{one.name}:", "yellow"), f" {note}")
