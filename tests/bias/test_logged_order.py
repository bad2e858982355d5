"""The order of the logged ranker: the kernel against its twin, and the order that comes back."""

from __future__ import annotations

import numpy as np
import pytest

from shown import Shown, log_of
from unskew.bias.cells import Cells
from unskew.bias.logged_order import OrderTask
from unskew.bias.reference import order_derivatives, order_loss

# Three queries of three, one and four documents; where each document stood on average.
QUERY = np.array([2, 0, 0, 2, 1, 0, 2, 2])
POSITION = np.array([1.0, 2.0, 3.5, 4.0, 1.0, 1.0, 2.0, 3.0])
LISTS = [[5, 1, 2], [4], [0, 6, 7, 3]]
TASK = OrderTask(QUERY, POSITION)


@pytest.mark.parametrize("seed", range(5))
def test_loss_and_derivatives_equal_the_readable_twin(seed):
    """Whatever the scores, large ones too, the kernel sums what the twin sums place by place."""
    score = np.random.default_rng(seed).normal(scale=1.0 + 3.0 * seed, size=len(QUERY))
    first, second = order_derivatives(LISTS, score.tolist())
    gradient, curvature = TASK.derivatives(score)
    assert TASK.loss(score, None) == pytest.approx(order_loss(LISTS, score.tolist()), rel=1e-9)
    assert gradient == pytest.approx(first, abs=1e-9)
    assert curvature == pytest.approx(np.maximum(second, 1e-6), abs=1e-9)


def test_the_derivatives_are_those_of_the_loss():
    """Finite differences of the twin's loss give the gradient, those of the gradient the curvature."""
    score, step = np.random.default_rng(0).normal(size=len(QUERY)), 1e-5
    gradient, curvature = TASK.derivatives(score)
    for d in range(len(QUERY)):
        up, down = score.copy(), score.copy()
        up[d] += step
        down[d] -= step
        slope = (order_loss(LISTS, up.tolist()) - order_loss(LISTS, down.tolist())) / (2 * step)
        bend = (TASK.derivatives(up)[0][d] - TASK.derivatives(down)[0][d]) / (2 * step)
        assert gradient[d] == pytest.approx(slope, abs=1e-6)
        assert curvature[d] == pytest.approx(max(bend, 1e-6), abs=1e-6)


def test_two_documents_by_hand():
    """The first of two documents of equal score was chosen with probability a half."""
    task = OrderTask(np.array([0, 0]), np.array([1.0, 2.0]))
    gradient, curvature = task.derivatives(np.zeros(2))
    assert task.loss(np.zeros(2), None) == pytest.approx(np.log(2))
    assert gradient == pytest.approx([-0.5, 0.5])
    assert curvature == pytest.approx([0.25, 0.25])


def test_the_order_is_that_of_mean_positions():
    """Document b stood at 1, 1 and 3 and c at 3, 3 and 1: b comes before c in the task."""
    data = log_of(Shown("bac", (), 2), Shown("cab", (), 1))
    task = OrderTask.of(Cells.of(data), data.documents.query)
    names = data.documents.doc[np.argsort(task.position)]
    assert "".join(names.tolist()) == "bac"
    part = TASK.on(np.flatnonzero(QUERY == 0))
    assert part.loss(np.zeros(3), None) == pytest.approx(order_loss([LISTS[0]], [0.0] * 8))
