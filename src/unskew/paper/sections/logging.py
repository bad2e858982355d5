"""What the ranker behind the lists does to the estimates: from chance to the grades themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unskew.charts import Line, LineChart
from unskew.paper.experiments import DRAWN, ESTIMATING
from unskew.paper.names import LIST_NAMES, LOOKS, METHOD_NAMES, METRIC_NAMES
from unskew.paper.runs import Result
from unskew.paper.sections.section import (
    StudySection,
    against_first,
    lambdamart_rows,
    points_table,
)
from unskew.paper.summary import Value, grouped, metric_of, summarise

Groups = Mapping[tuple[str, str], Sequence[Result]]


def logging_section(results: Sequence[Result]) -> StudySection | None:
    """Ranking quality, and the error of the estimated bias, by who made the lists."""
    rows = lambdamart_rows(results, DRAWN, varying=("lists",))
    groups = grouped(rows, lambda r: (r.method, r.lists))
    lists = [name for name in LIST_NAMES if all((m, name) in groups for m in DRAWN)]
    if len(lists) < 2:
        return None
    points = {name: LIST_NAMES[name] for name in lists}
    quality = points_table(
        groups, DRAWN, points, metric_of("ndcg@10"), header="lists",
        caption="NDCG@10 on the test queries.",
    )  # fmt: skip
    error = points_table(
        groups, ESTIMATING, points, bias_error, header="lists",
        caption="How far the estimated t_plus is from the truth, on average over positions.",
    )  # fmt: skip
    tables = [quality, error]
    for name in lists:
        named = {METHOD_NAMES[m]: groups[m, name] for m in DRAWN}
        caption = f"What separates, {LIST_NAMES[name]} lists."
        tables.append(against_first(named, ("ndcg@10",), caption))
    label = "who made the lists"
    ticks = {float(k): LIST_NAMES[name] for k, name in enumerate(lists)}
    panels = [
        LineChart(
            title="Ranking quality by who made the lists",
            lines=_lines(groups, DRAWN, lists, metric_of("ndcg@10")),
            x_label=label, y_label=METRIC_NAMES["ndcg@10"], zero=False, x_ticks=ticks,
        ),
        LineChart(
            title="Error of the bias by who made the lists",
            lines=_lines(groups, ESTIMATING, lists, bias_error),
            x_label=label, y_label="error of t_plus", x_ticks=ticks,
        ),
    ]  # fmt: skip
    return StudySection(
        "The ranker behind the lists",
        [
            "Not in the paper. The better the lists, the more position and relevance say the same, "
            "and the less clicks can tell them apart."
        ],
        tables,
        panels,
        "Ranking quality and the error of the estimated bias, by who made the lists.",
    )


def bias_error(result: Result) -> float:
    """The mean distance of t_plus from the truth."""
    return float(np.mean(np.abs(np.subtract(result.t_plus, result.true_bias))))


def _lines(
    groups: Groups, methods: Sequence[str], lists: Sequence[str], value: Value
) -> list[Line]:
    xs = [float(k) for k in range(len(lists))]
    return [
        Line(
            METHOD_NAMES[m],
            [summarise(groups[m, n], value).mean for n in lists],
            x=xs,
            look=LOOKS[m],
        )
        for m in methods
    ]
