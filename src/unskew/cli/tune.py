"""`unskew tune`: the settings of a ranker, searched within limits and judged on held-out clicks."""

from __future__ import annotations

import time as clock
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table

from unskew.cli.console import AsJson, output, plain_table, print_json, show
from unskew.cli.groups import panel
from unskew.cli.reading import Log, LogInput
from unskew.cli.writing import FolderOut, check_folder, check_outputs
from unskew.errors import UsageError
from unskew.places import Place

if TYPE_CHECKING:
    from unskew.log.impressions import Impressions

_setting = panel("The search")


@dataclass(frozen=True)
class SearchInput:
    """What is searched, how long, and how trials are judged."""

    ranker: Annotated[str, _setting("{rankers}.")] = "lambdamart"
    space: Annotated[
        list[str] | None,
        _setting(
            "A setting and what to try, such as num_leaves=4..63 or debias=pairwise,none "
            "(repeatable); every ranker has a default space.",
            metavar="NAME=VALUES",
        ),
    ] = None
    trials: Annotated[int | None, _setting("The most trials (default 20).", min=1)] = None
    seconds: Annotated[float | None, _setting("The most time, the last training included.")] = None
    bias: Annotated[
        str | None,
        _setting(
            "The bias that all trials are judged by: a file of 'unskew bias -o', or none; by default "
            "the method that can be trusted most on the log.",
        ),
    ] = None
    k: Annotated[int, _setting("Trials are judged by DCG at this rank.", min=1)] = 10
    folds: Annotated[
        int, _setting("How many fifths of the queries judge each trial.", min=1, max=5)
    ] = 5
    resume: Annotated[
        Path | None,
        _setting(
            "A file that keeps the trials, and that a later call goes on from.", metavar="FILE"
        ),
    ] = None
    seed: Annotated[int, _setting("Of the search and of the ranker.", min=0)] = 0
    assignments: Annotated[
        list[str] | None,
        _setting("A setting that all trials share (repeatable).", "--set", metavar="NAME=VALUE"),
    ] = None


def run(
    log: Log,
    out: FolderOut,
    as_json: AsJson = False,
    *,
    search: SearchInput,
    reading: LogInput,
) -> None:
    """Search the settings of a ranker by held-out clicks, and save it with the best of them.

    The first trial has the ranker's defaults; another wins only if it is better by more than chance.
    Ctrl-C ends the search and saves the best so far.
    """
    from unskew.choose.search_space import parse_dimension
    from unskew.choose.tuning import tune
    from unskew.cli.train_settings import ranker_settings
    from unskew.registry import RANKERS

    ranker, resume = search.ranker, search.resume
    if ranker not in RANKERS:
        raise UsageError(f"--ranker must be one of {', '.join(RANKERS)}, got {ranker!r}")
    fixed = ranker_settings({}, {}, search.assignments or [])
    dimensions = dict(parse_dimension(text) for text in search.space) if search.space else None
    judging = _bias(search.bias)
    inputs = [log, reading.features, search.bias]
    check_folder("--out", out, inputs, ranker, RANKERS[ranker].old_kinds)
    if resume is None or not resume.exists():
        check_outputs({"--resume": resume}, inputs, overwrite=False)
    data = reading.impressions(log)
    started = clock.perf_counter()
    found = tune(
        data, ranker, dimensions, trials=search.trials, seconds=search.seconds, bias=judging,
        k=search.k, n_folds=search.folds, resume=resume, seed=search.seed, n_jobs=reading.threads,
        progress=not reading.quiet, **fixed,
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


def _tell(data: Impressions, found: dict[str, Any], seconds: float, out: Place) -> None:
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
    measured = ("", "trial", "dcg", "against the defaults", "seconds")
    table = plain_table(numbers=measured, last=("settings",))
    ranked = sorted(trials, key=lambda one: (one["status"] != "complete", -(one["dcg"] or 0.0)))
    for one in ranked:
        value = "–" if one["dcg"] is None else f"{one['dcg']:.4f}"
        gain = one["status"] if one["status"] != "complete" else _gain(one)
        settings = ", ".join(f"{name} {_short(name, v)}" for name, v in one["settings"].items())
        mark = "won" if one["won"] else ""
        table.add_row(mark, str(one["number"]), value, gain, f"{one['seconds']:.1f}", settings)
    return table


def _gain(one: dict[str, Any]) -> str:
    if one["number"] == 0:
        return "the defaults"
    error = "" if one["gain_error"] is None else f" ± {one['gain_error']:.4f}"
    return f"{one['gain']:+.4f}{error}"


def _short(name: str, value: Any) -> str:
    if value is None:
        return "none" if name == "debias" else "default"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
