"""How to train on a log, from what it holds: how far debiasing can be trusted there.

Debiasing by an estimated examination is right where it can be known and harms where it cannot: behind
lists that follow relevance more closely than the features say, with few queries, with one session a
query. A likelihood that ignores positions is the safe lower bound, and an examination to a power below 1
(p = 0.5, so 2/3) lies in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unskew.choose.advice_estimators import SOUND, UNFIT
from unskew.registry import RANKERS

if TYPE_CHECKING:
    from unskew.choose.advice import Contents

# Fewer queries with a click than this, or sessions a query, and an examination that is learned with the
# relevance takes one for the other.
FEWEST_QUERIES, FEWEST_SESSIONS_PER_QUERY = 100, 2.0
BY_INTERVENTION = ("randomization", "harvesting", "table-em")


@dataclass(frozen=True)
class Method:
    """How to train: what it is called, why, and the command."""

    name: str
    title: str
    evidence: str
    command: str


def method_for(contents: Contents, trust: str, bias_method: str | None) -> Method:
    """The method for a log of these contents, whose bias can be trusted so far."""
    if not contents.features or not contents.clicks:
        return Method(
            "none", "no ranker yet",
            "Without features and clicks there is no ranker to learn; click models still find a "
            "relevance for each document that was shown.",
            "unskew clicks LOG -o relevance.parquet",
        )  # fmt: skip
    found = _likelihood(contents, trust, bias_method)
    if "auto" in RANKERS:
        choosing = " unskew train LOG -o MODEL tries this and others on held-out clicks."
        return Method(found.name, found.title, found.evidence + choosing, found.command)
    return found


def _likelihood(contents: Contents, trust: str, bias_method: str | None) -> Method:
    command = "unskew train LOG -o MODEL --ranker click-model"
    doubts = _doubts(contents, trust)
    if doubts:
        return Method(
            "blind", "the likelihood of the clicks, positions ignored",
            f"{doubts}, so that debiasing may do more harm than good.", f"{command} --debias none",
        )  # fmt: skip
    if trust == SOUND and bias_method in BY_INTERVENTION:
        return Method(
            "debiased", "the likelihood of the clicks, debiased",
            f"{contents.clicked_queries:,} queries with clicks, {contents.sessions_per_query:.1f} "
            f"sessions a query, and {bias_method} tells position from relevance whatever the ranker "
            "was.",
            command,
        )  # fmt: skip
    return Method(
        "cautious", "the likelihood of the clicks, debiased in part",
        "Position is told from relevance by features alone, which is wrong where the live ranker knew "
        "more than they say; an examination to the power of 2/3 loses little if they are right.",
        f"{command} --p 0.5",
    )  # fmt: skip


def _doubts(contents: Contents, trust: str) -> str:
    if trust == UNFIT:
        return "Nothing in this log tells position from relevance"
    if contents.clicked_queries < FEWEST_QUERIES:
        return f"Only {contents.clicked_queries:,} queries have a click"
    if contents.sessions_per_query < FEWEST_SESSIONS_PER_QUERY:
        return f"There are {contents.sessions_per_query:.1f} sessions a query"
    return ""
