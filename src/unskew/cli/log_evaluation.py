"""`unskew evaluate --log`: the one bias that all rankers are judged by, and how the result is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table

from unskew.cli.console import ends, output, plain_table, show
from unskew.cli.groups import panel
from unskew.cli.reading import shuffled_context
from unskew.errors import UsageError
from unskew.loading import load_ranker
from unskew.places import is_saved

if TYPE_CHECKING:
    from unskew.evaluation.log_evaluation import LogEvaluation
    from unskew.evaluation.significance import Interval
    from unskew.log.impressions import Impressions

_setting = panel("On a click log")


@dataclass(frozen=True)
class Judging:
    """How rankers are judged on a click log."""

    bias: Annotated[
        str | None,
        _setting(
            "The one bias that all rankers are judged by: a file of 'unskew bias -o' or with "
            "'propensity', the folder of a model, or a method ({methods}); by default the method that "
            "fits the log best.",
        ),
    ] = None
    shuffled: Annotated[
        str | None,
        _setting("The context value of sessions with shuffled lists.", metavar="VALUE"),
    ] = None
    estimator: Annotated[
        list[str] | None, _setting("dr, snips or ips (repeatable; default dr, all with --json).")
    ] = None
    click_model: Annotated[
        str | None,
        _setting(
            "Where the prediction of the doubly robust estimate comes from: the folder of a "
            "click-model ranker, or a click model ({click_models}); by default the log's clicks under "
            "the bias.",
        ),
    ] = None
    clip: Annotated[
        float, _setting("Raise propensities below this share of the highest to it.")
    ] = 0.1
    by: Annotated[
        str,
        _setting("Intervals for other queries (query) or other sessions of the same (session)."),
    ] = "query"
    level: Annotated[float, _setting("How often intervals hold the truth.")] = 0.95
    resamples: Annotated[
        int,
        _setting(
            "How often the log is drawn again, so that intervals know how uncertain a bias measured on "
            "it is; 0 takes it for known.",
            min=0,
        ),
    ] = 50


@dataclass(frozen=True, eq=False)
class StatedBias:
    """The bias that all rankers are judged by, where it comes from, and what measured it on the log."""

    propensity: Any
    source: str
    notes: tuple[str, ...] = ()
    estimator: Any = None


def stated_bias(data: Impressions, judging: Judging, n_jobs: int | None) -> StatedBias:
    """The bias that was asked for, or that of the method that fits the log best."""
    from unskew.registry import METHODS

    given = judging.bias
    context = shuffled_context(data, judging.shuffled)
    if context is not None:
        if given not in {None, "randomization"}:
            raise UsageError("--shuffled goes with --bias randomization, not with another bias")
        given = "randomization"
    if given is None:
        return _trusted(data, n_jobs)
    if given in METHODS:
        return _estimated(data, given, context, n_jobs)
    if is_saved(given):
        found = getattr(load_ranker(given), "position_bias_", None)
        if found is None:
            raise UsageError(f"--bias: the model {given} has learned no position bias")
        return StatedBias(found, f"the bias that the model {given} has learned")
    from unskew.bias.saved import load_propensities

    if not Path(given).exists():
        raise UsageError(
            f"--bias must be a file, the folder of a model or a method ({', '.join(METHODS)}): there "
            f"is no {given!r}"
        )
    return StatedBias(load_propensities(given), f"the file {given}")


def _trusted(data: Impressions, n_jobs: int | None) -> StatedBias:
    from unskew.choose.advice_estimators import trusted_bias

    found = trusted_bias(data, n_jobs=n_jobs)
    why = f"{found.verdict.method} on this log ({found.verdict.trust}: {found.verdict.reason})"
    return StatedBias(found.bias, why, found.notes, found.verdict.estimator(n_jobs))


def _estimated(data: Impressions, method: str, context: Any, n_jobs: int | None) -> StatedBias:
    from unskew.bias.comparison import compare_estimators
    from unskew.errors import DataError
    from unskew.registry import METHODS, make_estimator

    options = {"context": context} if context is not None else {}
    (found,) = compare_estimators(data, methods=[method], n_jobs=n_jobs, **options)
    if found.bias is None:
        raise DataError(f"--bias {method} does not fit this log: {found.reason}")
    part = "" if context is None else f", the sessions of context {context}"
    # A method that trains a network would train one for every resample.
    again = None if METHODS[method].extra else make_estimator(method, n_jobs=n_jobs, **options)
    return StatedBias(found.bias, f"{method} on this log{part}", found.notes, again)


def click_model_ranker(judging: Judging) -> Any:
    """The ranker whose relevance is the prediction; None if no folder of one was given."""
    from unskew.registry import CLICK_MODELS

    given = judging.click_model
    if given is None or given in CLICK_MODELS:
        return None
    if not is_saved(given):
        raise UsageError(
            f"--click-model must be the folder of a click-model ranker, or one of "
            f"{', '.join(CLICK_MODELS)}: got {given!r}"
        )
    ranker = load_ranker(given)
    if not hasattr(ranker, "predict_relevance"):
        raise UsageError(
            f"--click-model: {given} holds {type(ranker).__name__}, which predicts no relevance; "
            "train one with --ranker click-model"
        )
    return ranker


def judged(
    data: Impressions,
    scores: dict[str, Any],
    bias: StatedBias,
    judging: Judging,
    ranker: Any,
    **options: Any,
) -> LogEvaluation:
    """All rankings on one log, by one bias."""
    from unskew.evaluation.log_evaluation import evaluate_log

    if bias.estimator is None and judging.resamples not in (0, Judging.resamples):
        raise UsageError(
            "--resamples goes with a bias that is measured on the log, not a given one"
        )
    return evaluate_log(
        data, scores, bias.propensity, prediction=_prediction(data, judging.click_model, ranker),
        clip=judging.clip, by=judging.by, level=judging.level, refit=bias.estimator,
        n_resamples=judging.resamples, **options,
    )  # fmt: skip


def _prediction(data: Impressions, name: str | None, ranker: Any) -> Any:
    if name is None:
        return None
    if ranker is not None:
        return ranker.predict_relevance(data.features)
    from unskew.clicks import fit_click_model

    return fit_click_model(data, name).posterior.mean[data.documents.number]


def log_json(found: LogEvaluation, bias: StatedBias) -> dict[str, Any]:
    """The result as plain values."""
    content = found.to_dict()
    content["bias"] = {"source": bias.source, "notes": list(bias.notes)}
    return content


def tell_log(found: LogEvaluation, bias: StatedBias, estimators: Sequence[str]) -> None:
    """Print the bias, the estimates, the differences and what to beware of."""
    from unskew.evaluation.counterfactual import ESTIMATORS

    show(
        (f"{found.n_sessions:,} sessions", "bold"),
        f" of {found.n_queries:,} queries, {found.n_clicks:,} clicks. All rankers are judged by one "
        f"bias: {bias.source}.",
    )
    curve = "  ".join(f"{value:.2f}" for value in found.propensity[:10])
    more = " …" if len(found.propensity) > 10 else ""
    show(f"propensity  {curve}{more}   (raised to {found.clip:g} of the highest where lower)")
    unit = "queries" if found.by == "query" else "sessions"
    sure = (
        "the intervals know how uncertain it is" if found.n_resamples else "it is taken for known"
    )
    show(f"The bias: {sure}.")
    for name in estimators:
        output.print(_estimates(found, name, f"{ESTIMATORS[name].meaning}, intervals over {unit}"))
        if found.differences:
            output.print(_differences(found, name))
    for note in (*bias.notes, *found.notes):
        show(("beware:", "bold yellow"), f" {note}")


def _estimates(found: LogEvaluation, estimator: str, title: str) -> Table:
    metrics = list(next(iter(found.estimates.values()))[estimator])
    numbers = (*metrics, "effective\nclicks")
    table = plain_table(f"value by {title}", texts=["ranker"], numbers=numbers)
    for name, estimators in found.estimates.items():
        ones = estimators[estimator].values()
        fewest = min(one.effective_sample_size for one in ones)
        table.add_row(name, *(_told(one.value, one.interval) for one in ones), f"{fewest:,.0f}")
    return table


def _differences(found: LogEvaluation, estimator: str) -> Table:
    numbers = ("difference", "effective\nclicks", "p", "p\n(Holm)")
    table = plain_table("paired differences", texts=["metric", "rankers"], numbers=numbers)
    for one in found.differences:
        if one.estimator == estimator:
            table.add_row(
                one.metric, f"{one.a} - {one.b}", _told(one.difference, one.interval, "+"),
                f"{one.effective_sample_size:,.0f}", f"{one.p_value:.3g}",
                f"{one.p_corrected:.3g}",
            )  # fmt: skip
    return table


def _told(value: float, interval: Interval, sign: str = "") -> str:
    form = f"{sign}.4f"
    return f"{value:{form}}" + ("" if isnan(interval.low) else f" {ends(interval, form)}")
