"""Cross-fitting: folds, derivatives of its tasks, and that nothing is predicted by its own clicks."""

from __future__ import annotations

import numpy as np
import pytest

from shown import Shown, labelled, log_of, simulated
from unskew.bias.cells import Cells
from unskew.bias.crossfit import (
    PositionTask,
    RelevanceTask,
    deal_queries,
    log_likelihood,
    sized_leaves,
    theta_step,
)
from unskew.bias.identify import fit_position, position_share

CELLS = Cells.of(
    log_of(
        Shown("abc", (1,), 30), Shown("bca", (2,), 20), Shown("cab", (1, 2), 25), Shown("acb", (3,), 9),
        Shown("acb", (), 40)
    )
)  # fmt: skip


def test_folds_are_as_equal_as_can_be():
    """Eleven queries in five folds: two or three each, another deal for another seed."""
    fold = deal_queries(11, 5, seed=0)
    assert sorted(np.bincount(fold).tolist()) == [2, 2, 2, 2, 3]
    assert fold.tolist() == deal_queries(11, 5, seed=0).tolist()
    assert fold.tolist() != deal_queries(11, 5, seed=1).tolist()


def test_the_gradient_of_relevance_is_that_of_the_likelihood():
    """Finite differences of minus the log-likelihood at the examination the task has reached."""
    task = RelevanceTask(CELLS)
    score = np.random.default_rng(0).normal(size=3) - 1
    gradient, information = task.derivatives(score)

    def loss(x):
        return -log_likelihood(CELLS, task.theta, 1 / (1 + np.exp(-x)))

    step = 1e-6 * np.eye(3)
    numeric = [(loss(score + h) - loss(score - h)) / 2e-6 for h in step]
    assert gradient == pytest.approx(numeric, rel=1e-5, abs=1e-5)
    assert (information > 0).all()


def test_steps_of_examination_end_at_the_maximum():
    """For fixed relevances, no small change of any entry makes the clicks likelier."""
    gamma = np.array([0.5, 0.3, 0.4])
    theta = np.full(3, 0.5)
    for _ in range(30):
        theta = theta_step(CELLS, theta, gamma)
    best = log_likelihood(CELLS, theta, gamma)
    for change in (0.99, 1.01):
        for k in range(3):
            other = theta.copy()
            other[k] *= change
            assert log_likelihood(CELLS, other, gamma) < best


def test_position_task_by_hand():
    """A was shown 30 + 49 times first, 25 times second and 20 times third."""
    task = PositionTask.of(CELLS)
    assert task.position[0] == pytest.approx((0 * 79 + 1 * 25 + 2 * 20) / 124)
    gradient, curvature = task.derivatives(np.zeros(3))
    assert gradient == pytest.approx(-task.weight * task.position)
    assert curvature.tolist() == task.weight.tolist()


def test_a_document_is_not_predicted_by_its_own_query():
    """A feature that is only its query's number explains nothing on queries that were not seen."""
    from dataclasses import replace

    from unskew.log.features import Features

    labels = labelled(n_queries=40)
    data, _ = simulated(labels, sessions=2000, score=labels.features.values[:, 0])
    number = np.random.default_rng(1).normal(size=(len(data.documents), 1))
    named = replace(data, documents=replace(data.documents, features=Features(number, ("id",))))
    assert position_share(fit_position(named, Cells.of(named), n_jobs=1, seed=0)) < 0.05


def test_trees_are_sized_to_the_clicks():
    """A leaf for 50 clicks, 4 leaves at least, the setting at most."""
    assert [sized_leaves(n, 31) for n in (10, 500, 1_000_000)] == [4, 10, 31]
