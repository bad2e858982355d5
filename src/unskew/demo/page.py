"""The page of the demo: the table, the bias curves, where the results went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unskew.charts import Dot, DotChart, Line, LineChart
from unskew.charts.figure import figure
from unskew.reporting.page import Section, page, paragraph, table

if TYPE_CHECKING:
    from unskew.demo.story import Story


def demo_page(story: Story) -> str:
    """The report of a demo as one HTML page."""
    clicks, gain = story.impressions, story.gain
    lead = (
        f"{clicks.n_sessions:,} simulated sessions on {clicks.n_queries:,} queries with "
        f"{clicks.n_clicks:,} clicks, seed {story.seed}. On unseen queries, undoing the position bias "
        f"changes NDCG@10 by {gain.difference:+.4f} against raw clicks (95% interval "
        f"{gain.interval.low:+.4f} to {gain.interval.high:+.4f})."
    )
    sections = [_quality(story), _differences(story), _bias(story), _ranks(story), _how(story)]
    return page("Unskew: what position bias does to a ranker", lead, sections)


def _quality(story: Story) -> Section:
    metrics = list(next(iter(story.evaluations.values())).per_query)
    rows, points = [], []
    for name, evaluation in story.evaluations.items():
        cells = [name]
        for metric in metrics:
            around = evaluation.interval(metric)
            cells.append(f"{evaluation.mean[metric]:.4f}\n{around.low:.4f} to {around.high:.4f}")
        rows.append(cells)
        around = evaluation.interval("ndcg@10")
        points.append(Dot(name, evaluation.mean["ndcg@10"], around.low, around.high))
    picture = figure(
        DotChart(
            title="NDCG@10 on unseen queries",
            caption="Means with 95% bootstrap intervals.",
            dots=points,
            x_label="NDCG@10",
        )
    )
    return Section("How good the rankers are", table(["trained on", *metrics], rows) + picture)


def _differences(story: Story) -> Section:
    rows = [
        [
            f"{c.a} against {c.b}",
            c.metric,
            f"{c.difference:+.4f}\n{c.interval.low:+.4f} to {c.interval.high:+.4f}",
            f"{c.p_corrected:.4f}",
        ]
        for c in story.comparisons
    ]
    text = paragraph(
        "Paired over queries: the mean difference with its 95% bootstrap interval, and the p-value "
        "of Fisher's randomisation test with Holm's correction."
    )
    return Section("What debiasing changes", text + table(["", "metric", "difference", "p"], rows))


def _bias(story: Story) -> Section:
    lines = [
        Line("true examination", story.true_bias.tolist()),
        Line("estimated t_plus", story.estimated_bias.t_plus.tolist()),
        Line("estimated t_minus", story.estimated_bias.t_minus.tolist()),
    ]
    caption = (
        "How often users examine a position, relative to the first: the truth of the simulation, and "
        "what Pairwise Debiasing found in the clicks alone. t_plus estimates the truth; t_minus is "
        "the bias of results that were not clicked."
    )
    return Section(
        "The position bias, true and estimated",
        figure(
            LineChart(
                title="Examination by position",
                caption=caption,
                lines=lines,
                x_label="position",
                y_label="relative to position 1",
            )
        ),
    )


def _ranks(story: Story) -> Section:
    series = [Line(name, ranks.tolist()) for name, ranks in story.average_ranks.items()]
    caption = (
        "Where the results of each logged position end up on average after re-ranking. A ranker that "
        "learned the old order keeps it; the grades show how far each position deserves to move."
    )
    return Section(
        "Where the results go",
        figure(
            LineChart(
                title="Average rank after re-ranking",
                caption=caption,
                lines=series,
                x_label="position in the log",
                y_label="average new rank",
                zero=False,
            )
        ),
    )


def _how(story: Story) -> Section:
    setting = story.setting
    text = (
        f"Generated data ({setting.n_features} features, five grades) with {setting.n_train:,} "
        f"queries for training and {setting.n_test:,} for measuring. Lists of ten by a Ranking SVM "
        "trained on 1% of the labels. Clicks by the position-based model with the eye-tracking "
        f"curve, theta {setting.theta:g}. {setting.n_estimators} trees, learning rate "
        f"{setting.learning_rate:g}, p = {setting.p:g}."
    )
    caution = (
        "The setting favours debiasing: many sessions a query, and lists that a weak ranker made. With "
        "few sessions a query, or with lists that are good already, Pairwise Debiasing may gain "
        'nothing over raw clicks, and debias="clicked", which holds t_minus at 1, is the safer choice. '
        "Try it: a seed is another world, and the simulator has other click models."
    )
    return Section("How it was made", paragraph(text) + paragraph(caution))
