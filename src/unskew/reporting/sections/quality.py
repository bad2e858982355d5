"""How good every model is: by the clicks of the log, and on labels."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan, nan

from unskew.charts import Dot, DotChart
from unskew.charts.figure import figure
from unskew.evaluation.log_evaluation import LOGGED, LogEvaluation
from unskew.evaluation.significance import Interval
from unskew.reporting.answer import metric_words, relative_changes
from unskew.reporting.findings import CHECKS, Findings, LabelFindings
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
        f"to it). The doubly robust estimate leads; the others check it. {bias_certainty(found)}"
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
    (leading,) = next(iter(found.judged.estimates.values()))
    checks = paragraph("These intervals take the bias for known.") + "".join(
        f"<h4>{_ESTIMATORS[name].capitalize()}</h4>{_estimate_table(found, found.checks, name)}"
        for name in CHECKS
    )
    return (
        f"<h3>All rankings, {_ESTIMATORS[leading]}</h3>"
        f"{_estimate_table(found, found.judged, leading)}"
        f"<details><summary>By the other estimators</summary>{checks}</details>"
    )


def bias_certainty(found: Findings) -> str:
    """Whether the intervals know how uncertain the bias is, in a sentence."""
    if found.judged.n_resamples:
        return "Its intervals hold the uncertainty of the bias too, which was measured on this log."
    return "Its intervals take the bias for known."


def _estimate_table(found: Findings, judged: LogEvaluation, estimator: str) -> str:
    rows = []
    for name, estimators in judged.estimates.items():
        metrics = estimators[estimator]
        cells = [
            f"{one.value:.4f}\n{_ends(one.interval)}" for one in (metrics[m] for m in found.metrics)
        ]
        rows.append([name, *cells])
    return table(["ranking", *found.metrics], rows)


def _pairs(found: Findings) -> str:
    """Every model less the logged order, then every later model less every earlier one."""
    turned = [one if one.b == LOGGED else one.turned() for one in found.judged.differences]
    ordered = sorted(turned, key=lambda one: one.b != LOGGED)
    rows = [
        [
            f"{one.a} − {one.b}",
            one.metric,
            f"{one.difference:+.4f}\n{_ends(one.interval, '+')}",
            p_text(one.p_corrected),
            f"{one.effective_sample_size:,.0f}",
        ]
        for one in ordered
    ]
    header = ["paired difference", "metric", "difference", "p (Holm)", "effective clicks"]
    return "<h3>Paired differences</h3>" + table(header, rows)


def _ends(interval: Interval, sign: str = "") -> str:
    """The ends of an interval; a single query has none."""
    if isnan(interval.low):
        return "no interval"
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
    return f"{mean:.4f}" if isnan(low) else f"{mean:.4f}\n{low:.4f} to {high:.4f}"


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
