"""What the ranker behind the lists does to the estimates: from chance to the grades themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unskew.paper.experiments import BASELINES
from unskew.paper.names import COLOURS, LIST_NAMES, METHOD_NAMES, METRIC_NAMES
from unskew.paper.plots import Line, Panel, Plot
from unskew.paper.runs import PAPER, Result
from unskew.paper.sections.section import (
    PAPER_CLICKS,
    Section,
    Table,
    comparison_table,
    with_spread,
)
from unskew.paper.summary import Value, grouped, metric_of, select, summarise

__all__ = ["logging_section"]

METHODS = ("pairwise", *BASELINES)
ESTIMATING = METHODS[:-1]

Groups = Mapping[tuple[str, str], Sequence[Result]]


def logging_section(results: Sequence[Result]) -> Section | None:
    """Ranking quality, and the error of the estimated bias, by who made the lists."""
    defaults = {name: value for name, value in PAPER_CLICKS.items() if name != "lists"}
    rows = select(
        results, ranker="lambdamart", protocol=PAPER, method=METHODS, p=(None, 0.0), **defaults
    )
    groups = grouped(rows, lambda r: (r.method, r.lists))
    lists = [name for name in LIST_NAMES if all((m, name) in groups for m in METHODS)]
    if len(lists) < 2:
        return None
    quality = _table(groups, METHODS, lists, metric_of("ndcg@10"), "NDCG@10 on the test queries.")
    error = _table(
        groups, ESTIMATING, lists, bias_error,
        "How far the estimated t_plus is from the truth, on average over positions.",
    )  # fmt: skip
    tables = [quality, error, *(_separation(groups, name) for name in lists)]
    label = "who made the lists"
    ticks = {float(k): LIST_NAMES[name] for k, name in enumerate(lists)}
    panels = [
        Panel("", label, METRIC_NAMES["ndcg@10"],
              _lines(groups, METHODS, lists, metric_of("ndcg@10")), ticks),
        Panel("", label, "error of t_plus", _lines(groups, ESTIMATING, lists, bias_error), ticks),
    ]  # fmt: skip
    return Section(
        "The ranker behind the lists",
        [
            "Not in the paper. The better the lists, the more position and relevance say the same, "
            "and the less clicks can tell them apart."
        ],
        quality,
        tables,
        Plot(panels),
        "Ranking quality and the error of the estimated bias, by who made the lists.",
    )


def bias_error(result: Result) -> float:
    """The mean distance of t_plus from the truth."""
    return float(np.mean(np.abs(np.subtract(result.t_plus, result.true_bias))))


def _table(
    groups: Groups, methods: Sequence[str], lists: Sequence[str], value: Value, caption: str
) -> Table:
    rows = [
        [LIST_NAMES[name], *(with_spread(summarise(groups[m, name], value)) for m in methods)]
        for name in lists
    ]
    return Table(caption, ["lists", *(METHOD_NAMES[m] for m in methods)], rows)


def _lines(
    groups: Groups, methods: Sequence[str], lists: Sequence[str], value: Value
) -> list[Line]:
    xs = [float(k) for k in range(len(lists))]
    return [
        Line(METHOD_NAMES[m], COLOURS[m], xs, [summarise(groups[m, n], value).mean for n in lists])
        for m in methods
    ]


def _separation(groups: Groups, lists: str) -> Table:
    named = {METHOD_NAMES[m]: groups[m, lists] for m in METHODS}
    pairs = [(METHOD_NAMES["pairwise"], METHOD_NAMES[m]) for m in BASELINES]
    return comparison_table(
        named, pairs, ("ndcg@10",), f"What separates, {LIST_NAMES[lists]} lists."
    )
