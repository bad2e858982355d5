"""Side by side with the debiasing of XGBoost and LightGBM on the same clicks."""

from __future__ import annotations

from collections.abc import Sequence

from unskew.charts import Line, LineChart
from unskew.paper.experiments import OURS
from unskew.paper.names import LOOKS, METRIC_NAMES, named
from unskew.paper.peers import PEERS
from unskew.paper.runs import METRICS, PAPER, Result
from unskew.paper.sections.section import (
    PAPER_CLICKS,
    StudySection,
    Table,
    against_first,
    with_spread,
)
from unskew.paper.summary import grouped, metric_of, select, summarise


def peers_section(results: Sequence[Result]) -> StudySection | None:
    """Quality and training time of each on exactly the same clicks."""
    shares = {r.share for r in select(results, ranker=tuple(PEERS))}
    if not shares:
        return None
    rows = select(
        results, protocol=PAPER, method=("pairwise", "clicked", "clicks", "own"), p=(None, 0.0),
        ranker=("lambdamart", *PEERS), **{**PAPER_CLICKS, "share": max(shares)},
    )  # fmt: skip
    groups = grouped(rows, lambda r: (r.ranker, r.method))
    if OURS not in groups or not all(groups.values()):
        return None
    order = sorted(groups, key=lambda pair: (pair != OURS, pair[0] != OURS[0], pair))
    sessions = groups[OURS][0].sessions
    means = [
        [
            named(*pair),
            *(with_spread(summarise(groups[pair], metric_of(m))) for m in METRICS),
            f"{summarise(groups[pair], _seconds).mean:.1f}",
        ]
        for pair in order
    ]
    header = ["", *(METRIC_NAMES[m] for m in METRICS), "seconds"]
    caption = (
        f"{sessions:,} sessions, the same for all, and the same trees. Seconds are of the training "
        "alone, beside other work on the same machine: a benchmark of time stands elsewhere."
    )
    by_name = {named(*pair): groups[pair] for pair in order}
    compared = against_first(by_name, ("ndcg@1", "ndcg@10"), "What separates.")
    ticks = {float(index): METRIC_NAMES[m] for index, m in enumerate(METRICS)}
    lines = [
        Line(
            named(*pair),
            [summarise(groups[pair], metric_of(m)).mean for m in METRICS],
            x=list(ticks),
            look=LOOKS[pair[1] if pair[0] == OURS[0] else pair[0]],
        )
        for pair in order
    ]
    return StudySection(
        "Side by side with the peers",
        [],
        [Table(caption, header, means), compared],
        [
            LineChart(
                title="Metrics of the peers",
                lines=lines,
                x_label="metric",
                y_label="mean over seeds",
                zero=False,
                x_ticks=ticks,
            )
        ],
        "LambdaMART with Pairwise Debiasing and the debiasing of XGBoost and LightGBM.",
    )


def _seconds(result: Result) -> float:
    return result.seconds
