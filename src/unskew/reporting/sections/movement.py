"""Where results go: from logged positions to new ones, and from rare to popular documents."""

from __future__ import annotations

from unskew.charts import Bar, BarChart, HeatMap, Line, LineChart
from unskew.charts.figure import figure
from unskew.evaluation.log_evaluation import LOGGED
from unskew.reporting.exposure import GROUPS
from unskew.reporting.findings import Findings
from unskew.reporting.page import Section, paragraph, table
from unskew.reporting.sections.quality import looks_of

# The positions of the map.
DEPTH = 10


def movement_section(found: Findings, best: str) -> Section:
    """Where each logged position goes after re-ranking."""
    depth = int(min(DEPTH, found.lists.place.max()))
    names = [str(k) for k in range(1, depth + 1)]
    order = found.reranked[best]
    heat = HeatMap(
        title=f"Where each logged position goes, by {best}",
        caption="In per cent of the results that stood at the place of the row. On the outlined "
        "diagonal results keep their place; what goes below the last column is not shown.",
        values=order.transitions(depth).tolist(), x_names=names, y_names=names,
        x_label="new place", y_label="logged place",
    )  # fmt: skip
    looks = looks_of(found)
    lines = [
        Line(name, one.mean_place(depth).tolist(), look=looks[name])
        for name, one in found.reranked.items()
    ]
    lines.append(Line(LOGGED, [float(k) for k in range(1, depth + 1)], look=looks[LOGGED]))
    mean = LineChart(
        title="Mean place after re-ranking",
        caption="Of the results at each logged place. A model that has learned the old order keeps it; "
        "a flat line would mean that the old place says nothing.",
        lines=lines, x_label="logged place", y_label="mean new place", zero=False,
    )  # fmt: skip
    rows = [
        [name, f"{one.same_top():.0%}", f"{one.moved_exposure():.1%}"]
        for name, one in found.reranked.items()
    ]
    header = ["model", "sessions that keep their first result", "exposure that moves"]
    return Section("Where results go", figure(heat) + figure(mean) + table(header, rows))


def exposure_section(found: Findings) -> Section:
    """How exposure shifts between rare and popular documents."""
    looks, exposures = looks_of(found), found.exposures
    names = list(exposures)
    text = paragraph(
        "Exposure is how often a result is looked at: the times it is shown, each counted by the "
        "propensity of its place. Documents are sorted by how often the log showed them."
    )
    chart = BarChart(
        title="Exposure by popularity",
        caption="The share of all exposure that each fifth of the documents gets.",
        bars=[
            Bar(group, [float(exposures[name].by_popularity[k]) for name in names])
            for k, group in enumerate(GROUPS)
        ],
        groups=names, looks=[looks[name] for name in names], x_label="share of the exposure", share=True,
    )  # fmt: skip
    rows = [
        [
            name,
            f"{one.by_popularity[-1]:.1%}",
            f"{one.by_popularity[-1] - exposures[LOGGED].by_popularity[-1]:+.1%}",
            f"{one.gini:.3f}",
        ]
        for name, one in exposures.items()
    ]
    header = ["ranking", "of the most shown fifth", "change", "Gini of exposure"]
    return Section("Exposure and popularity", text + figure(chart) + table(header, rows))
