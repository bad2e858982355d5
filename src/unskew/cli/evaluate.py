"""`unskew evaluate`: rankers against labels, or against a held-out click log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from unskew.cli.console import AsJson, ends, output, print_json, say
from unskew.cli.groups import given_of, refuse_idle
from unskew.cli.log_evaluation import (
    Judging,
    click_model_ranker,
    judged,
    log_json,
    stated_bias,
    tell_log,
)
from unskew.cli.reading import DataInput, Wanted, load_rankers
from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.evaluation.evaluation import Evaluation
    from unskew.evaluation.significance import Comparison, Interval
    from unskew.log.features import Features
    from unskew.log.labelled import LabelledData


@dataclass(frozen=True)
class Measuring:
    """How rankers are measured."""

    metrics: Annotated[
        str | None, typer.Option(help="Comma-separated, such as ndcg@10,map,err@10.")
    ] = None
    baseline: Annotated[
        str | None, typer.Option(help="Compare the others with this ranker only.")
    ] = None
    test: Annotated[str, typer.Option(help="The paired test: fisher or t.")] = "fisher"
    ties: Annotated[str, typer.Option(help="Equal scores: average or stable.")] = "average"
    empty: Annotated[
        str, typer.Option(help="Queries without a relevant document: skip, 0 or 1.")
    ] = "skip"
    max_grade: Annotated[int, typer.Option(help="The highest grade, for err.")] = 4

    def names(self, default: Iterable[str]) -> list[str]:
        """The metrics that were asked for."""
        return self.metrics.split(",") if self.metrics else list(default)


def run(
    models: Annotated[list[str] | None, typer.Argument(help="Folders of saved models.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="Labelled documents: LETOR text or a table.")
    ] = None,
    log: Annotated[
        str | None, typer.Option(help="Or a held-out click log, raw or from 'unskew compact'.")
    ] = None,
    score: Annotated[
        list[str] | None, typer.Option(help="A feature column that is a ranker's score.")
    ] = None,
    as_json: AsJson = False,
    *,
    measuring: Measuring,
    judging: Judging,
    reading: DataInput,
) -> None:
    """Measure rankers on labels, with intervals and paired tests, or on a held-out log.

    On a log every ranker, and the logged order beside them, is judged by one bias, which is named.
    """
    if (labels is None) == (log is None):
        raise UsageError("give either --labels or --log")
    if measuring.empty not in ("skip", "0", "1"):
        raise UsageError(f"--empty must be skip, 0 or 1, got {measuring.empty!r}")
    rankers = load_rankers(models or [])
    if log is not None:
        _judge(log, rankers, score or [], measuring, judging, reading, as_json=as_json)
        return
    if not rankers and not score:
        raise UsageError("nothing to evaluate: give folders of models, or --score COLUMN")
    refuse_idle("it goes with --log; labels have no position bias", given_of(judging))
    wanted = Wanted(list(rankers.values()), score or [])
    data = reading.labels(str(labels), wanted)
    found = _on_labels(data, _scores(rankers, wanted, data.features), measuring)
    _note_skipped(data, found, measuring)
    compared = _compared(found, measuring)
    if as_json:
        print_json(evaluation_json(found, compared))
        return
    output.print(evaluation_table(found))
    if compared:
        output.print(comparison_table(compared))


def _judge(
    log: str,
    rankers: dict[str, Any],
    columns: list[str],
    measuring: Measuring,
    judging: Judging,
    reading: DataInput,
    *,
    as_json: bool,
) -> None:
    """Judge rankers on a held-out log."""
    idle = given_of(measuring, ("test", "ties", "empty", "max_grade"))
    refuse_idle("it goes with --labels; a log has clicks", idle)
    from unskew.evaluation.counterfactual import DEFAULT_METRICS
    from unskew.evaluation.log_evaluation import LEADING

    predicting = click_model_ranker(judging)
    models = [*rankers.values(), *([] if predicting is None else [predicting])]
    wanted = Wanted(models, columns)
    data = reading.impressions(log, wanted if models or columns else None)
    bias = stated_bias(data, judging, reading.threads)
    estimators = judging.estimator or list(LEADING if as_json else LEADING[:1])
    found = judged(
        data, _scores(rankers, wanted, data.features), bias, judging, predicting,
        metrics=measuring.names(DEFAULT_METRICS), estimators=estimators,
        baseline=measuring.baseline, progress=not reading.quiet,
    )  # fmt: skip
    if as_json:
        print_json(log_json(found, bias))
    else:
        tell_log(found, bias, estimators)


def _scores(rankers: Mapping[str, Any], wanted: Wanted, features: Features) -> dict[str, Any]:
    """The scores by every model and every score column, by its name."""
    scores = {name: ranker.predict(features) for name, ranker in rankers.items()}
    for column in wanted.scores:
        scores[column] = features.values[:, features.names.index(column)]
    return scores


def _on_labels(
    data: LabelledData, scores: Mapping[str, Any], measuring: Measuring
) -> dict[str, Evaluation]:
    from unskew.evaluation.evaluation import DEFAULT_METRICS, evaluate

    options: dict[str, Any] = {
        "metrics": measuring.names(DEFAULT_METRICS),
        "ties": measuring.ties,
        "empty": "skip" if measuring.empty == "skip" else int(measuring.empty),
        "max_grade": measuring.max_grade,
    }
    return {name: evaluate(score, data, **options) for name, score in scores.items()}


def _note_skipped(
    data: LabelledData, found: Mapping[str, Evaluation], measuring: Measuring
) -> None:
    """Say how many queries a metric does not count because nothing in them is relevant."""
    counted = min(n for one in found.values() for n in one.n_queries.values())
    if measuring.empty == "skip" and counted < data.n_queries:
        say(
            f"{data.n_queries - counted:,} of {data.n_queries:,} queries have no relevant document and "
            "are not counted (--empty)"
        )


def _compared(found: Mapping[str, Evaluation], measuring: Measuring) -> list[Comparison]:
    """The paired comparisons of two rankers or more, metric by metric."""
    from unskew.evaluation.significance import compare

    if len(found) < 2:
        idle = given_of(measuring, ("baseline", "test"))
        refuse_idle("one ranker alone is compared with nothing", idle)
        return []
    options: dict[str, Any] = {"baseline": measuring.baseline, "test": measuring.test}
    metrics = next(iter(found.values())).per_query
    return [c for metric in metrics for c in compare(found, metric=metric, **options)]


def evaluation_json(
    rankers: Mapping[str, Evaluation], comparisons: list[Comparison]
) -> dict[str, Any]:
    """The means with intervals, and the comparisons, as plain values."""
    from unskew.evaluation.significance import limits

    return {
        "rankers": {
            name: {
                metric: {
                    "mean": evaluation.mean[metric],
                    "interval": limits(_interval(evaluation, metric)),
                    "queries": evaluation.n_queries[metric],
                }
                for metric in evaluation.per_query
            }
            for name, evaluation in rankers.items()
        },
        "comparisons": [
            {
                "a": c.a, "b": c.b, "metric": c.metric, "difference": c.difference,
                "interval": limits(c.interval), "test": c.test,
                "p_value": c.p_value, "p_corrected": c.p_corrected, "queries": c.n_queries,
            }
            for c in comparisons
        ],
    }  # fmt: skip


def _interval(evaluation: Evaluation, metric: str) -> Interval | None:
    """The interval of a mean; None for a single query."""
    return None if evaluation.n_queries[metric] < 2 else evaluation.interval(metric)


def evaluation_table(rankers: Mapping[str, Evaluation]) -> Table:
    """One row per ranker, one column per metric, with 95% intervals."""
    metrics = list(next(iter(rankers.values())).per_query)
    table = Table("ranker", *metrics, title="mean over queries [95% interval]")
    for name, evaluation in rankers.items():
        cells = []
        for metric in metrics:
            interval = _interval(evaluation, metric)
            around = "" if interval is None else f" {ends(interval, '.4f')}"
            cells.append(f"{evaluation.mean[metric]:.4f}{around}")
        table.add_row(name, *cells)
    return table


def comparison_table(comparisons: list[Comparison]) -> Table:
    """One row per pair of rankers and metric."""
    columns = ("metric", "rankers", "difference [95% interval]", "p", "p (Holm)")
    table = Table(*columns, title=f"paired differences, {comparisons[0].test} test")
    for c in comparisons:
        table.add_row(
            c.metric,
            f"{c.a} - {c.b}",
            f"{c.difference:+.4f} {ends(c.interval, '+.4f')}",
            f"{c.p_value:.4g}",
            f"{c.p_corrected:.4g}",
        )
    return table
