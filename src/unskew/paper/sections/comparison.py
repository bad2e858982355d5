"""The comparison table: every ranker with every treatment of the clicks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unskew.paper.experiments import COMPARED, OURS
from unskew.paper.names import METHOD_NAMES, METRIC_NAMES, PUBLISHED, RANKER_NAMES, named
from unskew.paper.runs import METRICS, PAPER, TUNED, Result
from unskew.paper.sections.section import (
    PAPER_CLICKS,
    StudySection,
    Table,
    comparison_table,
    with_spread,
)
from unskew.paper.summary import grouped, metric_of, order_statement, select, summarise

Pair = tuple[str, str]

_ABOUT = {
    PAPER: "The paper's settings: 300 trees, p = 0, C = 200, nothing chosen.",
    TUNED: "Settings chosen on validation clicks (on validation labels for the upper bounds).",
}


def comparison_section(results: Sequence[Result]) -> StudySection | None:
    """Means over seeds beside the paper's figures, and what separates."""
    tables: list[Table] = []
    paragraphs = [
        "By NDCG@10, best first; '>' where the interval of the difference between neighbours excludes "
        "0, '≈' where it does not."
    ]
    for protocol, about in _ABOUT.items():
        groups = _groups(results, protocol)
        if not groups:
            continue
        n_seeds = len({r.seed for group in groups.values() for r in group})
        caption = (
            f"{about} Mean ± standard deviation over {n_seeds} seeds; 'paper' is what the paper "
            "reports on the Yahoo data."
        )
        tables.append(_means(groups, caption))
        if OURS in groups and len(groups) > 1:
            tables.append(_against_ours(groups, about))
        paragraphs.extend(_orders(groups, protocol))
    if not tables:
        return None
    return StudySection("The comparison", paragraphs, tables, brief=_brief(results))


def _groups(results: Sequence[Result], protocol: str) -> dict[Pair, list[Result]]:
    rows = [
        r
        for r in select(results, protocol=protocol, **PAPER_CLICKS)
        if r.method in COMPARED.get(r.ranker, ()) and r.p in (None, 0.0)
    ]
    found = grouped(rows, lambda r: (r.ranker, r.method))
    order = [(ranker, method) for ranker, methods in COMPARED.items() for method in methods]
    return {pair: found[pair] for pair in order if pair in found}


def _means(groups: Mapping[Pair, Sequence[Result]], caption: str) -> Table:
    header = ["ranker", "clicks treated by"]
    for metric in METRICS:
        header += [METRIC_NAMES[metric], "paper"]
    rows = []
    for (ranker, method), group in groups.items():
        row = [RANKER_NAMES[ranker], METHOD_NAMES[method]]
        published = PUBLISHED.get((ranker, method))
        for index, metric in enumerate(METRICS):
            theirs = "–" if published is None else f"{published[index]:.3f}"
            row += [with_spread(summarise(group, metric_of(metric))), theirs]
        rows.append(row)
    return Table(caption, header, rows)


def _brief(results: Sequence[Result]) -> Table:
    """Three metrics in both settings, each with the paper's figure behind it."""
    metrics = ("ndcg@1", "ndcg@10", "map")
    rows = []
    for protocol in _ABOUT:
        for (ranker, method), group in _groups(results, protocol).items():
            published = dict(zip(METRICS, PUBLISHED.get((ranker, method), ()), strict=False))
            cells = [
                f"{summarise(group, metric_of(m)).mean:.4f}"
                + (f" ({published[m]:.3f})" if m in published else "")
                for m in metrics
            ]
            rows.append([protocol, RANKER_NAMES[ranker], METHOD_NAMES[method], *cells])
    header = ["settings", "ranker", "clicks treated by", *(METRIC_NAMES[m] for m in metrics)]
    return Table(
        "Means over seeds; the paper's figures on the Yahoo data in brackets.", header, rows
    )


def _against_ours(groups: Mapping[Pair, Sequence[Result]], about: str) -> Table:
    by_name = {named(*pair): group for pair, group in groups.items()}
    pairs = [(named(*OURS), named(*pair)) for pair in groups if pair != OURS]
    caption = f"LambdaMART with Pairwise Debiasing against everything else. {about}"
    return comparison_table(by_name, pairs, ("ndcg@1", "ndcg@10"), caption)


def _orders(groups: Mapping[Pair, Sequence[Result]], protocol: str) -> list[str]:
    found = []
    for ranker in COMPARED:
        own = {METHOD_NAMES[m]: group for (r, m), group in groups.items() if r == ranker}
        if len(own) > 1:
            order = order_statement(own, metric_of("ndcg@10"))
            which = "the paper's" if protocol == PAPER else "chosen"
            found.append(f"{RANKER_NAMES[ranker]}, {which} settings: {order}.")
    return found
