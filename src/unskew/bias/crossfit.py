"""Cross-fitting: every query is predicted by trees that never saw it, and stop when that gets worse.

Trees that have seen a document's clicks can repeat them, and then nothing is left for the position to
explain: the curve becomes flat. So queries are dealt into folds, trees grow on all folds but one, the
likelihood of the fold left out says when to stop, and only that fold's documents are predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from unskew.array_types import FloatArray, IntArray
from unskew.bias.cells import Cells
from unskew.log.features import Features
from unskew.trees.boosters import TreeSettings, library

# A leaf must hold this much information about its relevance: about as many expected clicks.
INFORMATION_IN_LEAF = 20.0
# Trees have a leaf for so many clicks, between the fewest and the setting's number.
CLICKS_PER_LEAF, FEWEST_LEAVES = 50.0, 4
_TINY = 1e-12


class Task(Protocol):
    """What trees are to predict of some documents."""

    def on(self, rows: IntArray) -> Task:
        """The same task on some documents alone, which are counted anew from 0."""

    def start(self) -> float:
        """The score of every document before the first tree."""

    def derivatives(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The gradient and the curvature of the loss in the score of each document."""

    def loss(self, score: FloatArray, learned: Any) -> float:
        """The loss of these scores, with whatever else ``learned`` found out in training."""


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Scores of documents by trees that did not see their query.

    ``loss_without`` is the loss of the held-out queries before the first tree, ``loss`` at the best
    number of trees, both summed over the folds.
    """

    score: FloatArray
    loss_without: float
    loss: float
    n_trees: tuple[int, ...]

    @property
    def gain(self) -> float:
        """How much the trees lower the loss of queries they did not see; 0 or more."""
        return self.loss_without - self.loss


def deal_queries(n_queries: int, n_folds: int, seed: int) -> IntArray:
    """The fold of each query, folds as equal as can be."""
    return np.random.default_rng(seed).permutation(n_queries) % n_folds


def cross_fit(
    task: Task,
    features: Features,
    fold: IntArray,
    settings: TreeSettings,
    *,
    n_rounds: int,
    patience: int,
) -> CrossFit:
    """Predict the documents of every fold (-1: left out altogether) by the trees of the others."""
    # Trees that draw features at random must not depend on the order of the columns in a file.
    features = features.by_name()
    score = np.zeros(len(fold))
    without, best, trees = 0.0, 0.0, []
    for number in range(int(fold.max()) + 1):
        held = np.flatnonzero(fold == number)
        seen = np.flatnonzero((fold >= 0) & (fold != number))
        one = _boost(task, features, seen, held, settings, n_rounds, patience)
        score[held] = one.score
        without, best = without + one.loss_without, best + one.loss
        trees.append(one.n_trees[0])
    return CrossFit(score, without, best, tuple(trees))


def _boost(
    task: Task,
    features: Features,
    seen: IntArray,
    held: IntArray,
    settings: TreeSettings,
    n_rounds: int,
    patience: int,
) -> CrossFit:
    """Grow trees on some documents until the others' loss has not improved for a while."""
    learned, judge = task.on(seen), task.on(held)
    grower = library("lightgbm").start(features.take(seen), settings, None)
    values = features.values[held]
    start = learned.start()
    score = np.full(len(held), start)
    derivatives = learned.derivatives(np.full(len(seen), start))
    first = judge.loss(score, learned)
    best = CrossFit(score, first, first, (0,))
    for number in range(1, n_rounds + 1):
        if not grower.grow(*derivatives):
            break
        score = start + grower.held_out_score(values)
        derivatives = learned.derivatives(start + grower.score)
        loss = judge.loss(score, learned)
        if loss < best.loss:
            best = CrossFit(score, first, loss, (number,))
        if number - best.n_trees[0] >= patience:
            break
    return best


class RelevanceTask:
    """The relevance of documents under the position-based model, examination found on the way.

        P(click at k) = theta[k] * sigmoid(score)

    Each time the trees have grown, theta takes a step of Fisher scoring on its logarithm.
    """

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        at = cells.shown
        self.theta = np.where(at.impressions > 0, at.ctr, 1.0)
        # A position shown a few times and clicked each time is no measure of the highest rate.
        often = at.impressions >= 0.01 * at.impressions.max()
        self._highest = max(float(at.ctr[often].max()), _TINY)
        self.theta = np.maximum(self.theta / self._highest, _TINY)

    def on(self, rows: IntArray) -> RelevanceTask:
        """The same task on some documents alone."""
        return RelevanceTask(_cells_of_groups(self._cells, rows))

    def start(self) -> float:
        """The relevance that gives the position clicked most its clicks."""
        return float(np.log(self._highest) - np.log1p(-min(self._highest, 1.0 - 1e-6)))

    def derivatives(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Those of minus the log-likelihood, after theta has followed the scores."""
        cells, gamma = self._cells, _sigmoid(score)
        self.theta = theta_step(cells, self.theta, gamma)
        p = _chance(cells, self.theta, gamma)
        slope = p * (1.0 - gamma[cells.group])
        missed = cells.impressions - cells.clicks
        gradient = (missed / (1.0 - p) - cells.clicks / p) * slope
        information = cells.impressions * slope**2 / (p * (1.0 - p))
        return cells.per_group(gradient), cells.per_group(information)

    def loss(self, score: FloatArray, learned: Any) -> float:
        """Minus the log-likelihood with the examination that was learned elsewhere."""
        return -log_likelihood(self._cells, learned.theta, _sigmoid(score))


@dataclass(frozen=True, eq=False)
class PositionTask:
    """The mean position of documents, by weighted least squares."""

    position: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, cells: Cells) -> PositionTask:
        """The mean position of each document, weighted by how often it was shown."""
        shown = cells.per_group(cells.impressions)
        total = cells.per_group(cells.impressions * cells.position)
        return cls(np.divide(total, shown, out=np.zeros_like(total), where=shown > 0), shown)

    def on(self, rows: IntArray) -> PositionTask:
        """The same task on some documents alone; weights are 1 on average."""
        weight = self.weight[rows]
        return replace(self, position=self.position[rows], weight=weight / weight.mean())

    def start(self) -> float:
        """The mean."""
        return float(np.average(self.position, weights=self.weight))

    def derivatives(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Those of half the squared error."""
        return self.weight * (score - self.position), self.weight

    def loss(self, score: FloatArray, learned: Any) -> float:
        """The squared error."""
        return float((self.weight * (score - self.position) ** 2).sum())


def sized_leaves(clicks: float, most: int) -> int:
    """How many leaves a tree may have on a log with so many clicks."""
    return int(np.clip(clicks / CLICKS_PER_LEAF, FEWEST_LEAVES, max(most, FEWEST_LEAVES)))


def theta_step(cells: Cells, theta: FloatArray, gamma: FloatArray) -> FloatArray:
    """One step of Fisher scoring on log(theta), at most by half a logarithm."""
    p = _chance(cells, theta, gamma)
    odds = p / (1.0 - p)
    score = cells.per_position(cells.clicks - (cells.impressions - cells.clicks) * odds)
    information = cells.per_position(cells.impressions * odds)
    step = np.divide(score, information, out=np.zeros_like(score), where=information > 0)
    moved: FloatArray = np.maximum(theta * np.exp(np.clip(step, -0.5, 0.5)), _TINY)
    return moved


def log_likelihood(cells: Cells, theta: FloatArray, gamma: FloatArray) -> float:
    """That of the clicks under the position-based model."""
    p = _chance(cells, theta, gamma)
    missed = cells.impressions - cells.clicks
    return float((cells.clicks * np.log(p) + missed * np.log1p(-p)).sum())


def _chance(cells: Cells, theta: FloatArray, gamma: FloatArray) -> FloatArray:
    return np.clip(theta[cells.position] * gamma[cells.group], _TINY, 1.0 - 1e-6)


def _sigmoid(score: FloatArray) -> FloatArray:
    value: FloatArray = 1.0 / (1.0 + np.exp(-score))
    return value


def _cells_of_groups(cells: Cells, rows: IntArray) -> Cells:
    """The cells of some groups, which are counted anew from 0."""
    number = np.full(cells.n_groups, -1)
    number[rows] = np.arange(len(rows))
    kept = np.flatnonzero(number[cells.group] >= 0)
    return replace(
        cells, group=number[cells.group[kept]], position=cells.position[kept],
        impressions=cells.impressions[kept], clicks=cells.clicks[kept], n_groups=len(rows),
    )  # fmt: skip
