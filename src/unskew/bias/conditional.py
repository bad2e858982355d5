"""Examination from groups of results seen at several positions, whatever their relevance.

Every group (a document, or documents alike) has a relevance of its own and clicks are rare events,

    clicks[g, k] ~ Poisson(impressions[g, k] * theta[k] * relevance[g])

so that, given how many clicks a group had, where they were does not depend on its relevance:

    P(a click of g was at k) = w[g, k] = impressions[g, k] theta[k] / sum over l of the same at l

The likelihood of these places is concave in log(theta) and is maximised by Newton's method. It is what
EM with one free relevance per document converges to, without its two faults: it has no start that a
document seen at one position only would keep, and no relevance of 1 to be stuck at. Such documents
drop out.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from unskew.array_types import FloatArray
from unskew.bias.cells import Cells

_MOST_STEPS, _TOLERANCE = 100, 1e-9
# The longest step of a logarithm, and how far from 0 it may go: the clicks of some positions may say
# "infinitely less than the others".
_LONGEST, _FARTHEST = 1.0, 14.0
# Added to the information of every position, in clicks: positions that no group links stay put.
_RIDGE = 1e-8


def score_and_information(cells: Cells, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The derivative of the log-likelihood in log(theta), and minus its second derivative."""
    weight = cells.impressions * theta[cells.position]
    total = cells.per_group(weight)[cells.group]
    w = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    clicks = cells.per_group(cells.clicks)
    expected = clicks[cells.group] * w
    shape = (cells.n_groups, cells.n_positions)
    table = csr_array((w, (cells.group, cells.position)), shape=shape)
    counted = csr_array((expected, (cells.group, cells.position)), shape=shape)
    score = cells.per_position(cells.clicks - expected)
    information = np.diag(cells.per_position(expected)) - (table.T @ counted).toarray()
    return score, information


def conditional_examination(cells: Cells) -> FloatArray:
    """The theta of the highest likelihood, the highest 1; 0 where a position was never clicked."""
    at = cells.shown
    clicked = at.clicks > 0
    logs = np.zeros(cells.n_positions)
    logs[clicked] = np.log(at.ctr[clicked] / at.ctr.max())
    for _ in range(_MOST_STEPS):
        theta = np.where(clicked, np.exp(logs), 0.0)
        score, information = score_and_information(cells, theta)
        ridged = information[np.ix_(clicked, clicked)] + _RIDGE * np.eye(int(clicked.sum()))
        step = np.clip(np.linalg.solve(ridged, score[clicked]), -_LONGEST, _LONGEST)
        logs[clicked] = np.clip(logs[clicked] + step, -_FARTHEST, _FARTHEST)
        logs[clicked] -= logs[clicked].max()
        if np.abs(step - step.mean()).max() < _TOLERANCE:
            break
    return np.where(clicked, np.exp(logs), 0.0)
