"""Pairwise Debiasing: the closed-form update of both bias curves, given the losses per position.

    t_plus[k]  = (loss_plus[k]  / loss_plus[1])  ** (1 / (p + 1))
    t_minus[k] = (loss_minus[k] / loss_minus[1]) ** (1 / (p + 1))

where loss_plus[k] sums the losses of the pairs whose clicked result stood at k, each divided by
the bias of its unclicked one, and loss_minus[k] those whose unclicked result stood at k, each
divided by the bias of its clicked one. Both are taken with the biases of the round before.

Where the paper is silent:

- A position without any loss on a side (no pair has its clicked, or unclicked, result there) says
  nothing about its bias there: it keeps the value it had.
- If position 1 has no loss on a side, the topmost position that has one is the reference.
- A bias is kept between 1 / LIMIT and LIMIT, because a loss that falls makes a weight grow, which
  makes the loss fall further: at p = 0 nothing else stops this.

None of the three touches a run in which every position has losses and no bias leaves those bounds.
"""

from __future__ import annotations

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import UsageError
from unskew.position_bias import PositionBias

# No click log we know of has a position a thousand times less likely to be clicked for its place
# alone; a bias beyond this bound is the feedback loop described above.
LIMIT = 1000.0


def check_p(p: float) -> float:
    """The regularisation exponent, or an error that says what it must be."""
    if not (np.isfinite(p) and p >= 0):
        raise UsageError(f"p must be 0 or higher (0 regularises least), got {p}")
    return float(p)


def updated_curve(loss: FloatArray, previous: FloatArray, p: float) -> FloatArray:
    """One side of the update: losses per position and the side's previous curve -> its next."""
    curve = previous.copy()
    reference = 0.0
    for k, value in enumerate(loss.tolist()):
        if 0.0 < value < np.inf:
            reference = reference or value
            ratio = (value / reference) ** (1.0 / (p + 1.0))
            curve[k] = min(max(ratio, 1.0 / LIMIT), LIMIT)
    curve[0] = 1.0
    return curve


def reestimated(
    bias: PositionBias,
    loss_plus: FloatArray,
    loss_minus: FloatArray,
    *,
    p: float,
    sides: tuple[bool, bool],
) -> PositionBias:
    """The next bias, from the losses per position; ``sides`` says which of its curves change."""
    return PositionBias(
        updated_curve(loss_plus, bias.t_plus, p) if sides[0] else bias.t_plus,
        updated_curve(loss_minus, bias.t_minus, p) if sides[1] else bias.t_minus,
    )
