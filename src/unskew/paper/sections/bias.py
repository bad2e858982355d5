"""The estimated position bias, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unskew.array_types import FloatArray
from unskew.charts import Line, LineChart
from unskew.paper.experiments import ESTIMATING
from unskew.paper.names import LOOKS, METHOD_NAMES
from unskew.paper.runs import Result
from unskew.paper.sections.section import StudySection, Table, lambdamart_rows, ran_away
from unskew.paper.summary import grouped


def bias_section(results: Sequence[Result]) -> StudySection | None:
    """Medians over all runs with the middle half of them, and the shape in words."""
    groups = grouped(lambdamart_rows(results, ESTIMATING), lambda r: r.method)
    ours = groups.get("pairwise")
    if not ours:
        return None
    t_plus, t_minus = _stack([r.t_plus for r in ours]), _stack([r.t_minus for r in ours])
    truth = _stack([r.true_bias for r in ours])
    lines = [
        _line("t_plus", LOOKS["pairwise"], t_plus),
        _line("t_minus", LOOKS["t_minus"], t_minus),
    ]
    lines += [
        _line(METHOD_NAMES[m], LOOKS[m], _stack([r.t_plus for r in groups[m]]))
        for m in ESTIMATING[1:]
        if m in groups
    ]
    lines.append(_line("Truth", LOOKS["truth"], truth, dashed=True))
    return StudySection(
        "The position bias",
        _shape(t_plus, t_minus, ours),
        [_values(lines)],
        [
            LineChart(
                title="The position bias",
                lines=lines,
                x_label="position",
                y_label="relative to position 1",
            )
        ],
        "Position bias estimated by Pairwise Debiasing with LambdaMART (t_plus at clicked, t_minus at "
        "unclicked positions), by two estimators, and the truth: medians over runs, bands hold the "
        "middle half.",
    )


def _stack(curves: Sequence[Sequence[float]]) -> FloatArray:
    length = min(map(len, curves))
    return np.array([curve[:length] for curve in curves])


def _line(name: str, look: int, curves: FloatArray, *, dashed: bool = False) -> Line:
    low, middle, high = np.quantile(curves, [0.25, 0.5, 0.75], axis=0).tolist()
    return Line(name, middle, low=low, high=high, look=look, dashed=dashed)


def _values(lines: Sequence[Line]) -> Table:
    n = max(len(line.y) for line in lines)
    rows = [
        [str(k + 1), *(f"{line.y[k]:.3f}" if k < len(line.y) else "–" for line in lines)]
        for k in range(n)
    ]
    return Table("Medians over runs.", ["position", *(line.name for line in lines)], rows)


def _shape(t_plus: FloatArray, t_minus: FloatArray, runs: Sequence[Result]) -> list[str]:
    """Do both curves fall, and does t_plus fall faster? In the median, and run by run."""
    n = len(runs)
    found = []
    for name, curves in (("t_plus", t_plus), ("t_minus", t_minus)):
        middle = np.median(curves, axis=0)
        rises = [str(k + 2) for k in np.flatnonzero(np.diff(middle) > 0)]
        falls = int((np.diff(curves, axis=1) <= 0).all(axis=1).sum())
        where = "falls from position to position" if not rises else (
            f"does not fall everywhere: it rises at position {', '.join(rises)}"
        )  # fmt: skip
        found.append(f"The median {name} {where}; it falls throughout in {falls} of {n} runs.")
    slower = np.flatnonzero(np.median(t_plus, axis=0)[1:] >= np.median(t_minus, axis=0)[1:]) + 2
    faster = int((t_plus[:, 1:] < t_minus[:, 1:]).all(axis=1).sum())
    found.append(
        ("The median t_plus lies below the median t_minus at every position after the first"
         if not len(slower) else
         f"The median t_plus does not lie below the median t_minus at position "
         f"{', '.join(map(str, slower))}")
        + f"; t_plus falls faster at every position in {faster} of {n} runs."
    )  # fmt: skip
    escaped = sum(map(ran_away, runs))
    found.append(
        f"With p = 0 the bias reached its bound at some position in {escaped} of {n} runs."
    )
    return found
