"""Examination from documents seen at several positions, whatever their relevance.

Given how many clicks a document had, where they were does not depend on its relevance:
`unskew.clicks.fitting.places` has the likelihood and its maximum. Where documents that moved have few
clicks the curve is drawn towards a power of the position, as strongly as held-out documents ask for.
"""

from __future__ import annotations

import numpy as np

from unskew.array_types import FloatArray
from unskew.bias.cells import Cells
from unskew.clicks.fitting.cells import StateCells
from unskew.clicks.fitting.places import (
    PlacePrior,
    fit_places,
    held_out_strength,
    linked_cells,
    score_and_information,
)


def place_strength(cells: Cells) -> float:
    """How strongly held-out documents ask for a curve that is a power of the position; 0: not at all."""
    clicks, start = _clicks_and_start(cells)
    prior = PlacePrior(np.arange(cells.n_positions), clicks)
    return held_out_strength(_linked(cells), start, clicks > 0, prior)


def conditional_examination(cells: Cells, strength: float = 0.0) -> FloatArray:
    """The theta of the highest likelihood, the highest 1; 0 where a position was never clicked."""
    clicks, start = _clicks_and_start(cells)
    penalty = PlacePrior(np.arange(cells.n_positions), clicks).penalty(strength)
    logs = fit_places(_linked(cells), start, clicks > 0, penalty)
    return np.where(clicks > 0, np.exp(logs), 0.0)


def pooled_examination(cells: Cells, theta: FloatArray, information: FloatArray) -> FloatArray:
    """The theta of documents that moved and another estimate, each by its information.

    ``information`` is that of the other estimate about log(theta). Without a document that moved the
    result is ``theta``.
    """
    free = theta > 0
    logs = np.log(np.where(free, theta, 1.0))
    found = np.exp(fit_places(_linked(cells), logs, free, information, centre=logs))
    return np.where(free, found / found[free].max(), 0.0)


def moved_information(cells: Cells, theta: FloatArray) -> FloatArray:
    """What documents that moved tell about log(theta), as a matrix, in clicks."""
    return score_and_information(_linked(cells), theta)[1]


def _clicks_and_start(cells: Cells) -> tuple[FloatArray, FloatArray]:
    """The clicks of each position, and the logarithm of its CTR relative to the highest."""
    at = cells.shown
    logs = np.zeros(cells.n_positions)
    clicked = at.clicks > 0
    logs[clicked] = np.log(at.ctr[clicked] / at.ctr.max())
    return at.clicks, logs


def _linked(cells: Cells) -> StateCells:
    whole = StateCells(
        cells.group, cells.position.astype(np.int32), cells.impressions, cells.clicks
    )
    return linked_cells(whole, cells.n_groups)
