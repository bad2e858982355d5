"""Regression-EM: examination and relevance from clicks, the relevance by a regression on features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from unskew.bias.balance import n_strata_for, strata_of
from unskew.bias.cells import Cells
from unskew.bias.competition import Competition, ranks_of, warn_of_bend
from unskew.bias.conditional import conditional_examination, place_strength
from unskew.bias.crossfit import INFORMATION_IN_LEAF, RelevanceTask, cross_fit, sized_leaves
from unskew.bias.estimator import EstimatorSettings, check_clicks
from unskew.bias.identify import (
    check_features,
    check_linked,
    check_overlap,
    fit_position,
    folds_of,
    position_share,
    warn_few_moved,
    warn_no_gain,
    warn_of_leaks,
)  # fmt: skip
from unskew.bias.logged_order import OrderTask
from unskew.bias.matching import Matching
from unskew.errors import UsageError, warn
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.trees.boosters import TreeSettings

RELEVANCE = ("trees", "table")
# The most trees for the order of the logged ranker, which may be learned without any error.
MOST_ORDER_TREES = 300


@dataclass(frozen=True, kw_only=True)
class RegressionEM(EstimatorSettings):
    """Hidden examination and relevance, told apart by features or by documents that moved.

    Wang, Golbandi, Bendersky, Metzler and Najork, "Position Bias Estimation for Unbiased Learning
    to Rank in Personal Search", WSDM 2018. A result d at position k is clicked if it is examined,
    with probability theta[k], and relevant, with probability gamma[d].

    With ``relevance="trees"`` gamma is a function of the features. Two sets of boosted trees are
    grown, each judged and used only on queries it did not see (`unskew.bias.crossfit`): one for
    gamma, along the gradient of the click likelihood with theta re-estimated after each tree, and
    one for the score by which the logged ranker ordered documents (`unskew.bias.logged_order`).
    Examination is then compared among documents of about equal score, with the predicted relevance
    taken out (`unskew.bias.balance`): errors of either set of trees matter only where the other errs
    as well. What both miss of the logged ranker bends the curve, which is measured by documents alike
    that stood against better and worse ones (`unskew.bias.competition`). Trees that fit the clicks they
    are judged by would leave nothing to the position, and a curve that is flat. Documents that moved
    compare positions by themselves; what they say is pooled with the rest, each by its information.

    With ``relevance="table"`` each document has a relevance of its own, which is maximised out
    (`unskew.bias.conditional`): only documents seen at several positions count. Where these have few
    clicks, the curve is drawn towards a power of the position, ``k ** -eta``, as strongly as the
    likelihood of held-out documents asks for.

    Sums run over distinct documents at distinct positions, so the cost does not grow with sessions.
    Only the ratios theta[k] / theta[1] are determined by clicks; ``t_plus`` holds them, ``t_minus``
    is 1.

    Parameters
    ----------
    relevance
        ``"trees"`` regresses on the features. ``"table"`` needs no features, but documents that were
        seen at several positions.
    n_iterations, patience
        The most trees of a set; fewer if the held-out likelihood has not improved for ``patience``.
    learning_rate, num_leaves
        The trees of relevance. ``num_leaves`` is the most: a log with few clicks gets fewer, and a
        leaf holds as much information as about 20 clicks.
    n_folds, seed
        Into how many parts the queries are dealt, and how.
    n_jobs
        Threads of the trees; None takes all.
    n_positions, minimum, min_shown, monotone
        As in `RelativeCTR`.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> bias = unskew.bias.RegressionEM(relevance="table", n_iterations=50).fit(data)
    >>> len(bias), bool(bias.t_plus[0] > bias.t_plus[9])
    (10, True)

    """

    relevance: str = "trees"
    n_iterations: int = 500
    patience: int = 20
    learning_rate: float = 0.1
    num_leaves: int = 31
    n_folds: int = 5
    seed: int = 0
    n_jobs: int | None = None

    def prepare(self, data: Impressions) -> Callable[[Impressions], PositionBias]:
        """What remains to be done once the trees have grown, for this log or a resample of it.

        Trees are left as they are in a resample: their errors matter to the second order only.
        """
        self._check_settings()
        check_clicks(data)
        if self.relevance == "table":
            cells = Cells.of(data, n_positions=self.n_positions, by_version=False)
            check_linked(cells, self.min_shown)
            strength = place_strength(cells)
            warn_few_moved(cells, strength)
            return partial(self._from_table, strength=strength)
        check_features(data)
        cells = Cells.of(data, n_positions=self.n_positions)
        grown = self._grow(data, cells)
        warn_of_leaks(data)
        found = Matching.of(data, grown, cells)
        warn_of_bend(found.bend)
        for remark in found.remarks:
            warn(remark)
        return partial(self._from_trees, whole=data, found=found)

    def _from_trees(
        self, data: Impressions, *, whole: Impressions, found: Matching
    ) -> PositionBias:
        """The curve of the whole log, or of a resample of it by the same trees."""
        if data is not whole:
            cells = Cells.of(data, n_positions=self.n_positions)
            found = Matching.of(data, found.grown, cells)
        return self.relative_bias(found.curve, found.cells.shown)

    def _from_table(self, data: Impressions, *, strength: float) -> PositionBias:
        cells = Cells.of(data, n_positions=self.n_positions, by_version=False)
        return self.relative_bias(conditional_examination(cells, strength), cells.moved)

    def _grow(self, data: Impressions, cells: Cells) -> Competition:
        """Stratum, rank and relevance of each document, by trees that did not see its query."""
        places = fit_position(data, cells, n_jobs=self.n_jobs, seed=self.seed, n_folds=self.n_folds)
        check_overlap(position_share(places))
        clicks = float(cells.clicks.sum())
        trees = TreeSettings(
            learning_rate=self.learning_rate, num_leaves=sized_leaves(clicks, self.num_leaves),
            feature_fraction=1.0, bagging_fraction=1.0, min_data_in_leaf=1, min_data_in_bin=3,
            min_sum_hessian_in_leaf=INFORMATION_IN_LEAF, seed=self.seed, n_jobs=self.n_jobs,
            extra={"lambda_l2": 1.0},
        )  # fmt: skip
        fold = folds_of(data, cells, self.n_folds, self.seed)
        found = cross_fit(
            RelevanceTask(cells), data.features, fold, trees,
            n_rounds=self.n_iterations, patience=self.patience,
        )  # fmt: skip
        warn_no_gain(found.gain, clicks)
        order = cross_fit(
            OrderTask.of(cells, data.documents.query), data.features, fold,
            replace(trees, num_leaves=15, min_data_in_leaf=10, min_sum_hessian_in_leaf=3.0,
                    feature_fraction=0.5, bagging_fraction=0.8),
            n_rounds=MOST_ORDER_TREES, patience=self.patience,
        )  # fmt: skip
        shown = cells.per_group(cells.impressions)
        return Competition(
            query=data.documents.query,
            rank=ranks_of(order.score, data.documents.query, shown > 0),
            stratum=strata_of(-order.score, shown, n_strata_for(clicks)),
            relevance=1.0 / (1.0 + np.exp(-found.score)),
        )

    def _check_settings(self) -> None:
        self.check_shared()
        if self.relevance not in RELEVANCE:
            raise UsageError(f"relevance must be one of {list(RELEVANCE)}, got {self.relevance!r}")
        least = {"n_iterations": 1, "patience": 1, "num_leaves": 2, "n_folds": 2}
        for name, fewest in least.items():
            if not getattr(self, name) >= fewest:
                raise UsageError(f"{name} must be {fewest} or higher, got {getattr(self, name)}")
        if not self.learning_rate > 0:
            raise UsageError(f"learning_rate must be above 0, got {self.learning_rate}")
