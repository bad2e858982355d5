"""What a log can tell about position bias at all, as facts and as sentences.

A curve is identified by results that were compared at several positions: documents that moved, lists
that were shuffled, or documents alike in their features that stood at different places. Where a log has
none of these, every curve explains it equally well, and an estimator that returns one anyway returns
its own starting point or the CTR curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.bias.cells import Cells
from unskew.bias.crossfit import CrossFit, PositionTask, cross_fit, deal_queries
from unskew.bias.ctr_check import FEWEST_MOVED_CLICKS as FEWEST_MOVED_CLICKS
from unskew.bias.shuffling import Shuffling, shuffling_of
from unskew.clicks.fitting.movement import linked_states
from unskew.errors import DataError, warn
from unskew.log.impressions import Impressions
from unskew.log.leaks import find_leaks
from unskew.trees.boosters import TreeSettings

# The share of the variance of positions that features may explain on queries that were held out: above
# the first hardly any two documents alike stood at different places, above the second none did.
FRAGILE_SHARE, HIGHEST_SHARE = 0.9, 0.98
# Trees on features of pure noise lowered the held-out loss by up to 0.004 a click, by the choice of
# their number alone; less than this a click is no improvement.
LEAST_GAIN_PER_CLICK = 0.01


@dataclass(frozen=True)
class LogFacts:
    """What there is in a log to tell position from relevance by.

    Attributes
    ----------
    n_clicks, n_rows, n_queries
        Clicks, results shown, queries.
    moved_share
        The share of impressions of documents that were seen at several positions.
    moved_clicks
        The clicks on such documents.
    unlinked_positions
        Positions that no chain of such documents links to the topmost.
    shuffling
        Whether the lists look shuffled.
    n_varying_features
        Features that are not the same for all documents.
    position_share
        How much of the variance of positions the features explain on held-out queries, from 0 to 1;
        None without features or with fewer than two queries.
    contexts
        The sessions of each context.

    """

    n_clicks: int
    n_rows: int
    n_queries: int
    moved_share: float
    moved_clicks: float
    unlinked_positions: tuple[int, ...]
    shuffling: Shuffling
    n_varying_features: int
    position_share: float | None
    contexts: dict[str, int]

    @property
    def separable(self) -> bool:
        """Whether anything in the log tells position from relevance."""
        by_features = self.position_share is not None and self.position_share <= HIGHEST_SHARE
        shuffled = self.shuffling.can_tell and self.shuffling.shuffled
        return 0 < self.n_clicks < self.n_rows and (
            shuffled or not self.unlinked_positions or by_features
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The facts in words, the worst first."""
        found = []
        if not self.n_clicks:
            found.append("the log has no click: there is nothing to learn from")
        elif self.n_clicks == self.n_rows:
            found.append("every result of the log was clicked: nothing tells who examined what")
        if self.unlinked_positions:
            found.append(unlinked_sentence(self.unlinked_positions))
        elif self.moved_share > 0:
            found.append(
                f"{self.moved_share:.0%} of the impressions are of documents seen at several "
                f"positions, with {self.moved_clicks:,.0f} clicks: harvesting and table-em can tell "
                "position from relevance"
            )
        if self.shuffling.can_tell and self.shuffling.shuffled:
            found.append("the lists look shuffled: randomization applies to the whole log")
        found.extend(_feature_sentences(self))
        if not self.separable:
            found.append(
                "nothing in this log separates position from relevance: shuffle the lists of a small "
                "share of the sessions and mark them in a context column"
            )
        return tuple(found)


def _feature_sentences(facts: LogFacts) -> list[str]:
    if not facts.n_varying_features:
        return ["there are no features that differ between documents: regression-em has no ground"]
    if facts.position_share is None:
        return []
    if facts.position_share > FRAGILE_SHARE:
        return [overlap_sentence(facts.position_share)]
    return [
        f"the features explain {facts.position_share:.0%} of where documents stood: documents alike "
        "stood at different positions, and regression-em can compare them"
    ]


def facts_of(data: Impressions, *, n_jobs: int | None = 1, seed: int = 0) -> LogFacts:
    """What this log can tell; features are looked at by trees on held-out queries.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> facts = unskew.bias.facts_of(data)
    >>> facts.n_queries, bool(facts.moved_share > 0.9)
    (40, True)

    """
    cells = Cells.of(data, by_version=False)
    moved, total = cells.moved, float(cells.impressions.sum())
    sessions = np.bincount(
        data.patterns.context[data.patterns.context >= 0],
        weights=data.patterns.count[data.patterns.context >= 0], minlength=len(data.contexts),
    )  # fmt: skip
    varying = n_varying_features(data)
    share = None
    if varying and data.n_queries > 1:
        share = position_share(fit_position(data, Cells.of(data), n_jobs=n_jobs, seed=seed))
    return LogFacts(
        n_clicks=data.n_clicks,
        n_rows=data.n_rows,
        n_queries=data.n_queries,
        moved_share=float(moved.impressions.sum()) / max(total, 1.0),
        moved_clicks=float(moved.clicks.sum()),
        unlinked_positions=unlinked_positions(cells, 1.0),
        shuffling=shuffling_of(data),
        n_varying_features=varying,
        position_share=share,
        contexts={str(c): int(n) for c, n in zip(data.contexts, sessions, strict=True)},
    )


def fit_position(
    data: Impressions, cells: Cells, *, n_jobs: int | None, seed: int, n_folds: int = 5
) -> CrossFit:
    """The position that its features predict for every document, by trees that did not see its query."""
    fold = folds_of(data, cells, n_folds, seed)
    trees = TreeSettings(
        learning_rate=0.1, num_leaves=31, feature_fraction=1.0, bagging_fraction=1.0,
        min_data_in_leaf=20, min_data_in_bin=3, min_sum_hessian_in_leaf=1e-3, seed=seed,
        n_jobs=n_jobs, extra={"lambda_l2": 1.0},
    )  # fmt: skip
    task = PositionTask.of(cells)
    return cross_fit(task, data.features, fold, trees, n_rounds=300, patience=10)


def folds_of(data: Impressions, cells: Cells, n_folds: int, seed: int) -> npt.NDArray[np.int64]:
    """The fold of every document's query; -1 for documents that were never shown."""
    dealt = deal_queries(data.n_queries, min(n_folds, data.n_queries), seed)
    return np.where(cells.per_group(cells.impressions) > 0, dealt[data.documents.query], -1)


def position_share(fitted: CrossFit) -> float:
    """How much of the variance of positions was predicted; 0 where there is none."""
    return fitted.gain / fitted.loss_without if fitted.loss_without > 0 else 0.0


def n_varying_features(data: Impressions) -> int:
    """Features that are not the same for all documents; missing values are a value."""
    values = data.features.values
    if not values.size:
        return 0
    same = (values == values[0]) | (np.isnan(values) & np.isnan(values[0]))
    return int((~same.all(axis=0)).sum())


def unlinked_positions(cells: Cells, min_shown: float) -> tuple[int, ...]:
    """Positions, of those shown often enough, that no chain of documents links to the topmost."""
    at = linked_states(
        cells.group, cells.position, n_documents=cells.n_groups, n_states=cells.n_positions
    )
    often = cells.shown.often(min_shown)
    top = int(np.argmax(often))
    return tuple((np.flatnonzero(often & (at != at[top])) + 1).tolist())


def unlinked_sentence(apart: tuple[int, ...], top: int = 1) -> str:
    """What it means that no document links these positions to the topmost."""
    return (
        f"no document links position(s) {list(apart[:10])} to position {top}: without documents seen "
        "at several positions nothing tells position from relevance there"
    )


def overlap_sentence(share: float) -> str:
    """What it means that the features explain so much of the position."""
    return (
        f"the features explain {share:.1%} of where documents stood: hardly any two documents alike "
        "stood at different positions, so that position and relevance cannot be told apart by them. "
        "Leave out features made from the position or the ranker's score, or shuffle a share of the "
        "lists"
    )


def check_linked(cells: Cells, min_shown: float) -> None:
    """Refuse cells whose documents do not link the positions."""
    apart = unlinked_positions(cells, min_shown)
    if apart:
        top = int(np.argmax(cells.shown.often(min_shown))) + 1
        raise DataError(
            f"{unlinked_sentence(apart, top)}; regression-em compares documents by their features"
        )


def check_features(data: Impressions) -> None:
    """Refuse a log whose features cannot tell documents, or queries, apart."""
    if not data.features.n_features:
        raise DataError(
            "the log has no features to tell relevance by: give them with the log, or use "
            "relevance='table' (the method table-em) if documents were seen at several positions"
        )
    if not n_varying_features(data):
        raise DataError(
            "all features are constant: they tell no document from another, and the curve would "
            "repeat the CTR; give features that differ"
        )
    if data.n_queries < 2:
        raise DataError(
            "the log has one query: trees are judged on queries they did not see; give more "
            "queries, or use relevance='table' (the method table-em)"
        )


def warn_of_leaks(data: Impressions) -> None:
    """Warn of features that know the clicks or the position: the curve by them is too flat."""
    for leak in find_leaks(data):
        warn(
            f"the feature {leak.column!r} {leak.reason}, and the curve is not to be trusted: leave the "
            "feature out"
        )


def check_overlap(share: float) -> None:
    """Refuse features that predict the position, or warn of them."""
    if share > HIGHEST_SHARE:
        raise DataError(overlap_sentence(share))
    if share > FRAGILE_SHARE:
        warn(f"fragile: {overlap_sentence(share)}")


def warn_no_gain(gain: float, clicks: float) -> None:
    """Warn if the features say nothing about the clicks of held-out queries."""
    if gain < LEAST_GAIN_PER_CLICK * clicks:
        warn(
            f"the features improve the log-likelihood of held-out queries by {gain:.1f} for "
            f"{clicks:,.0f} clicks, which is no more than chance: every document gets about "
            "the same relevance",
        )


def warn_few_moved(cells: Cells, strength: float = 0.0) -> None:
    """Warn if documents that moved were hardly clicked, or the curve is drawn to a power of k."""
    clicks, positions = float(cells.moved.clicks.sum()), int((cells.shown.impressions > 0).sum())
    drawn = (
        f"; it is drawn towards a power of the position by the weight of {strength:g} clicks, as "
        "held-out documents ask for"
    )
    if clicks < FEWEST_MOVED_CLICKS * positions:
        warn(
            f"documents hardly move: those seen at several positions have {clicks:,.0f} clicks in "
            f"all, for {positions} positions; the curve is mostly noise, see its intervals"
            + (drawn if strength > 0 else ""),
        )
    elif strength > 0:
        warn(
            f"documents seen at several positions have {clicks:,.0f} clicks in all: too few for a "
            f"curve without any shape{drawn}",
        )
