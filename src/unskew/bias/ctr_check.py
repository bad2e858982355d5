"""Whether an estimate merely repeats the CTR curve, and whether that means anything.

Where nothing in a log tells position from relevance, the curve that explains the clicks with documents
alike everywhere is the relative CTR, and estimators that find nothing better end there. It is the right
answer where results at all positions are equally relevant, and too steep behind a ranker worth its name.
"""

from __future__ import annotations

import numpy as np

from unskew.bias.cells import Cells, PositionCounts, shown_by_position
from unskew.bias.shuffling import shuffling_of
from unskew.errors import warn
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

# Fewer clicks a position than this on documents that moved measure next to nothing.
FEWEST_MOVED_CLICKS = 10.0
# How near to the CTR, as a logarithm, every entry of a curve lies that repeats it: this, or half of the
# standard error by the clicks there if that is more.
NEAR, ERRORS = 0.02, 0.5


def repeats_ctr(bias: PositionBias, at: PositionCounts) -> bool:
    """Whether every entry of ``t_plus`` that was measured lies at the relative CTR."""
    marked = {*bias.borrowed_positions, *bias.clipped_positions, *bias.never_clicked_positions}
    clicked = np.flatnonzero(at.clicks > 0)
    measured = [k for k in clicked if k + 1 not in marked and k < len(bias)]
    if len(measured) < 2:
        return False
    top, rest = measured[0], np.array(measured[1:])
    logs = np.log(bias.t_plus[rest] / bias.t_plus[top]) - np.log(at.ctr[rest] / at.ctr[top])
    error = np.sqrt(1.0 / at.clicks[rest] + 1.0 / at.clicks[top])
    return bool((np.abs(logs) <= np.maximum(NEAR, ERRORS * error)).all())


def relevance_may_follow_position(data: Impressions) -> bool:
    """Whether neither shuffled lists nor documents that moved say that a curve like the CTR is right."""
    shuffling = shuffling_of(data)
    if shuffling.can_tell and shuffling.shuffled:
        return False
    moved = Cells.of(data, by_version=False).moved
    n_positions = int((moved.impressions > 0).sum())
    return float(moved.clicks.sum()) < FEWEST_MOVED_CLICKS * max(n_positions, 1)


def warn_of_ctr(bias: PositionBias, data: Impressions) -> None:
    """Warn of an estimate that repeats the CTR curve where nothing says that it should."""
    at = shown_by_position(data, len(bias))
    if repeats_ctr(bias, at) and relevance_may_follow_position(data):
        warn(
            "the curve merely repeats the CTR of each position: it is right only if results at all "
            "positions are equally relevant, which nothing in this log shows, because lists are not "
            "shuffled and documents hardly moved. Shuffle a small share of the lists, or give features "
            "that tell what the logged ranker knew",
        )
