"""The figures over a setting: the exponent p, the degree of bias, the amount of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from unskew.charts import Line, LineChart
from unskew.paper.experiments import BASELINES, DRAWN
from unskew.paper.names import LOOKS, METHOD_NAMES, METRIC_NAMES, MODEL_NAMES
from unskew.paper.runs import DEFAULT_SEVERITY, Result
from unskew.paper.sections.section import (
    StudySection,
    Table,
    against_first,
    comparison_table,
    lambdamart_rows,
    points_table,
    ran_away,
    signed,
    with_spread,
)
from unskew.paper.summary import differences, grouped, metric_of, select, summarise

OURS = METHOD_NAMES["pairwise"]

# A method at a point of the x axis.
Point = tuple[str, float]
Groups = Mapping[Point, Sequence[Result]]


def generalisation_section(results: Sequence[Result]) -> StudySection | None:
    """NDCG@1 and MAP against p under both click models, with the baselines."""
    tables, panels = [], []
    for model, severity in DEFAULT_SEVERITY.items():
        rows = lambdamart_rows(results, DRAWN, varying=("click_model", "severity", "p"))
        rows = select(rows, click_model=model, severity=severity)
        groups = grouped(rows, lambda r: (r.method, -1.0 if r.p is None else r.p))
        exponents = sorted(p for method, p in groups if method == "pairwise")
        if len(exponents) < 2:
            continue
        named = {
            f"p = {p:g}" if method == "pairwise" else METHOD_NAMES[method]: groups[method, p]
            for method, p in sorted(groups, key=lambda point: (DRAWN.index(point[0]), point[1]))
        }
        metrics = ("ndcg@1", "map")
        title = MODEL_NAMES[model]
        tables.append(_table(named, metrics, f"Pairwise Debiasing by p, {title}."))
        others = [METHOD_NAMES[m] for m in BASELINES if (m, -1.0) in groups]
        pairs = [(f"p = {p:g}", other) for p in exponents for other in others]
        pairs += [(f"p = {p:g}", f"p = {exponents[0]:g}") for p in exponents[1:]]
        tables.append(comparison_table(named, pairs, ("ndcg@1",), f"What separates, {title}."))
        tables.append(_runaways(groups, exponents, title))
        panels += [_exponent_panel(groups, exponents, metric, title) for metric in metrics]
    if not panels:
        return None
    return StudySection(
        "The exponent p under two click models",
        [],
        tables,
        panels,
        "LambdaMART with Pairwise Debiasing by the exponent p; bands are ± one standard deviation "
        "over seeds; the baselines are flat.",
    )


def _runaways(groups: Groups, exponents: Sequence[float], title: str) -> Table:
    """How often the feedback between bias and weights had to be stopped."""
    rows = []
    for p in exponents:
        runs = groups["pairwise", p]
        rows.append([f"{p:g}", f"{sum(map(ran_away, runs))} of {len(runs)}"])
    return Table(f"Runs whose bias reached its bound, {title}.", ["p", "runs"], rows)


def _exponent_panel(
    groups: Groups, exponents: Sequence[float], metric: str, title: str
) -> LineChart:
    lines = [_line(groups, "pairwise", exponents, metric)]
    for method in BASELINES:
        if (method, -1.0) in groups:
            mean = summarise(groups[method, -1.0], metric_of(metric)).mean
            name, look = METHOD_NAMES[method], LOOKS[method]
            lines.append(Line(name, [mean], look=look, dashed=True, flat=True))
    return LineChart(
        title=f"{METRIC_NAMES[metric]} by p, {title}", lines=lines, x_label="p",
        y_label=METRIC_NAMES[metric], whole=False, zero=False,
    )  # fmt: skip


def degree_section(results: Sequence[Result]) -> StudySection | None:
    """NDCG@1 against theta and against beta, and whether methods agree where there is no bias."""
    unbiased = {"pbm": 0.0, "cascade": 1.0}
    labels = {
        "pbm": "theta (0: no position bias)",
        "cascade": "beta (1: only satisfaction is left)",
    }
    tables, panels, paragraphs = [], [], []
    for model in DEFAULT_SEVERITY:
        rows = lambdamart_rows(results, DRAWN, varying=("click_model", "severity"))
        rows = select(rows, click_model=model)
        groups = grouped(rows, lambda r: (r.method, r.severity))
        degrees = sorted({severity for _, severity in groups})
        if len(degrees) < 2:
            continue
        panels.append(_panel(groups, degrees, "ndcg@1", MODEL_NAMES[model], labels[model]))
        name = labels[model].split()[0]
        tables.append(_by_x(groups, degrees, "ndcg@1", name, f"NDCG@1, {MODEL_NAMES[model]}."))
        tables.append(_best_of(groups, degrees, "ndcg@1", name))
        if unbiased[model] in degrees:
            paragraphs.append(_agreement(groups, unbiased[model], f"{name} = {unbiased[model]:g}"))
    if not panels:
        return None
    return StudySection(
        "The degree of position bias",
        paragraphs,
        tables,
        panels,
        "NDCG@1 of LambdaMART by the degree of position bias; bands are ± one standard deviation over "
        "seeds.",
    )


def _agreement(groups: Groups, at: float, where: str) -> str:
    """Which methods differ from raw clicks although there is no position bias to undo."""
    named = {METHOD_NAMES[m]: g for (m, x), g in groups.items() if x == at}
    raw = METHOD_NAMES["clicks"]
    pairs = [(name, raw) for name in named if raw in named and name != raw]
    apart = [
        f"{one.a} ({METRIC_NAMES[metric]} {signed(one)})"
        for metric in ("ndcg@1", "ndcg@10")
        for one in differences(named, pairs, metric_of(metric))
        if one.verdict in ("above", "below") and one.p_corrected < 0.05
    ]
    if apart:
        return f"At {where} not all agree with raw clicks within noise: {'; '.join(apart)}."
    return f"At {where} every method agrees with raw clicks within noise (NDCG@1 and NDCG@10)."


def amount_section(results: Sequence[Result]) -> StudySection | None:
    """NDCG against the share of the sessions."""
    rows = lambdamart_rows(results, DRAWN, varying=("share",))
    groups = grouped(rows, lambda r: (r.method, r.share))
    shares = sorted({share for _, share in groups})
    if len(shares) < 2:
        return None
    metrics = ("ndcg@1", "ndcg@10")
    tables = [_by_x(groups, shares, m, "share of the sessions", METRIC_NAMES[m]) for m in metrics]
    tables.append(_best_of(groups, shares, "ndcg@1", "share"))
    tables.append(_gain(groups, shares[-2], shares[-1], "ndcg@1"))
    label = "share of the sessions"
    return StudySection(
        "The amount of data",
        [],
        tables,
        [_panel(groups, shares, m, "", label) for m in metrics],
        "NDCG of LambdaMART by the amount of clicks; bands are ± one standard deviation over seeds.",
    )


def _gain(groups: Groups, before: float, after: float, metric: str) -> Table:
    """What the last step in the amount of data brings each method."""
    named = {f"{METHOD_NAMES[m]} at {share:g}": group for (m, share), group in groups.items()}
    pairs = [
        (f"{METHOD_NAMES[m]} at {after:g}", f"{METHOD_NAMES[m]} at {before:g}")
        for m in DRAWN
        if (m, after) in groups
    ]
    return comparison_table(named, pairs, (metric,), "What the last step brings.")


def _line(groups: Groups, method: str, xs: Sequence[float], metric: str) -> Line:
    found = [summarise(groups[method, x], metric_of(metric)) for x in xs]
    banded = not any(isnan(one.spread) for one in found)
    return Line(
        METHOD_NAMES[method],
        [one.mean for one in found],
        x=list(xs),
        low=[one.mean - one.spread for one in found] if banded else (),
        high=[one.mean + one.spread for one in found] if banded else (),
        look=LOOKS[method],
    )


def _panel(groups: Groups, xs: Sequence[float], metric: str, title: str, x_label: str) -> LineChart:
    methods = [m for m in DRAWN if all((m, x) in groups for x in xs)]
    lines = [_line(groups, method, xs, metric) for method in methods]
    named = f"{METRIC_NAMES[metric]}, {title}" if title else f"{METRIC_NAMES[metric]} by {x_label}"
    return LineChart(
        title=named, lines=lines, x_label=x_label, y_label=METRIC_NAMES[metric], whole=False,
        zero=False,
    )  # fmt: skip


def _table(named: Mapping[str, Sequence[Result]], metrics: Sequence[str], caption: str) -> Table:
    rows = [
        [name, *(with_spread(summarise(group, metric_of(m))) for m in metrics)]
        for name, group in named.items()
    ]
    return Table(caption, ["", *(METRIC_NAMES[m] for m in metrics)], rows)


def _by_x(groups: Groups, xs: Sequence[float], metric: str, x_name: str, caption: str) -> Table:
    methods = [m for m in DRAWN if any((m, x) in groups for x in xs)]
    points = {x: f"{x:g}" for x in xs}
    value = metric_of(metric)
    return points_table(groups, methods, points, value, header=x_name, caption=caption)


def _best_of(groups: Groups, xs: Sequence[float], metric: str, x_name: str) -> Table:
    """Pairwise Debiasing against each other method at every point."""
    rows: list[list[str]] = []
    header: list[str] = []
    for x in xs:
        named = {METHOD_NAMES[m]: groups[m, x] for m in DRAWN if (m, x) in groups}
        if OURS not in named or len(named) < 2:
            continue
        table = against_first(named, (metric,), "")
        header = [x_name, *table.header]
        rows.extend([f"{x:g}", *row] for row in table.rows)
    return Table("Pairwise Debiasing against the others at every point.", header, rows)
