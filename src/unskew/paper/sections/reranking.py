"""Where each ranker puts what stood at each position of the training lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unskew.charts import Line, LineChart
from unskew.paper.experiments import DRAWN
from unskew.paper.names import LOOKS, METHOD_NAMES
from unskew.paper.runs import Result
from unskew.paper.sections.section import StudySection, Table, difference_rows, lambdamart_rows
from unskew.paper.summary import differences, grouped, summarise


def reranking_section(results: Sequence[Result]) -> StudySection | None:
    """Curves by method, beside the order by grades, and how far each is from it."""
    groups = grouped(lambdamart_rows(results, DRAWN), lambda r: r.method)
    if len(groups) < 2 or not all(groups.values()):
        return None
    methods = [m for m in DRAWN if m in groups]
    lines = [_line(METHOD_NAMES[m], LOOKS[m], [r.average_rank for r in groups[m]]) for m in methods]
    ideal = [r.ideal_rank for r in groups[methods[0]]]
    lines.append(_line("By grade (truth)", LOOKS["truth"], ideal, dashed=True))
    distances = Table(
        "How far a curve is from that of the grades: the mean distance in places.",
        ["clicks treated by", "distance"],
        [
            [METHOD_NAMES[m], f"{summarise(groups[m], distance_from_ideal).mean:.3f}"]
            for m in methods
        ],
    )
    named = {METHOD_NAMES[m]: groups[m] for m in methods}
    ours = METHOD_NAMES["pairwise"]
    pairs = [(ours, name) for name in named if ours in named and name != ours]
    compared = Table(
        "The distance of Pairwise Debiasing against the others; below is better.",
        ["compared", "difference [95% interval]", "p (Holm)", "the first is"],
        difference_rows(differences(named, pairs, distance_from_ideal)),
    )
    return StudySection(
        "Where the results go",
        [
            "A ranker that has learned the old order keeps it: its curve is steep. The grades, which "
            "no ranker saw, show how far each position deserves to move."
        ],
        [distances, compared],
        [
            LineChart(
                title="Where the results go",
                lines=lines,
                x_label="position in the log",
                y_label="average position after re-ranking",
                zero=False,
            )
        ],
        "Average position after re-ranking of the results at each position of the training lists.",
    )


def _line(name: str, look: int, curves: Sequence[Sequence[float]], *, dashed: bool = False) -> Line:
    length = min(map(len, curves))
    mean = np.nanmean([curve[:length] for curve in curves], axis=0)
    return Line(name, mean.tolist(), look=look, dashed=dashed)


def distance_from_ideal(result: Result) -> float:
    """How many places a ranker is from the order by grades, on average over positions."""
    gap = np.subtract(result.average_rank, result.ideal_rank)
    return float(np.nanmean(np.abs(gap)))
