"""A fitted ranker as pictures: its bias, the path of that, its validation, its features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unskew.charts import Bar, BarChart, Chart, Line, LineChart
from unskew.charts.figure import facts, figure, wrapped
from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.rankers.base import Ranker

# The most features that a chart shows.
MOST_FEATURES = 15


def bias_chart(ranker: Ranker) -> Chart:
    """The position bias that the ranker ended with."""
    return ranker.position_bias_.plot("Position bias, as learned")


def history_chart(ranker: Ranker) -> Chart:
    """The path of the bias over the rounds."""
    if not len(ranker.bias_history_):
        raise UsageError("the ranker has no rounds to show")
    return ranker.bias_history_.plot()


def validation_chart(ranker: Ranker) -> Chart:
    """The validation measure of every round."""
    measures = ranker.validation_history_
    if not measures:
        raise UsageError("the ranker was fitted without validation data: fit(…, validation=…)")
    best = ranker.best_round_
    kept = "" if best is None else f" Round {best} was kept."
    return LineChart(
        title="Validation by round",
        caption=f"The measure on held-out data after every round; higher is better.{kept}",
        lines=[Line("validation", measures)],
        x_label="round",
        y_label="measure",
        zero=False,
    )


def importance_chart(ranker: Ranker) -> Chart:
    """The features by how much they improved the loss."""
    share = getattr(ranker, "feature_importances_", None)
    if share is None:
        raise UsageError(f"{type(ranker).__name__} has no importances of features")
    order = np.argsort(-share, kind="stable")[:MOST_FEATURES].tolist()
    return BarChart(
        title="Feature importances",
        caption="How much the splits on each feature improved the loss, as a share of all.",
        bars=[Bar(ranker.feature_names_[k], [float(share[k])]) for k in order],
        groups=["share"],
        x_label="share of the improvement",
        share=True,
    )


CHARTS = {
    "bias": bias_chart,
    "history": history_chart,
    "validation": validation_chart,
    "importances": importance_chart,
}


def chart_of(ranker: Ranker, what: str) -> Chart:
    """The chart of that name."""
    if what not in CHARTS:
        raise UsageError(f"plot shows one of {tuple(CHARTS)}, got {what!r}")
    return CHARTS[what](ranker)


def ranker_html(ranker: Ranker) -> str:
    """What a notebook shows of a fitted ranker."""
    params: dict[str, Any] = ranker.get_params(deep=False)
    settings = ", ".join(
        f"{k}={v!r}" for k, v in params.items() if isinstance(v, int | float | str)
    )
    rows = [
        ("ranker", type(ranker).__name__),
        ("features", f"{len(ranker.feature_names_):,}"),
        ("rounds", f"{len(ranker.bias_history_):,}"),
        ("settings", settings),
    ]
    html = facts(rows) + figure(bias_chart(ranker))
    if getattr(ranker, "feature_importances_", None) is not None:
        html += figure(importance_chart(ranker))
    return wrapped(html)
