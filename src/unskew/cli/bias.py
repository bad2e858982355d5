"""`unskew bias`: the position bias of a log by several estimators, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from unskew.cli.console import AsJson, output, plain_table, print_json, show
from unskew.cli.groups import given_of, refuse_idle
from unskew.cli.reading import Log, LogInput, Shuffled, shuffled_context
from unskew.cli.writing import Overwrite, check_outputs
from unskew.errors import UsageError
from unskew.loading import load_ranker

if TYPE_CHECKING:
    from unskew.bias.comparison import Outcome
    from unskew.log.impressions import Impressions
    from unskew.position_bias import PositionBias

# Positions drawn before the rest is summed up in one line, and the width of a curve.
SHOWN_POSITIONS = 20
WIDTH = 12


@dataclass(frozen=True)
class Estimating:
    """Which methods estimate the bias, and how."""

    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="A method (repeatable): {methods}; by default all that can be estimated alone.",
        ),
    ] = None
    shuffled: Shuffled = None
    model: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="A saved model whose scores pairwise debiasing takes."),
    ] = None
    n_positions: Annotated[
        int | None, typer.Option(help="Positions with a bias of their own (default all).", min=1)
    ] = None
    resamples: Annotated[
        int, typer.Option(help="Resamples of the log for the intervals; 0 for none.", min=0)
    ] = 100
    level: Annotated[float, typer.Option(help="How often intervals hold the truth.")] = 0.95
    monotone: Annotated[
        bool, typer.Option("--monotone", help="Curves that never rise with the position.")
    ] = False
    by_context: Annotated[
        bool, typer.Option("--by-context", help="The curves of each context apart.")
    ] = False
    bias: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A file of 'unskew bias -o' to show too (repeatable)."),
    ] = None

    def refuse_idle(self) -> None:
        """Refuse options that none of the chosen methods looks at."""
        for option, needed in (("shuffled", "randomization"), ("model", "pairwise")):
            if self.method and needed not in self.method:
                refuse_idle(f"it goes with the method {needed}", given_of(self, [option]))
        if not self.resamples:
            refuse_idle("without resamples there are no intervals", given_of(self, ["level"]))
        if self.by_context:
            refuse_idle("a file has the curve of all contexts", given_of(self, ["bias"]))

    def options(self, data: Impressions, reading: LogInput) -> dict[str, Any]:
        """The options of `compare_estimators`."""
        return {
            "methods": self.method or None,
            "n_resamples": self.resamples,
            "level": self.level,
            "progress": not reading.quiet,
            "context": shuffled_context(data, self.shuffled),
            "scores": None if self.model is None else load_ranker(self.model),
            "n_positions": self.n_positions,
            "n_jobs": reading.threads,
            "monotone": self.monotone,
        }


def run(
    log: Log,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the curve of the one --method as JSON."
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    *,
    estimating: Estimating,
    reading: LogInput,
) -> None:
    """Estimate the position bias of a log by every method that fits it.

    Methods that do not fit the log say why. Where relevance follows position, as it does behind a
    good ranker, methods disagree; those that see shuffled lists or documents that moved are right.
    """
    from unskew.bias.comparison import compare_by_context, compare_estimators

    files = estimating.bias or []
    if out is not None and (len(estimating.method or []) != 1 or estimating.by_context):
        raise UsageError("--out writes one curve: give one --method, and not --by-context")
    estimating.refuse_idle()
    check_outputs({"--out": out}, [log, reading.features, *files], overwrite=overwrite)
    data = reading.impressions(log)
    options = estimating.options(data, reading)
    read = [_read(path) for path in files]
    if estimating.by_context:
        parts = compare_by_context(data, **options)
    else:
        parts = {None: [*compare_estimators(data, **options), *read]}
    _tell(parts, as_json=as_json)
    found = [one for outcomes in parts.values() for one in outcomes]
    if out is not None and found[0].bias is not None:
        from unskew.bias.saved import save_bias

        save_bias(out, found[0].bias, method=found[0].method, notes=found[0].notes)
    if all(one.bias is None for one in found):
        raise typer.Exit(1)


def _read(path: Path) -> Outcome:
    """A curve from a file, beside those of this log."""
    from unskew.bias.comparison import Outcome
    from unskew.bias.saved import load_bias

    bias = load_bias(path)
    return Outcome(path.name, 0.0, bias, notes=bias.notes)


def _tell(parts: dict[Any, list[Outcome]], *, as_json: bool) -> None:
    """The outcomes of the log, or of each of its contexts."""
    content = {key: [one.to_dict() for one in outcomes] for key, outcomes in parts.items()}
    if as_json and None in content:
        print_json({"methods": content[None]})
    elif as_json:
        print_json({"contexts": {str(key): {"methods": one} for key, one in content.items()}})
    else:
        for key, outcomes in parts.items():
            if key is not None:
                show((f"context {key}", "bold"))
            _show(outcomes)


def _show(outcomes: list[Outcome]) -> None:
    columns: dict[str, list[float]] = {}
    spans: dict[str, list[tuple[float, float]]] = {}
    for one in outcomes:
        if one.bias is not None:
            columns |= _named(one.method, one.bias.drawn_curves(), one.bias)
            spans |= _named(one.method, one.bias.spans(), one.bias)
    if columns:
        level = next((o.bias.level for o in outcomes if o.bias and o.bias.level), None)
        covered = "" if level is None else f", with {level:.0%} intervals"
        show(("Position bias", "bold"), f", relative to position 1{covered}")
        _draw(columns, spans)
    output.print(_table(outcomes))
    for one in outcomes:
        for note in one.notes:
            show((f"{one.method}:", "yellow"), f" {note}")


def _draw(columns: dict[str, list[float]], spans: dict[str, list[tuple[float, float]]]) -> None:
    """The curves side by side, as many at a time as the terminal is wide."""
    from unskew.terminal import curves

    names = list(columns)
    wide = WIDTH + len("  0.000   ") + (len("[0.00, 0.00] ") if spans else 0)
    at_once = max(1, (output.width - len("position")) // wide)
    for first in range(0, len(names), at_once):
        block = {name: columns[name] for name in names[first : first + at_once]}
        show(curves(block, spans=spans, width=WIDTH, rows=SHOWN_POSITIONS) + "\n")


def _named(method: str, curves: dict[str, Any], bias: PositionBias) -> dict[str, Any]:
    """The curves of a result that say something: t_minus only if it was estimated."""
    if not (bias.t_minus != 1.0).any():
        curves.pop("t_minus", None)
    return {method if name == "t_plus" else f"{method} {name}": c for name, c in curves.items()}


def _table(outcomes: list[Outcome]) -> Table:
    from unskew.registry import METHODS

    why = "what it is, or why it does not fit this log"
    table = plain_table(texts=["method"], numbers=["seconds"], last=[why])
    for one in outcomes:
        if one.bias is not None:
            known = METHODS.get(one.method)
            what = "read from the file" if known is None else known.summary
            table.add_row(one.method, f"{one.seconds:.1f}", what)
        else:
            reason = Text.assemble(("does not fit:", "red"), f" {one.reason or ''}")
            table.add_row(one.method, "–", reason)
    return table
