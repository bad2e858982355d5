"""The page of the demo: the report on its held-out log, and what only a simulation knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unskew.charts import Dot, DotChart, Line, LineChart
from unskew.charts.figure import figure
from unskew.reporting.page import Section, p_text, paragraph, table
from unskew.reporting.report import Report, report

if TYPE_CHECKING:
    from unskew.demo.story import Story

TITLE = "Unskew: what position bias does to a ranker"
# Few enough that a bias can be estimated from features in seconds, and more than enough to be sure.
MOST_DOCUMENTS = 12_000


def demo_report(story: Story) -> Report:
    """The report that a search team would make, with the truth of the simulation at its end."""
    return report(
        story.rankers,
        story.held_out,
        story.test,
        curves={"true examination": story.true_bias_curve},
        title=TITLE,
        notes=[_truth(story), _ranks(story), _how(story)],
        labels_source="the simulation",
        most_documents=MOST_DOCUMENTS,
        seed=story.seed,
    )


def _truth(story: Story) -> Section:
    """All rankers on the grades, with the one that learned from them."""
    metrics = list(next(iter(story.evaluations.values())).per_query)
    rows: list[list[str]] = []
    dots: list[Dot] = []
    for name, evaluation in story.evaluations.items():
        cells = [name]
        for metric in metrics:
            around = evaluation.interval(metric)
            cells.append(f"{evaluation.mean[metric]:.4f}\n{around.low:.4f} to {around.high:.4f}")
        rows.append(cells)
        around = evaluation.interval("ndcg@10")
        dots.append(Dot(name, evaluation.mean["ndcg@10"], around.low, around.high, len(dots)))
    chart = DotChart(
        title="NDCG@10 on unseen queries",
        caption="Means with 95% bootstrap intervals, by what each ranker was trained on.",
        dots=dots,
        x_label="NDCG@10",
    )
    compared = [
        [
            f"{c.a} − {c.b}",
            c.metric,
            f"{c.difference:+.4f}\n{c.interval.low:+.4f} to {c.interval.high:+.4f}",
            p_text(c.p_corrected),
        ]
        for c in story.comparisons
    ]
    text = paragraph(
        "A simulation knows what no log does: the grades. Here stands, beside the two rankers above, "
        "one that was trained on them. Paired over queries: the mean difference with its 95% bootstrap "
        "interval, and the p-value of Fisher's randomisation test with Holm's correction."
    )
    header = ["paired difference", "metric", "difference", "p (Holm)"]
    html = figure(chart) + table(["trained on", *metrics], rows) + table(header, compared)
    return Section("What debiasing changes", text + html)


def _ranks(story: Story) -> Section:
    chart = LineChart(
        title="Average rank after re-ranking",
        caption="Where the results of each position of the training lists end up on average. A ranker "
        "that learned the old order keeps it; the grades show how far each position deserves to move.",
        lines=[Line(name, ranks.tolist()) for name, ranks in story.average_ranks.items()],
        x_label="position in the log",
        y_label="average new rank",
        zero=False,
    )
    return Section("Where results should go", figure(chart))


def _how(story: Story) -> Section:
    setting = story.setting
    text = (
        f"Seed {story.seed}. Generated data ({setting.n_features} features, five grades) with "
        f"{setting.n_train:,} queries for training and {setting.n_test:,} for measuring. Lists of ten "
        "by a Ranking SVM trained on 1% of the labels. Clicks by the position-based model with the "
        f"eye-tracking curve, theta {setting.theta:g}: {setting.sessions:,} sessions to train on, and "
        f"{setting.held_out:,} on the other queries for this report. {setting.n_estimators} trees, "
        f"learning rate {setting.learning_rate:g}, p = {setting.p:g}."
    )
    caution = (
        "The setting favours debiasing: many sessions a query, and lists that a weak ranker made. With "
        "few sessions a query, or with lists that are good already, Pairwise Debiasing may gain "
        'nothing over raw clicks, and debias="clicked", which holds t_minus at 1, is the safer choice. '
        "Try it: a seed is another world, and the simulator has other click models."
    )
    return Section("How it was made", paragraph(text) + paragraph(caution))
