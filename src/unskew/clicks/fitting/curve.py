"""From the examination of each position to a position bias that rankers take."""

from __future__ import annotations

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import DataError
from unskew.position_bias import PositionBias

# The smallest bias that is reported, and the fewest impressions from which one is.
MINIMUM, MIN_SHOWN = 0.001, 10.0


def examination_bias(
    examination: FloatArray, *, impressions: FloatArray, clicks: FloatArray | None = None
) -> PositionBias:
    """The examination of each position relative to the topmost that was shown often enough.

    Positions shown too rarely take the entry above and are marked as borrowed. Examination close to 0
    is held at a bound and marked as clipped. A position without a click is marked as never clicked, if
    ``clicks`` are given.
    """
    measured = impressions >= MIN_SHOWN
    if not measured.any():
        raise DataError(
            f"no position was shown {MIN_SHOWN:.0f} times: there is no curve to tell; give more sessions"
        )
    value = examination if clicks is None else np.where(clicks > 0, examination, 0.0)
    top = int(np.argmax(measured))
    if not value[top] > 0:
        raise DataError(
            f"position {top + 1} was never clicked, and the curve is relative to it: give more sessions"
        )
    curve = np.ones(len(value))
    clipped = []
    for k in range(top + 1, len(value)):
        if not measured[k]:
            curve[k] = curve[k - 1]
            continue
        curve[k] = max(value[k] / value[top], MINIMUM)
        if value[k] < MINIMUM * value[top]:
            clipped.append(k + 1)
    borrowed = np.flatnonzero(~measured) + 1
    never = [] if clicks is None else (np.flatnonzero(measured & (clicks == 0)) + 1).tolist()
    return PositionBias(
        curve,
        np.ones(len(curve)),
        clipped_positions=tuple(clipped),
        borrowed_positions=tuple(borrowed.tolist()),
        never_clicked_positions=tuple(never),
    )
