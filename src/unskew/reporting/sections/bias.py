"""The position bias: by method with intervals, as the models learned it, and its path."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unskew.charts import Line, LineChart
from unskew.charts.figure import figure
from unskew.position_bias import PositionBias
from unskew.registry import METHODS
from unskew.reporting.findings import Findings
from unskew.reporting.page import Section, paragraph, table

# The most positions that a chart of curves shows.
MOST_POSITIONS = 50
_PATHS = {
    "round": "The bias of single positions, relative to position 1, after each round.",
    "trial": "The bias of single positions, relative to position 1, in each trial of the choice.",
}


def bias_section(found: Findings) -> Section:
    """The curves of all methods and models, and what each method is or why it does not fit."""
    curves = found.curves
    text = paragraph(
        "How much less a result is looked at because of where it stands, relative to position 1. All "
        f"rankings in this report are judged by the curve of {curves.chosen}: {curves.why}."
    )
    lines = [
        _line(METHODS[one.method].title, one.bias)
        for one in curves.outcomes
        if one.bias is not None
    ]
    lines += [_line(name, bias) for name, bias in curves.others.items()]
    html = text
    if lines:
        html += figure(
            _chart(
                "Position bias by method",
                lines,
                "Bands are 95% bootstrap intervals, where they were computed.",
            )
        )
    html += _methods(found)
    learned = [
        _line(f"{name}, {curve}", model.position_bias_, curve)
        for name, model in found.models.items()
        for curve in ("t_plus", "t_minus")
        if (getattr(model.position_bias_, curve) != 1.0).any()
    ]
    if learned:
        caption = (
            "t_plus is the bias of results that were clicked, t_minus that of results that were not; "
            "they weight the pairs of results that a model learns from."
        )
        html += figure(_chart("Position bias as the models learned it", learned, caption))
    return Section("Position bias", html + _paths(found))


def _line(name: str, bias: PositionBias, curve: str = "t_plus") -> Line:
    values = np.array(bias.drawn_curves()[curve][:MOST_POSITIONS])
    spans = bias.spans().get(curve, [])[:MOST_POSITIONS]
    # A stand-in at a bound would stretch the axis over everything that was measured.
    values = np.where(values > 20, np.nan, values)
    return Line(name, values.tolist(), low=[a for a, _ in spans], high=[b for _, b in spans])


def _chart(title: str, lines: list[Line], caption: str) -> LineChart:
    return LineChart(
        title=title,
        caption=caption,
        lines=lines,
        x_label="position",
        y_label="relative to position 1",
    )


def _methods(found: Findings) -> str:
    rows = []
    for one in found.curves.outcomes:
        known = METHODS[one.method]
        if one.bias is None:
            rows.append([known.title, f"does not fit this log: {one.reason}"])
        else:
            rows.append([known.title, ". ".join((known.summary, *one.notes))])
    asked = {one.method for one in found.curves.outcomes}
    rows += [
        [known.title, f"not run; {known.summary} (unskew bias --method {known.name})"]
        for known in METHODS.values()
        if known.home and known.name not in asked
    ]
    return table(["method", "what it is, or why there is no curve"], rows)


def _paths(found: Findings) -> str:
    """The path of each model's bias over the rounds."""
    html = ""
    for name, model in found.models.items():
        for curve in ("t_plus", "t_minus"):
            if _moved(model, curve):
                unit = round_word(model)
                chart = model.bias_history_.plot(curve, f"{name}: {curve} over the {unit}s")
                html += figure(replace(chart, x_label=unit, caption=_PATHS[unit]))
    return f'<h3>The path over the rounds</h3><div class="pair">{html}</div>' if html else ""


def round_word(model: Any) -> str:
    """What the histories of a model count: one whose settings were chosen has one entry a trial."""
    return "trial" if hasattr(model, "choice_") else "round"


def _moved(model: Any, curve: str) -> bool:
    history = getattr(getattr(model, "bias_history_", None), curve, np.empty((0, 0)))
    return len(history) > 1 and bool((history != history[0]).any())
