"""`unskew tune`: the settings of a ranker, searched within limits and judged on held-out clicks."""

from __future__ import annotations

import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from unskew.cli.console import output, print_json, show
from unskew.cli.reading import Log, LogInput
from unskew.cli.writing import check_folder, check_outputs
from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.log.impressions import Impressions

_SEARCH = "The search"


def _setting(text: str, **more: Any) -> Any:
    return typer.Option(help=text, rich_help_panel=_SEARCH, **more)


def run(
    log: Log,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The model's folder.")],
    ranker: Annotated[str, _setting("{rankers}.")] = "lambdamart",
    space: Annotated[
        list[str] | None,
        typer.Option(
            "--space", metavar="NAME=VALUES", rich_help_panel=_SEARCH,
            help="A setting and what to try, such as num_leaves=4..63 or debias=pairwise,none "
            "(repeatable); every ranker has a default space.",
        ),
    ] = None,
    trials: Annotated[int | None, _setting("The most trials (default 20).", min=1)] = None,
    seconds: Annotated[
        float | None, _setting("The most time, the last training included.")
    ] = None,
    bias: Annotated[
        str | None,
        _setting(
            "The bias that all trials are judged by: a file of 'unskew bias -o', or none; by default "
            "the method that can be trusted most on the log.",
        ),
    ] = None,
    k: Annotated[int, _setting("Trials are judged by DCG at this rank.", min=1)] = 10,
    folds: Annotated[
        int, _setting("How many fifths of the queries judge each trial.", min=1, max=5)
    ] = 5,
    resume: Annotated[
        Path | None,
        _setting("A file that keeps the trials, and that a later call goes on from.", metavar="FILE"),
    ] = None,
    seed: Annotated[int, _setting("Of the search and of the ranker.", min=0)] = 0,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", rich_help_panel=_SEARCH,
            help="A setting that all trials share (repeatable).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    *,
    reading: LogInput,
) -> None:  # fmt: skip
    """Search the settings of a ranker by held-out clicks, and save it with the best of them.

    The first trial has the ranker's defaults; another wins only if it is better by more than chance.
    Ctrl-C ends the search and saves the best so far.
    """
    from unskew.choose.search_space import parse_dimension
    from unskew.choose.tuning import tune
    from unskew.cli.train_settings import assignment, debias_of
    from unskew.registry import RANKERS

    if ranker not in RANKERS:
        raise UsageError(f"--ranker must be one of {', '.join(RANKERS)}, got {ranker!r}")
    fixed = dict(assignment(text) for text in assignments or [])
    if "debias" in fixed:
        fixed["debias"] = debias_of(fixed["debias"])
    dimensions = dict(parse_dimension(text) for text in space) if space else None
    judging = _bias(bias)
    inputs = [log, reading.features, bias]
    check_folder("--out", out, inputs, ranker, RANKERS[ranker].old_kinds)
    if resume is None or not resume.exists():
        check_outputs({"--resume": resume}, inputs, overwrite=False)
    data = reading.impressions(log)
    started = clock.perf_counter()
    found = tune(
        data, ranker, dimensions, trials=trials, seconds=seconds, bias=judging, k=k, n_folds=folds,
        resume=resume, seed=seed, n_jobs=reading.threads, progress=not reading.quiet, **fixed,
    )  # fmt: skip
    found.save(out)
    if as_json:
        print_json(found.tuning_)
    else:
        _tell(data, found.tuning_, clock.perf_counter() - started, out)


def _bias(given: str | None) -> Any:
    if given is None:
        return None
    if given == "none":
        return [1.0]
    from unskew.bias.saved import load_propensities

    if not Path(given).exists():
        raise UsageError(
            f"--bias must be a file of 'unskew bias -o', or none: there is no {given!r}"
        )
    return load_propensities(given)


def _tell(data: Impressions, found: dict[str, Any], seconds: float, out: Path) -> None:
    trials = found["trials"]
    show(
        (f"{len(trials)} trials", "bold"),
        f" of {found['ranker']} on {data.n_sessions:,} sessions of {data.n_queries:,} queries in "
        f"{seconds:.1f} s, judged by {found['measure']} on queries they did not see",
    )
    output.print(_table(trials))
    show((found["why"], "bold"), f"; saved to {out}")


def _table(trials: list[dict[str, Any]]) -> Table:
    """One row per trial, the best first, the one that won marked."""
    names = list(trials[0]["settings"])
    table = Table(box=None)
    for name in ("", "trial", "dcg", "against the defaults", "seconds", *names):
        table.add_column(name, justify="right", overflow="fold")
    ranked = sorted(trials, key=lambda one: (one["status"] != "complete", -(one["dcg"] or 0.0)))
    for one in ranked:
        value = "–" if one["dcg"] is None else f"{one['dcg']:.4f}"
        gain = one["status"] if one["status"] != "complete" else _gain(one)
        settings = (_short(name, one["settings"][name]) for name in names)
        mark = "won" if one["won"] else ""
        table.add_row(mark, str(one["number"]), value, gain, f"{one['seconds']:.1f}", *settings)
    return table


def _gain(one: dict[str, Any]) -> str:
    if one["number"] == 0:
        return "the defaults"
    error = "" if one["gain_error"] is None else f" ± {one['gain_error']:.4f}"
    return f"{one['gain']:+.4f}{error}"


def _short(name: str, value: Any) -> str:
    if value is None:
        return "none" if name == "debias" else "own"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
