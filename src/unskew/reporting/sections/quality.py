"""How good every model is: by the clicks of the log, and on labels."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

from unskew.charts import Dot, DotChart
from unskew.charts.figure import figure
from unskew.evaluation.log_evaluation import LOGGED
from unskew.evaluation.significance import Interval
from unskew.reporting.answer import metric_words, relative_changes
from unskew.reporting.findings import Findings, LabelFindings
from unskew.reporting.page import Section, p_text, paragraph, table

_ESTIMATORS = {
    "dr": "doubly robust",
    "snips": "self-normalised IPS",
    "ips": "inverse propensity (IPS)",
}


def clicks_section(found: Findings) -> Section:
    """The estimates from clicks, with their differences from the logged order."""
    judged, looks = found.judged, looks_of(found)
    text = paragraph(
        f"What each ranking would have got, estimated from {judged.n_clicks:,} clicks in "
        f"{judged.n_sessions:,} sessions of {judged.n_queries:,} queries, all by the same position "
        f"bias ({found.curves.chosen}; propensities below {judged.clip:.0%} of the highest are raised "
        "to it). The doubly robust estimate leads; the others check it."
    )
    changes = [
        Dot(f"{metric}, {one.model}", one.relative, one.low, one.high, looks[one.model])
        for metric in found.metrics
        for one in relative_changes(found, metric)
    ]
    against = DotChart(
        title="Change against the logged order",
        caption="Paired over the same sessions: the relative change with its 95% interval over "
        "queries, doubly robust. click@k is the number of clicks that the first k results would get.",
        dots=changes, x_label="relative change", share=True, reference=0.0,
    )  # fmt: skip
    leading = [
        Dot(name, one.value, one.interval.low, one.interval.high, looks[name])
        for name, estimators in judged.estimates.items()
        for one in [estimators["dr"][found.leading]]
    ]
    level = DotChart(
        title=metric_words(found.leading).capitalize(),
        caption=f"{found.leading} a session by the doubly robust estimate, with 95% intervals.",
        dots=leading, x_label=found.leading,
    )  # fmt: skip
    html = text + figure(against) + figure(level) + _estimates(found) + _pairs(found)
    return Section("Every model by the clicks", html)


def looks_of(found: Findings) -> dict[str, int]:
    """The look of each ranking in every chart."""
    places = (0, 1, 2, 3, 4, 6)
    named = {name: places[k % len(places)] for k, name in enumerate(found.models)}
    return {LOGGED: 5, **named}


def _estimates(found: Findings) -> str:
    """A table for the leading estimator, and one behind it for the others."""
    leading, *others = next(iter(found.judged.estimates.values()))
    checks = "".join(
        f"<h4>{_ESTIMATORS[name].capitalize()}</h4>{_estimate_table(found, name)}"
        for name in others
    )
    return (
        f"<h3>All rankings, {_ESTIMATORS[leading]}</h3>{_estimate_table(found, leading)}"
        f"<details><summary>By the other estimators</summary>{checks}</details>"
    )


def _estimate_table(found: Findings, estimator: str) -> str:
    rows = []
    for name, estimators in found.judged.estimates.items():
        metrics = estimators[estimator]
        cells = [
            f"{one.value:.4f}\n{_ends(one.interval)}" for one in (metrics[m] for m in found.metrics)
        ]
        rows.append([name, *cells])
    return table(["ranking", *found.metrics], rows)


def _pairs(found: Findings) -> str:
    rows = [
        [
            f"{one.a} − {one.b}",
            one.metric,
            f"{one.difference:+.4f}\n{_ends(one.interval, '+')}",
            p_text(one.p_corrected),
            f"{one.effective_sample_size:,.0f}",
        ]
        for one in found.judged.differences
        if one.estimator == "dr"
    ]
    header = ["paired difference", "metric", "difference", "p (Holm)", "effective clicks"]
    return "<h3>Paired differences</h3>" + table(header, rows)


def _ends(interval: Interval, sign: str = "") -> str:
    return f"{interval.low:{sign}.4f} to {interval.high:{sign}.4f}"


def labels_section(found: Findings) -> Section | None:
    """The metrics on labels, with paired differences."""
    if found.labels is None:
        return None
    on, looks = found.labels, looks_of(found)
    first = next(iter(on.evaluations.values()))
    metrics = list(first.per_query)
    text = paragraph(
        f"Every model on {len(first.queries):,} labelled queries of {on.source}; means with 95% "
        "bootstrap intervals over queries. The logged order has no scores for these documents."
    )
    dots = []
    for name, evaluation in on.evaluations.items():
        low, high = _interval(on, name, "ndcg@10")
        dots.append(Dot(name, evaluation.mean["ndcg@10"], low, high, looks[name]))
    chart = DotChart(
        title="NDCG@10 on labels", caption="Means with 95% bootstrap intervals.", dots=dots,
        x_label="NDCG@10",
    )  # fmt: skip
    rows = [[name, *(_measured(on, name, metric) for metric in metrics)] for name in on.evaluations]
    html = text + figure(chart) + table(["model", *metrics], rows) + _compared(on, looks)
    return Section("Every model on labels", html)


def _interval(on: LabelFindings, name: str, metric: str) -> tuple[float, float]:
    evaluation = on.evaluations[name]
    if evaluation.n_queries[metric] < 2:
        return nan, nan
    found = evaluation.interval(metric)
    return found.low, found.high


def _measured(on: LabelFindings, name: str, metric: str) -> str:
    low, high = _interval(on, name, metric)
    mean = on.evaluations[name].mean[metric]
    return f"{mean:.4f}" if low != low else f"{mean:.4f}\n{low:.4f} to {high:.4f}"


def _compared(on: LabelFindings, looks: Mapping[str, int]) -> str:
    if not on.comparisons:
        return ""
    dots = [
        Dot(f"{c.a} − {c.b}", c.difference, c.interval.low, c.interval.high, looks[c.a])
        for c in on.comparisons
        if c.metric == "ndcg@10"
    ]
    chart = DotChart(
        title="Differences in NDCG@10", caption="Paired over queries, with 95% bootstrap intervals.",
        dots=dots, x_label="difference in NDCG@10", reference=0.0,
    )  # fmt: skip
    rows = [
        [
            f"{c.a} − {c.b}",
            c.metric,
            f"{c.difference:+.4f}\n{_ends(c.interval, '+')}",
            p_text(c.p_corrected),
        ]
        for c in on.comparisons
    ]
    return figure(chart) + table(["paired difference", "metric", "difference", "p (Holm)"], rows)
