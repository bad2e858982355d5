"""Regression-EM: examination and relevance from clicks, the relevance by a regression on features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.bias.cells import Cells
from unskew.bias.estimator import EstimatorSettings
from unskew.bias.relevance import RELEVANCE_MODELS, Relevance
from unskew.errors import DataError, UsageError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.trees.boosters import TreeSettings

__all__ = ["RegressionEM"]

FloatArray = npt.NDArray[np.float64]

# Where examination starts at every position.
START = 0.5


@dataclass(frozen=True, kw_only=True)
class RegressionEM(EstimatorSettings):
    """Expectation maximisation over hidden examination and relevance.

    Wang, Golbandi, Bendersky, Metzler and Najork, "Position Bias Estimation for Unbiased Learning
    to Rank in Personal Search", WSDM 2018. A result d at position k is clicked if it is examined,
    with probability theta[k], and relevant, with probability gamma[d]. The E-step for a result
    that was not clicked is

        P(examined) = theta * (1 - gamma) / (1 - theta * gamma)
        P(relevant) = gamma * (1 - theta) / (1 - theta * gamma)

    and both are 1 for one that was clicked. The M-step sets theta[k] to the mean of P(examined) over
    the impressions at k, and fits gamma to P(relevant): gradient-boosted trees on the features grow
    by a few trees each time, along the gradient of the cross-entropy. The paper draws labels from
    P(relevant); their expectation is used here, which is the same without the noise.

    Sums run over distinct documents at distinct positions, so the cost does not grow with sessions.
    Only the ratios theta[k] / theta[1] are determined by clicks; ``t_plus`` holds them, ``t_minus``
    is 1.

    Parameters
    ----------
    relevance
        ``"trees"`` regresses on the features. ``"table"`` has one free gamma for each document: it
        needs no features, but documents that were seen at several positions.
    n_iterations, tolerance
        The most iterations; fewer if no theta[k], relative to the highest, changes by more than the
        tolerance in ten iterations.
    trees_per_iteration, learning_rate, num_leaves, min_data_in_leaf
        The trees, which see all features and documents.
    n_jobs
        Threads of the trees; None takes all.
    n_positions, minimum, min_shown
        As in `RelativeCTR`.

    """

    relevance: str = "trees"
    n_iterations: int = 500
    tolerance: float = 1e-4
    trees_per_iteration: int = 1
    learning_rate: float = 0.1
    num_leaves: int = 31
    min_data_in_leaf: int = 20
    n_jobs: int | None = None

    def fit(self, data: Impressions) -> PositionBias:
        """The position bias of this log."""
        self._check_settings()
        cells = Cells.of(data, n_positions=self.n_positions, by_version=self.relevance != "table")
        if not cells.clicks.sum() > 0:
            raise DataError("the log has no click: there is nothing to learn from")
        trees = TreeSettings(
            learning_rate=self.learning_rate, num_leaves=self.num_leaves, feature_fraction=1.0,
            bagging_fraction=1.0, min_data_in_leaf=self.min_data_in_leaf, min_data_in_bin=3,
            min_sum_hessian_in_leaf=1.0, seed=0, n_jobs=self.n_jobs, extra={},
        )  # fmt: skip
        model = RELEVANCE_MODELS[self.relevance](data, cells, trees, self.trees_per_iteration)
        return self.relative_bias(self._examination(cells, model), cells.shown)

    def _check_settings(self) -> None:
        self.check_shared()
        if self.relevance not in RELEVANCE_MODELS:
            raise UsageError(
                f"relevance must be one of {list(RELEVANCE_MODELS)}, got {self.relevance!r}"
            )
        smallest = {"n_iterations": 1, "trees_per_iteration": 1, "min_data_in_leaf": 1}
        for name, least in {**smallest, "num_leaves": 2, "tolerance": 0}.items():
            if not getattr(self, name) >= least:
                raise UsageError(f"{name} must be {least} or higher, got {getattr(self, name)}")
        if not self.learning_rate > 0:
            raise UsageError(f"learning_rate must be above 0, got {self.learning_rate}")

    def _examination(self, cells: Cells, model: Relevance) -> FloatArray:
        """The values of theta after the last iteration."""
        shown = cells.per_position(cells.impressions)
        theta = np.full(cells.n_positions, START)
        before = np.full(cells.n_positions, np.inf)
        for iteration in range(self.n_iterations):
            examined, relevant = expected_counts(cells, theta, model.gamma)
            information = click_information(cells, theta, model.gamma)
            theta = np.divide(
                cells.per_position(examined), shown, out=np.zeros_like(theta), where=shown > 0
            )
            model.refit(cells.per_group(relevant), cells.per_group(information))
            if iteration % 10 == 9:
                relative = theta / theta.max()
                if np.abs(relative - before).max() < self.tolerance:
                    break
                before = relative
        return theta


def expected_counts(
    cells: Cells, theta: FloatArray, gamma: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The E-step: how many impressions of each cell were examined, and how many relevant."""
    examine, relevant = theta[cells.position], gamma[cells.group]
    share = (cells.impressions - cells.clicks) / _chance_of_no_click(examine, relevant)
    return (
        cells.clicks + share * examine * (1.0 - relevant),
        cells.clicks + share * relevant * (1.0 - examine),
    )


def click_information(cells: Cells, theta: FloatArray, gamma: FloatArray) -> FloatArray:
    """Fisher's information of the clicks of each cell about the logit of gamma."""
    examine, relevant = theta[cells.position], gamma[cells.group]
    share = cells.impressions / _chance_of_no_click(examine, relevant)
    return share * examine * relevant * (1.0 - relevant) ** 2


def _chance_of_no_click(examine: FloatArray, relevant: FloatArray) -> FloatArray:
    # It is 0 only where both are certain, and then every impression was clicked.
    return np.maximum(1.0 - examine * relevant, np.finfo(np.float64).eps)
