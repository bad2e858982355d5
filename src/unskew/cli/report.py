"""`unskew report`: one page about a log and the models that would rank it anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.cli.console import say, show
from unskew.cli.reading import DataInput, Wanted, load_rankers
from unskew.cli.writing import Overwrite, check_outputs
from unskew.errors import DataError, UsageError


@dataclass(frozen=True)
class ReportInput:
    """How the models are judged."""

    bias: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file of 'unskew bias -o' to judge by; further ones are shown (repeatable)."
        ),
    ] = None
    judge_by: Annotated[
        str | None,
        typer.Option(help="The method, model or bias file whose curve judges all rankings."),
    ] = None
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="A method that estimates the bias (repeatable): {methods}; by default those that "
            "take seconds.",
        ),
    ] = None
    resamples: Annotated[
        int, typer.Option(help="Resamples for the intervals of the bias; 0 for none.", min=0)
    ] = 40
    most_documents: Annotated[
        int,
        typer.Option(
            help="Score whole queries with about so many documents, drawn at random; 0 for all.",
            min=0,
        ),
    ] = 20_000
    seed: Annotated[int, typer.Option(help="For what is drawn at random.", min=0)] = 0


def run(
    models: Annotated[list[str], typer.Argument(help="Folders of saved models.")],
    log: Annotated[
        str,
        typer.Option(
            metavar="LOG", help="The click log that judges them, raw or from 'unskew compact'."
        ),
    ],
    labels: Annotated[
        str | None, typer.Option(help="Labelled documents: LETOR text or a table.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write the page.")
    ] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    overwrite: Overwrite = False,
    *,
    judging: ReportInput,
    reading: DataInput,
) -> None:
    """Write one page that says whether the models are better than what is live, and why.

    The page opens in any browser, without a network. Sessions with problems are left out and listed.
    """
    inputs = [log, labels, reading.features, reading.events, *models, *(judging.bias or [])]
    check_outputs({"--out": out}, inputs, overwrite=overwrite)
    rankers = load_rankers(models)
    wanted = Wanted(list(rankers.values()))
    found = reading.log_reading(log, wanted, strict=labels is None, over_time=True)
    if found.impressions is None:
        raise DataError(found.problems[0].message if found.problems else f"{log} has no session")
    from unskew.log.inspection import inspection_of
    from unskew.reporting.report import report

    judged = None if labels is None else reading.labels(labels, wanted, strict=False)
    if not reading.quiet:
        say("judging the models …")
    made = report(
        rankers, found.impressions, judged, out=out, bias=_biases(judging.bias or []), title=title,
        inspection=inspection_of(found), labels_source=labels,
        most_documents=judging.most_documents or None, methods=judging.method,
        judge_by=judging.judge_by, n_resamples=judging.resamples, seed=judging.seed,
        progress=not reading.quiet,
    )  # fmt: skip
    show(made.answer.sentence)
    show(f"The report: {out.resolve()}")


def _biases(files: list[Path]) -> dict[str, Any]:
    """The curves of some files, by their names."""
    from unskew.bias.saved import load_bias

    found: dict[str, Any] = {}
    for file in files:
        if file.stem in found:
            raise UsageError(f"--bias: two files are called {file.stem!r}: rename one of them")
        found[file.stem] = load_bias(file)
    return found
