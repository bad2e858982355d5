"""`unskew evaluate`: rankers against labels, or against a held-out click log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli.console import output as screen
from unskew.errors import DataError, UsageError

if TYPE_CHECKING:
    from unskew.evaluation.counterfactual import Estimate
    from unskew.evaluation.evaluation import Evaluation
    from unskew.evaluation.significance import Comparison
    from unskew.log.features import Features

__all__ = ["run"]


def run(
    models: Annotated[list[str] | None, typer.Argument(help="Folders of saved models.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="Labelled documents: LETOR text or a table.")
    ] = None,
    log: Annotated[str | None, typer.Option(help="Or a held-out click log.")] = None,
    features: Annotated[
        str | None, typer.Option(help="With --log: the features table of its documents.")
    ] = None,
    bias: Annotated[
        Path | None,
        typer.Option(help="With --log: JSON with 't_plus' or 'propensity'; else the model's own."),
    ] = None,
    score: Annotated[
        list[str] | None, typer.Option(help="A feature column that is a ranker's score.")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(help="Comma-separated, such as ndcg@10,map,err@10.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Compare the others with this ranker only.")
    ] = None,
    test: Annotated[str, typer.Option(help="The paired test: fisher or t.")] = "fisher",
    ties: Annotated[str, typer.Option(help="Equal scores: average or stable.")] = "average",
    empty: Annotated[
        str, typer.Option(help="Queries without a relevant document: skip, 0 or 1.")
    ] = "skip",
    max_grade: Annotated[int, typer.Option(help="The highest grade, for err.")] = 4,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure rankers on labels, with intervals and paired tests, or on a held-out log."""
    if (labels is None) == (log is None):
        raise UsageError("give either --labels or --log")
    names = metrics.split(",") if metrics else None
    if labels is not None:
        options = {"ties": ties, "empty": empty if empty == "skip" else _count(empty)}
        _on_labels(
            labels, models or [], score or [], names, baseline, test,
            {**options, "max_grade": max_grade}, as_json,
        )  # fmt: skip
    else:
        _on_log(str(log), features, bias, models or [], score or [], names, as_json)


def _count(empty: str) -> int:
    if empty not in ("0", "1"):
        raise UsageError(f"--empty must be skip, 0 or 1, got {empty!r}")
    return int(empty)


def _scores(models: list[str], columns: list[str], features: Features) -> dict[str, Any]:
    """The scores of every ranker that was named, by its name."""
    from importlib import import_module

    scores: dict[str, Any] = {}
    for path in models:
        name = Path(path).name
        if name in scores:
            raise UsageError(f"two models are called {name!r}: rename one of the folders")
        model = import_module("unskew").load(path)
        scores[name] = model.predict(features.values)
    for column in columns:
        if column not in features.names:
            raise DataError(
                f"there is no column {column!r} to take scores from: there are "
                f"{', '.join(features.names[:8])}{' …' if features.n_features > 8 else ''}"
            )
        scores[column] = features.values[:, features.names.index(column)]
    if not scores:
        raise UsageError("nothing to evaluate: give folders of models, or --score COLUMN")
    return scores


def _on_labels(
    labels: str,
    models: list[str],
    columns: list[str],
    metrics: list[str] | None,
    baseline: str | None,
    test: Any,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    from unskew.evaluation.evaluation import DEFAULT_METRICS, evaluate
    from unskew.evaluation.significance import compare
    from unskew.log.read import read_labels

    data = read_labels(labels)
    names = metrics or list(DEFAULT_METRICS)
    rankers = {
        name: evaluate(score, data, metrics=names, **options)
        for name, score in _scores(models, columns, data.features).items()
    }
    comparisons = (
        [c for m in names for c in compare(rankers, metric=m, baseline=baseline, test=test)]
        if len(rankers) > 1
        else []
    )
    if as_json:
        typer.echo(json.dumps(evaluation_json(rankers, comparisons), indent=2))
        return
    screen.print(evaluation_table(rankers))
    if comparisons:
        screen.print(comparison_table(comparisons))


def evaluation_json(
    rankers: Mapping[str, Evaluation], comparisons: list[Comparison]
) -> dict[str, Any]:
    """The means with intervals, and the comparisons, as plain values."""
    found: dict[str, Any] = {"rankers": {}, "comparisons": []}
    for name, evaluation in rankers.items():
        found["rankers"][name] = {
            metric: {
                "mean": evaluation.mean[metric],
                "interval": list(_limits(evaluation, metric)),
                "queries": evaluation.n_queries[metric],
            }
            for metric in evaluation.per_query
        }
    for c in comparisons:
        found["comparisons"].append(
            {
                "a": c.a, "b": c.b, "metric": c.metric, "difference": c.difference,
                "interval": [c.interval.low, c.interval.high], "test": c.test,
                "p_value": c.p_value, "p_corrected": c.p_corrected, "queries": c.n_queries,
            }
        )  # fmt: skip
    return found


def _limits(evaluation: Evaluation, metric: str) -> tuple[float | None, float | None]:
    if evaluation.n_queries[metric] < 2:
        return None, None
    interval = evaluation.interval(metric)
    return interval.low, interval.high


def evaluation_table(rankers: Mapping[str, Evaluation]) -> Any:
    """One row per ranker, one column per metric, with 95% intervals."""
    from rich.table import Table

    metrics = list(next(iter(rankers.values())).per_query)
    table = Table("ranker", *metrics, title="mean over queries [95% interval]")
    for name, evaluation in rankers.items():
        cells = []
        for metric in metrics:
            low, high = _limits(evaluation, metric)
            around = "" if low is None else rf" \[{low:.4f}, {high:.4f}]"
            cells.append(f"{evaluation.mean[metric]:.4f}{around}")
        table.add_row(name, *cells)
    return table


def comparison_table(comparisons: list[Comparison]) -> Any:
    """One row per pair of rankers and metric."""
    from rich.table import Table

    columns = ("metric", "rankers", "difference [95% interval]", "p", "p (Holm)")
    table = Table(*columns, title=f"paired differences, {comparisons[0].test} test")
    for c in comparisons:
        table.add_row(
            c.metric,
            f"{c.a} - {c.b}",
            rf"{c.difference:+.4f} \[{c.interval.low:+.4f}, {c.interval.high:+.4f}]",
            f"{c.p_value:.4g}",
            f"{c.p_corrected:.4g}",
        )
    return table


def _bias(path: Path | None, models: list[str]) -> Any:
    """The bias of a file, or the one that the first model with any has learned."""
    from importlib import import_module

    import numpy as np

    if path is not None:
        content = json.loads(path.read_text(encoding="utf-8"))
        for key in ("t_plus", "propensity"):
            if key in content:
                return np.asarray(content[key], dtype=np.float64)
        raise DataError(f"{path} has neither 't_plus' nor 'propensity'")
    for folder in models:
        found = getattr(import_module("unskew").load(folder), "position_bias_", None)
        if found is not None:
            return found
    raise UsageError("no position bias: give --bias FILE, or a model that has learned one")


def _on_log(
    log: str,
    features: str | None,
    bias: Path | None,
    models: list[str],
    columns: list[str],
    metrics: list[str] | None,
    as_json: bool,
) -> None:
    from unskew.evaluation.counterfactual import ESTIMATORS, evaluate_clicks
    from unskew.log.read import read_log

    data = read_log(log, features=features)
    propensity = _bias(bias, models)
    asked = metrics or ["dcg@10", "ndcg@10", "click@1"]
    found = {
        ranker: {
            name: evaluate_clicks(data, score, propensity, metrics=asked, estimator=name)
            for name in ESTIMATORS
        }
        for ranker, score in _scores(models, columns, data.features).items()
    }
    if as_json:
        typer.echo(json.dumps(_estimates_json(found), indent=2))
    else:
        screen.print(_estimates_table(found))


def _estimates_json(found: Mapping[str, Mapping[str, Mapping[str, Estimate]]]) -> dict[str, Any]:
    return {
        ranker: {
            estimator: {
                metric: {
                    "value": e.value,
                    "interval": [e.interval.low, e.interval.high],
                    "effective_sample_size": e.effective_sample_size,
                }
                for metric, e in metrics.items()
            }
            for estimator, metrics in estimators.items()
        }
        for ranker, estimators in found.items()
    }


def _estimates_table(found: Mapping[str, Mapping[str, Mapping[str, Estimate]]]) -> Any:
    from rich.table import Table

    table = Table(
        "ranker", "metric", "estimator", "value [95% interval]", "effective clicks",
        title="estimated from clicks",
    )  # fmt: skip
    for ranker, estimators in found.items():
        for estimator, metrics in estimators.items():
            for metric, e in metrics.items():
                table.add_row(
                    ranker,
                    metric,
                    estimator,
                    rf"{e.value:.4f} \[{e.interval.low:.4f}, {e.interval.high:.4f}]",
                    f"{e.effective_sample_size:,.0f}",
                )
    return table
