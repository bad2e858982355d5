"""The answer: is a model better than what is live, by how much, how sure is that, what next."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import isnan

import numpy as np

from unskew.errors import UsageError
from unskew.evaluation.log_evaluation import FEW_CLICKS, LOGGED, ClickDifference
from unskew.log.impressions import Impressions
from unskew.reporting.findings import Findings
from unskew.reporting.page import bullets, paragraph

BETTER, WORSE, UNSURE = "better", "worse", "unsure"
# A verdict needs a p-value below this.
SURE = 0.05
_VERDICTS = {
    BETTER: "is better than what is live",
    WORSE: "is worse than what is live",
    UNSURE: "cannot be told from what is live",
}


@dataclass(frozen=True)
class Change:
    """A model against the logged order, relative to it.

    ``p_value`` is corrected for the number of models that were compared with the logged order.
    """

    model: str
    metric: str
    live: float
    relative: float
    low: float
    high: float
    clicks: float
    p_value: float

    @property
    def interval(self) -> str:
        """The interval in words; empty where a single query leaves none."""
        return "" if isnan(self.low) else f"95% interval {self.low:+.1%} to {self.high:+.1%}"

    @property
    def verdict(self) -> str:
        """Better or worse if p is below 0.05, else unsure; few clicks make nothing sure."""
        if self.clicks < FEW_CLICKS or not self.p_value < SURE:
            return UNSURE
        return BETTER if self.relative > 0 else WORSE


@dataclass(frozen=True)
class Answer:
    """The best model's change, those of all models, and what to do next."""

    best: Change
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]
    next_steps: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        best = self.best
        return (
            f"{best.model} {_VERDICTS[best.verdict]}: {best.relative:+.1%} {metric_words(best.metric)} "
            f"({best.interval or 'no interval: there is one query'})"
        )


def metric_words(metric: str) -> str:
    """A metric of clicks in words."""
    kind, _, cut = metric.partition("@")
    if kind == "click":
        return "clicks on the first result" if cut == "1" else f"clicks on the first {cut} results"
    return {"dcg": "discounted gain (DCG)", "ndcg": "NDCG"}[kind] + f" of the first {cut} results"


def relative_changes(found: Findings, metric: str) -> list[Change]:
    """Every model against the logged order by the doubly robust estimate, relative to that."""
    live = found.judged.estimates[LOGGED]["dr"][metric].value
    return [
        _change(one, live)
        for one in found.judged.differences
        if one.metric == metric and one.estimator == "dr" and LOGGED in (one.a, one.b)
    ]


def _change(one: ClickDifference, live: float) -> Change:
    against = one if one.b == LOGGED else one.turned()
    scale = live if live > 0 else float("nan")
    ends = against.interval
    return Change(
        against.a, one.metric, live, against.difference / scale, ends.low / scale,
        ends.high / scale, one.effective_sample_size, one.p_corrected,
    )  # fmt: skip


def answer_of(found: Findings) -> Answer:
    """The answer that the findings give."""
    changes = relative_changes(found, found.leading)
    best = max(changes, key=lambda one: one.relative)
    return Answer(best, tuple(changes), tuple(_warnings(found)), tuple(_next_steps(found, best)))


def _warnings(found: Findings) -> list[str]:
    """What stands in the way of trusting the answer, the worst first."""
    told = []
    if found.inspection.problems:
        n = found.inspection.left_out
        told.append(
            f"The log has problems: {n:,} sessions were left out. See what is wrong with it."
        )
    if found.facts is not None and not found.facts.separable:
        told.append(
            "Nothing in this log separates position from relevance: the estimates depend on a bias "
            "that the log cannot confirm."
        )
    if found.curves.why not in ("it was given", "as asked for"):
        told.append(
            f"All rankings were judged by the position bias of {found.curves.chosen}: "
            f"{found.curves.why}."
        )
    told += [one[0].upper() + one[1:] + "." for one in found.judged.notes]
    if found.sample.note:
        told.append(found.sample.note)
    told.append(
        "If a model was trained on this very log, its estimate is too high: judge it by sessions that "
        "it has not seen. The estimate ranks only what the log has shown"
        + (
            "."
            if found.judged.n_resamples
            else ", and the interval takes the bias for known: it does not know how uncertain that is."
        )
    )
    return told


def first_click_ratio(data: Impressions, depth: int = 1) -> float:
    """The share of sessions whose first click is at this position or above."""
    patterns, pages = data.patterns, data.pages
    clicked = np.diff(patterns.offsets) > 0
    first = np.full(len(patterns), np.iinfo(np.int64).max)
    entry = pages.offsets[patterns.page[clicked]] + patterns.slot[patterns.offsets[:-1][clicked]]
    first[clicked] = pages.position[entry]
    return float(patterns.count[first <= depth].sum() / patterns.count.sum())


def _change_at_the_top(found: Findings, best: Change) -> float:
    """How much the best model changes the clicks on the first result, without its sign."""
    if "click@1" not in found.metrics:
        return abs(best.relative)
    (one,) = (c for c in relative_changes(found, "click@1") if c.model == best.model)
    return abs(one.relative)


def _next_steps(found: Findings, best: Change) -> list[str]:
    from unskew.online.power import plan_ab

    if best.verdict == WORSE:
        return [
            "Do not put it live. Look at the queries it loses and at the features that move results.",
            "Train on more sessions, or with another treatment of the clicks (unskew train).",
        ]
    if best.clicks < FEW_CLICKS:
        return ["Collect more sessions: too few clicks decide this estimate."]
    steps = []
    now = first_click_ratio(found.data)
    change = _change_at_the_top(found, best)
    try:
        size = plan_ab(now, relative=max(change, 0.001)).sessions
        # A plan of a thousand sessions is as good as one of 1,013.
        rounded = float(f"{size:.2g}")
        steps.append(
            f"Test it: an A/B test finds the change of {change:.1%} in Click@1 that is estimated here "
            f"(now {now:.1%} of the sessions) with about {rounded:,.0f} sessions in both arms "
            "together (80% power, 5% level; unskew ab plan). Interleaving needs fewer (unskew "
            "interleave)."
        )
    except UsageError:
        steps.append("Test it against what is live (unskew ab plan, unskew interleave).")
    if best.verdict == UNSURE:
        steps.insert(
            0, "Collect more sessions, or more varied lists: the change may as well be chance."
        )
    else:
        steps.append(
            "Before that, look at the queries it loses, and let people judge some (unskew judge)."
        )
    if found.facts is not None and not found.facts.separable:
        steps.append(
            "Shuffle the lists of a small share of the sessions and mark them in a context column: then "
            "the position bias can be measured."
        )
    return steps


def answer_html(answer: Answer) -> str:
    """The answer as it stands on top of the page."""
    best = answer.best
    p = "p < 0.0001" if best.p_value < 0.0001 else f"p = {best.p_value:.4f}"
    tiles = [
        (f"Change in {metric_words(best.metric)}", f"{best.relative:+.1%}",
         f"live: {best.live:.3f} a session"),
        ("95% interval", best.interval.removeprefix("95% interval ") or "none",
         "doubly robust, over queries"),
        ("How sure", p, _how_sure(answer)),
        ("Clicks that decide", f"{best.clicks:,.0f}", "as many equal clicks would say as much"),
    ]  # fmt: skip
    shown = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(small)}</small></dd></div>"
        for name, value, small in tiles
    )
    mark = {BETTER: "▲", WORSE: "▼", UNSURE: "◆"}[best.verdict]
    return (
        f'<div class="answer {best.verdict}"><p class="verdict">{mark} {escape(best.model)} '
        f"<em>{escape(_VERDICTS[best.verdict])}</em></p>"
        f"{paragraph(_others(answer))}"
        f'<dl class="tiles">{shown}</dl>'
        f"<h3>What next</h3>{bullets(answer.next_steps)}"
        f"<h3>What to beware of</h3>{bullets(answer.warnings)}</div>"
    )


def _how_sure(answer: Answer) -> str:
    """What stands below the p-value."""
    best, n = answer.best, len(answer.changes)
    if not best.interval:
        return "not sure: one query has no interval"
    if best.clicks < FEW_CLICKS:
        return "too few clicks"
    among = "" if n == 1 else f", corrected for {n} models"
    if best.verdict != UNSURE:
        return f"sure at the 95% level{among}"
    return (
        f"not sure{among}" if best.low > 0 or best.high < 0 else "not sure: the interval holds zero"
    )


def _others(answer: Answer) -> str:
    """How the other models do, in a sentence."""
    best = answer.best
    more = "more" if best.relative >= 0 else "fewer"
    amount = (
        f"Estimated from the clicks of the log, {best.model} would get {abs(best.relative):.1%} {more} "
        f"{metric_words(best.metric)} than the order that was logged."
    )
    rest = [one for one in answer.changes if one is not best]
    if rest:
        told = "; ".join(f"{one.model} {one.relative:+.1%}" for one in rest)
        amount += f" The other models: {told}."
    return amount
